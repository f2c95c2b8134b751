"""The guided loop as data: iterations of one script, what was fixed, what was predicted and what came of it.

A project is a folder with ``project.json``, one ``copies/N`` per iteration with the changed sources, and references to
the runs' folders. It is written after every change, whole or not at all, so that work can be left and resumed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from core.analysis import Analysis
from core.errors import TraceError
from core.files import alone_in, write_atomically
from core.fixes.propose import ProposedEdit
from core.run_folder import RunRecord
from core.suggestions import Suggestion

FORMAT = "steplens.project/1"
NAME, COPIES = "project.json", "copies"
LEAST_FOR_INNER = 5  # steps, of which one may lie apart from the others


@dataclass(frozen=True)
class AppliedFix:
    """One fix of an iteration, as it was proposed."""

    rule_id: str
    title: str
    place: str  # file:line of the suggestion, "" where it had none
    summary: str
    diff: str
    saving_ns: int | None  # predicted alone
    key: str = ""  # of the suggestion, in the trace it came from


@dataclass(frozen=True)
class Figures:
    """What the table shows of one iteration; None is unknown."""

    verdict: str = "unknown"
    sustained_ns: float | None = None
    wall_ns: float | None = None  # measured without the profiler
    host_ns: float | None = None  # ProfilerStep
    gpu_busy_pct: float | None = None
    sync_points: float | None = None  # per step
    sync_wait_ns: float | None = None  # per step
    kernels: float | None = None  # per step
    rules: tuple[str, ...] = ()  # what is still suggested
    spread_pct: float | None = None  # half the range of the recorded steps, of their median
    error_pct: float | None = None  # standard error of the recorded steps' mean, of it
    left: int | None = None  # suggestions that its plan shows unasked: what one can go on with
    waited_pct: float | None = None  # of the timing without the profiler, while other programs had the cores
    wall_error_pct: float | None = None  # standard error of ``wall_ns``
    loop_ns: float | None = None  # what a fixed piece of work took beside that timing
    crowded_pct: float | None = None  # as ``waited_pct``, while the script's own threads and workers had the cores
    low_pct: float | None = (
        None  # shortest recorded step, of their mean, less 100; without the one that lies furthest out
    )
    high_pct: float | None = None  # as ``low_pct``, the longest
    inner_error_pct: float | None = None  # as ``error_pct``, without that step


@dataclass(frozen=True)
class Iteration:
    """One round: the baseline has no parent and no fixes."""

    number: int
    run_folder: str
    created_s: float
    parent: int | None = None
    fixes: tuple[AppliedFix, ...] = ()
    predicted_ns: float | None = None  # sustained step predicted for it, from its parent's trace
    copy: str = ""  # folder with the changed sources, "" for the user's own
    figures: Figures = Figures()
    state: str = "ok"
    by: str = ""  # which process runs it, while it is running
    again: int | None = None  # the round whose code, of the user's own files, it ran once more
    made_from: int | None = None  # a round that was cut off, whose code was changed for it; then not the parent

    @property
    def is_measured(self) -> bool:
        """Whether its trace was read: its figures are there, as far as they can be known."""
        return self.figures != Figures()

    @property
    def is_good(self) -> bool:
        """Whether others can be compared with it: measured, and not cut off before that was done."""
        return self.is_measured and (self.state in ("ok", "running") or self.figures.wall_ns is not None)


@dataclass(frozen=True)
class Project:
    """All iterations of one script."""

    folder: Path
    script: str
    iterations: tuple[Iteration, ...] = ()

    def find(self, run_folder: Path) -> Iteration | None:
        """The iteration that a run's folder belongs to."""
        wanted = os.path.realpath(run_folder)
        ran = (i for i in self.iterations if i.run_folder)
        return next((i for i in ran if os.path.realpath(i.run_folder) == wanted), None)

    def get(self, number: int | None) -> Iteration | None:
        """An iteration by its number."""
        return next((i for i in self.iterations if i.number == number), None)

    def base_for(self, made_from: Iteration | None) -> tuple[Iteration | None, tuple[AppliedFix, ...]]:
        """What to compare a round with that is made from another, and the fixes that this one holds beyond that.

        That other one, or where it was cut off, the nearest before it that was not; a run of the user's own files has
        none before it, and the newest good run of them stands in. Where none is good, it stays.
        """
        one, fixes = made_from, tuple[AppliedFix, ...]()
        while one is not None and not one.is_good:
            fixes = (*one.fixes, *fixes)
            one = self.get(one.parent)
        if one is None:
            own = [i for i in self.iterations if i.parent is None and not i.copy and i.is_good]
            one = own[-1] if own else None
        return (one, fixes) if one is not None else (made_from, ())

    def next_copy(self) -> Path:
        """Folder for the next changed copy, which does not exist yet."""
        number = 1 + max((i.number for i in self.iterations), default=0)
        while (self.folder / COPIES / str(number)).exists():
            number += 1
        return self.folder / COPIES / str(number)

    def same(self, iteration: Iteration) -> Iteration:
        """An iteration as it is here: another one that was written first may have taken its number."""
        return next((i for i in self.iterations if _key(i) == _key(iteration)), iteration)

    def with_iteration(self, iteration: Iteration) -> Project:
        """The project with an iteration added, or replaced by number."""
        others = [i for i in self.iterations if i.number != iteration.number]
        return replace(self, iterations=tuple(sorted([*others, iteration], key=lambda i: i.number)))

    def next_number(self) -> int:
        """Number of the next iteration; the baseline is 0."""
        return 1 + max((i.number for i in self.iterations), default=-1)

    def with_others(self, base: Project | None = None) -> Project:
        """The project with what another window has written since this one wrote ``base``; nothing is written."""
        there = load_project(self.folder)
        return self if there is None else _merged(self, there, base)

    def save(self, base: Project | None = None) -> Project:
        """Write ``project.json``, with the rounds that another window has written there meanwhile.

        Parameters
        ----------
        base
            The project as this window wrote it last: a round that is still like that, and is not in the file, was
            changed by another window, whose word then counts.

        Returns
        -------
        Project
            What was written. A round that is new gets another number where the file has its own taken; one that was
            written keeps its number, in all windows.

        Raises
        ------
        TraceError
            When the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(f"{self.folder} cannot be made: {error.strerror or error}.") from error
        with alone_in(self.folder):
            _keep_what_is_not_ours(self.folder / NAME)
            there = load_project(self.folder)
            merged = self if there is None else _merged(_renumbered(self, there, base), there, base)
            values = {"format": FORMAT, "script": self.script, "iterations": [asdict(i) for i in merged.iterations]}
            how = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY  # a number of an array's kind loses no round
            write_atomically(self.folder / NAME, orjson.dumps(values, option=how))
        return merged


def _key(iteration: Iteration) -> tuple[float, str]:
    """What a round is known by in all windows: the time it was made, and its copy."""
    return iteration.created_s, iteration.copy


def _renumbered(mine: Project, there: Project, base: Project | None) -> Project:
    """The project with other numbers for rounds that were never written, where the file has theirs for others."""
    written = {_key(i) for known in (there, base) if known is not None for i in known.iterations}
    own = {_key(i) for i in mine.iterations}
    taken = {row.number for row in there.iterations if _key(row) not in own}
    fresh = [i.number for i in mine.iterations if _key(i) not in written and i.number in taken]
    free = max(mine.next_number(), there.next_number())
    numbers: dict[int | None, int] = {number: free + at for at, number in enumerate(fresh)}
    rows = [
        replace(
            i,
            number=numbers.get(i.number, i.number),
            parent=numbers.get(i.parent, i.parent),
            again=numbers.get(i.again, i.again),
            made_from=numbers.get(i.made_from, i.made_from),
        )
        for i in mine.iterations
    ]
    return replace(mine, iterations=tuple(sorted(rows, key=lambda i: i.number)))


def _merged(mine: Project, there: Project, base: Project | None) -> Project:
    """The project with the rounds of another that it does not know."""
    own = {_key(i): i for i in mine.iterations}
    old = {_key(i): i for i in base.iterations} if base is not None else {}
    numbers = {row.number: own[_key(row)].number for row in there.iterations if _key(row) in own}
    for row in there.iterations:
        parent = numbers.get(row.parent, row.parent) if row.parent is not None else None
        again = numbers.get(row.again, row.again) if row.again is not None else None
        origin = numbers.get(row.made_from, row.made_from) if row.made_from is not None else None
        known, before = own.get(_key(row)), old.get(_key(row))
        row = replace(row, parent=parent, again=again, made_from=origin)
        if known is None:
            free = row.number if mine.get(row.number) is None else mine.next_number()
            numbers[row.number] = free
            mine = mine.with_iteration(replace(row, number=free))
        elif known == before:
            kept = {name: getattr(known, name) for name in ("number", "parent", "again", "made_from")}
            mine = mine.with_iteration(replace(row, **kept))
    return mine


def project_folder(root: Path, script: str) -> Path:
    """Folder of a script's project below the folder of all projects: readable, and one per path."""
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(script).stem)[:40] or "script"
    return root / f"{name}-{hashlib.sha256(script.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def load_project(folder: Path) -> Project | None:
    """Read a project; None where there is none that can be read. What does not fit is left out."""
    try:
        values = orjson.loads((folder / NAME).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(values, dict) or not str(values.get("format", "")).startswith("steplens.project/"):
        return None
    rows = values.get("iterations")
    found = [_iteration(row) for row in rows] if isinstance(rows, list) else []
    return Project(folder, str(values.get("script", "")), tuple(i for i in found if i is not None))


def _keep_what_is_not_ours(file: Path) -> None:
    """Put aside what would be lost: a project that is damaged or of a later version."""
    try:
        data = file.read_bytes()
    except OSError:
        return
    try:
        values = orjson.loads(data)
        found = [_iteration(row) for row in values["iterations"]]
        if values["format"] == FORMAT and None not in found:
            return
    except (ValueError, TypeError, KeyError):
        pass
    place, number = file.with_name(f"{file.name}.kept"), 2
    while place.exists():
        place, number = file.with_name(f"{file.name}.kept-{number}"), number + 1
    write_atomically(place, data)


def all_projects(root: Path) -> list[Project]:
    """Projects below the folder of all projects, the one written last first."""
    try:
        files = [folder / NAME for folder in root.iterdir() if (folder / NAME).is_file()]
        files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    except OSError:
        return []
    found = [load_project(file.parent) for file in files]
    return [project for project in found if project is not None and project.iterations]


def _iteration(row: Any) -> Iteration | None:
    try:
        known = {f.name: row[f.name] for f in fields(Iteration) if f.name in row}
        known["fixes"] = tuple(AppliedFix(**fix) for fix in row.get("fixes", ()))
        kept = dict(row.get("figures", {}))
        shown = {f.name: kept[f.name] for f in fields(Figures) if f.name in kept}  # a newer version may keep more
        shown["rules"] = tuple(shown.get("rules", ()))
        known["figures"] = Figures(**shown)
        return _checked(Iteration(**known))
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def _checked(found: Iteration) -> Iteration | None:
    """The iteration, where what is reckoned with and sorted by is of its kind."""
    shown = found.figures
    texts = (found.run_folder, found.copy, found.state, found.by, shown.verdict, *shown.rules)
    texts += tuple(text for fix in found.fixes for text in (fix.rule_id, fix.title, fix.place, fix.summary, fix.diff))
    numbers = [getattr(shown, f.name) for f in fields(Figures) if f.name not in ("verdict", "rules")]
    numbers += [found.created_s, found.predicted_ns, *(fix.saving_ns for fix in found.fixes)]
    whole = (
        type(found.number) is int
        and "\0" not in f"{found.run_folder}{found.copy}"
        and all(number is None or type(number) is int for number in (found.parent, found.again, found.made_from))
    )
    fits = whole and all(isinstance(text, str) for text in texts) and found.created_s is not None
    return found if fits and all(n is None or type(n) in (int, float) for n in numbers) else None


def figures_of(analysis: Analysis, run: RunRecord | None) -> Figures:
    """What the table keeps of an analysed run."""
    summary = analysis.figures.summary
    return Figures(
        summary.verdict,
        summary.sustained_step_ns,
        run.wall_step_ns if run else None,
        summary.step_ns,
        summary.gpu_busy_pct,
        summary.sync_points_per_step,
        summary.sync_wait_ns_per_step,
        summary.kernels_per_step,
        tuple(dict.fromkeys(s.rule_id for s in analysis.suggestions if not s.informational)),
        *_spread(analysis),
        sum(analysis.suggestions[i].key not in analysis.aside for i in analysis.headlined()),
        *((t.waited_pct, t.error_pct, t.loop_ns, t.crowded_pct) if run and (t := run.timing) else (None,) * 4),
        *_inner(analysis),
    )


def _spread(analysis: Analysis) -> tuple[float | None, float | None]:
    """Half the range of the steps, and the standard error of their mean, in per cent; unknown of fewer than three."""
    rows = analysis.figures.step_figures
    steps = rows.dur_ns[rows.counted]
    if len(steps) < 3:
        return None, None
    error = 100.0 * float(steps.std(ddof=1)) / len(steps) ** 0.5 / max(float(steps.mean()), 1.0)
    return float(50.0 * (steps.max() - steps.min()) / max(float(np.median(steps)), 1.0)), error


def _inner(analysis: Analysis) -> tuple[float | None, float | None, float | None]:
    """Shortest and longest of the recorded steps but one, the furthest from their median, in per cent off their mean.

    Last, the standard error of what is left.

    One odd step (a file read anew, a garbage collection) is no reason to know nothing; unknown of fewer than five.
    """
    rows = analysis.figures.step_figures
    steps = np.sort(rows.dur_ns[rows.counted]).astype(np.float64)
    if len(steps) < LEAST_FOR_INNER or not steps[-1]:
        return None, None, None
    middle = np.median(steps)
    inner = steps[1:] if middle - steps[0] > steps[-1] - middle else steps[:-1]
    low, high = 100.0 * (inner[[0, -1]] / steps.mean() - 1.0)
    error = 100.0 * float(inner.std(ddof=1)) / len(inner) ** 0.5 / float(inner.mean())
    return float(low), float(high), error


def fix_of(suggestion: Suggestion, edit: ProposedEdit) -> AppliedFix:
    """What is kept of a fix that was applied."""
    source = suggestion.source
    place = f"{source.file}:{source.line}" if source else ""
    return AppliedFix(
        suggestion.rule_id, suggestion.headline, place, edit.summary, edit.diff, suggestion.saving.ns, suggestion.key
    )


def predicted_step(analysis: Analysis, chosen: Iterable[int]) -> float | None:
    """Sustained step predicted after these suggestions (positions): from the plan where they are its beginning.

    Otherwise from their own savings, where one alone is chosen; what several bring together is then unknown.
    """
    now = analysis.figures.summary.sustained_step_ns
    wanted, done = set(chosen), set[int]()
    for step in analysis.plan:
        done |= set(step.suggestions)
        if done == wanted:
            return float(step.predicted_step_ns)
    if now is None or len(wanted) != 1:
        return None
    saving = analysis.suggestions[wanted.pop()].saving.ns
    return None if saving is None else now - saving
