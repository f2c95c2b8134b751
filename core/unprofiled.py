"""What a plan made from a recording is worth: beside the step without the profiler, and beside steps that differ."""

from __future__ import annotations

from dataclasses import dataclass

from core.analysis import Analysis
from core.judging import is_busy
from core.trace import Trace

SLOWED_PCT = 15.0  # the profiler slows a step by some per cent as a rule; more changes what a plan promises
SLOWED = (
    "A step takes {recorded} while it is recorded and {wall} without the profiler, which slows down Python and "
    "operators. What a fix saves of them is less there: read the savings as shares of the step."
)
UNEVEN = (
    "A step takes {recorded} while it is recorded and {wall} without the profiler. Part of that is the profiler; but "
    "the recorded steps take {shortest} to {longest}, which no profiler does: other programs, or work that differs by "
    "step. Read the savings as shares of the step, and record again on a quiet machine."
)
ALIKE = "If all of the step is slowed down alike, {wall} becomes about {projected}; a run of the fixed copy tells."
BUSY = (
    "A step takes {wall} without the profiler and {recorded} with it: other programs were busy, or the steps that were "
    "not recorded have more to do. Measure again."
)
WITHIN = "The recorded steps differ by {spread} among themselves: {saving} is within that."
UNKNOWN = "What is left of the savings without the profiler is unknown; a run of the fixed copy tells."


@dataclass(frozen=True)
class Slowed:
    """Step times in ns: while recorded, by the clock, and after the whole plan by the clock where it can be guessed.

    ``range_ns`` holds the shortest and the longest recorded step where they differ much.
    """

    recorded_ns: float
    wall_ns: float
    projected_ns: float | None
    range_ns: tuple[float, float] | None = None

    @property
    def template(self) -> str:
        """The sentences, with the fields of `times` to be filled in."""
        return f"{SLOWED if self.range_ns is None else UNEVEN} {UNKNOWN if self.projected_ns is None else ALIKE}"

    @property
    def times(self) -> dict[str, float | None]:
        """What the sentences name, in ns."""
        shortest, longest = self.range_ns or (None, None)
        return {
            "recorded": self.recorded_ns,
            "wall": self.wall_ns,
            "projected": self.projected_ns,
            "shortest": shortest,
            "longest": longest,
        }


def slowed(trace: Trace, analysis: Analysis, wall_ns: float | None) -> Slowed | None:
    """How much longer a step takes while it is recorded; None where that is not known, or is little.

    The profiler's cost lies on Python and operators, not on the device. Where device work was recorded, the step
    without the profiler may wait for the device instead, and no saving is carried over to it. Without a device the
    plan's share of the step is, and only under the assumption that is stated with it.
    """
    recorded = analysis.figures.summary.sustained_step_ns
    if not wall_ns or not recorded or recorded <= (1 + SLOWED_PCT / 100) * wall_ns:
        return None
    projected = None
    if analysis.plan and not trace.has_device_work:
        projected = wall_ns * analysis.plan[-1].predicted_step_ns / recorded
    return Slowed(recorded, wall_ns, projected, _range(analysis))


def longer(analysis: Analysis, wall_ns: float | None) -> float | None:
    """The recorded step in ns where the one without the profiler is much longer (`BUSY` says so); else None."""
    summary = analysis.figures.summary
    recorded = summary.sustained_step_ns or summary.step_ns
    return recorded if is_busy(wall_ns, recorded, summary.step_ns or recorded) else None


def hidden_by(analysis: Analysis, saving_pct: float) -> float | None:
    """By how many per cent the middle half of the recorded steps differs, where a saving is less (`WITHIN`)."""
    for note in analysis.figures.doctor:
        if note.code == "uneven-steps" and saving_pct < float(note.values["share"]):
            return float(note.values["share"])
    return None


def _range(analysis: Analysis) -> tuple[float, float] | None:
    """The shortest and the longest recorded step in ns, where the doctor calls the steps uneven."""
    for note in analysis.figures.doctor:
        if note.code == "uneven-steps":
            return 1e6 * float(note.values["low_ms"]), 1e6 * float(note.values["high_ms"])
    return None
