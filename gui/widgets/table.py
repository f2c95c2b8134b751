"""A table with a filter field, sorting, and copying as CSV."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeyEvent, QKeySequence, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from core.kernel_names import is_mangled_long
from gui import text
from gui.models.columns import SHORT_ROLE, SORT_ROLE, ColumnModel
from gui.text_size import px
from gui.widgets.empty import EmptyState
from gui.widgets.labels import Elided, button

ROW_PX = 22
NAMES_PX, MOST_NAMES_PX = 240, 900
PADDING_PX, ARROW_PX = 24, 16
LOOKED_AT = 40  # rows looked at for a column's width, first and further ones: not all of thousands
LEAST_PX, TEXT_PX = 52, 180  # of a column; of a text, in a narrow table


class _Cut(QStyledItemDelegate):
    """Cuts a name in the middle, where folders and modules are, but what begins with its telling part at the end."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:  # noqa: N802 - Qt's name
        """Choose where the text is cut; what is red or green stays so in a chosen row."""
        super().initStyleOption(option, index)
        ink = index.data(Qt.ItemDataRole.ForegroundRole)
        if isinstance(ink, QColor):
            palette = QPalette(option.palette)  # type: ignore[attr-defined]
            palette.setColor(QPalette.ColorRole.HighlightedText, ink)
            option.palette = palette  # type: ignore[attr-defined]
        name = index.data(SORT_ROLE)
        if isinstance(name, str) and is_mangled_long(name):
            option.textElideMode = Qt.TextElideMode.ElideRight  # type: ignore[attr-defined]


class Table(QTableView):
    """Rows of one height; Enter or a double click on a row opens it, Ctrl+C copies the chosen rows."""

    def __init__(self, model: ColumnModel, on_open: Callable[[int], None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._on_open, self._first_px = on_open, NAMES_PX
        self._wanted_px: list[int] = []  # by column
        self._given_px: list[int] = []  # by column after the first, as given last
        self.setModel(model)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setItemDelegate(_Cut(self))
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        rows = self.verticalHeader()
        rows.setVisible(False)
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(px(ROW_PX))
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setStretchLastSection(False)
        head.setSortIndicatorClearable(True)
        head.setSortIndicator(-1, Qt.SortOrder.DescendingOrder)
        self.setSortingEnabled(True)
        head.sortIndicatorChanged.connect(self._sorted)
        self.row_actions: Callable[[int], list[tuple[str, Callable[[], object]]]] = lambda row: []  # more in its menu
        self.open_words: Callable[[int], str] = lambda row: self.tr("Zoom to it")  # there; "" where nothing opens
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._menu)
        self.doubleClicked.connect(self._opened)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text: rows, and columns that the user has not sized."""
        super().changeEvent(event)
        if event.type() != QEvent.Type.FontChange or not hasattr(self, "_wanted_px"):
            return
        self.verticalHeader().setDefaultSectionSize(px(ROW_PX))
        if self._wanted_px and not self._sized_by_user():
            self.fit_columns(self._first_px)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter opens, Ctrl+C copies."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._opened(self.currentIndex())
        elif event.matches(QKeySequence.StandardKey.Copy):
            self.copy_rows()
        else:
            super().keyPressEvent(event)

    def copy_rows(self) -> None:
        """Copy the chosen rows as they stand, tab-separated."""
        rows = sorted({i.row() for i in self.selectionModel().selectedRows()})
        model = self.model()
        cells = [[self._copied(model.index(r, c)) for c in range(model.columnCount())] for r in rows]
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in cells))

    @staticmethod
    def _copied(cell: QModelIndex) -> str:
        """A cell as it stands; a name as it is in the trace."""
        value = cell.data(SORT_ROLE)
        return str(value if isinstance(value, str) else cell.data())

    def copy_csv(self) -> None:
        """Copy all shown rows as CSV."""
        model = self.model()
        assert isinstance(model, ColumnModel)
        QGuiApplication.clipboard().setText(model.csv())

    def fit_columns(self, first_px: int = NAMES_PX) -> None:
        """Give the columns what their first rows need, and the first one the rest (``first_px`` at least)."""
        self._first_px, self._given_px = first_px, []
        self._wanted_px = [max(self._needed_px(column), LEAST_PX) for column in range(self.model().columnCount())]
        self._share_room()

    def _share_room(self) -> None:
        """Long texts get what names and figures leave, unless the user has sized a column."""
        if not self._wanted_px or self._sized_by_user():
            self.fit_names()
            return
        width = self.viewport().width()
        most = max(px(TEXT_PX), width * 3 // 10)
        given = [min(wanted, most) for wanted in self._wanted_px[1:]]
        spare = width - 4 - sum(given) - max(min(self._wanted_px[0], MOST_NAMES_PX), min(self._first_px, width // 3))
        for place, wanted in enumerate(self._wanted_px[1:]):
            more = max(0, min(wanted - given[place], spare))
            given[place], spare = given[place] + more, spare - more
        for column, column_px in enumerate(given, 1):
            self.setColumnWidth(column, column_px)
        self._given_px = self._widths_px()
        self.fit_names()

    def _widths_px(self) -> list[int]:
        return [self.columnWidth(column) for column in range(1, self.model().columnCount())]

    def _sized_by_user(self) -> bool:
        return bool(self._given_px) and self._widths_px() != self._given_px

    def _needed_px(self, column: int) -> int:
        """Room for a column's title, its first cells and some others; for an arrow only where it is sorted by."""
        model, metrics = self.model(), self.fontMetrics()
        title = metrics.horizontalAdvance(str(model.headerData(column, Qt.Orientation.Horizontal)))
        title += ARROW_PX if self.horizontalHeader().sortIndicatorSection() == column else 0
        count = model.rowCount()  # small shares, at the end of most tables, can be longer than large ones
        rows = {*range(min(count, LOOKED_AT)), *range(count - 1, -1, -max(count // LOOKED_AT, 1))}
        cells = (metrics.horizontalAdvance(str(model.index(row, column).data(SHORT_ROLE))) for row in rows)
        return max(title, *cells, 0) + PADDING_PX

    def _sorted(self, column: int) -> None:
        """Make room for the arrow beside a column's title."""
        if 0 <= column < self.model().columnCount() and self.columnWidth(column) < self._needed_px(column):
            by_user = self._sized_by_user()
            self.setColumnWidth(column, min(self._needed_px(column), MOST_NAMES_PX))
            self._given_px = self._given_px if by_user else self._widths_px()
            self.fit_names()

    def fit_names(self) -> None:
        """Give the first column the room that the others leave."""
        used = sum(self.columnWidth(k) for k in range(1, self.model().columnCount()))
        width = self.viewport().width()
        least = min(self._first_px, max(width // 3, 140))  # in a narrow table the figures need the room
        self.setColumnWidth(0, min(max(least, width - used - 4), MOST_NAMES_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Names take what is left."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._share_room()

    def _opened(self, index: QModelIndex) -> None:
        self._on_open(index.row())

    def menu(self, index: QModelIndex) -> QMenu:
        """Make the menu of a row, or of the table where the index is none."""
        menu = QMenu(self)
        if index.isValid():
            if words := self.open_words(index.row()):
                menu.addAction(words, lambda: self._opened(index))
            for title, act in self.row_actions(index.row()):
                menu.addAction(title, act)
        menu.addAction(self.tr("Copy rows"), self.copy_rows)
        menu.addAction(self.tr("Copy table as CSV"), self.copy_csv)
        return menu

    def _menu(self, at: QPoint) -> None:
        menu = self.menu(self.indexAt(at))
        menu.exec(self.viewport().mapToGlobal(at))
        menu.deleteLater()


class TableBox(QWidget):
    """A table under a line with a note, a filter field and "Copy CSV".

    Parameters
    ----------
    on_open
        Gets the slice of the row that was opened (never -1).
    empty
        What to say when there are no rows at all.
    """

    def __init__(
        self, model: ColumnModel, on_open: Callable[[int], None], *, name: str, note: str = "", empty: str = ""
    ) -> None:
        super().__init__()
        self.model, self._slice_opened = model, on_open
        self._empty = EmptyState(empty)
        self._words = note
        self.note = Elided(note, "faint", at_end=True)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(self.tr("Filter"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setAcceptDrops(False)  # files dropped on it are for the window
        self.filter.setAccessibleName(self.tr("Filter {table}").format(table=name))
        self.filter.setFixedWidth(180)
        self.filter.textChanged.connect(self._filter)
        self.table = Table(model, self._open)
        self.table.setAccessibleName(name)
        self.copy = button(self.tr("Copy CSV"), self._copy, "flat", self.tr("Copies the rows that are shown"))
        self.top = top = QHBoxLayout()  # a panel may put more into it
        top.setContentsMargins(8, 5, 8, 4)
        top.setSpacing(12)
        top.addWidget(self.filter)
        top.addWidget(self.note, 1)
        top.addWidget(self.copy)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self._full = QWidget()  # all that there is with rows, in line with the views that are no tables
        inside = QVBoxLayout(self._full)
        inside.setContentsMargins(8, 0, 0, 0)
        inside.setSpacing(0)
        inside.addLayout(top)
        inside.addWidget(self.table, 1)
        box.addWidget(self._empty, 1)
        box.addWidget(self._full, 1)
        self.refresh()

    def refresh(self) -> None:
        """Look at the model again: show the table, or say why there is none."""
        has_rows = self.model.total > 0
        self._full.setVisible(has_rows)
        self._empty.setVisible(not has_rows)
        if has_rows:
            self.table.fit_columns()

    def set_empty(self, words: str, advice: str = "") -> None:
        """Say something else when there are no rows: what is missing, and how to get it."""
        self._empty.say(words, advice)

    def _filter(self, needle: str) -> None:
        self.model.set_filter(needle)
        none = bool(needle.strip()) and not self.model.rowCount()
        self.note.set_text(self.tr("No row has these words.") if none else self._words)

    def say(self, note: str) -> None:
        """Write something beside the filter."""
        self._words = note
        self.note.set_text(note)

    def _copy(self) -> None:
        self.table.copy_csv()
        words = self.tr("{count} {count|row|rows} copied, with a line of titles.")
        self.note.set_text(text.counted(words, self.model.rowCount()))

    def _open(self, row: int) -> None:
        slice_id = self.model.slice_of(row)
        if slice_id >= 0:
            self._slice_opened(slice_id)
