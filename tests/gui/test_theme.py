"""Theme: switching it costs each widget a little, whatever it is nested in."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from gui import theme
from gui.main_window import MainWindow
from gui.session import Document


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
