"""Code as a diff: plain text, removed and added lines on coloured ground, selectable."""

from __future__ import annotations

import difflib

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

from gui import theme

MAX_LINES = 60


def diff_lines(before: str, after: str) -> list[str]:
    """Lines that start with ``-`` (gone), ``+`` (new) or a blank (kept); only one side is no diff and gets blanks."""
    if not before.strip() or not after.strip():
        return ["  " + line for line in (after or before).rstrip("\n").splitlines()]
    old, new = before.rstrip("\n").splitlines(), after.rstrip("\n").splitlines()
    lines: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += ["  " + line for line in old[a:b]]
        else:
            lines += ["- " + line for line in old[a:b]] + ["+ " + line for line in new[c:d]]
    return lines


class CodeDiff(QPlainTextEdit):
    """Code before and after in one view, as high as its lines."""

    def __init__(self, before: str, after: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines = diff_lines(before, after)[:MAX_LINES]
        self.setPlainText("\n".join(self._lines))
        self.setReadOnly(True)
        self.setFont(theme.mono_font(-1))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        metrics = self.fontMetrics()
        widest = max((metrics.horizontalAdvance(line) for line in self._lines), default=0)
        bar = self.horizontalScrollBar().sizeHint().height() if widest > 250 else 0
        self.setFixedHeight(metrics.lineSpacing() * max(1, len(self._lines)) + 22 + bar)
        self.colour()

    def colour(self) -> None:
        """Put the lines on the grounds of the theme shown now."""
        t, marks = theme.current(), []
        for number, line in enumerate(self._lines):
            ground = {"-": t.removed, "+": t.added}.get(line[:1])
            if ground is None:
                continue
            mark = QTextEdit.ExtraSelection()
            form = QTextCharFormat()
            form.setBackground(QColor(ground))
            form.setProperty(int(QTextFormat.Property.FullWidthSelection.value), True)
            cursor = QTextCursor(self.document().findBlockByNumber(number))
            mark.format, mark.cursor = form, cursor  # type: ignore[attr-defined]
            marks.append(mark)
        self.setExtraSelections(marks)
