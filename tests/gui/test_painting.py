"""A fault while painting, or a Ctrl+C at a bad moment: neither takes the process down nor is lost."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

import gui
from gui.errors import CrashHooks
from gui.painting import guarded


class Faulty(QWidget):
    """Fails in the middle of painting, with two painters open."""

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.fail()
        painter.end()

    def fail(self) -> None:
        pixmap = QPixmap(8, 8)
        painter = QPainter(pixmap)
        painter.drawLine(0, 0, int("no number"), 5)
        painter.end()


def test_a_fault_while_painting_is_reported_and_the_app_lives(qtbot: QtBot) -> None:
    widget = Faulty()
    qtbot.addWidget(widget)
    with qtbot.captureExceptions() as faults:
        widget.resize(60, 40)
        widget.show()
        qtbot.waitExposed(widget)
        assert widget.grab().width() == 60
        widget.close()
    assert faults
    assert all(kind is ValueError for kind, _, _ in faults)


def _unguarded(text: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and node.name == "paintEvent"
        and not any(isinstance(d, ast.Name) and d.id == "guarded" for d in node.decorator_list)
    ]


@pytest.mark.parametrize("path", sorted(Path(gui.__path__[0]).rglob("*.py")), ids=lambda p: p.stem)
def test_every_paint_event_is_guarded(path: Path) -> None:
    assert not _unguarded(path.read_text(encoding="utf-8"))


def test_the_check_above_can_fail() -> None:
    assert _unguarded("class A:\n    def paintEvent(self, event): ...\n") == [2]


def test_ctrl_c_before_the_event_loop_is_not_lost(qapp: QApplication) -> None:
    hooks = CrashHooks(lambda error: None)
    hooks._hook(KeyboardInterrupt, KeyboardInterrupt(), None)
    late: list[int] = []
    QTimer.singleShot(20_000, lambda: (late.append(1), qapp.quit()))
    qapp.exec()
    assert not late
