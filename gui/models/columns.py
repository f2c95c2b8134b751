"""One table model over columns: sorts with numpy, filters by text, formats only the cells that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor

from core.kernel_names import is_mangled_long, kernel_in_line
from core.search import spellings
from gui import text, theme
from gui.widgets.labels import plain_tip

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()

NOT_ASKED = -2  # of a copy nobody asks for its grid, nor for times of what one of two traces lacks; -1 is unknown
MOST_LETTERS = 400  # of a name in a cell
FORMATS: dict[str, Callable[[Any], str]] = {
    "ns": lambda v: text.duration(None if v < 0 else float(v)),
    "signed_ns": lambda v: text.signed_duration(float(v)),
    "saving_ns": lambda v: "" if v <= NOT_ASKED else text.saving(None if v < 0 else float(v)),
    "count": lambda v: text.count(None if v < 0 else float(v)),
    "pct": lambda v: text.percent(None if v < 0 else float(v)),
    "kernel_count": lambda v: "" if v <= NOT_ASKED else text.count(None if v < 0 else float(v)),
    "kernel_pct": lambda v: "" if v <= NOT_ASKED else text.percent(None if v < 0 else float(v)),
    "side_ns": lambda v: "–" if v <= NOT_ASKED else text.duration(float(v)),
    "side_count": lambda v: "–" if v <= NOT_ASKED else text.count(float(v)),
    "life": lambda v: text.lifetime(int(v)),
    "bytes": lambda v: text.size(float(v)),
    "text": str,
    "name": lambda v: text.elided(_whole(*_telling(str(v))), MOST_LETTERS),
}
_NEVER_NEGATIVE = frozenset(("ns", "side_ns", "saving_ns", "count", "side_count", "kernel_count", "pct", "kernel_pct"))
SORT_ROLE = Qt.ItemDataRole.UserRole
SHORT_ROLE = Qt.ItemDataRole.UserRole + 1  # what a cell must have room for: of a kernel's name what it does
SHORT = 16  # letters that any cell has room for
_WORDS = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole)


def _telling(name: str) -> tuple[str, str]:
    """What a name says first, and the rest: of a C++ kernel what it does, then its template."""
    return kernel_in_line(name) if is_mangled_long(name) else (name, "")


def _whole(short: str, rest: str) -> str:
    return f"{short} – {rest}" if rest else short


@dataclass(frozen=True)
class Column:
    """One column: title, how it is written (a key of `FORMATS`), its values (one per row), and what it means."""

    title: str
    form: str
    values: Sequence[Any] | np.ndarray
    tip: str = ""
    better: Sequence[int] = ()  # per row: 1 good, -1 bad, 0 neither; none for no colour

    @property
    def is_text(self) -> bool:
        """Left-aligned and sorted as text."""
        return self.form in ("text", "name")


class ColumnModel(QAbstractTableModel):
    """Rows over columns, none of them copied; sorting and filtering only change the order of row numbers.

    Parameters
    ----------
    columns
        All of the same length; the first text column names the row.
    slices
        The slice to show for each row, -1 for none.
    """

    def __init__(self, columns: Sequence[Column], slices: Sequence[int] | np.ndarray = ()) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._slices = np.asarray(slices, np.int64)
        self._count = len(self._columns[0].values) if self._columns else 0
        self._order = np.arange(self._count)
        self._shown = self._order
        self._filter = ""
        self._folded: dict[int, list[str]] = {}

    def replace(self, columns: Sequence[Column], slices: Sequence[int] | np.ndarray = ()) -> None:
        """Show other rows."""
        self.beginResetModel()
        self._columns, self._slices = tuple(columns), np.asarray(slices, np.int64)
        self._count = len(self._columns[0].values) if self._columns else 0
        self._order = np.arange(self._count)
        self._folded.clear()
        self._shown = self._filtered()
        self.endResetModel()

    # Qt's questions ------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = _ROOT) -> int:  # noqa: N802 - Qt's name
        """Rows that pass the filter."""
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = _ROOT) -> int:  # noqa: N802 - Qt's name
        """Columns."""
        return 0 if parent.isValid() else len(self._columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return one cell."""
        if not index.isValid() or not index.row() < len(self._shown):
            return None
        column = self._columns[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column.is_text else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ForegroundRole:
            sign = column.better[int(self._shown[index.row()])] if len(column.better) else 0
            return None if not sign else QColor(theme.current().saved if sign > 0 else theme.current().wait)
        if role not in (*_WORDS, SORT_ROLE, SHORT_ROLE):
            return None
        value = column.values[int(self._shown[index.row()])]
        if role == SHORT_ROLE and column.form == "name":
            return text.elided(_telling(str(value))[0], MOST_LETTERS)
        if role == Qt.ItemDataRole.ToolTipRole:  # a name may be cut in its cell
            return plain_tip(str(value)[:2000]) if column.is_text and len(str(value)) > SHORT else None
        return value if role == SORT_ROLE else FORMATS[column.form](value)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Titles, and what they mean as tooltips."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._columns):
            return None
        column = self._columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(column.tip) or None
        if role == Qt.ItemDataRole.InitialSortOrderRole:  # a first click asks for the largest, of names for the first
            return Qt.SortOrder.AscendingOrder if column.is_text else Qt.SortOrder.DescendingOrder
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column.is_text else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by one column; equal rows keep their order. -1 is the order of the figures."""
        if column >= len(self._columns):
            return
        self.layoutAboutToBeChanged.emit()
        moved = self.persistentIndexList()
        rows = [int(self._shown[i.row()]) for i in moved]
        self._order = self._sorted(column, order) if column >= 0 else np.arange(self._count)
        self._shown = self._filtered()
        place = {int(row): at for at, row in enumerate(self._shown)} if moved else {}
        self.changePersistentIndexList(
            moved, [self.index(place.get(row, -1), i.column()) for row, i in zip(rows, moved, strict=True)]
        )
        self.layoutChanged.emit()

    # Ours ----------------------------------------------------------------------------------------------------

    def set_filter(self, needle: str) -> None:
        """Keep the rows whose text columns hold all words of ``needle`` (case does not matter, as in the search)."""
        if needle != self._filter:
            self.beginResetModel()
            self._filter = needle
            self._shown = self._filtered()
            self.endResetModel()

    def slice_of(self, row: int) -> int:
        """Slice to show for a shown row, -1 for none."""
        if not 0 <= row < len(self._shown) or not len(self._slices):
            return -1
        return int(self._slices[self._shown[row]])

    def source_row(self, row: int) -> int:
        """Position of a shown row in the columns."""
        return int(self._shown[row])

    def csv(self) -> str:
        """Shown rows with their raw values (ns, bytes), comma-separated, with a header."""
        lines = [",".join(_quoted(c.title + _unit(c.form)) for c in self._columns)]
        lines += [",".join(_quoted(_raw(c.values[int(row)], c.form)) for c in self._columns) for row in self._shown]
        return "\n".join(lines) + "\n"

    @property
    def total(self) -> int:
        """Rows without the filter."""
        return self._count

    def _sorted(self, column: int, order: Qt.SortOrder) -> np.ndarray:
        chosen = self._columns[column]
        if chosen.is_text:
            keys = self._fold(column)
            ranked = np.asarray(sorted(range(self._count), key=keys.__getitem__), np.int64)
        else:
            ranked = np.argsort(np.asarray(chosen.values), kind="stable")
        return ranked if order == Qt.SortOrder.AscendingOrder else ranked[::-1]

    def _fold(self, column: int) -> list[str]:
        if column not in self._folded:
            self._folded[column] = [str(v).casefold() for v in self._columns[column].values]
        return self._folded[column]

    def _filtered(self) -> np.ndarray:
        words = self._filter.casefold().split()
        if not words:
            return self._order
        texts = [self._fold(k) for k, c in enumerate(self._columns) if c.is_text]
        meant = [spellings(word) for word in words]
        keep = [all(any(w in t[row] for w in each for t in texts) for each in meant) for row in self._order]
        return self._order[np.asarray(keep, np.bool_)] if len(keep) else self._order


def _raw(value: Any, form: str) -> str:
    if form in _NEVER_NEGATIVE and value < 0:  # stands for what is unknown or not there
        return ""
    return str(value.item() if isinstance(value, np.generic) else value)


def _unit(form: str) -> str:
    units = {"bytes": "bytes", "pct": "%", **dict.fromkeys(("ns", "side_ns", "signed_ns", "saving_ns", "life"), "ns")}
    return f" [{units[form]}]" if form in units else ""


def _quoted(cell: str) -> str:
    # A cell that starts like a formula would be run by a spreadsheet: names in a trace are not trusted.
    if cell[:1] in ("=", "+", "@", "\t") or (cell[:1] == "-" and not _number(cell)):
        cell = "'" + cell
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',"\n\r') else cell


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Names(Sequence[str]):
    """Names of a table's rows through the trace's string table: nothing is copied."""

    def __init__(self, strings: Any, name_id: np.ndarray) -> None:
        self._strings, self._name_id = strings, name_id

    def __len__(self) -> int:
        return len(self._name_id)

    def __getitem__(self, row: Any) -> Any:
        return self._strings[int(self._name_id[row])]
