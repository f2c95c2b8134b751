"""The top line of the window: menu, tabs of traces and pages, search, and the four things one starts."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QWidget

from gui.text_size import px
from gui.widgets.labels import button, heading, label
from gui.widgets.search import SearchField
from gui.widgets.tabs import DocumentTabs

BAR_PX, COMPACT_PX = 48, 1180
NARROW_PX, NARROW_BAR_PX = 700, 40  # the title of a trace needs the room of what the menu offers, too
IN_MENU = ("compare", "report")
SEARCH_PX, USED_SEARCH_PX, LEAST_SEARCH_PX = 330, 240, 130
SEARCH_DELAY_MS = 120


class TopBar(QFrame):
    """Everything above the verdict.

    Signals
    -------
    searched(query)
        A `gui.models.query.Query`, after a short pause in typing.
    """

    searched = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("topbar")
        self.actions_: dict[str, tuple[QWidget, str, str]] = {}
        self.setFixedHeight(px(BAR_PX))
        self.menu_button = button("☰", None, "flat", self.tr("Menu (Alt+M)"))
        self.menu_button.setAccessibleName(self.tr("Menu"))
        self.menu_button.setShortcut("Alt+M")
        self.home = button("StepLens", None, "flat", self.tr("Start page (Alt+Home)"))
        self.home.setAccessibleName(self.tr("Start page"))
        font = heading("", 1.5).font()
        self.home.setFont(font)
        self.tabs = DocumentTabs()
        self.search = SearchField()
        self.search.setMinimumWidth(LEAST_SEARCH_PX)
        self.search.setMaximumWidth(SEARCH_PX)
        self.tabs.laid_out.connect(self._share)
        self.search.installEventFilter(self)
        self.hits = label("", "dim")
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_DELAY_MS)
        self._timer.timeout.connect(lambda: self.searched.emit(self.search.query()))
        self.search.changed.connect(self._timer.start)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(8, 0, 8, 0)
        self._row.setSpacing(6)
        self._row.addWidget(self.menu_button)
        self._row.addWidget(self.home)
        self._row.addSpacing(4)
        self._row.addWidget(self.tabs, 3, Qt.AlignmentFlag.AlignVCenter)
        self._row.addWidget(self.search, 2)
        self._row.addWidget(self.hits)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Give way in a narrow window."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        narrow = self.width() < px(NARROW_PX)
        self.setFixedHeight(px(NARROW_BAR_PX if narrow else BAR_PX))
        for key, (made, _, _) in self.actions_.items():
            made.setHidden(narrow and key in IN_MENU)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """The search has room for words while it is used."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut, QEvent.Type.Show):
            self._share()
        return super().eventFilter(watched, event)

    def _share(self) -> None:
        """The search gives way to the titles of tabs."""
        if self.search.isVisible():
            used = self.search.hasFocus() or bool(self.search.text())
            room = self.tabs.width() + self.search.width() - self.tabs.wanted_px()
            least = USED_SEARCH_PX if used else LEAST_SEARCH_PX
            self.search.setMaximumWidth(min(max(room, least), SEARCH_PX))

    def add_action(self, key: str, text: str, handler: Callable[[], object], *, primary: bool = False) -> None:
        """Add one button at the right end."""
        made = button(text, handler, "primary" if primary else "flat")
        self.actions_[key] = (made, text, "primary" if primary else "flat")
        self._row.addWidget(made)

    def add_choices(self, name: str, menu: QMenu) -> None:
        """Add a small arrow with more ways beside the button that was added last."""
        arrow = button("▾", None, "flat", name)
        arrow.setAccessibleName(name)
        arrow.setMenu(menu)
        arrow.setFixedWidth(22)
        arrow.setStyleSheet("padding: 5px 0;")
        self._row.addSpacing(-10)
        self._row.addWidget(arrow)

    def enable(self, key: str, enabled: bool, why: str = "") -> None:
        """Enable a button, or say why it is not."""
        widget = self.actions_[key][0]
        widget.setEnabled(enabled)
        widget.setToolTip("" if enabled else why)

    def set_menu(self, menu: QMenu) -> None:
        """Give the menu button its menu."""
        self.menu_button.setMenu(menu)

    def say_hits(self, words: str) -> None:
        """Say how many hits there are; the field beside them stays where it is while the number changes."""
        self.hits.setText(words)
        kept = self.hits.minimumWidth() if words and self.width() >= px(NARROW_PX) else 0
        self.hits.setMinimumWidth(0)
        self.hits.setMinimumWidth(max(kept, self.hits.sizeHint().width()) if words else 0)

    def flush_search(self) -> None:
        """Search for what was typed, now."""
        if self._timer.isActive():
            self._timer.stop()
            self.searched.emit(self.search.query())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """One line."""
        return QSize(900, px(BAR_PX))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Tabs and search give way."""
        return QSize(640, px(BAR_PX))

    def set_compact(self, compact: bool) -> None:
        """Leave the name out in a narrow window."""
        self.home.setVisible(not compact)

    def offer_search(self, offered: bool) -> None:
        """Show the search where there is something to search."""
        self.search.setEnabled(offered)
        self.search.setVisible(offered)
        self.hits.setVisible(offered)
