"""Finder dialogs (commands, tracks) and the page of keys."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gui import commands, theme
from gui.widgets.labels import heading, label, named

MAX_SHOWN = 200
NOTE_ROLE = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True)
class Choice:
    """One line of a finder."""

    text: str
    note: str
    run: Callable[[], object]


def matches(needle: str, text: str) -> bool:
    """All words of ``needle`` occur in ``text``, or its letters begin words of it, in this order."""
    low, words = text.casefold(), needle.casefold().split()
    if all(word in low for word in words):
        return True
    return _begins_words("".join(words), low.replace(":", " ").split())


def _begins_words(letters: str, words: list[str]) -> bool:
    """Whether the letters are beginnings of some of the words, one after the other."""
    if not letters:
        return True
    for place, word in enumerate(words):
        most = len(os.path.commonprefix((letters, word)))
        if any(_begins_words(letters[n:], words[place + 1 :]) for n in range(most, 0, -1)):
            return True
    return False


class NoteDelegate(QStyledItemDelegate):
    """A line with its note at the right end, where notes stand in one column."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw the line as ever, then the note."""
        note = str(index.data(NOTE_ROLE) or "")
        super().paint(painter, option, index)
        box: QRect = option.rect.adjusted(8, 0, -10, 0)  # type: ignore[attr-defined]
        painter.setPen(QColor(theme.current().dim))
        room = box.width() - option.fontMetrics.horizontalAdvance(str(index.data())) - 24  # type: ignore[attr-defined]
        words = option.fontMetrics.elidedText(note, Qt.TextElideMode.ElideMiddle, room)  # type: ignore[attr-defined]
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), words)


class Finder(QDialog):
    """A field and a list: type, choose with the arrows, Enter."""

    def __init__(self, title: str, choices: Sequence[Choice], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(560, 380)
        self._choices = choices
        self.field = QLineEdit()
        self.field.setPlaceholderText(title)
        self.field.setAccessibleName(title)
        self.list = QListWidget()
        self.list.setAccessibleName(title)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(NoteDelegate(self.list))
        self.nothing = label(self.tr("Nothing has these letters in its name. Esc closes."), "dim")
        box = QVBoxLayout(self)
        box.setContentsMargins(12, 12, 12, 12)
        box.addWidget(self.field)
        box.addWidget(self.list, 1)
        box.addWidget(self.nothing)
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._fill)
        self.field.returnPressed.connect(self.choose)
        self.list.itemActivated.connect(lambda _item: self.choose())
        self._fill("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Arrows in the field move in the list."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
            offset = step.get(Qt.Key(event.key()), 0)
            if offset and self.list.count():
                self.list.setCurrentRow(min(max(self.list.currentRow() + offset, 0), self.list.count() - 1))
                return True
        return super().eventFilter(watched, event)

    def choose(self) -> None:
        """Do what the current line says."""
        item = self.list.currentItem()
        if item is None:
            return
        chosen = self._choices[item.data(Qt.ItemDataRole.UserRole)]
        self.accept()
        chosen.run()

    def _fill(self, needle: str) -> None:
        self.list.clear()
        exact = [k for k, c in enumerate(self._choices) if needle.casefold() in c.text.casefold()]
        loose = [k for k, c in enumerate(self._choices) if k not in set(exact) and matches(needle, c.text)]
        for k in (exact + loose)[:MAX_SHOWN]:
            choice = self._choices[k]
            item = QListWidgetItem(choice.text)
            item.setData(Qt.ItemDataRole.UserRole, k)
            item.setData(NOTE_ROLE, choice.note)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{choice.text}, {choice.note}".rstrip(", "))
            self.list.addItem(item)
        self.nothing.setVisible(not self.list.count())
        self.list.setCurrentRow(0)


class KeysPage(QDialog):
    """All keys on one page."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keys"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        inner = QWidget()
        inner.setObjectName("scrolled")
        grid = QGridLayout(inner)
        grid.setContentsMargins(16, 12, 16, 12)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        left: list[tuple[str | None, str]] = [(None, self.tr("In the timeline"))]
        left += [(keys, commands.translated(words)) for keys, words in commands.TIMELINE_KEYS + commands.SEARCH_KEYS]
        left.append((None, self.tr("With the mouse")))
        left += [(commands.translated(gesture), commands.translated(words)) for gesture, words in commands.MOUSE]
        right: list[tuple[str | None, str]] = []
        for menu in commands.MENUS:
            listed = [c for c in commands.COMMANDS if c.menu == menu and c.keys]
            if listed:
                right.append((None, commands.translated(menu)))
            right += [(keys_text(c.keys), commands.title_of(c)) for c in listed]
        narrow = self.screen().availableGeometry().width() < 1100
        for column, below, lines in ((0, 0, left), (0, len(left), right) if narrow else (3, 0, right)):
            for row, (keys, words) in enumerate(lines, below):
                if keys is None:
                    grid.addWidget(heading(words, 1), row, column, 1, 2)
                else:
                    shown = label(keys, mono=True)
                    shown.setStyleSheet(f"color: {theme.current().accent};")
                    grid.addWidget(shown, row, column)
                    grid.addWidget(label(words), row, column + 1)
        grid.setColumnMinimumWidth(2, 24)
        grid.setRowStretch(max(len(left), len(right)), 1)
        area = named(QScrollArea(), self.tr("Keys"))
        area.setWidgetResizable(True)
        area.setWidget(inner)
        room = self.screen().availableGeometry()
        hint = inner.sizeHint()
        self.resize(min(hint.width() + 24, room.width() - 40), min(hint.height() + 4, room.height() - 80))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(area)


def keys_text(keys: Sequence[str]) -> str:
    """Keys as the platform writes them."""
    return "  ".join(QKeySequence(k).toString(QKeySequence.SequenceFormat.NativeText) for k in keys)
