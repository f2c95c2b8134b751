"""Code as a diff: plain text, removed and added lines on coloured ground, selectable."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QResizeEvent, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

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


def without_common_indent(lines: Sequence[str]) -> list[str]:
    """Lines of a diff without the blanks that all of them begin with after their mark."""
    bodies = [line[2:] for line in lines if line[2:].strip()]
    common = min((len(body) - len(body.lstrip(" ")) for body in bodies), default=0)
    return [line[:2] + line[2 + common :] for line in lines]


class _Code(QPlainTextEdit):
    """Read-only code, some lines on coloured ground. Long lines are wrapped: no part of a change is out of sight."""

    def __init__(self, lines: Sequence[str], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlainText("\n".join(lines))
        self.setReadOnly(True)
        self.setFont(theme.mono_font(-1))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._set_lines(len(lines))

    def _set_lines(self, count: int) -> None:
        self.setFixedHeight(self.fontMetrics().lineSpacing() * max(1, count) + 22)

    def _fit(self) -> None:
        """Be as high as the lines are when wrapped to this width."""
        block, count = self.document().firstBlock(), 0
        while block.isValid():
            self.blockBoundingRect(block)  # lays it out
            count += max(1, block.layout().lineCount())
            block = block.next()
        self._set_lines(count)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Another width breaks the lines elsewhere."""
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Another font has other widths and heights."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def colour(self, grounds: Mapping[int, str]) -> None:
        """Put lines (by number, from 0) on a ground."""
        for number, ground in grounds.items():
            form = QTextBlockFormat()  # of the block, so that a wrapped line has it on its whole width
            form.setBackground(QColor(ground))
            QTextCursor(self.document().findBlockByNumber(number)).mergeBlockFormat(form)


class CodeDiff(_Code):
    """Code before and after in one view."""

    def __init__(self, before: str, after: str, name: str, parent: QWidget | None = None) -> None:
        self._show(diff_lines(before, after), name, parent)

    def _show(self, every: Sequence[str], name: str, parent: QWidget | None) -> None:
        lines = [*without_common_indent(every[:MAX_LINES]), *(["…"] if len(every) > MAX_LINES else [])]
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
