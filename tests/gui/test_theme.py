"""Theme: switching it costs each widget a little, whatever it is nested in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from core.analysis import Analysis
from core.figures.compute import compute_figures
from gui import text_size, theme
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.labels import button
from tests.gui.conftest import training


class Restyled(QObject):
    """Counts how often each object is told that its style has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[QObject] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.StyleChange:
            self.times[watched] += 1
        return False


def test_a_switch_of_the_theme_restyles_no_widget_once_per_ancestor(window: MainWindow, document: Document) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    counter = Restyled()
    app.installEventFilter(counter)
    window.run_command("theme")
    app.removeEventFilter(counter)
    assert counter.times
    assert counter.times.total() <= 3 * len(counter.times)  # about 10 where ancestors count
    shown = app.palette().window().color()
    assert shown == QColor(theme.theme(window.session.dark).window)


def test_what_lies_behind_is_restyled_when_it_comes_to_the_front_and_then_looks_the_same(
    window: MainWindow, show: Callable[..., Document]
) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    behind, front = (show(training().build()) for _ in range(2))
    for document in (behind, front):
        document.set_analysis(Analysis(compute_figures(document.trace)))
    window.session.set_current(behind)
    window.show_panel("operators")
    settle()
    window.show_panel("details")
    page = window.current_page()
    assert page is not None
    window.session.set_current(front)
    settle()
    inside = {page, *page.findChildren(QWidget)}
    counter = Restyled()
    app.installEventFilter(counter)
    window.run_command("theme")
    text_size.choose(window.session, window.settings, 125)
    settle()
    assert counter.times
    assert not inside & set(counter.times)
    window.session.set_current(behind)
    settle()
    app.removeEventFilter(counter)
    assert page in counter.times
    for panel in ("details", "operators"):  # one that was shown behind, and one that lay behind in it
        window.show_panel(panel)
        settle()
        late = window.grab().toImage()
        window.run_command("theme")
        window.run_command("theme")
        settle()
        assert window.grab().toImage() == late
    text_size.choose(window.session, window.settings, 100)
    window.run_command("theme")


@pytest.mark.parametrize("role", ["", "flat", "primary"])
@pytest.mark.parametrize("dark", [True, False])
def test_a_button_with_the_focus_of_the_keys_has_its_border_and_no_second_frame_over_its_words(
    qapp: QApplication, qtbot: QtBot, role: str, dark: bool
) -> None:
    was = theme.current()
    theme.apply(qapp, dark=dark)
    box = QWidget()
    qtbot.addWidget(box)
    row = QHBoxLayout(box)
    first, second = button("First", role=role), button("Compare", role=role)
    row.addWidget(first)
    row.addWidget(second)
    try:
        with qtbot.waitExposed(box):
            box.show()
        box.activateWindow()
        first.setFocus()
        qtbot.waitUntil(first.hasFocus)
        inside = second.rect().adjusted(3, 3, -3, -3)
        before, whole = second.grab(inside).toImage(), second.grab().toImage()
        QTest.keyClick(first, Qt.Key.Key_Tab)
        assert second.hasFocus()
        assert second.grab(inside).toImage() == before
        assert second.grab().toImage() != whole
    finally:
        theme.apply(qapp, dark=was.dark)
