"""The field in which one chooses a Python: the likeliest first, each with what is known of its torch."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QProgressBar,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gui import theme
from gui.widgets.calm import CalmCombo
from gui.widgets.labels import form_text, label, plain_tip, restyle
from profiling.interpreters import Interpreter

NOTE = Qt.ItemDataRole.UserRole + 1
GOOD = Qt.ItemDataRole.UserRole + 2


class _Lines(QStyledItemDelegate):
    """A path at the left, and at the right what is known of it."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one line of the list."""
        super().paint(painter, option, index)
        colours = theme.current()
        painter.save()
        painter.setPen(colours.saved if index.data(GOOD) else colours.faint)
        rect = option.rect.adjusted(8, 0, -10, 0)  # type: ignore[attr-defined]
        painter.drawText(rect, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), index.data(NOTE) or "")
        painter.restore()


class PythonField(CalmCombo):
    """Path of an interpreter, typed or chosen.

    Signals
    -------
    picked()
        The user, and not the program, has chosen or typed one.
    """

    picked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setItemDelegate(_Lines(self))
        self.activated.connect(lambda _index: self.picked.emit())
        field = self.lineEdit()
        assert field is not None
        field.textEdited.connect(lambda _text: self.picked.emit())

    def path(self) -> str:
        """The path that is chosen."""
        return self.currentText().strip()

    def offer(self, found: Sequence[Interpreter], chosen: str = "") -> None:
        """List interpreters, the best first; ``chosen`` stays chosen, else the first is."""
        self.blockSignals(True)
        self.clear()
        for place, interpreter in enumerate(found):
            note, origin = self.note(interpreter), self.origin(interpreter)
            self.addItem(interpreter.path)
            self.setItemData(place, f"{note} · {origin}", NOTE)
            self.setItemData(place, interpreter.has_torch is True, GOOD)
            self.setItemData(place, plain_tip(f"{origin}, {note}"), Qt.ItemDataRole.ToolTipRole)
            self.setItemData(place, f"{interpreter.path}, {note}, {origin}", Qt.ItemDataRole.AccessibleTextRole)
        if chosen:
            self.setEditText(chosen)
        self.blockSignals(False)

    def note(self, found: Interpreter) -> str:
        """What its files say of torch."""
        if found.has_torch:
            version = found.torch_version
            return self.tr("torch {version}").format(version=version) if version else self.tr("has torch")
        return self.tr("no torch") if found.has_torch is False else self.tr("no torch found")

    def origin(self, found: Interpreter) -> str:
        """Where it was found."""
        words = {
            "beside the script": self.tr("beside the script"),
            "last used": self.tr("used lately"),
            "in this folder": self.tr("in the current folder"),
            "active environment": self.tr("the active environment"),
            "of StepLens": self.tr("the one that runs StepLens"),
            "conda": self.tr("conda"),
            "pyenv": self.tr("pyenv"),
            "on the path": self.tr("on the path"),
        }
        return words.get(found.origin, found.origin)


class PythonAnswer(QWidget):
    """What the chosen Python has. The room for it is kept, so that the page stays where it is when it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.found = label("", "dim")
        self.remarks = form_text()
        self.asking = QProgressBar()
        self.asking.setRange(0, 0)  # how long a Python takes to import torch is not known
        self.asking.setTextVisible(False)
        self.asking.setFixedWidth(120)
        self.asking.setAccessibleName(self.tr("Asking this Python what it has"))
        words = QVBoxLayout(self)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(2)
        at_work = QHBoxLayout()
        at_work.setSpacing(8)
        at_work.addWidget(self.asking)
        at_work.addWidget(self.found, 1)
        words.addLayout(at_work)
        words.addWidget(self.remarks, 1)  # it takes the room that may be left over below
        self.keep_room()

    def keep_room(self) -> None:
        """For a line and two, in the present size of texts."""
        self.found.setMinimumHeight(self.found.fontMetrics().lineSpacing())
        self.remarks.setMinimumHeight(2 * self.remarks.fontMetrics().lineSpacing())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for the least, whatever the width: a form gives it the height that its lines take."""
        hint, within = super().sizeHint(), self.layout()
        return QSize(hint.width(), within.sizeHint().height() if within is not None else hint.height())

    def wait(self, asked: bool) -> None:
        """Say that it is being asked; nothing where no path is given."""
        self.found.setText(self.tr("Asking this Python what it has…") if asked else "")
        self.asking.setVisible(asked)
        self.remarks.clear()

    def tell(self, found: str, remarks: Sequence[str], role: str) -> None:
        """Show what it has, and what to know about that."""
        self.asking.hide()
        self.found.setText(found)
        self.remarks.setText("\n".join(remarks if len(remarks) < 2 else [f"• {remark}" for remark in remarks]))
        restyle(self.remarks, "role", role)
