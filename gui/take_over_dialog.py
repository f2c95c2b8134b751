"""The changes of a round and of those before it, for the user's own files: shown first, made when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from core.project import Project
from core.take_over import changes_of
from gui.widgets.code import UnifiedDiff
from gui.widgets.labels import button, heading, label

if TYPE_CHECKING:
    from gui.loop import Loop


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
            column.addWidget(label(str(edit.path), "dim", mono=True, select=True))
            column.addWidget(UnifiedDiff(edit.diff, self.tr("Change of the code")))
        if not edits:
            column.addWidget(label(self.tr("The copy of this round has the code of your files: nothing to change.")))
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        self.change = button(self.tr("Change my files") if len(edits) > 1 else self.tr("Change my file"), self._change)
        self.change.setProperty("role", "primary")
        self.change.setEnabled(bool(edits))
        row = QHBoxLayout()
        row.addWidget(self.change)
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        title = self.tr("What rounds 1 to {number} changed, in your own files") if number > 1 else ""
        title = title or self.tr("What round {number} changed, in your own file")
        box.addWidget(heading(title.format(number=number), 2))
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
