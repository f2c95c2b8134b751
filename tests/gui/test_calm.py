"""The wheel over a field that is not in use moves the page, and changes nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from core import syntax
from gui.settings import Settings
from gui.settings_dialog import SettingsDialog
from gui.widgets.calm import CalmCombo, CalmDoubleSpin, CalmSpin
from gui.widgets.choice import Choice
from gui.widgets.launch_cards import StepsCard
from gui.widgets.steady import Steady

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
def test_numbers_stand_off_the_border_as_texts_do(qtbot: QtBot, kind: type[CalmSpin]) -> None:
    box = kind()
    qtbot.addWidget(box)
    assert box.lineEdit().textMargins().left() >= 6


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
        for node in ast.walk(syntax.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in loud
    ]
    assert not found


def test_enter_in_any_field_of_the_settings_saves_them(qtbot: QtBot, settings: Settings) -> None:
    for name in ("text_size", "theme", "editor", "recent"):
        dialog = SettingsDialog(settings)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        qtbot.addWidget(dialog)
        dialog.show()
        field = getattr(dialog, name)
        field.setFocus()
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert dialog.result() == SettingsDialog.DialogCode.Accepted, name


def test_what_stands_below_a_text_stays_when_it_changes(qtbot: QtBot) -> None:
    texts = ["Short.", "A longer sentence that takes several lines where there is little width for it. " * 3]
    words = Steady()
    qtbot.addWidget(words)
    words.keep_room_for(texts)
    words.setText(texts[0])
    high = words.heightForWidth(300)
    assert high > 3 * words.fontMetrics().height()
    words.setText(texts[1])
    assert words.heightForWidth(300) == high
