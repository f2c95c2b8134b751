"""A script's output as a terminal shows it: colours, carriage returns, and only the newest lines of a flood."""

from __future__ import annotations

import re
from dataclasses import dataclass

from PySide6.QtCore import QEvent
from PySide6.QtGui import QColor, QResizeEvent, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from gui import theme

MOST_LINES = 10_000
LONGEST_LINE = 4_000
MOST_PER_BATCH = 3_000  # lines laid out at once: what is older would scroll out of reach unseen

_SGR = re.compile("\x1b\\[([0-9;]*)m")
# Every other escape: CSI, OSC (titles, links), and two-character ones.
_ESCAPE = re.compile("\x1b\\[[0-?]*[ -/]*[@-ln-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\^_]|\x1b$")
_WHOLE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b)|[^\\[\\]])")
LONGEST_ESCAPE = 64  # one that is not complete yet is waited for, as long as it is shorter
_CONTROL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_COLORS = {  # (dark, light) of the eight terminal colours; readable on both grounds
    0: ("#8d97a4", "#4a5462"),
    1: ("#ff8a86", "#b3261e"),
    2: ("#5fd39c", "#137547"),
    3: ("#e5b04d", "#8a5a00"),
    4: ("#7db9ff", "#1463cc"),
    5: ("#c7a3f5", "#7a3fb5"),
    6: ("#5ec8d0", "#0b7480"),
    7: ("#e8ebef", "#15191f"),
}


@dataclass(frozen=True)
class Style:
    """How a piece of text looks."""

    color: int | None = None
    bold: bool = False
    stream: str = "stdout"


class LineBuilder:
    """Turns a stream of pieces into lines; knows the line that is still being written.

    A carriage return goes back to the start of the line, and what follows overwrites it, as in a terminal.
    """

    def __init__(self) -> None:
        self.open: list[tuple[str, Style]] = []  # spans of the unfinished line
        self._style = Style()
        self._restart = False  # a carriage return was the last thing written
        self._held = ""  # an escape that is not complete yet

    def feed(self, stream: str, text: str) -> list[list[tuple[str, Style]]]:
        """Take a piece; returns the lines that it finished."""
        if stream != self._style.stream:
            self._style = Style(stream=stream)
        text = self._held + text
        cut = text.rfind("\x1b")
        self._held = ""
        if cut >= 0 and len(text) - cut < LONGEST_ESCAPE and not _WHOLE.match(text[cut:]):
            text, self._held = text[:cut], text[cut:]
        done: list[list[tuple[str, Style]]] = []
        pieces = text.replace("\r\n", "\n").split("\n")
        for index, piece in enumerate(pieces):
            self._write(piece)
            if index < len(pieces) - 1:
                done.append(self.open)
                self.open, self._restart = [], False
        return done

    def _write(self, piece: str) -> None:
        if not piece:
            return
        piece = _ESCAPE.sub("", piece)
        for index, part in enumerate(piece.split("\r")):
            if index:
                self._restart = True
            if not part:
                continue
            rest = ""
            if self._restart:
                before = "".join(span[0] for span in self.open)
                rest = before[len(_SGR.sub("", part)) :]
                self.open, self._restart = [], False
            self._write_spans(part)
            if rest.strip():
                self.open.append((rest, self._style))

    def _write_spans(self, part: str) -> None:
        at = 0
        for found in _SGR.finditer(part):
            self._add(part[at : found.start()])
            self._set(found[1])
            at = found.end()
        self._add(part[at:])

    def _add(self, text: str) -> None:
        text = _CONTROL.sub("\ufffd", text).replace("\b", "")
        length = sum(len(span[0]) for span in self.open)
        if not text or length > LONGEST_LINE:
            return
        if length + len(text) > LONGEST_LINE:
            text = text[: LONGEST_LINE - length] + " …"
        self.open.append((text, self._style))

    def _set(self, codes: str) -> None:
        style = self._style
        color, bold = style.color, style.bold
        numbers = [int(c) if c else 0 for c in codes.split(";")]
        while numbers:
            code = numbers.pop(0)
            if code == 0:
                color, bold = None, False
            elif code in (1, 22):
                bold = code == 1
            elif 30 <= code <= 37 or 90 <= code <= 97:
                color = code % 10
            elif code == 39:
                color = None
            elif code in (38, 48):
                del numbers[: 4 if numbers[:1] == [2] else 2]
        self._style = Style(color, bold, style.stream)


class Terminal(QPlainTextEdit):
    """Read-only view of output; follows the end unless the user has scrolled up."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setMaximumBlockCount(MOST_LINES)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.mono_font())
        self.setAccessibleName(self.tr("Output of the script"))
        self.left_out = False
        self._lines = LineBuilder()
        self._shows_open = False
        self._formats: dict[Style, QTextCharFormat] = {}
        self._theme = theme.current()

    def clear_all(self) -> None:
        """Start empty."""
        self.clear()
        self._lines, self._shows_open, self.left_out = LineBuilder(), False, False
        self._formats = {}

    def feed(self, pieces: list[tuple[str, str]]) -> None:
        """Add pieces of ``(stream, text)``; a piece of stream "" tells how many characters were left out before."""
        done: list[list[tuple[str, Style]]] = []
        for stream, text in pieces:
            if not stream:
                done.append(self._note(self.tr("… {count} characters are left out here …").format(count=text)))
                self.left_out = True
                continue
            done += self._lines.feed(stream, text)
        if len(done) > MOST_PER_BATCH:
            count = len(done) - MOST_PER_BATCH
            done = [self._note(self.tr("… {count} lines are left out here …").format(count=count)), *done[count:]]
            self.left_out = True
        bar = self.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 2
        self.setUpdatesEnabled(False)
        self._append(done)
        self.setUpdatesEnabled(True)
        if follows:
            bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the end in view where it was: what came of the run takes room from the output."""
        bar = self.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 2
        super().resizeEvent(event)
        if follows:
            bar.setValue(bar.maximum())

    def changeEvent(self, event: QEvent) -> None:
        """Give what is there the colours of another theme."""
        super().changeEvent(event)
        if not hasattr(self, "_theme") or self._theme is theme.current():
            return
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange):
            self._theme = theme.current()
            self._color_anew()

    def _color_anew(self) -> None:
        styles, self._formats = list(self._formats), {}
        formats = [self._format(style) for style in styles]
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        block = self.document().begin()
        while block.isValid():
            spans, at = [], block.begin()
            while not at.atEnd():
                spans.append(at.fragment())
                at += 1
            for span in spans:
                number = span.charFormat().property(QTextFormat.Property.UserProperty)
                if isinstance(number, int):
                    cursor.setPosition(span.position())
                    cursor.setPosition(span.position() + span.length(), QTextCursor.MoveMode.KeepAnchor)
                    cursor.setCharFormat(formats[number])
            block = block.next()
        cursor.endEditBlock()

    def _note(self, text: str) -> list[tuple[str, Style]]:
        return [(text, Style(color=0))]

    def _append(self, done: list[list[tuple[str, Style]]]) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        if self._shows_open:
            cursor.movePosition(QTextCursor.MoveOperation.StartOfBlock, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        for line in done:
            self._insert(cursor, line)
            cursor.insertBlock()
        self._insert(cursor, self._lines.open)
        self._shows_open = bool(self._lines.open)
        cursor.endEditBlock()

    def _insert(self, cursor: QTextCursor, line: list[tuple[str, Style]]) -> None:
        for text, style in line:
            cursor.insertText(text, self._format(style))

    def _format(self, style: Style) -> QTextCharFormat:
        if style not in self._formats:
            made = QTextCharFormat()
            made.setProperty(QTextFormat.Property.UserProperty, len(self._formats))
            current = theme.current()
            if style.color is not None:
                made.setForeground(QColor(_COLORS[style.color][0 if current.dark else 1]))
            elif style.stream == "stderr":
                made.setForeground(QColor(current.warn))
            elif style.stream == "stdin":
                made.setForeground(QColor(current.accent))
            if style.bold:
                made.setFontWeight(700)
            self._formats[style] = made
        return self._formats[style]
