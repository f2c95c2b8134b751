"""Two traces side by side: what became faster, what is new, what is gone, and which suggestions went with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np

from core.analysis import Analysis
from core.change_range import change_range
from core.figures.lookup import View
from core.figures.model import Figures, StatTable, Summary, SyncTable
from core.figures.stats import outermost_of_name, self_time
from core.judging import GAIN_PCT, Judgement, beside_far, is_shorter, judge, noise_of, why_open, with_pace
from core.kinds import DEVICE_WORK, SliceKind
from core.project import Figures as RoundFigures
from core.project import figures_of
from core.run_folder import RunRecord, run_of
from core.same_program import Condition, differing, differing_recording, project_of, ran_same_code
from core.suggestions import SourceRef, Suggestion
from core.tables import I64, Bool
from core.trace import Trace

NEW, GONE, CHANGED, SAME = "new", "gone", "changed", "same"
SAME_WITHIN = 0.02  # of the larger total: below, two runs of the same code differ by more


@dataclass(frozen=True)
class Side:
    """What one trace has under a name. Per-step values are None where steps are unknown."""

    calls: int
    total_ns: int
    self_ns: int
    calls_per_step: float | None
    total_per_step_ns: float | None
    self_per_step_ns: float | None = None


@dataclass(frozen=True)
class Difference:
    """One name in both traces; a side is None where the name does not occur there."""

    name: str
    before: Side | None
    after: Side | None
    per_step: bool = True  # both traces know their steps; else all is compared of the whole traces

    @property
    def state(self) -> str:
        """``new``, ``gone``, ``changed`` or ``same`` (calls per step equal, total within 2 %)."""
        if self.before is None:
            return NEW
        if self.after is None:
            return GONE
        before, after = self.weight(self.before), self.weight(self.after)
        calls = (self.before.calls_per_step, self.after.calls_per_step)
        if None in calls or not self.per_step:
            calls = (self.before.calls, self.after.calls)
        if calls[0] == calls[1] and abs(after - before) <= SAME_WITHIN * max(before, after):
            return SAME
        return CHANGED

    @property
    def delta_ns(self) -> float:
        """After minus before: per step where both sides know it, else in all."""
        return self.weight(self.after) - self.weight(self.before)

    def weight(self, side: Side | None) -> float:
        """Time of a side: per step where both know their steps, else in all."""
        if side is None:
            return 0.0
        known = self.per_step and side.total_per_step_ns is not None
        return float(side.total_per_step_ns or 0.0) if known else float(side.total_ns)


@dataclass(frozen=True)
class SuggestionChange:
    """A suggestion of either trace; one side is None where it is only in the other."""

    before: Suggestion | None
    after: Suggestion | None

    @property
    def state(self) -> str:
        """``new``, ``gone`` or ``same``."""
        return NEW if self.before is None else GONE if self.after is None else SAME

    @property
    def either(self) -> Suggestion:
        """The newer of the two."""
        found = self.after if self.after is not None else self.before
        assert found is not None
        return found

    @property
    def source(self) -> SourceRef | None:
        """Where it is: as the newer of the two says, else the older."""
        return next((s.source for s in (self.after, self.before) if s is not None and s.source is not None), None)


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`; each table is sorted by the size of its difference, largest first."""

    before: Summary
    after: Summary
    per_step: bool  # the tables' differences are per step (else of the whole traces)
    operators: tuple[Difference, ...]
    kernels: tuple[Difference, ...]
    ranges: tuple[Difference, ...]
    sync_points: tuple[Difference, ...]
    suggestions: tuple[SuggestionChange, ...]
    wall_ns: tuple[float | None, float | None] = (None, None)  # steps without the profiler, where the runs measured it
    differs: tuple[Condition, ...] = ()  # script, device, ...: where they differ, a change of time says little
    recording: Condition | None = None  # what was recorded in one of the two only
    cut_off: tuple[str, ...] = ()  # which of ``before`` and ``after`` are files that break off
    repeat_pct: float | None = None  # by how much runs of the same code differ, where rounds of a project tell
    noise: tuple[
        str, ...
    ] = ()  # why they cannot tell: codes of `core.judging.noise_of`, `pace`, `same_code`, `repeat`, `recording`

    @property
    def step(self) -> tuple[str, float, float] | None:
        """The step time that counts, as (name, ns before, ns after): without the profiler where both know it."""
        if self.wall_ns[0] and self.wall_ns[1]:
            return ("wall", self.wall_ns[0], self.wall_ns[1])
        return comparable_step(self.before, self.after)

    @property
    def timeless(self) -> tuple[str, ...]:
        """Which of ``before`` and ``after`` have no step time at all."""
        sides = {"before": (self.before, self.wall_ns[0]), "after": (self.after, self.wall_ns[1])}
        known = {
            side: (wall, summary.sustained_step_ns, summary.period_ns, summary.step_ns)
            for side, (summary, wall) in sides.items()
        }
        return tuple(side for side, times in known.items() if not any(times))

    @property
    def step_change_pct(self) -> float | None:
        """Change of the step time (`step` says which one), in percent of before; negative is faster."""
        pair = self.step
        return None if pair is None else 100.0 * (pair[2] - pair[1]) / pair[1]

    @property
    def outcome(self) -> str:
        """``faster``, ``slower``, ``same``, ``unclear`` (too noisy to tell) or ``unknown``: as a round is judged."""
        change = self.step_change_pct
        if change is None:
            return "unknown"
        if self.noise and change:
            return "unclear"
        return "same" if abs(change) < GAIN_PCT else "faster" if change < 0 else "slower"

    @property
    def contradiction(self) -> tuple[str, float, float] | None:
        """The recorded step, as `step`, where it went the other way than the step without the profiler."""
        pair, change = comparable_step(self.before, self.after), self.step_change_pct
        if pair is None or change is None or pair == self.step:
            return None
        other = 100.0 * (pair[2] - pair[1]) / pair[1]
        return pair if change * other < 0 and min(abs(change), abs(other)) >= GAIN_PCT else None


def comparable_step(before: Summary, after: Summary) -> tuple[str, float, float] | None:
    """Return the best step time that both know, as (name, ns before, ns after); None without one.

    The sustained step comes first, since it alone cannot be fooled by a CPU that runs ahead.
    """
    for name, field in (("sustained", "sustained_step_ns"), ("period", "period_ns"), ("host", "step_ns")):
        pair = (getattr(before, field), getattr(after, field))
        if pair[0] and pair[1]:
            return (name, float(pair[0]), float(pair[1]))
    return None


def compare(
    before: Trace,
    before_analysis: Analysis,
    after: Trace,
    after_analysis: Analysis,
    runs: tuple[RunRecord | None, RunRecord | None] | None = None,
) -> Comparison:
    """Compare two analysed traces by the names of what ran in them.

    ``runs`` are the runs that they were recorded by; those whose folders they lie in, when omitted.
    """
    if runs is None:
        found = [run_of(trace.path) if trace.sources else None for trace in (before, after)]
        runs = (found[0], found[1])
    sides = (_Names(before, before_analysis.figures), _Names(after, after_analysis.figures))
    per_step = all(side.steps for side in sides)
    device = tuple(int(k) for k in DEVICE_WORK)
    compared = Comparison(
        before_analysis.figures.summary,
        after_analysis.figures.summary,
        per_step,
        _table([side.stats("operators", (SliceKind.CPU_OP,)) for side in sides], per_step),
        _table([side.stats("kernels", device) for side in sides], per_step),
        _table([side.stats("ranges", (SliceKind.RANGE,)) for side in sides], per_step),
        _table([side.syncs() for side in sides], per_step),
        match_suggestions(before_analysis.suggestions, after_analysis.suggestions),
        (runs[0].wall_step_ns if runs[0] else None, runs[1].wall_step_ns if runs[1] else None),
        differing(before, after, runs),
        differing_recording(before, after, runs),
        tuple(side for side, trace in (("before", before), ("after", after)) if trace.report.is_cut_off),
    )
    if compared.recording is not None and not all(compared.wall_ns):
        return replace(compared, noise=("recording",))
    known = _rounds_of(runs)
    if not compared.differs and (ran_same_code(runs) or known is not None and "same_code" in known.reasons):
        return replace(compared, noise=("same_code",))
    both = ([figures_of(before_analysis, runs[0])], [figures_of(after_analysis, runs[1])])
    noise = noise_of(both[0], both[1], compared.step_change_pct)
    if all(compared.wall_ns):
        far = beside_far(noise, both[0], both[1][0], compared.step_change_pct)
        noise = with_pace(far, [*both[0], *both[1]])
    if not noise and all(compared.wall_ns) and _is_open(compared.step_change_pct, both[0], both[1][0]):
        noise = (why_open(both[0], both[1][0]),)
    if known is None or known.repeat_pct is None:
        return replace(compared, noise=noise)
    if "repeat" in known.reasons or _is_within(compared.step, known.repeat_pct):
        noise = ("repeat", *noise)
    return replace(compared, noise=noise, repeat_pct=known.repeat_pct)


def _is_open(change_pct: float | None, before: Sequence[RoundFigures], after: RoundFigures) -> bool:
    """Whether what the machine did while steps were timed leaves open which is faster."""
    return change_pct is not None and is_shorter(change_pct, change_range(before, after)) is None


def _is_within(pair: tuple[str, float, float] | None, repeat_pct: float) -> bool:
    """Whether two times lie no further apart than runs of the same code do."""
    return pair is not None and min(pair[1:]) >= max(pair[1:]) * (1.0 - repeat_pct / 100.0)


def _rounds_of(runs: tuple[RunRecord | None, RunRecord | None]) -> Judgement | None:
    """How two runs are judged as rounds of the project that is kept beside them; None where there is none of both."""
    before, after = runs
    if before is None or after is None:
        return None
    project = project_of(before)
    rounds = (project.find(before.folder), project.find(after.folder)) if project is not None else (None, None)
    if project is None or rounds[0] is None or rounds[1] is None or rounds[0] == rounds[1]:
        return None
    return judge(rounds[0], rounds[1], project.iterations)


def sync_name(trace: Trace, syncs: SyncTable, row: int) -> str:
    """Return what a sync point is compared by: its call, and the operator that it is under."""
    op = int(syncs.op_id[row])
    return trace.name(int(syncs.slice_id[row])) + (f" in {trace.name(op)}" if op >= 0 else "")


class _Names:
    """Totals by name of one trace."""

    def __init__(self, trace: Trace, figures: Figures) -> None:
        self.trace, self.figures = trace, figures
        counted = figures.step_figures.counted
        self.steps = int(counted.sum()) if len(counted) else 0
        self.in_step: Bool = np.zeros(len(trace.slices), np.bool_)
        if self.steps:
            inside = figures.step_of >= 0
            self.in_step[inside] = counted[figures.step_of[inside]]
        self.view = View(trace)
        self.own_ns: I64 = self_time(self.view) if self.steps else np.empty(0, np.int64)

    def stats(self, table: str, kinds: tuple[int, ...]) -> dict[str, Side]:
        """Return a side for each name of one of the figures' tables."""
        rows: StatTable = getattr(self.figures, table)
        slices, names = self.trace.slices, self.trace.strings
        chosen = np.flatnonzero(self.in_step & np.isin(slices.kind, kinds) & self.view.valid).astype(np.int32)
        ids, on_device = slices.name_id[chosen], table == "kernels"
        calls = times = own = None
        if self.steps:
            calls = np.bincount(ids, minlength=len(names))
            # What calls itself spends its time once, here as in all other tables.
            spent = slices.dur_ns[chosen] if on_device else outermost_of_name(self.view, chosen)[1]
            times = np.bincount(ids, spent, minlength=len(names))
            own = times
            if not on_device:
                own = np.minimum(np.bincount(ids, self.own_ns[chosen], minlength=len(names)), times)
        sides = {}
        for i in range(len(rows)):
            name_id = int(rows.name_id[i])
            sides[names[name_id]] = Side(
                int(rows.calls[i]),
                int((rows.device_total_ns if on_device else rows.host_total_ns)[i]),
                int((rows.device_self_ns if on_device else rows.host_self_ns)[i]),
                None if calls is None else float(calls[name_id]) / self.steps,
                None if times is None else float(times[name_id]) / self.steps,
                None if own is None else float(own[name_id]) / self.steps,
            )
        return sides

    def syncs(self) -> dict[str, Side]:
        """Return a side for each kind of sync point: its call, and the operator it is under. Times are waits."""
        syncs, trace = self.figures.syncs, self.trace
        groups: dict[str, list[int]] = {}
        for i in range(len(syncs)):
            groups.setdefault(sync_name(trace, syncs, i), []).append(i)
        sides = {}
        for name, rows in groups.items():
            waits = syncs.wait_ns[rows]
            counted = self.in_step[syncs.slice_id[rows]]
            waited = int(waits[waits > 0].sum())
            per_step = float(waits[counted & (waits > 0)].sum()) / self.steps if self.steps else None
            calls = float(counted.sum()) / self.steps if self.steps else None
            sides[name] = Side(len(rows), waited, waited, calls, per_step, per_step)
        return sides


def _table(sides: Sequence[Mapping[str, Side]], per_step: bool) -> tuple[Difference, ...]:
    before, after = sides
    names = list(before) + [name for name in after if name not in before]
    rows = [Difference(name, before.get(name), after.get(name), per_step) for name in names]
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), row.name)))


def match_suggestions(before: Iterable[Suggestion], after: Iterable[Suggestion]) -> tuple[SuggestionChange, ...]:
    """Pair suggestions by rule and place; the folder does not count, since runs are made from copies.

    Several at one place are told apart by their operators and by their order in the trace. What is left is paired by
    rule and function, since two versions of a script often have names of their own; then by rule and operators, where
    one of the traces has no place, since it was recorded without stacks.
    """
    left, right = _by_place(before), _by_place(after)
    for old in [key for key in left if key not in right]:
        rule, file, function, _ = old
        others = [key for key in right if key not in left and key[0] == rule and key[2] == function]
        same_file = [key for key in others if key[1] == file]
        if function and (same_file or len(others) == 1):
            right[old] = right.pop((same_file or others)[0])
    _pair_placeless(left, right)
    changes = [SuggestionChange(s, right.get(key)) for key, s in left.items()]
    changes += [SuggestionChange(None, s) for key, s in right.items() if key not in left]
    order: dict[str, int] = {GONE: 0, NEW: 1, SAME: 2}
    return tuple(sorted(changes, key=lambda c: (order[c.state], -(c.either.saving.ns or 0))))


_Place = tuple[str, str, str, str]  # rule, file, function, operators with the number among equals


def _pair_placeless(left: dict[_Place, Suggestion], right: dict[_Place, Suggestion]) -> None:
    """Give what is left of ``right`` the key of its counterpart, where one lacks places and they are as many."""
    sides: tuple[dict[tuple[str, str], list[_Place]], ...] = ({}, {})
    for side, own, other in ((sides[0], left, right), (sides[1], right, left)):
        for key in own:
            if key not in other:
                side.setdefault((key[0], key[3].rpartition("#")[0]), []).append(key)
    for group, olds in sides[0].items():
        news = sides[1].get(group, [])
        if len(olds) == len(news) and not (_have_places(olds) and _have_places(news)):
            for old, new in zip(olds, news, strict=True):
                right[old] = right.pop(new)


def _have_places(keys: list[_Place]) -> bool:
    return any(file or function for _, file, function, _ in keys)


def _by_place(suggestions: Iterable[Suggestion]) -> dict[_Place, Suggestion]:
    found: dict[_Place, Suggestion] = {}
    for s in suggestions:
        detail = f"{s.values.get('op_path', '')}#{s.ordinal}"
        file, function = "", ""
        if s.source is not None:
            file, function = PurePosixPath(s.source.file.replace("\\", "/")).name, s.source.function
        found.setdefault((s.rule_id, file, function, detail), s)
    return found
