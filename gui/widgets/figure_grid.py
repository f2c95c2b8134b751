"""A few figures of two sides: one column each where there is the width, else one line each."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from gui.widgets.labels import label

ROLES = ("dim", "dim", "", "faint")  # of the name, of the figure before and after, of the change
SPACING_PX, LEAST_SPACING_PX = 28, 14  # between columns; they stand closer where they would turn into lines


class FigureGrid(QWidget):
    """Rows of cells; the first row names what stands in the others."""

    def __init__(self) -> None:
        super().__init__()
        self._cells: list[list[QLabel]] = []
        self._across: bool | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACING_PX)
        self._grid.setSizeConstraint(QGridLayout.SizeConstraint.SetNoConstraint)  # it turns before it is too wide
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Show figures, each a name and as many values as the first row has."""
        for cell in (c for cells in self._cells for c in cells):
            self._grid.removeWidget(cell)
            cell.hide()
            cell.deleteLater()
        self._cells = [[label(cell, role) for cell, role in zip(row, ROLES, strict=True)] for row in rows]
        self._across = None
        self._arrange()
        self.setVisible(bool(rows))

    def is_across(self) -> bool:
        """Each figure is a column."""
        return bool(self._across)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The width of the lines: in less than the columns need it turns."""
        return QSize(sum(self._widest(k) for k in range(len(ROLES))), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Turn where the width asks for it."""
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Larger texts need more width."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_cells"):
            self._arrange()

    def _widest(self, place: int) -> int:
        return max((cells[place].sizeHint().width() for cells in self._cells), default=0)

    def _arrange(self) -> None:
        columns = sum(max(c.sizeHint().width() for c in cells) for cells in self._cells)
        fitting = (self.width() - columns) // max(len(self._cells) - 1, 1)
        across = fitting >= LEAST_SPACING_PX
        self._grid.setHorizontalSpacing(min(fitting, SPACING_PX) if across else SPACING_PX)
        if across == self._across:
            return
        self._across = across
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 0)
        for i, cells in enumerate(self._cells):
            for k, cell in enumerate(cells):
                self._grid.addWidget(cell, *((k, i) if across else (i, k)), Qt.AlignmentFlag.AlignLeft)
        self._grid.setColumnStretch(len(self._cells) if across else len(ROLES), 1)
        self.updateGeometry()
