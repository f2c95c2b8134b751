"""Tabs of traces and pages whose titles stay readable."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionTab, QTabBar, QToolButton, QWidget

from gui.names import cut_apart, cut_whole
from gui.painting import guarded
from gui.text_size import px

LEAST_PX = 150
SPARE_PX = 4  # what a title is measured with is rounded
MOST_PX = 260
LAST_PX, ARROWS_PX = 60, 40


class EndsWhole(QTabBar):
    """Tabs that scroll; the title of one that an end of the bar cuts has dots there."""

    def end_px(self) -> int:
        """Where the tabs end: at the arrows, where there are some."""
        return min((arrow.x() for arrow in self.findChildren(QToolButton) if arrow.isVisible()), default=self.width())

    def initStyleOption(self, option: QStyleOptionTab, tabIndex: int) -> None:  # type: ignore[override]  # noqa: N802, N803 - Qt's names
        """Cut a title that has no room."""
        super().initStyleOption(option, tabIndex)
        option.text = self.shown_text(option, tabIndex)  # type: ignore[attr-defined]

    def shown_text(self, option: QStyleOptionTab, index: int) -> str:
        """As much of a title as is in view; ``option`` is that of the tab."""
        place = self.style().subElementRect(QStyle.SubElement.SE_TabBarTabText, option, self)
        words = self.tabText(index).replace("&&", "&")
        needed = self.fontMetrics().horizontalAdvance(words)
        left = place.left() + max(place.width() - needed, 0) // 2
        if left < self.end_px() < left + needed:
            words = self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, self.end_px() - left)
            words = self.kept_left(words, needed)
        elif left < 0 < left + needed:
            words = self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideLeft, left + needed)
            words = self.kept_left("", needed - self.fontMetrics().horizontalAdvance(words)) + words
        return words.replace("&", "&&")

    def kept_left(self, words: str, room_px: int) -> str:
        """Words with blanks behind that fill a room: a title is drawn in the middle of its place."""
        metrics = self.fontMetrics()
        return words + " " * ((room_px - metrics.horizontalAdvance(words)) // max(metrics.horizontalAdvance(" "), 1))


class BesideTabs(QWidget):
    """What stands at the end of the line of tabs, in its middle: Qt puts it at the lower edge as high as it is."""

    def __init__(self, tabs: QTabBar) -> None:
        super().__init__()
        self._tabs = tabs

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As high as the tabs."""
        size = super().sizeHint()
        return QSize(size.width(), max(size.height(), self._tabs.sizeHint().height()))


class DocumentTabs(EndsWhole):
    """One tab per trace or page. With many of them the bar scrolls; a title never shrinks to a letter and dots.

    Of titles that begin alike, the part by which they differ stays. A tab that is cut by an end of the bar has no
    button: its × would stand alone beside what is no part of it.

    Signals
    -------
    laid_out()
        Tabs came, went, or have other sizes.
    """

    laid_out = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("documents")
        self.setMovable(True)
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.setUsesScrollButtons(True)
        self.setAccessibleName(self.tr("Open traces"))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def tabSizeHint(self, index: int) -> QSize:  # noqa: N802 - Qt's name
        """As wide as the title, within limits."""
        size = super().tabSizeHint(index)
        return QSize(min(size.width() + SPARE_PX, px(MOST_PX)), size.height())

    def minimumTabSizeHint(self, index: int) -> QSize:  # noqa: N802 - Qt's name
        """Short titles whole, long ones down to a width that still tells them apart."""
        size = self.tabSizeHint(index)
        bar = max(self.width() - px(ARROWS_PX), px(LAST_PX))  # in a bar without room for one, to what there is
        return QSize(min(size.width(), px(LEAST_PX), bar), size.height())

    def wanted_px(self) -> int:
        """Width in which each tab has its whole title, within limits."""
        return sum(self.tabSizeHint(index).width() for index in range(self.count()))

    def tabLayoutChange(self) -> None:  # noqa: N802 - Qt's name
        """Tell who shares the line."""
        self.laid_out.emit()

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Each way of scrolling ends here, and none says so: only whole tabs show their buttons."""
        end = self.end_px()
        for index in range(self.count()):
            close, tab = self.tabButton(index, QTabBar.ButtonPosition.RightSide), self.tabRect(index)
            whole = tab.left() >= 0 and tab.right() < end
            if close is not None and close.isHidden() == whole:
                close.setVisible(whole)
        super().paintEvent(event)

    def shown_text(self, option: QStyleOptionTab, index: int) -> str:
        """As much of a title as its tab has room for; ``option`` is that of the tab."""
        metrics, titles = self.fontMetrics(), [self.tabText(i).replace("&&", "&") for i in range(self.count())]
        place = self.style().subElementRect(QStyle.SubElement.SE_TabBarTabText, option, self)
        ends = place.left() < self.end_px() < place.right()
        room = self.end_px() - place.left() if ends else place.width()
        others = titles[:index] + titles[index + 1 :]
        words = cut_apart(titles[index], others, metrics.horizontalAdvance, room - 2)  # it is rounded
        if words == titles[index]:
            words = cut_whole(words, metrics.horizontalAdvance, room - 2, at_end=ends)
        if ends:
            words = self.kept_left(words, place.width())
        return words.replace("&", "&&")
