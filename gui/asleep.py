"""Pages that are not shown take a new theme or text size over when they are next shown.

Qt restyles every widget there is, about 0.1 ms each, and a window with twenty traces has thousands of which two hundred
are to be seen. What lies behind in a stack is therefore taken out of Qt's count as it is (its style let go, as Qt does
first itself) and given the style that is there when it comes to the front.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

_ASLEEP = "steplens_asleep"  # property of a page
SIZE = 2  # bit of `QFont.resolveMask`: the size does not come from the application
_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
_POLISHED, _OWN_STYLE = Qt.WidgetAttribute.WA_WState_Polished, Qt.WidgetAttribute.WA_SetStyle


def lay_down(app: QApplication) -> None:
    """Before a change of the style: let the pages that lie behind in a stack sleep."""
    hidden = [page for stack in app.allWidgets() if isinstance(stack, QStackedWidget) for page in _behind(stack)]
    waker, style = _waker_of(app), app.style()
    for page in hidden:
        if page.property(_ASLEEP):
            continue
        sized = _sized(page)
        for widget in _of(page):
            if widget.testAttribute(_POLISHED) and not widget.testAttribute(_OWN_STYLE):
                style.unpolish(widget)
                widget.setAttribute(_POLISHED, False)
                widget.setAttribute(_OWN_STYLE, True)  # Qt neither restyles nor tells these
        _keep(sized)
        page.setProperty(_ASLEEP, True)
        page.installEventFilter(waker)


def _behind(stack: QStackedWidget) -> Iterator[QWidget]:
    for place in range(stack.count()):
        page = stack.widget(place)
        if page is not None and place != stack.currentIndex() and not page.isVisible():
            yield page


def _of(page: QWidget) -> Iterator[QWidget]:
    """Yield a page and what is in it, without the pages in it that sleep themselves."""
    yield page
    for child in page.findChildren(QWidget, options=_DIRECT):
        if not child.property(_ASLEEP):
            yield from _of(child)


def _sized(page: QWidget) -> list[tuple[QWidget, float]]:
    """Widgets of a page whose fonts have a size of their own, and that size in points."""
    return [(w, w.font().pointSizeF()) for w in _of(page) if w.font().resolveMask() & SIZE]


def _keep(sized: list[tuple[QWidget, float]]) -> None:
    """Give widgets their sizes back: letting a style go, and taking one on, puts an older one in their place."""
    for widget, points in sized:
        if points > 0 and widget.font().pointSizeF() != points:
            font = QFont(widget.font())
            font.setPointSizeF(points)
            widget.setFont(font)


class _Waker(QObject):
    """Wakes a page that is shown."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget):
            watched.removeEventFilter(self)
            _wake(watched)
        return False


def _wake(page: QWidget) -> None:
    page.setProperty(_ASLEEP, False)
    style, woken = QApplication.style(), []
    sized = _sized(page)
    for widget in _of(page):
        if widget.testAttribute(_OWN_STYLE):
            widget.setAttribute(_OWN_STYLE, False)
            widget.setAttribute(_POLISHED, True)
            woken.append(widget)
    for widget in woken:
        style.polish(widget)
    _keep(sized)
    for widget in woken:
        QApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))


def _waker_of(app: QApplication) -> _Waker:
    found = app.findChild(_Waker, options=_DIRECT)
    return found if found is not None else _Waker(app)
