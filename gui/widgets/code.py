"""Code as a diff: plain text, removed and added lines on coloured ground, selectable."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

from gui import theme
from gui.models.code_context import CodeLine

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


def hunk_lines(diff: str) -> list[str]:
    """Lines of a unified diff as `diff_lines` writes them."""
    lines: list[str] = []
    for line in diff.splitlines():
        if line.startswith("@@"):
            lines += ["…"] if lines else []
        elif lines or not line.startswith(("---", "+++")):
            lines.append(f"{line[:1]} {line[1:]}" if line else "")
    return lines


class _Code(QPlainTextEdit):
    """Read-only code as high as its lines, some of them on coloured ground."""

    def __init__(self, lines: Sequence[str], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlainText("\n".join(lines))
        self.setReadOnly(True)
        self.setFont(theme.mono_font(-1))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        metrics = self.fontMetrics()
        widest = max((metrics.horizontalAdvance(line) for line in lines), default=0)
        bar = self.horizontalScrollBar().sizeHint().height() if widest > 250 else 0
        self.setFixedHeight(metrics.lineSpacing() * max(1, len(lines)) + 22 + bar)

    def colour(self, grounds: Mapping[int, str]) -> None:
        """Put lines (by number, from 0) on a ground."""
        marks = []
        for number, ground in grounds.items():
            mark = QTextEdit.ExtraSelection()
            form = QTextCharFormat()
            form.setBackground(QColor(ground))
            form.setProperty(int(QTextFormat.Property.FullWidthSelection.value), True)
            cursor = QTextCursor(self.document().findBlockByNumber(number))
            mark.format, mark.cursor = form, cursor  # type: ignore[attr-defined]
            marks.append(mark)
        self.setExtraSelections(marks)


class CodeDiff(_Code):
    """Code before and after in one view."""

    def __init__(self, before: str, after: str, name: str, parent: QWidget | None = None) -> None:
        self._show(diff_lines(before, after), name, parent)

    def _show(self, every: Sequence[str], name: str, parent: QWidget | None) -> None:
        lines = [*every[:MAX_LINES], *(["…"] if len(every) > MAX_LINES else [])]
        _Code.__init__(self, lines, name, parent)
        t = theme.current()
        grounds = {"-": t.removed, "+": t.added}
        self.colour({k: grounds[line[0]] for k, line in enumerate(lines) if line[:1] in grounds})


class UnifiedDiff(CodeDiff):
    """A unified diff without its headers; left out stretches are an ellipsis."""

    def __init__(self, diff: str, name: str, parent: QWidget | None = None) -> None:
        self._show(hunk_lines(diff), name, parent)


class CodeLines(_Code):
    """Lines of a file with their numbers, the one meant on coloured ground."""

    def __init__(self, lines: Sequence[CodeLine], name: str, parent: QWidget | None = None) -> None:
        width = max((len(str(line.number)) for line in lines), default=1)
        super().__init__([f"{line.number:>{width}}  {line.text}" for line in lines], name, parent)
        self.colour({k: theme.current().selection for k, line in enumerate(lines) if line.marked})
