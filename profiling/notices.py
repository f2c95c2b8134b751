"""What a user should know about a run beside its outcome."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import Any

from profiling.events import Gathered
from profiling.outcome import hint_for
from profiling.sentences import Sentence, joined, say
from profiling.spec import NO_GPU
from profiling.typical_step import hiccups, is_even, typical_step

ABRUPT = (-4, -6, -7, -8, -9, -11)  # exit statuses of killed and crashed scripts; Windows does not name those signals
MOST_NAMES = 4  # of traces that one sentence lists
SLOWER_UNPROFILED = 1.1  # a step without the profiler that takes so much longer than with it was disturbed
UNRECORDED = {"recording", "unsaved", "unsaved-full", "unsaved-large"}  # notices of what kept a trace from being made
CLEAR = 2.5  # standard errors: a difference beyond them is no chance
MOST_COST_OF_MARKS = 1.3  # more than that, and the user is told how to make it less


def notices_of(
    gathered: Gathered, traces: list[dict[str, Any]], status: int, tail: str, gpu: str = ""
) -> list[Sentence]:
    """Sentences about a run: what was not recorded and why, what spoils its times, what the marks cost."""
    steps = any(event.get("steps") for event in traces)  # then the parent of the ranks has nothing to say
    found = [
        sentence for sentence in gathered.notices.values() if not (sentence.key in ("whole", "commands") and steps)
    ]
    if not traces and not gathered.torch_version and status == 0:
        found.append(say("no-torch"))
    elif not traces and status == 0 and not UNRECORDED & gathered.notices.keys():
        found.append(say("nothing-ran"))
    elif not traces and status in ABRUPT and gathered.progress.step:
        found.append(say("killed-early"))
    found += _about_children(gathered)
    if any(event.get("cut") for event in traces):
        found.append(say("cut"))
    elif traces and traces[0].get("kind") == "own" and not traces[0].get("steps"):
        light = traces[0].get("phase") == "whole" and traces[0].get("left_out")
        found.append(say("steps-unknown", left_out=_listed(light)) if light else say("no-steps"))
    found += _about_others(traces) + _about_options(traces) + _about_marks(gathered)
    found += _about_device(gathered, traces, gpu) + _about_times(gathered)
    hint = hint_for("", tail)
    if hint and status == 0:
        found.append(hint)
    return found


def _about_children(gathered: Gathered) -> list[Sentence]:
    """Processes of the script's that trained and were not recorded, and why."""
    known = {"stacks": say("children-stacks"), "device": say("children-device")}
    lost = gathered.elsewhere - {"many", *known} or gathered.forked - {event.get("pid") for event in gathered.traces}
    return [known[how] for how in sorted(gathered.elsewhere & known.keys())] + [say("children")] * bool(lost)


def _about_others(traces: list[dict[str, Any]]) -> list[Sentence]:
    """Where the traces are that nobody opens: of further windows and processes, and of the script's own profiler."""
    beside = traces[1:]  # ranks are opened together
    ours = [event for event in beside if event.get("kind") == "own" and event.get("rank") is None]
    found = {"more-traces": ours, "script-traces": [event for event in beside if event.get("kind") == "script"]}
    return [say(key, names=_names(events)) for key, events in found.items() if events]


def _names(events: list[dict[str, Any]]) -> str:
    names = [os.path.basename(event["path"]) for event in events[:MOST_NAMES]]
    return ", ".join(names) + ", …" * (len(events) > MOST_NAMES)


def _about_options(traces: list[dict[str, Any]]) -> list[Sentence]:
    """That the first steps stand in for the window, and what they were recorded without."""
    missing = traces[0].get("left_out") if traces and traces[0].get("steps") else None
    if not missing:
        return []
    return [say("early", left_out=_listed(missing))]


def _listed(names: list[str]) -> str:
    return names[-1] if len(names) == 1 else say("left-out", left=", ".join(names[:-1]), out=names[-1])


def _about_times(gathered: Gathered) -> list[Sentence]:
    """That the two step times contradict each other: the profiler makes no step faster."""
    times = step_times(gathered)
    doubt = 1.0 + CLEAR * (times.profiled_error_pct or 0.0) / 100.0  # uneven steps: the few recorded ones tell little
    if not times.wall_us or not times.profiled_us or times.wall_us <= SLOWER_UNPROFILED * doubt * times.profiled_us:
        return []
    wall, profiled = map(duration, (times.wall_us, times.profiled_us))
    return [say("disturbed", wall=wall, profiled=profiled)]


def _about_marks(gathered: Gathered) -> list[Sentence]:
    """What a round that marks lines has to say: what the marks cost, or that nothing was marked."""
    if not gathered.ranges:
        return []
    if not gathered.ranges.get("statements"):
        return [say("marks-none")]
    cost = cost_of_marks(gathered)
    if cost is None:
        return [say("marks-unknown")]
    if cost < 1.005:
        return [say("marks-free")]
    told = say("marks-cost", times=f"{cost:.2f}")
    return [told if cost <= MOST_COST_OF_MARKS else joined(told, say("marks-fewer"))]


def _about_device(gathered: Gathered, traces: list[dict[str, Any]], gpu: str) -> list[Sentence]:
    """That everything ran on the CPU, and why, as far as that is known."""
    if not traces or not gathered.torch_version or any(event.get("devices") for event in traces):
        return []
    if any(event.get("kind") != "own" for event in traces):
        return []  # nobody looked at what the script's own profiler recorded
    if gpu == NO_GPU:
        return [say("cpu-asked")]
    if not gathered.device_build:
        return [say("cpu-build")]
    return [say("cpu-unused", build=gathered.device_build)]


def duration(us: float) -> str:
    """A time of microseconds, in the unit that suits it."""
    return f"{us / 1e6:.3g} s" if us >= 999_500 else f"{us / 1000:.3g} ms"


def leading_summary(gathered: Gathered) -> dict[str, Any]:
    """Summary of the process whose steps are told: the script's own, else the first rank that trained."""
    trained = [s for s in gathered.summaries if s.get("steps")] or gathered.summaries
    return min(trained, key=lambda s: (bool(s.get("spawned")), s.get("rank") or 0), default={})


@dataclass(frozen=True)
class StepTimes:
    """Microseconds per step: ``wall_us`` without the profiler over ``timed`` steps, ``profiled_us`` in the window.

    ``waited_pct`` of that timing went by while other programs had the cores, ``crowded_pct`` while the script's own
    threads and workers had them (sums over threads, so they may exceed 100). ``error_pct`` is the standard error of
    ``wall_us``, ``loop_us`` what a fixed piece of work took beside it (or before and after the loop, where the script's
    own workers never rested), ``profiled_error_pct`` that of ``profiled_us``.
    """

    wall_us: float | None
    profiled_us: float | None
    timed: int
    waited_pct: float | None = None
    error_pct: float | None = None
    loop_us: float | None = None
    crowded_pct: float | None = None
    profiled_error_pct: float | None = None


def step_times(gathered: Gathered) -> StepTimes:
    """One step's time with and without the profiler; one slow step among a few does not decide either of them.

    Without a device it is that of `typical_step`: the median, or the mean where the steps are uneven. With one a
    single step's time on the host says little, since the device may lag behind: there it is the time of all of them,
    the device synchronised at both ends, less what hiccups took longer than the median.
    """
    summary = leading_summary(gathered)
    times, clocked = summary.get("times", []), summary.get("wall", [])
    each = [float(row[2]) for row in times if row[1] == "wall"]
    profiled = [float(row[2]) for row in times if row[1] == "window"]
    timed = sum(row[0] for row in clocked)
    whole = sum(row[1] for row in clocked)
    each = each[-timed:] if timed else each  # the first ones may have gone by
    wall = whole / timed if timed else None
    error = None
    if wall is not None and each:
        usual = statistics.median(each)
        on_device = any(event.get("devices") for event in gathered.traces)
        if on_device:
            wall = wall - hiccups(each) / timed
            wall = max(wall, usual) if is_even(each) else wall
        else:
            wall, error = typical_step(each)
    paces = [row[2] for row in clocked if len(row) > 2]
    waited, crowded = (
        [pace[key] for pace in paces if pace.get(key) is not None] for key in ("waited_us", "crowded_us")
    )
    loops = [pace["loop_us"] for pace in paces if pace.get("loop_us")] or [summary.get("loop_us")]
    return StepTimes(
        wall,
        typical_step(profiled)[0],
        timed,
        100.0 * sum(waited) / whole if waited and whole else None,
        error,
        statistics.mean(loops) if all(loops) else None,
        100.0 * sum(crowded) / whole if crowded and whole else None,
        typical_step(profiled)[1],
    )


def cost_of_marks(gathered: Gathered) -> float | None:
    """Median of the recorded steps with marks over that of the recorded steps without."""
    times = leading_summary(gathered).get("times", [])
    plain = [row[2] for row in times if row[1] == "base"]
    marked = [row[2] for row in times if row[1] == "window"]
    return statistics.median(marked) / statistics.median(plain) if plain and marked else None
