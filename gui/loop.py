"""The guided loop: a suggestion becomes a diff, the diff a changed copy, the copy a run, the run a row of the table."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal

from core.errors import TraceError
from core.fixes import ProposedEdit, apply_to_copy, apply_to_file
from core.fixes.files import AppliedEdit, applied_in
from core.project import (
    Figures,
    Iteration,
    Project,
    all_projects,
    figures_of,
    fix_of,
    load_project,
    moved_spec,
    predicted_step,
    project_folder,
    source_root,
)
from core.run_folder import RunRecord, read_run, run_of
from gui import jobs
from gui.proposals import Proposal, proposal_for
from gui.session import DONE, Document, Session
from gui.settings import Settings

if TYPE_CHECKING:
    from gui.capture import Capture


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
        self._projects: dict[str, Project] = {}
        self._proposals: dict[tuple[int, str], Proposal] = {}
        self._watched: set[Document] = set()
        self._planned: dict[str, tuple[Project, Iteration]] = {}  # by script: changed copies that are still to run
        self._pending: Iteration | None = None  # the changed copy that runs now
        self._env: dict[Path, Mapping[str, str]] = {}  # variables of the runs of this session; never written anywhere
        self.judged: int | None = None  # number of the iteration that was just measured
        self.applied: list[AppliedEdit] = []  # in the user's own files, newest last
        session.documentsChanged.connect(self._documents)
        session.currentChanged.connect(self._follow)
        session.runChanged.connect(self._run_changed)

    # Projects ----------------------------------------------------------------------------------------------------

    def root(self) -> Path:
        """Folder of all projects, beside the runs."""
        chosen = self._settings.get("runs/folder")
        if chosen:
            return Path(chosen) / "projects"
        from profiling.manifest import default_runs_root

        return default_runs_root().parent / "projects"

    def project_of(self, run: RunRecord) -> Project:
        """The project of a run's script; a changed copy belongs to the script it was made from."""
        script = str(run.spec.get("script") or run.spec.get("module") or run.name)
        root = self.root()
        path = Path(script)
        if path.is_absolute() and path.is_relative_to(root):
            folder = root / path.relative_to(root).parts[0]
            found = self._projects.get(str(folder)) or load_project(folder)
            if found is not None:
                return found
        folder = project_folder(root, script)
        return self._projects.get(str(folder)) or load_project(folder) or Project(folder, script)

    def projects(self) -> list[Project]:
        """All projects, the one worked on last first; rounds that were cut off by a crash are called interrupted."""
        return [self._settled(self._projects.get(str(p.folder), p)) for p in all_projects(self.root())]

    def show_project(self, project: Project | None) -> None:
        """Make a project the one that is looked at."""
        if project is not None and project != self.project:
            self.project = project
            self.changed.emit()

    def _settled(self, project: Project) -> Project:
        for iteration in project.iterations:
            if iteration.state != "running" or iteration == self._pending:
                continue
            run = read_run(Path(iteration.run_folder)) if iteration.run_folder else None
            state = run.state if run is not None and run.state != "running" else "interrupted"
            project = project.with_iteration(replace(iteration, state=state))
        return project

    def _keep(self, project: Project) -> None:
        self._projects[str(project.folder)] = project
        self.project = project
        try:
            project.save()
        except TraceError as error:
            self._session.raise_error(error)
        self.changed.emit()

    def _documents(self) -> None:
        for document in self._session.documents:
            if document not in self._watched:
                self._watched.add(document)
                document.analysisChanged.connect(partial(self._analysed, document))
                document.destroyed.connect(partial(self._watched.discard, document))
        self._watched &= set(self._session.documents)
        open_ids = {id(document) for document in self._session.documents}
        self._proposals = {key: found for key, found in self._proposals.items() if key[0] in open_ids}

    def _follow(self) -> None:
        """Show the project of the trace that is looked at."""
        document = self._session.current
        run = self.run_of(document) if document is not None else None
        if run is not None:
            self.project = self.project_of(run)
            known = {applied.backup for applied in self.applied}
            self.applied += [a for a in applied_in(run.folder / "backups") if a.backup not in known]
            self.changed.emit()

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
        project = self.project_of(run)
        known = project.find(run.folder)
        if known is None:
            known = Iteration(project.next_number(), str(run.folder), run.created_s or time.time())
        fresh = replace(known, figures=figures_of(document.analysis, run), state=run.state)
        if project.find(run.folder) == fresh:
            return
        measured_now = known.figures == Figures() and fresh.parent is not None
        if measured_now:
            self.judged = fresh.number
        self._keep(project.with_iteration(fresh))
        if measured_now:
            self._tick_parent(project.get(fresh.parent), fresh)
            self._session.pageRequested.emit("iterations")

    def _tick_parent(self, parent: Iteration | None, measured: Iteration) -> None:
        """What was applied and has run is done, on the plan it came from."""
        run = read_run(Path(parent.run_folder)) if parent is not None else None
        document = self.document_of(run) if run is not None else None
        found = document.analysis.suggestions if document is not None and document.analysis else ()
        for index, suggestion in enumerate(found):
            if document is not None and suggestion.key in {fix.key for fix in measured.fixes}:
                document.set_suggestion_state(index, DONE)

    # From a suggestion to a diff ---------------------------------------------------------------------------------

    def proposal(self, document: Document, index: int) -> Proposal:
        """The change that a suggestion's fix means for the code that was run."""
        suggestion = document.suggestion(index)
        if suggestion is None:
            return Proposal(None, None)
        key = (id(document), suggestion.key)
        if key not in self._proposals:
            self._proposals[key] = proposal_for(self.run_of(document), suggestion)
        return self._proposals[key]

    def can_apply(self, document: Document, index: int) -> bool:
        """Whether a suggestion's fix can be derived as a diff of the run's own code."""
        return self.proposal(document, index).edit is not None

    def ask(self, document: Document, index: int) -> None:
        """Show the diff, and what can be done with it."""
        from gui.fix_dialog import FixDialog

        suggestion = document.suggestion(index)
        if suggestion is not None:
            dialog = FixDialog(self, document, index, suggestion, self.proposal(document, index))
            dialog.open()

    # From a diff to a run ----------------------------------------------------------------------------------------

    @property
    def capture(self) -> Capture | None:
        """What runs scripts, None in an installation without it."""
        found: Any = self._session.ask("capture")
        return found  # type: ignore[no-any-return]

    def run_copy(self, document: Document, index: int) -> None:
        """Make the change in a copy of the sources and run that with the same options."""
        suggestion, proposal = document.suggestion(index), self.proposal(document, index)
        capture = self.capture
        if suggestion is None or proposal.edit is None or proposal.run is None or document.analysis is None:
            return
        if capture is None or capture.running:
            self._session.raise_error(
                TraceError(self.tr("A script is already running."), hint=self.tr("Stop it first."))
            )
            return
        run, edit = proposal.run, proposal.edit
        project = self.project_of(run)
        parent = project.find(run.folder)
        root, copy = source_root(run), project.next_copy()
        if root is None:
            self._session.raise_error(TraceError(self.tr("The run does not say which folder its script lies in.")))
            return
        planned = Iteration(
            project.next_number(),
            "",
            time.time(),
            parent.number if parent else None,
            (fix_of(suggestion, edit),),
            predicted_step(document.analysis, [index]),
            str(copy),
            state="running",
        )
        jobs.run(
            self,
            partial(_make_copy, edit, root, copy),
            partial(self._start, project, planned, run, root, copy),
            self._session.raise_error,
            key="copy",
        )

    def _start(self, project: Project, planned: Iteration, run: RunRecord, root: Path, copy: Path, _: object) -> None:
        from profiling.errors import ProfilingError
        from profiling.spec import from_json

        capture = self.capture
        if capture is None:
            return
        title = self.tr("{name}, round {number}").format(name=Path(project.script).name, number=planned.number)
        env = self._env.get(run.folder, {})
        try:
            spec = replace(from_json({**moved_spec(run.spec, root, copy), "name": title[:120]}), env=env)
        except (ProfilingError, TypeError) as error:
            self._session.raise_error(error)
            return
        self._planned[os.path.abspath(spec.script)] = (project, planned)
        if set(env) != set(run.spec.get("env") or ()):  # their values are not kept: they may be secrets
            self._session.set_status(self.tr("Set the variables of the first run again, then press Run."))
            capture.show_launcher(spec)
            return
        if not capture.is_own(run.folder):
            capture.show_foreign(spec)
            return
        capture.start(spec)
        self._attach(spec.script)

    def _run_changed(self) -> None:
        """A run began or ended, from wherever it was started."""
        capture = self.capture
        if capture is not None and capture.running and capture.run is not None and capture.spec is not None:
            self._env[Path(capture.run.folder)] = dict(capture.spec.env)
            self._attach(capture.spec.script)

    def _attach(self, script: str) -> None:
        """Where a changed copy runs, its round is kept from now on, whatever becomes of the run."""
        capture, found = self.capture, self._planned.get(os.path.abspath(script))
        if capture is None or capture.run is None or found is None:
            return
        project, planned = found
        del self._planned[os.path.abspath(script)]
        project = self._projects.get(str(project.folder), project)
        self._pending = replace(planned, number=project.next_number(), run_folder=str(capture.run.folder))
        self._keep(project.with_iteration(self._pending))
        capture.ended.connect(self._ended, Qt.ConnectionType.UniqueConnection)

    def _ended(self) -> None:
        """The changed copy has run: keep how it ended, also where no trace comes of it."""
        pending, self._pending = self._pending, None
        capture = self.capture
        if pending is None or capture is None or capture.result is None:
            return
        project = next((p for p in self._projects.values() if p.find(Path(pending.run_folder)) is not None), None)
        known = project.find(Path(pending.run_folder)) if project is not None else None
        if project is not None and known is not None:
            self._keep(project.with_iteration(replace(known, state=capture.result.outcome)))

    def apply_to_own_file(self, document: Document, index: int) -> AppliedEdit | None:
        """Make the change in the user's own file, after keeping the old text beside the run."""
        proposal = self.proposal(document, index)
        if proposal.edit is None or proposal.run is None:
            return None
        try:
            applied = apply_to_file(proposal.edit, proposal.run.folder / "backups")
        except (TraceError, OSError) as error:
            self._session.raise_error(error)
            return None
        self.applied.append(applied)
        document.set_suggestion_state(index, DONE)
        self._session.set_status(
            self.tr("{file} was changed; its old text is kept in {backup}.").format(
                file=applied.edit.path.name, backup=applied.backup
            )
        )
        self.changed.emit()
        return applied

    def undo_last(self) -> None:
        """Put the old text of the file back that was changed last."""
        if not self.applied:
            return
        applied = self.applied[-1]
        try:
            applied.undo()
        except (TraceError, OSError) as error:
            self._session.raise_error(error)
            return
        self.applied.pop()
        self._session.set_status(self.tr("{file} is as it was before.").format(file=applied.edit.path.name))
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
            self._session.raise_error(TraceError(self.tr("This round has no trace that can be opened.")))
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


def _make_copy(edit: ProposedEdit, root: Path, copy: Path, progress: jobs.Progress) -> tuple[Path, ...]:
    progress(0.0, "")
    return apply_to_copy([edit], root, copy)


def install(session: Session, settings: Settings) -> None:
    """Offer the loop to the rest of the window."""
    loop = Loop(session, settings)
    session.provide("loop", lambda: loop)
    session.provide("rounds", lambda: session.pageRequested.emit("iterations"))
    session.provide("can_apply_fix", loop.can_apply)
    session.provide("apply_fix", loop.ask)
    session.provide("proposed_edit", lambda document, index: loop.proposal(document, index).edit)
    session.provide("wall_step_ns", loop.wall_step_ns)
    session.provide("compare", lambda: session.pageRequested.emit("compare"))
    session.provide("compare_documents", partial(_compare, session))
    session.provide("save_allow_file", partial(_save_allow_file, session))


def _compare(session: Session, before: Document, after: Document) -> None:
    pair = (weakref.ref(before), weakref.ref(after))  # a closed trace must be free to go
    session.provide("compared", lambda: tuple(side() for side in pair))
    session.pageRequested.emit("compare")


def _save_allow_file(session: Session) -> None:
    from gui import allow_file

    allow_file.save(session)
