"""The changes of a round and of those before it, for the user's own files: shown first, made when asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from core.judging import judge
from core.project import Project
from core.results import ResultCheck
from core.round_checks import checks_of
from core.take_over import changes_of, rounds_in
from gui import round_words
from gui.widgets.code import UnifiedDiff
from gui.widgets.labels import button, heading, label

if TYPE_CHECKING:
    from gui.loop import Loop

translate = QCoreApplication.translate


class TakeOverDialog(QDialog):
    """One diff for each file, and the button that makes the change.

    Raises
    ------
    TraceError
        Where the copy or its run is gone.
    """

    def __init__(self, loop: Loop, project: Project, number: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loop = loop
        base, edits = changes_of(project, number)
        self._project, self._number = project, number
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Take a round over"))
        self.resize(920, 620)
        inner = QWidget()
        inner.setObjectName("scrolled")
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 8, 0)
        for edit in edits:
            column.addWidget(label(str(edit.path), "dim", wrap=True, mono=True, select=True))
            column.addWidget(UnifiedDiff(edit.diff, self.tr("Change of the code")))
        if not edits:
            column.addWidget(label(self.tr("The copy of this round has the code of your files: nothing to change.")))
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        self.change = button(self.tr("Change my files") if len(edits) > 1 else self.tr("Change my file"), self._change)
        self.change.setEnabled(bool(edits))
        row = QHBoxLayout()
        row.addWidget(self.change)
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        rounds = [i.number for i in rounds_in(project, number)]
        title = self.tr("What rounds {rounds} changed, in your own files") if len(rounds) > 1 else ""
        title = title or self.tr("What round {number} changed, in your own file")
        box.addWidget(heading(title.format(number=number, rounds=round_words.listed(rounds)), 2))
        said, is_proved = measured(project, checks_of(project), rounds)
        self.said = label(said, "" if is_proved else "warn", wrap=True)
        self.change.setProperty("role", "primary" if is_proved else "")
        box.addWidget(self.said)
        words = self.tr(
            "Only what is still as it was when it was run is changed. The old text is kept in {folder}; “Undo” on this "
            "page brings it back."
        )
        box.addWidget(label(words.format(folder=base.folder / "backups"), "dim", wrap=True))
        box.addWidget(area, 1)
        box.addLayout(row)

    def _change(self) -> None:
        self.accept()
        self._loop.own.take_over(self._project, self._number)


def measured(project: Project, checks: dict[int, ResultCheck], numbers: Sequence[int]) -> tuple[str, bool]:
    """What the rounds measured whose changes are to go into the user's files, and whether all of them are proved."""
    sentences, gained, kept = [], bool(numbers), True
    for number in numbers:
        last = project.get(number)
        parent = project.get(last.parent) if last is not None else None
        found = judge(parent, last, project.iterations) if parent is not None and last is not None else None
        if found is None or found.measured_pct is None:
            sentences.append(translate("iterations", "Round {number}: not measured.").format(number=number))
            gained = False
            continue
        words = translate("iterations", "Round {number}: {result}, measured {change} a step.")
        change = round_words.signed(found.measured_pct)
        sentences.append(words.format(number=number, result=round_words.result(found), change=change))
        check = checks.get(number)
        differs = check is not None and check.status == "differs" and not check.chance
        if check is not None and differs:
            words = translate("iterations", "Its losses differ from step {step} on.")
            sentences.append(words.format(step=check.first))
        gained, kept = gained and found.is_gain is True, kept and not differs
    if not gained:
        sentences.append(translate("iterations", "No gain is proved: measure again before your file is changed."))
    elif not kept:
        sentences.append(translate("iterations", "Make sure that other losses are meant before your file is changed."))
    return " ".join(sentences), gained and kept
