"""A round: the chosen fixes go into one copy, the copy runs with the options of the first run, its row is kept."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt

from core.analysis import Analysis
from core.errors import TraceError
from core.fixes import apply_to_copy
from core.fixes.files import AppliedEdit
from core.fixes.together import Joint
from core.judging import is_same_code
from core.moved_run import changed_since, moved_spec, source_root
from core.project import AppliedFix, Figures, Iteration, Project, fix_of
from core.run_folder import RunRecord, read_run
from core.trace import Trace
from gui import jobs, staying
from gui.elsewhere import mark, runs_elsewhere
from gui.session import Document, Session

if TYPE_CHECKING:
    from gui.capture import Capture
    from gui.loop import Loop
    from profiling.spec import RunSpec

PLANNED = "planned"  # the copy is made and has not run
_log = logging.getLogger(__name__)


class Rounds(QObject):
    """Makes changed copies and runs them. Everything is on disk before the next thing begins, so that a crash of the
    app or the machine at any moment leaves a row that can be taken up again.
    """

    def __init__(self, loop: Loop, session: Session) -> None:
        super().__init__(loop)
        self._loop, self._session = loop, session
        self._planned: dict[str, tuple[Path, int]] = {}  # by script of a copy: folder and number of its round
        self._pending: Iteration | None = None  # the changed copy that runs now
        self._next: tuple[Path, int] | None = None  # folder and number of the round to measure when this one was
        self._by_itself = False  # nobody has just asked for the run that begins
        self._env: dict[Path, Mapping[str, str]] = {}  # variables of the runs of this session; never written anywhere
        session.runChanged.connect(self._run_changed)

    @property
    def capture(self) -> Capture | None:
        """What runs scripts, None in an installation without it."""
        found: Any = self._session.ask("capture")
        return found  # type: ignore[no-any-return]

    def settled(self, project: Project) -> Project:
        """The project with rounds that were cut off by a crash called interrupted."""
        for iteration in project.iterations:
            if iteration.state != "running" or iteration == self._pending or runs_elsewhere(iteration.by):
                continue
            run = read_run(Path(iteration.run_folder)) if iteration.run_folder else None
            state = run.state if run is not None and run.state != "running" else "interrupted"
            project = project.with_iteration(replace(iteration, state=state))
        return project

    def is_elsewhere(self, iteration: Iteration) -> bool:
        """Whether another window runs this round now."""
        return iteration.state == "running" and iteration != self._pending and runs_elsewhere(iteration.by)

    def is_awaited(self, iteration: Iteration) -> bool:
        """Whether another window has yet to say what became of a round: it runs it, was killed, or reads its trace."""
        if iteration.state == "running":
            return iteration != self._pending
        return iteration.state == "ok" and not iteration.is_measured

    # A new round -------------------------------------------------------------------------------------------------

    def start(self, document: Document, joint: Joint) -> None:
        """Make the changes in a copy of the sources and run that with the same options."""
        run, analysis = self._loop.run_of(document), document.analysis
        if run is None or analysis is None or not joint.edits or not self._is_free():
            return
        project, root = self._loop.project_of(run), source_root(run)
        if root is None:
            self._session.raise_error(TraceError(self.tr("The run does not say which folder its script lies in.")))
            return
        copy = project.next_copy()
        planned = _planned(project, run, fixes_of(analysis, joint), str(copy))
        jobs.run(
            self,
            partial(_prepare, joint, root, copy, document.trace, analysis),
            partial(self._made, project, planned, run, root),
            self._session.raise_error,
            key="copy",
        )

    def start_own(self, document: Document, applied: Sequence[AppliedEdit]) -> None:
        """Run the script again as it is now, with the changes that were made in the user's own files."""
        run, analysis = self._loop.run_of(document), document.analysis
        root = source_root(run) if run is not None else None
        if run is None or analysis is None or root is None or not self._is_free():
            return
        edits = {key: a.edit for a in applied if a.backup.is_relative_to(run.folder) for key in a.keys}
        fixed = [(i, s) for i, s in enumerate(analysis.suggestions) if s.key in edits]
        project = self._loop.project_of(run)
        planned = _planned(project, run, tuple(fix_of(s, edits[s.key]) for _, s in fixed))
        jobs.run(
            self,
            partial(predict, document.trace, analysis, tuple(i for i, _ in fixed)),
            partial(self._made, project, planned, run, root),
            self._session.raise_error,
            key="copy",
        )

    def run_again(self, project: Project, number: int) -> None:
        """Run the copy of a round that never ran, or whose run was cut off."""
        iteration = project.get(number)
        found = self._what_ran(project, iteration)
        if iteration is not None and found is not None and self._is_free():
            self._run(project, replace(iteration, state=PLANNED), *found)

    def _what_ran(self, project: Project, iteration: Iteration | None) -> tuple[RunRecord, Path] | None:
        """The run that a copy was made from, and its folder of sources; that one of them is gone is said."""
        parent = project.get(iteration.parent) if iteration is not None else None
        run = read_run(Path(parent.run_folder)) if parent is not None and parent.run_folder else None
        root = source_root(run) if run is not None else None
        if iteration is not None and run is not None and root is not None and Path(iteration.copy).is_dir():
            return run, root
        self._session.raise_error(TraceError(self.tr("The copy of this round, or the run it came from, is gone.")))
        return None

    def measure_again(self, project: Project, number: int) -> None:
        """Run the code of a round once more, as a round of its own: two runs of the same code differ as well.

        The first round is of the user's own files: they have to be as they were.
        """
        iteration = project.get(number)
        if iteration is None or not self._is_free():
            return
        run = read_run(Path(iteration.run_folder)) if not iteration.copy else None
        root = source_root(run) if run is not None else None
        if not iteration.copy and (run is None or root is None or not self._is_unchanged(run)):
            if run is None or root is None:
                self._session.raise_error(TraceError(self.tr("The run of this round is gone.")))
            return
        if iteration.copy and self._what_ran(project, iteration) is None:  # no round is left that could never run
            return
        planned = replace(
            iteration,
            number=project.next_number(),
            run_folder="",
            created_s=time.time(),
            parent=number if iteration.parent is None else iteration.parent,
            figures=Figures(),
            state=PLANNED,
            again=None if iteration.copy else number if iteration.again is None else iteration.again,
        )
        project = self._loop.keep(project.with_iteration(planned))
        planned = project.same(planned)
        if run is not None and root is not None:
            self._run(project, planned, run, root)
        else:
            self.run_again(project, planned.number)

    def measure_both(self, project: Project, number: int) -> None:
        """Run the code that a round was made from once more, and then its own: nothing else runs in between."""
        iteration = project.get(number)
        if iteration is None or iteration.parent is None or not self._is_free():
            return
        self.measure_again(project, iteration.parent)
        if self.capture is not None and self.capture.running:
            self._next = (project.folder, number)

    def go_on(self) -> None:
        """A round was measured: the other one of the two is run."""
        found, self._next = self._next, None
        project = self._loop.project_in(found[0]) if found is not None else None
        if project is not None and found is not None:
            self._by_itself = True
            self.measure_again(project, found[1])
            self._by_itself = False

    def _is_unchanged(self, run: RunRecord) -> bool:
        """Whether the user's files are what a run used; else it is said which one is not."""
        changed = changed_since(run)
        if changed:
            words = self.tr("{file} is no longer what this round ran.").format(file=changed[0])
            hint = self.tr("Profile the script as it is now: that makes a round of its own.")
            self._session.raise_error(TraceError(words, hint=hint))
        return not changed

    def _is_free(self) -> bool:
        if self.capture is not None and not self.capture.running:
            return True
        self._session.raise_error(TraceError(self.tr("A script is already running."), hint=self.tr("Stop it first.")))
        return False

    def _made(self, project: Project, planned: Iteration, run: RunRecord, root: Path, predicted: float | None) -> None:
        planned = replace(planned, predicted_ns=predicted if planned.made_from is None else None)
        project = self._loop.keep(project.with_iteration(planned))
        planned = project.same(planned)
        self._run(project, planned, run, root)

    def _run(self, project: Project, planned: Iteration, run: RunRecord, root: Path) -> None:
        from profiling.errors import ProfilingError
        from profiling.spec import from_json

        capture, copy = self.capture, Path(planned.copy) if planned.copy else root  # the user's own files
        if capture is None:
            return
        first = next((i for i in project.iterations if i.number < planned.number and is_same_code(i, planned)), None)
        words = (
            self.tr("{name}, round {number}")
            if first is None
            else self.tr("{name}, round {number}: round {first} again")
        )
        title = words.format(
            name=Path(project.script).name, number=planned.number, first=first.number if first is not None else ""
        )
        env = self._env.get(run.folder, {})
        try:
            spec = replace(from_json({**moved_spec(run.spec, root, copy), "name": title[:120]}), env=env)
        except (ProfilingError, TypeError) as error:
            self._session.raise_error(error)
            return
        self._planned[os.path.abspath(spec.script)] = (project.folder, planned.number)
        if set(env) != set(run.spec.get("env") or ()):  # their values are not kept: they may be secrets
            self._session.set_status(self.tr("Set the variables of the first run again, then press Run."))
            capture.show_launcher(spec)
            return
        if not capture.is_own(run.folder):
            capture.show_foreign(spec)
            return
        self._start(capture, spec)
        self._attach(spec.script)

    def _start(self, capture: Capture, spec: RunSpec) -> None:
        """Run; what nobody has just asked for takes no page from under the user."""
        if self._by_itself and not staying.is_watched(self._session, staying.RUN, staying.ROUNDS):
            capture.start(spec, show=False)
        else:
            capture.start(spec)

    # While it runs -----------------------------------------------------------------------------------------------

    def _run_changed(self) -> None:
        """A run began or ended, from wherever it was started."""
        capture = self.capture
        if capture is not None and capture.running and capture.run is not None and capture.spec is not None:
            self._env[Path(capture.run.folder)] = dict(capture.spec.env)
            self._attach(capture.spec.script)

    def _attach(self, script: str) -> None:
        """Where a changed copy runs, its round is kept from now on, whatever becomes of the run."""
        capture, found = self.capture, self._planned.pop(os.path.abspath(script), None)
        if capture is None or capture.run is None or found is None:
            return
        project = self._loop.project_in(found[0])
        planned = project.get(found[1]) if project is not None else None
        if project is None or planned is None:
            return
        self._pending = replace(planned, run_folder=str(capture.run.folder), state="running", by=mark())
        self._loop.keep(project.with_iteration(self._pending))
        capture.ended.connect(self._ended, Qt.ConnectionType.UniqueConnection)

    def _ended(self) -> None:
        """The changed copy has run: keep how it ended, also where no trace comes of it."""
        pending, self._pending = self._pending, None
        capture = self.capture
        if pending is None or capture is None or capture.result is None:
            return
        if capture.result.outcome != "ok" or capture.result.trace is None:
            self._next = None
        project = self._loop.project_with(Path(pending.run_folder))
        known = project.find(Path(pending.run_folder)) if project is not None else None
        if project is not None and known is not None:
            self._loop.keep(project.with_iteration(replace(known, state=capture.result.outcome, by="")))


def _planned(project: Project, run: RunRecord, fixes: tuple[AppliedFix, ...], copy: str = "") -> Iteration:
    """A round to come of the code of a run, changed; it is compared with the last good one where that was cut off."""
    known = project.find(run.folder)
    base, earlier = project.base_for(known)
    origin = known.number if known is not None and base is not known else None
    number, parent = project.next_number(), base.number if base is not None else None
    fixes = (*earlier, *fixes)
    return Iteration(number, "", time.time(), parent, fixes, copy=copy, state=PLANNED, made_from=origin)


def fixes_of(analysis: Analysis, joint: Joint) -> tuple[AppliedFix, ...]:
    """What is kept of the fixes of a round; one that another covers has no change of its own."""
    made = {index: fix_of(analysis.suggestions[index], edit) for index, edit in joint.edits}
    edits = dict(joint.edits)
    for index, twin in joint.covered:
        made[index] = replace(fix_of(analysis.suggestions[index], edits[twin]), diff="")
    return tuple(made[index] for index in sorted(made))


def predict(trace: Trace, analysis: Analysis, indices: Sequence[int], progress: jobs.Progress) -> float | None:
    """Sustained step predicted after several fixes, for a job; unknown where the replay cannot tell."""
    from core.joint import predicted_together

    progress(0.0, "")
    try:
        return predicted_together(trace, analysis, indices)
    except Exception:  # a copy must be made and run however the trace breaks the replay
        _log.exception("the fixes could not be priced together")
        return None


def _prepare(
    joint: Joint, root: Path, copy: Path, trace: Trace, analysis: Analysis, progress: jobs.Progress
) -> float | None:
    predicted = predict(trace, analysis, joint.indices, progress)
    apply_to_copy([edit for _, edit in joint.edits], root, copy)
    return predicted
