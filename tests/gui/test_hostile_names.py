"""Names that act on what stands beside them: none of their control characters reaches a widget."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from core.importing import open_trace
from core.words import visible, visible_code
from gui.main_window import MainWindow
from gui.widgets.code import diff_lines
from tests.trace_builder import TraceBuilder

EVIL = "\u202e\u2066a\n\n\n\tb\x07\x1b[31m\x85\u2028\u200fc"
OURS = frozenset("\n\t")  # which texts of our own may hold


def hostile(path: Path) -> Path:
    """A training whose every name is hostile."""
    made = TraceBuilder(gpu=f"GPU {EVIL}", with_stack=1)
    made.name_thread(f"thread {EVIL}").name_process(f"process {EVIL}")
    made.python(f"train.py(10): main{EVIL}", 0, 4000)
    for k in range(4):
        at = k * 1000
        made.step(k, at, 990).range(f"loss {EVIL}", at + 300, 600)
        made.python(f"/home/me/tr{EVIL}ain.py(14): weighted{EVIL}", at + 305, 590)
        made.op(f"aten::mm{EVIL}", at + 20, 60, **{f"key {EVIL}": f"value {EVIL}"})
        made.launch(f"gemm{EVIL}", at=at + 40, call=10, start=at + 60, dur=500, grid=[8, 1, 1])
        made.op("aten::item", at + 320, 300).op("aten::_local_scalar_dense", at + 321, 298)
        made.copy("DtoH (Device -> Pageable)", at=at + 330, call=280, start=at + 570, dur=5)
        made.counter(f"counter {EVIL}", at, value=k)
        made.instant(f"instant {EVIL}", at)
    return made.write(path)


def acting(text: str) -> bool:
    """A character acts on the text around it."""
    return any(
        c not in OURS and (unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in BIDI) for c in text
    )


BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def cells(model: QAbstractItemModel, parent: QModelIndex, depth: int = 0) -> Iterator[str]:
    """Texts and tooltips of a model."""
    for row in range(min(model.rowCount(parent), 200)):
        for column in range(model.columnCount(parent)):
            index = model.index(row, column, parent)
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
                value = index.data(role)
                if isinstance(value, str):
                    yield value
        if depth < 8:
            yield from cells(model, model.index(row, 0, parent), depth + 1)


def texts(widget: QWidget) -> Iterator[str]:
    """All that one widget says."""
    yield from (widget.toolTip(), widget.accessibleName(), widget.accessibleDescription(), widget.windowTitle())
    yield widget.statusTip()
    if isinstance(widget, (QLabel, QAbstractButton, QLineEdit)):
        yield widget.text()
    if isinstance(widget, (QTextEdit, QPlainTextEdit)):
        yield widget.toPlainText()
    if isinstance(widget, QTabBar):
        for i in range(widget.count()):
            yield from (widget.tabText(i), widget.tabToolTip(i))
    if isinstance(widget, QComboBox):
        yield from (widget.itemText(i) for i in range(widget.count()))
    if isinstance(widget, QAbstractItemView) and widget.model() is not None:
        yield from cells(widget.model(), QModelIndex())


def test_one_line_that_shows_what_it_holds() -> None:
    assert visible("a \n\n\t b") == "a b"
    assert visible("x\u202ey\x07") == "x\ufffdy\ufffd"
    assert visible("für\u00a0dich 12\u202fms \U0001f600") == "für\u00a0dich 12\u202fms \U0001f600"
    assert visible_code("\tif a:\u2066  # b\n") == "\tif a:\ufffd  # b\n"
    assert not acting(visible(EVIL)) and acting(EVIL)


def test_no_name_of_a_trace_acts(tmp_path: Path) -> None:
    trace = open_trace(hostile(tmp_path / "evil.json"))
    assert not [text for text in trace.strings.values if acting(text) or "\n" in text]
    assert "GPU \ufffd" in trace.meta.devices[0].name
    assert not any(acting(counter.name) for counter in trace.counters)


@pytest.mark.parametrize("name", ["evil.json", "ev\u202eil\nname.json"])
def test_no_widget_shows_a_name_that_acts(window: MainWindow, qtbot: QtBot, tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    path = hostile(tmp_path / "run" / name)
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    document = window.session.documents[0]
    assert document.analysis is not None and document.analysis.suggestions
    said: set[str] = set()
    chosen = (*range(len(document.analysis.suggestions)),)
    bars = [bar for bar in window.findChildren(QTabBar) if bar.isVisible()]
    for number in chosen:
        document.show_suggestion(number)
        qtbot.wait(1)
        said.update(t for w in window.findChildren(QWidget) for t in texts(w))
    for row in range(len(document.trace.slices)):
        document.select(row)
        said.update(t for w in window.findChildren(QLabel) for t in texts(w))
    for bar in bars:
        for i in range(bar.count()):
            bar.setCurrentIndex(i)
            qtbot.wait(1)
            said.update(t for w in window.findChildren(QWidget) for t in texts(w))
    said.update(a.text() for a in window.findChildren(QAction))
    assert any("weighted" in text for text in said)
    assert not [text for text in said if acting(text)]


def test_code_shows_what_turns_its_direction() -> None:
    assert diff_lines("a = 1\u202e", "a = 2")  # as it is: the file is the user's, and edits are laid against it
