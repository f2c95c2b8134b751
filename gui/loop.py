"""The guided loop: a suggestion becomes a diff, the diff a changed copy, the copy a run, the run a row of the table."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from core.errors import TraceError
from core.fixes.files import AppliedEdit
from core.fixes.together import Joint
from core.judging import judge
from core.project import Figures, Iteration, Project, all_projects, figures_of, load_project, project_folder
from core.run_folder import RunRecord, read_run, run_of
from gui import allow_dialog, jobs, staying
from gui.loop_fixes import Derived, Fixes
from gui.loop_own import FixState, OwnFiles
from gui.loop_rounds import Rounds, predict
from gui.loop_shown import ShownProject
from gui.proposals import Proposal
from gui.session import DONE, Document, Session
from gui.settings import Settings

if TYPE_CHECKING:
    from gui.capture import Capture

TIDY_MS = 3000  # after the start, when nobody waits for anything


class Loop(QObject):
    """All iterations of the scripts that were run. Keeps them on disk after every change.

    Signals
    -------
    changed()
        An iteration was added, or its figures came in.
    """

    changed = Signal()

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session)
        self._session, self._settings = session, settings
        self.project: Project | None = None  # of the script looked at last
        self._written: dict[str, Project] = {}  # as this window wrote them last
        self._projects: dict[str, Project] = {}
        self._watched: set[Document] = set()
        self.rounds = Rounds(self, session)
        self.shown = ShownProject(self, settings)
        self.fixes = Fixes(self)
        self.judged: tuple[Path, int] | None = None  # folder of the project, and number of the round just measured
        self.own = OwnFiles(self, session)
        self._states: dict[Document, dict[str, FixState]] = {}  # of the open documents, until something changes
        session.documentsChanged.connect(self._documents)
        session.currentChanged.connect(self._follow)

    # Projects ----------------------------------------------------------------------------------------------------

    def root(self) -> Path:
        """Folder of all projects, beside the runs."""
        chosen = self._settings.get("runs/folder")
        if chosen:
            return Path(chosen) / "projects"
        from profiling.manifest import default_runs_root

        return default_runs_root().parent / "projects"

    def tidy(self) -> None:
        """Take away what a window that was killed left of a copy it was making."""
        jobs.run(self, partial(_tidy, self.root()), lambda _count: None, self.raise_error)

    def project_of(self, run: RunRecord) -> Project:
        """The project of a run's script; a changed copy belongs to the script it was made from."""
        script = str(run.spec.get("script") or run.spec.get("module") or run.name)
        root = self.root()
        path = Path(script)
        if path.is_absolute() and path.is_relative_to(root):
            folder = root / path.relative_to(root).parts[0]
            found = self.project_in(folder)
            if found is not None:
                return found
        folder = project_folder(root, script)
        return self.project_in(folder) or Project(folder, script)

    def projects(self) -> list[Project]:
        """All projects, the one worked on last first; rounds that were cut off by a crash are called interrupted."""
        return [self.rounds.settled(self._projects.get(str(p.folder), p)) for p in all_projects(self.root())]

    def show_project(self, project: Project | None) -> None:
        """Make a project the one that is looked at."""
        if project is not None and project != self.project:
            self.project = project
            self.shown.note()
            self.changed.emit()

    def project_in(self, folder: Path) -> Project | None:
        """The project of a folder, as it is now; rounds that a crash has cut off do not run any more."""
        known = self._projects.get(str(folder))
        found = load_project(folder) if known is None else None
        if found is not None:
            self._written.setdefault(str(folder), found)  # what another window changes from now on is its own word
        return self.rounds.settled(found) if found is not None else known

    def project_with(self, run_folder: Path) -> Project | None:
        """The project that has a run, of those worked on now."""
        return next((p for p in self._projects.values() if p.find(run_folder) is not None), None)

    def keep(self, project: Project) -> Project:
        """Write a project down and show it, with the rounds of another window that has it open as well."""
        try:
            project = self._written[str(project.folder)] = project.save(self._written.get(str(project.folder)))
        except TraceError as error:
            self._session.raise_error(error)
        self._projects[str(project.folder)] = project
        self.project = project
        self.tell()
        return project

    def look_again(self) -> None:
        """Take over what another window has written of the project that is looked at, as how a round of it ended."""
        if self.project is None:
            return
        written = self._written.get(str(self.project.folder))
        fresh = self.rounds.settled(self.project.with_others(written or self.project))
        if fresh != self.project:
            self._projects[str(fresh.folder)] = self._written[str(fresh.folder)] = self.project = fresh
            self.tell()

    def _documents(self) -> None:
        for document in self._session.documents:
            if document not in self._watched:
                self._watched.add(document)
                document.analysisChanged.connect(partial(self._analysed, document))
                document.destroyed.connect(partial(self._watched.discard, document))
        self._watched &= set(self._session.documents)
        self._states = {d: s for d, s in self._states.items() if d in self._watched}
        self.fixes.forget(self._session.documents)

    def _follow(self) -> None:
        """Show the project of the trace that is looked at."""
        document = self._session.current
        run = self.run_of(document) if document is not None else None
        if run is not None:
            self.project = self.project_of(run)
            self.own.recall(run)
            self.own.settle()
            self.tell()

    def run_of(self, document: Document) -> RunRecord | None:
        """The run that a document's trace belongs to."""
        if document.run_folder is not None:
            return read_run(document.run_folder)
        return run_of(document.trace.path) if document.trace.sources else None

    def _analysed(self, document: Document) -> None:
        if document.analysis is None or document.analysis_running or not document.analysis.rules:
            return
        run = self.run_of(document)
        if run is None or (run.trace is not None and run.trace.resolve() != document.trace.path.resolve()):
            return
        if self.capture is not None and self.capture.is_on(run.folder):
            return  # it is read again when the script has ended: its times and losses are there then
        if self.capture is not None and self.capture.is_own(run.folder):  # no file is read because a trace says so
            allow_dialog.recall(self._session, document)
        project = self.project_of(run)
        known = project.find(run.folder)
        if known is None:
            known = Iteration(project.next_number(), str(run.folder), run.created_s or time.time())
        fresh = replace(known, figures=figures_of(document.analysis, run), state=run.state)
        if project.find(run.folder) == fresh:
            return
        measured_now = known.figures == Figures() and fresh.parent is not None
        if measured_now:
            self.judged = project.folder, fresh.number
        self.keep(project.with_iteration(fresh))
        if measured_now:
            self._tick_parent(project, fresh)
            staying.show_measured(self._session, document, fresh.number)
            self.rounds.go_on()

    def _tick_parent(self, project: Project, measured: Iteration) -> None:
        """What was applied, has run, brought something and kept the losses is done, on the plan it came from."""
        parent = project.get(measured.parent)
        run = read_run(Path(parent.run_folder)) if parent is not None else None
        document = self.document_of(run) if run is not None else None
        found = document.analysis.suggestions if document is not None and document.analysis else ()
        gain = parent is not None and judge(parent, measured, project.iterations).is_gain
        state = DONE if gain and measured.number not in self.own.parted(project) else ""
        for index, suggestion in enumerate(found):
            if document is not None and {suggestion.key, suggestion.place_key} & {fix.key for fix in measured.fixes}:
                document.set_suggestion_state(index, state)

    # From a suggestion to a diff ---------------------------------------------------------------------------------

    def proposal(self, document: Document, index: int) -> Proposal:
        """The change that a suggestion's fix means for the code that was run; ``pending`` while it is derived."""
        return self.fixes.proposal(document, index)

    def can_apply(self, document: Document, index: int) -> bool | None:
        """Whether a suggestion's fix can be derived as a diff of the run's own code; None while it is derived."""
        proposal = self.proposal(document, index)
        return None if proposal.pending else proposal.edit is not None and proposal.run is not None

    def when_known(self, document: Document, index: int, then: Callable[[bool], None]) -> None:
        """Call with whether a fix can be derived, as soon as that is known."""
        self.fixes.when_known(document, index, lambda p: then(p.edit is not None and p.run is not None))

    def raise_error(self, error: BaseException) -> None:
        """Show an error of work that was done for the loop."""
        self._session.raise_error(error)

    def ask(self, document: Document, *indices: int) -> None:
        """Show the diff of one fix or of several together, and what can be done with it."""
        from gui.fix_dialog import FixDialog
        from gui.parents import window_of

        self.own.settle()
        found = [index for index in indices if document.suggestion(index) is not None]
        if found:
            FixDialog(self, document, found, window_of(self._session)).open()

    # From a diff to a run ----------------------------------------------------------------------------------------

    @property
    def capture(self) -> Capture | None:
        """What runs scripts, None in an installation without it."""
        return self.rounds.capture

    def run_copy(self, document: Document, *indices: int) -> None:
        """Make the changes of these suggestions in one copy of the sources and run that with the same options."""
        self._session.set_status(self.tr("Working out the change of your code…"))

        def go_on(derived: Derived) -> None:
            self._session.set_status("")
            self.run_joint(document, derived.joint)

        self.fixes.derive(self, document, indices, go_on)

    def run_joint(self, document: Document, joint: Joint) -> None:
        """As `run_copy`, for changes that are derived already."""
        self.rounds.start(document, joint)

    def predict(
        self, document: Document, indices: Iterable[int], then: Callable[[float | None], None], key: str = "joint-plan"
    ) -> None:
        """Work out the step time after several fixes together, off the GUI thread; of one ``key`` the latest wins."""
        if document.analysis is not None:
            work = partial(predict, document.trace, document.analysis, tuple(indices))
            jobs.run(self, work, then, self._session.raise_error, key=key)

    def run_again(self, number: int) -> None:
        """Run the copy of a round of the project that is looked at."""
        if self.project is not None:
            self.rounds.run_again(self.project, number)

    def measure_again(self, number: int) -> None:
        """Run the copy of a round once more, for a row of its own."""
        if self.project is not None:
            self.rounds.measure_again(self.project, number)

    def measure_both(self, number: int) -> None:
        """Run what a round was made from and the round itself once more, for rows of their own."""
        if self.project is not None:
            self.rounds.measure_both(self.project, number)

    def is_copy(self, document: Document) -> bool:
        """Whether a document's run was one of a changed copy, which is none of the user's own files."""
        run = self.run_of(document)
        found = self.project_of(run).find(run.folder) if run is not None else None
        return found is not None and bool(found.copy)

    # In the user's own files -------------------------------------------------------------------------------------

    @property
    def applied(self) -> list[AppliedEdit]:
        """Changes of the user's own files that stand, newest last."""
        return self.own.applied

    def apply_to_own_file(self, document: Document, joint: Joint) -> AppliedEdit | None:
        """Make the changes in the user's own files, after keeping each old text beside the run; return the last."""
        return self.own.apply(document, joint)

    def run_own(self, document: Document) -> None:
        """Run the script again with the changes that stand in the user's own files, for a row of the table."""
        self.rounds.start_own(document, self.own.applied)

    def undo_last(self) -> None:
        """Put the old texts of the files back that were changed last, all that one click changed."""
        self.own.undo_last()

    def undo_fix(self, document: Document, index: int) -> None:
        """Take the change of one suggestion out of the user's own file."""
        state = self.fix_state(document, index)
        if state is not None and state.made is not None:
            self.own.undo(state.made)

    def fix_states(self, document: Document) -> dict[str, FixState]:
        """What became of the fixes of a document's suggestions, by key."""
        if document not in self._states:
            run = self.run_of(document)
            self._states[document] = self.own.states(run, self.project_of(run)) if run is not None else {}
        return self._states[document]

    def fix_state(self, document: Document, index: int) -> FixState | None:
        """What became of one suggestion's fix; None where it was not applied from here."""
        suggestion = document.suggestion(index)
        return self.fix_states(document).get(suggestion.key) if suggestion is not None else None

    def tell(self) -> None:
        """Something about rounds or files changed: the table and the cards show it."""
        old, self._states = self._states, {}
        for document in self._session.documents:
            fresh = self.fix_states(document)
            if fresh != old.get(document, {}):
                self.own.untick(document, fresh)
                document.suggestionChanged.emit()
        self.shown.note()
        self.changed.emit()

    # Others ask --------------------------------------------------------------------------------------------------

    def wall_step_ns(self, document: Document) -> float | None:
        """Time of a step without the profiler, where the run measured it."""
        run = self.run_of(document)
        return run.wall_step_ns if run is not None else None

    def open_iteration(self, number: int) -> None:
        """Open the trace of an iteration, or show it where it is open."""
        iteration = self.project.get(number) if self.project else None
        run = read_run(Path(iteration.run_folder)) if iteration else None
        if run is None or run.trace is None:
            why = " ".join(w for w in (run.failure.title, run.failure.hint) if w) if run is not None else ""
            self._session.raise_error(TraceError(self.tr("This round has no trace that can be opened."), hint=why))
            return
        document = self.document_of(run)
        if document is not None:
            self._session.set_current(document)
        else:
            self._session.open([run.trace], run.folder)

    def document_of(self, run: RunRecord) -> Document | None:
        """The open document of a run."""
        traces = {t.resolve() for t in run.traces}
        return next((d for d in self._session.documents if d.trace.sources and d.trace.path.resolve() in traces), None)


def install(session: Session, settings: Settings) -> None:
    """Offer the loop to the rest of the window."""
    loop = Loop(session, settings)
    QTimer.singleShot(TIDY_MS, loop, loop.tidy)
    session.provide("loop", lambda: loop)
    session.provide("rounds", lambda: session.pageRequested.emit("iterations"))
    session.provide("rounds_of", loop.shown.name)
    session.provide("show_rounds_of", loop.shown.show)
    session.provide("can_apply_fix", loop.can_apply)
    session.provide("when_fix_known", loop.when_known)
    session.provide("apply_fix", loop.ask)
    session.provide("apply_fixes", loop.ask)  # several together
    session.provide("predict_fixes", loop.predict)
    session.provide("proposed_edit", lambda document, index: loop.proposal(document, index).edit)
    session.provide("why_no_edit", lambda document, index: loop.proposal(document, index).reason)
    session.provide("fix_state", loop.fix_state)
    session.provide("run_own", loop.run_own)
    session.provide("undo_fix", loop.undo_fix)
    session.provide("undo_change", loop.undo_last)
    session.provide("wall_step_ns", loop.wall_step_ns)
    session.provide("compare", lambda: session.pageRequested.emit("compare"))
    session.provide("compare_documents", partial(_compare, session))
    session.provide("save_allow_file", partial(_save_allow_file, session))
    session.provide("allow_finding", partial(_allow_finding, session))


def _tidy(root: Path, _progress: jobs.Progress) -> int:
    from core.fixes.leftovers import clear_leftovers

    return clear_leftovers(root)


def _compare(session: Session, before: Document, after: Document) -> None:
    pair = (weakref.ref(before), weakref.ref(after))  # a closed trace must be free to go
    session.provide("compared", lambda: tuple(side() for side in pair))
    session.pageRequested.emit("compare")


def _save_allow_file(session: Session) -> None:
    from gui import allow_file

    allow_file.save(session)


def _allow_finding(session: Session, document: Document, index: int) -> None:
    allow_dialog.ask(session, document, index)
