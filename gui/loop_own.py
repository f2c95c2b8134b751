"""Changes of the user's own files: made when asked, measured by another run, undone by a click, also much later."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from core.errors import TraceError
from core.fixes import apply_to_file
from core.fixes.files import AppliedEdit, applied_in, clear_spent, unchanged
from core.fixes.together import Joint
from core.judging import Judgement, judge
from core.project import Figures, Iteration, Project
from core.round_checks import checks_of
from core.run_folder import RunRecord
from core.take_over import changes_of, keys_of
from gui.session import CHOSEN, DONE, Document, Session

if TYPE_CHECKING:
    from gui.loop import Loop

APPLIED, RUNNING, MEASURED, UNDONE = "applied", "running", "measured", "undone"


@dataclass(frozen=True)
class FixState:
    """What became of a fix: ``applied`` in the user's file and not measured, ``running``, ``measured`` or ``undone``.

    ``made`` is the change of the user's own file, while it stands; ``judged`` what the newest round with it brought,
    ``number`` that round, ``fixes`` how many fixes it had, ``differs`` the first step whose loss it changed.
    """

    kind: str
    made: AppliedEdit | None = None
    judged: Judgement | None = None
    number: int | None = None
    fixes: int = 1
    differs: int | None = None


class OwnFiles(QObject):
    """Makes changes in the user's own files and takes them back, newest first."""

    def __init__(self, loop: Loop, session: Session) -> None:
        super().__init__(loop)
        self._loop, self._session = loop, session
        self.applied: list[AppliedEdit] = []  # newest last
        self._parted: tuple[Project | None, dict[int, int]] = (None, {})  # of the project that was looked at last
        self._together: list[int] = []  # how many of them each click of this session made, newest last

    def recall(self, run: RunRecord) -> None:
        """Take up the changes of an earlier session that still stand; what one that was killed left goes."""
        clear_spent(run.folder / "backups")
        known = {applied.backup for applied in self.applied}
        self.applied += [a for a in applied_in(run.folder / "backups") if a.backup not in known]

    def apply(self, document: Document, joint: Joint) -> AppliedEdit | None:
        """Make the changes, after keeping each old text beside the run; return the last."""
        run = self._loop.run_of(document)
        if run is None or not joint.edits:
            return None
        made: list[AppliedEdit] = []
        try:
            unchanged([edit for _, edit in joint.edits])
            for index, edit in joint.edits:
                twins = [other for other, twin in joint.covered if twin == index]
                keys = [s.key for i in (index, *twins) if (s := document.suggestion(i)) is not None]
                made.append(apply_to_file(edit, run.folder / "backups", keys))
        except (TraceError, OSError) as error:
            self.applied += made
            self._take_back(made)  # all that was asked for, or nothing
            self._session.raise_error(error)
            return None
        self.applied += made
        self._together.append(len(made))
        for index in joint.indices:  # it is not done before a run has shown what it brings
            suggestion = document.suggestion(index)
            if suggestion is not None and document.suggestion_state.get(suggestion.key) == CHOSEN:
                document.set_suggestion_state(index, "")
        applied = self.applied[-1]
        self._session.set_status(
            self.tr("{file} was changed; its old text is kept in {backup}.").format(
                file=applied.edit.path.name, backup=applied.backup
            )
        )
        self._loop.tell()
        return applied

    def take_over(self, project: Project, number: int) -> None:
        """Make the user's own files what the copy of a round is: all of them or none, to be undone by one click."""
        made: list[AppliedEdit] = []
        try:
            base, edits = changes_of(project, number)
            unchanged(edits)
            for edit in edits:
                made.append(apply_to_file(edit, base.folder / "backups", keys_of(project, number)))
        except (TraceError, OSError) as error:
            self.applied += made
            self._take_back(made)
            self._session.raise_error(error)
            return
        if made:
            self.applied += made
            self._together.append(len(made))
            words = self.tr("Changed as in round {number}: {files}. Undo brings the old text back.")
            names = ", ".join(a.edit.path.name for a in made)
            self._session.set_status(words.format(files=names, number=number))
            self._loop.tell()

    def last_count(self) -> int:
        """How many files the last click changed: one undo takes all of them back."""
        return len({a.edit.path for a in self.applied[-self._together[-1] :]}) if self._together else 1

    def undo_last(self) -> None:
        """Put the old texts of the files back that were changed last, all that one click changed."""
        if not self.applied:
            self._session.set_status(self.tr("No file of yours is changed from here."))
            return
        count = self._together.pop() if self._together else 1
        left = self._take_back(self.applied[-count:])
        if left:
            self._together.append(left)

    def undo(self, made: AppliedEdit) -> None:
        """Put the text before a change back; what was changed in the same file after it goes with it."""
        at = self.applied.index(made) if made in self.applied else len(self.applied)
        gone = [a for a in self.applied[at:] if a.edit.path == made.edit.path]
        self._together.clear()
        self._take_back(gone)

    def _take_back(self, gone: list[AppliedEdit]) -> int:
        """Undo changes, newest first; return how many stand, since their files have been worked on or are not there."""
        kept: set[Path] = set()
        for applied in reversed(gone):
            if applied.edit.path in kept:  # what came after it stands
                continue
            try:
                applied.undo()
            except (TraceError, OSError) as error:
                kept.add(applied.edit.path)
                self._session.raise_error(error)
                continue
            self.applied.remove(applied)
            self._session.set_status(self.tr("{file} is as it was before.").format(file=applied.edit.path.name))
        self._loop.tell()
        return sum(applied.edit.path in kept for applied in gone)

    def settle(self) -> None:
        """Let go of the changes that the user took back by other means, as by an editor or git; all of a file's."""
        gone = {a.edit.path for a in self.applied if a.is_taken_back and self._is_first(a)}
        if gone:
            for applied in self.applied:
                if applied.edit.path in gone and applied.is_taken_back:
                    with contextlib.suppress(TraceError, OSError):
                        applied.undo()  # its backup goes
            self.applied = [a for a in self.applied if a.edit.path not in gone]
            self._together.clear()
            self._loop.tell()

    def _is_first(self, applied: AppliedEdit) -> bool:
        return next(a for a in self.applied if a.edit.path == applied.edit.path) is applied

    def parted(self, project: Project) -> dict[int, int]:
        """First step whose loss a round changed beyond rounding, by the number of the round; by chance is no change."""
        if self._parted[0] != project:
            found = checks_of(project).items() if any(i.fixes for i in project.iterations) else ()
            steps = {n: c.first for n, c in found if c.status == "differs" and not c.chance and c.first is not None}
            self._parted = (project, steps)
        return self._parted[1]

    def untick(self, document: Document, states: dict[str, FixState]) -> None:
        """Nothing is done that was undone."""
        for index, suggestion in enumerate(document.analysis.suggestions if document.analysis else ()):
            state = states.get(suggestion.key)
            if state is not None and state.kind == UNDONE and document.suggestion_state.get(suggestion.key) == DONE:
                document.set_suggestion_state(index, "")

    def states(self, run: RunRecord, project: Project) -> dict[str, FixState]:
        """What became of the fixes of a run's suggestions, by their keys."""
        made = {key: a for a in self.applied if a.backup.is_relative_to(run.folder) for key in a.keys}
        found = {key: FixState(APPLIED, applied) for key, applied in made.items()}
        here = project.find(run.folder)
        parted = self.parted(project)
        for row in project.iterations if here is not None else ():
            if here is None or row.parent != here.number or not row.fixes:
                continue
            for fix in row.fixes:
                if fix.key:
                    state = _of_round(here, row, made.get(fix.key), project)
                    state = state and replace(state, differs=parted.get(row.number))
                    found[fix.key] = state or found.get(fix.key) or FixState("")
        return {key: state for key, state in found.items() if state.kind}


def _of_round(before: Iteration, row: Iteration, made: AppliedEdit | None, project: Project) -> FixState | None:
    """What one round says of its fixes; nothing where it came to no figures."""
    judged, kind = None, RUNNING
    if row.figures != Figures():
        judged = judge(before, row, project.iterations)
        kind = MEASURED if row.copy or made is not None else UNDONE
    elif row.state != "running":
        return None
    return FixState(kind, made, judged, row.number, len(row.fixes))
