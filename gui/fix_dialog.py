"""The change that a fix makes to the user's code: shown first, then made in a copy, or in the file when asked."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QMessageBox, QScrollArea, QVBoxLayout, QWidget

from core.suggestions import Suggestion
from gui import text
from gui.session import Document
from gui.widgets.code import CodeDiff
from gui.widgets.labels import button, heading, label

if TYPE_CHECKING:
    from gui.loop import Loop
    from gui.proposals import Proposal

CONTEXT_LINES = 3
DOTS = "⋯"


class FixDialog(QDialog):
    """Diff, risk, prediction, and three ways on."""

    def __init__(
        self,
        loop: Loop,
        document: Document,
        index: int,
        suggestion: Suggestion,
        proposal: Proposal,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._loop, self._document, self._index = loop, document, index
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Apply a fix"))
        self.resize(920, 560)  # lines of code are wide
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        title = heading(text.filled(suggestion.title, suggestion.values), 2)
        title.setWordWrap(True)
        box.addWidget(title)
        edit = proposal.edit
        if edit is None:
            box.addWidget(label(proposal.reason, "warn", wrap=True))
            box.addWidget(label(self.tr("The fix as an example:"), "dim"))
            before, after = suggestion.fix.before, suggestion.fix.after
        else:
            box.addWidget(label(edit.summary, wrap=True))
            box.addWidget(label(str(edit.path), "faint", mono=True, select=True))
            before, after = near_lines(edit.before, edit.after)
        area = QScrollArea()
        area.setWidgetResizable(True)
        self.diff = CodeDiff(before, after, self.tr("Change of the code"))
        area.setWidget(self.diff)
        box.addWidget(area, 1)
        if edit is not None:
            box.addWidget(label(self.tr("Risk: {risk}").format(risk=edit.risk), "dim", wrap=True))
            box.addWidget(label(self._prediction(suggestion), "dim", wrap=True))
        box.addLayout(self._buttons(edit.path if edit is not None else None))

    def _prediction(self, suggestion: Suggestion) -> str:
        if suggestion.saving.ns is None:
            return self.tr("What it saves is unknown until it has run.")
        return self.tr("Predicted to save {time} of a step ({share}).").format(
            time=text.duration(suggestion.saving.ns), share=text.percent(suggestion.saving.pct)
        )

    def _buttons(self, path: Path | None) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        self.copy_button = button(
            self.tr("Apply to a copy, re-run"),
            self._run_copy,
            "primary",
            self.tr("The copy lies in a folder of its own and runs with the same options; your file is not touched."),
        )
        self.file_button = button(
            self.tr("Change my file…"),
            self._change_file,
            tip=self.tr("Only if it is still what was run; the old text is kept, and one click brings it back."),
        )
        for made in (self.copy_button, self.file_button):
            made.setEnabled(path is not None)
        row.addWidget(self.copy_button)
        row.addWidget(self.file_button)
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        return row

    def _run_copy(self) -> None:
        self.accept()
        self._loop.run_copy(self._document, self._index)

    def _change_file(self) -> None:
        proposal = self._loop.proposal(self._document, self._index)
        if proposal.edit is None:
            return
        question = QMessageBox(self)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setWindowTitle(self.tr("Change your file?"))
        question.setText(self.tr("{file} will be changed.").format(file=proposal.edit.path))
        question.setInformativeText(self.tr("Its old text is kept in the run's folder, and Undo brings it back."))
        question.setStandardButtons(QMessageBox.StandardButton.Apply | QMessageBox.StandardButton.Cancel)
        question.button(QMessageBox.StandardButton.Apply).clicked.connect(self._confirmed)
        question.open()

    def _confirmed(self) -> None:
        self.accept()
        self._loop.apply_to_own_file(self._document, self._index)


def near_lines(before: str, after: str) -> tuple[str, str]:
    """The changed lines with some around them; a line of dots stands for what lies between two changes."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    left: list[str] = []
    right: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        if left:
            left.append(DOTS)
            right.append(DOTS)
        left += old[group[0][1] : group[-1][2]]
        right += new[group[0][3] : group[-1][4]]
    return "\n".join(left), "\n".join(right)
