"""Code as a diff: plain text, removed and added lines on coloured ground, selectable."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QSizePolicy, QTextEdit, QWidget

from core.words import visible_code
from gui import theme
from gui.models.code_context import CodeLine

MAX_LINES = 60
EDGES_PX = QSize(18, 10)  # border and padding of both sides, as the style sheet sets them
NARROW_COLUMNS = 40  # that a card beside the timeline has room for
MAX_INDENT = 16  # columns: deeper lines are wrapped no further in
_COMMENTED = re.compile(r"( *)(\S.*?) {2,}(# .*)")  # indent, code, and the comment behind it


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


def comments_above(code: str) -> str:
    """Code in which the comment behind a long line stands above it: wrapped, it would be torn from what it is about."""
    lines: list[str] = []
    for line in code.splitlines():
        found = _COMMENTED.fullmatch(line) if len(line) > NARROW_COLUMNS else None
        lines += [found[1] + found[3], found[1] + found[2]] if found is not None else [line]
    return "\n".join(lines)


def without_common_indent(lines: Sequence[str]) -> list[str]:
    """Lines of a diff without the blanks that all of them begin with after their mark."""
    bodies = [line[2:] for line in lines if line[2:].strip()]
    common = min((len(body) - len(body.lstrip(" ")) for body in bodies), default=0)
    return [line[:2] + line[2 + common :] for line in lines]


def without_blank_ends(lines: Sequence[str]) -> list[str]:
    """Lines of a diff without the kept blank ones above and below."""
    told = [k for k, line in enumerate(lines) if line.strip()]
    return list(lines[told[0] : told[-1] + 1]) if told else []


class _Code(QTextEdit):
    """Read-only plain code, some lines on coloured ground.

    Long lines are wrapped, so that no part of a change is out of sight; what goes on stands further in than its line.
    """

    def __init__(self, lines: Sequence[str], name: str, gutter: int = 0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptRichText(False)
        self.setPlainText(visible_code("\n".join(lines)))
        self.setReadOnly(True)
        self.setFont(theme.mono_font(-1))
        self._gutter = gutter
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._hang()

    def _hang(self) -> None:
        """Let what is wrapped begin two columns further in than its line does."""
        column = QFontMetricsF(self.font()).horizontalAdvance(" ")
        block = self.document().firstBlock()
        while block.isValid():
            line = block.text()
            body = line[self._gutter :]
            indent = self._gutter + min(len(body) - len(body.lstrip(" ")), MAX_INDENT) + 2
            form = QTextBlockFormat()
            form.setLeftMargin(indent * column)
            form.setTextIndent(-indent * column)
            QTextCursor(block).mergeBlockFormat(form)
            block = block.next()

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """Narrower is higher."""
        return True

    def heightForWidth(self, width_px: int) -> int:  # noqa: N802 - Qt's name
        """Return the height at which all lines are in view when wrapped to a width."""
        document = self.document()
        now = document.textWidth()
        document.setTextWidth(max(1, width_px - EDGES_PX.width()))
        height = math.ceil(document.size().height())
        document.setTextWidth(now)
        return height + EDGES_PX.height()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As high as the lines are at the present width."""
        return QSize(super().sizeHint().width(), self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """One line, and room for a few letters."""
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * 12, metrics.lineSpacing() + EDGES_PX.height())

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Another font has other widths and heights."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "_gutter"):
            self._hang()
            self.updateGeometry()

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
        every = without_blank_ends(every)
        lines = [*without_common_indent(every[:MAX_LINES]), *(["…"] if len(every) > MAX_LINES else [])]
        _Code.__init__(self, lines, name, len("+ "), parent)
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
        super().__init__([f"{line.number:>{width}}  {line.text}" for line in lines], name, width + 2, parent)
        self.colour({k: theme.current().selection for k, line in enumerate(lines) if line.marked})
