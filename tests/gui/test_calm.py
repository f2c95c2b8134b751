"""The wheel over a field that is not in use moves the page, and changes nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.widgets.calm import CalmCombo, CalmDoubleSpin, CalmSpin
from gui.widgets.choice import Choice
from gui.widgets.launch_cards import StepsCard

GUI = Path(__file__).resolve().parents[2] / "gui"


def wheel(widget: QWidget) -> QWheelEvent:
    """One notch towards the user, sent to a widget."""
    place = QPointF(widget.rect().center())
    event = QWheelEvent(
        place, place, QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event


@pytest.mark.parametrize("kind", [CalmSpin, CalmDoubleSpin])
def test_numbers_follow_the_wheel_only_with_the_keyboard(qtbot: QtBot, kind: type[CalmSpin]) -> None:
    box = kind()
    qtbot.addWidget(box)
    box.setValue(5)
    assert not wheel(box).isAccepted()
    assert box.value() == 5
    box.show()
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    wheel(box)
    assert box.value() != 5


def test_lists_leave_the_wheel_alone(qtbot: QtBot) -> None:
    for box in (CalmCombo(), Choice("which")):
        qtbot.addWidget(box)
        box.addItems(["a", "b", "c"])
        box.setCurrentIndex(1)
        assert not wheel(box).isAccepted()
        assert box.currentIndex() == 1


def test_scrolling_over_the_form_of_a_run_leaves_its_numbers(qtbot: QtBot) -> None:
    card = StepsCard()
    qtbot.addWidget(card)
    before = card.values()
    for box in (*card.numbers.values(), card.source, card.after):
        wheel(box)
    assert card.values() == before


def test_no_field_of_the_window_is_of_the_kind_that_the_wheel_changes() -> None:
    loud = {"QSpinBox", "QDoubleSpinBox", "QComboBox"}
    found = [
        f"{path.name}:{node.lineno}"
        for path in GUI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in loud
    ]
    assert not found
