"""What a user should know about a run beside its outcome."""

from __future__ import annotations

import statistics
from typing import Any

from profiling.events import Gathered
from profiling.outcome import hint_for
from profiling.spec import NO_GPU

MOST_COST_OF_MARKS = 1.3  # more than that, and the user is told how to make it less


def notices_of(gathered: Gathered, traces: list[dict[str, Any]], status: int, tail: str, gpu: str = "") -> list[str]:
    """Sentences about a run: what was not recorded and why, what spoils its times, what the marks cost."""
    found = list(gathered.notices.values())
    if not traces and not gathered.torch_version and status == 0:
        found.append("The script did not use torch: nothing was recorded.")
    elif not traces and status == 0:
        found.append("Nothing of torch ran while the script was recorded, so there is no trace.")
    if "fork" in gathered.elsewhere or "spawn" in gathered.elsewhere:
        found.append("Training ran in child processes that were not recorded; the trace shows the parent only.")
    if any(event.get("cut") for event in traces):
        found.append("The script ended while its trace was being written: the trace is cut off.")
    elif traces and traces[0].get("kind") == "own" and not traces[0].get("steps"):
        found.append("No complete step was found, so the trace has no step marks.")
    found += _about_marks(gathered) + _about_device(gathered, traces, gpu)
    hint = hint_for("", tail)
    if hint and status == 0:
        found.append(hint)
    return found


def _about_marks(gathered: Gathered) -> list[str]:
    """What a round that marks lines has to say: what the marks cost, or that nothing was marked."""
    if not gathered.ranges:
        return []
    if not gathered.ranges.get("statements"):
        return ["No statement was marked: no function of the imported files has the name that was asked for."]
    cost = cost_of_marks(gathered)
    if cost is None:
        return ["What the marks of the lines cost is not known: too few steps, or torch.compile is used."]
    if cost < 1.005:
        return ["The marks of the lines cost nothing that can be measured here."]
    more = "" if cost <= MOST_COST_OF_MARKS else " Choose fewer functions to make it less."
    return [f"The marks of the lines made a recorded step {cost:.2f} times as long.{more}"]


def _about_device(gathered: Gathered, traces: list[dict[str, Any]], gpu: str) -> list[str]:
    """That everything ran on the CPU, and why, as far as that is known."""
    if not traces or not gathered.torch_version or any(event.get("devices") for event in traces):
        return []
    if any(event.get("kind") != "own" for event in traces):
        return []  # nobody looked at what the script's own profiler recorded
    if gpu == NO_GPU:
        return ["Everything ran on the CPU: the GPUs were hidden from the script, as was asked for."]
    if not gathered.device_build:
        return ["Everything ran on the CPU: this torch is a CPU build, so there is no device to wait for."]
    return [
        f"Everything ran on the CPU, although this torch is built for a GPU ({gathered.device_build}): the script sent "
        "nothing to one, or saw none. Look at its choice of device, at CUDA_VISIBLE_DEVICES and at the driver."
    ]


def leading_summary(gathered: Gathered) -> dict[str, Any]:
    """Summary of the process whose steps are told: the script's own, else the first rank that trained."""
    trained = [s for s in gathered.summaries if s.get("steps")] or gathered.summaries
    return min(trained, key=lambda s: (bool(s.get("spawned")), s.get("rank") or 0), default={})


def cost_of_marks(gathered: Gathered) -> float | None:
    """Median of the recorded steps with marks over that of the recorded steps without."""
    times = leading_summary(gathered).get("times", [])
    plain = [row[2] for row in times if row[1] == "base"]
    marked = [row[2] for row in times if row[1] == "window"]
    return statistics.median(marked) / statistics.median(plain) if plain and marked else None
