"""All of one opened trace: verdict, timeline, plan at the right, tabs at the bottom. Docks only, no content."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSplitter, QTabWidget, QVBoxLayout, QWidget

from gui import panels
from gui.session import Document, Session
from gui.settings import Settings
from gui.text_size import px
from gui.widgets.labels import button, label, plain_tip
from gui.widgets.split_share import SplitShare
from gui.widgets.tabs import BesideTabs, EndsWhole

SIDE_PX, SIDE_MIN_PX, SIDE_WIDE_PX = 384, 280, 480
BOTTOM_SHARE, BOTTOM_MAX_PX = 0.36, 340  # views under the timeline: of what both have, and at most
LOW_SHARE, HIGH_SHARE = 0.24, 0.26  # where there is little height; and of a very high window, whatever the limit
VERY_LOW_PX, TABS_PX = 270, 34  # below the first they are folded to their tabs, about so high
LOW_PX = 440  # of timeline and views together
ROWS_SHARE = 0.44  # in so low a page, of views that have rows to show
TALL_SHARE = 0.7  # while they are made tall
# Views that say nothing of one slice: they give way to its details. Tables stay, one goes through them slice by slice.
ABOUT_THE_WHOLE = ("selection", "rules", "import_report")
COMPACT_PX = 84  # while there is nothing to show in them


def bottom_px(height_px: int) -> int:
    """Height of the views under the timeline, where both have so much: the timeline keeps the larger part."""
    if height_px < px(VERY_LOW_PX):  # their tabs alone: a click makes them tall
        return min(px(TABS_PX), height_px // 2)
    if height_px < px(LOW_PX):
        return max(round(height_px * LOW_SHARE), min(px(COMPACT_PX), height_px // 2))
    return min(round(height_px * BOTTOM_SHARE), max(px(BOTTOM_MAX_PX), round(height_px * HIGH_SHARE)))


def side_px(width_px: int) -> int:
    """Width of the plan at the right, in a window so wide."""
    narrow = min(px(SIDE_PX), max(SIDE_MIN_PX, width_px * 3 // 10))
    return max(narrow, min(width_px * 24 // 100, px(SIDE_WIDE_PX)))


class DocumentPage(QWidget):
    """Panels around the timeline of one document."""

    def __init__(
        self,
        session: Session,
        document: Document,
        settings: Settings,
        parent: QWidget | None = None,
        *,
        at_once: bool = True,
    ) -> None:
        super().__init__(parent)
        self._session, self.document, self._settings = session, document, settings
        # There before the parts: the page may be resized before its first one, or between two of them.
        self._bands: dict[str, QWidget] = {}
        self._laid_out = self._compact = self._tall = False
        self._by_hand = False  # the user has shared out the height: it is not taken back
        self._parts = self._make_parts()
        if at_once:
            self.finish()

    def make_part(self) -> bool:
        """Make the next part of a page that is not made at once; False when all parts are there."""
        return next(self._parts, 0) is None

    def finish(self) -> None:
        """Make all parts that are still missing."""
        while self.make_part():
            pass

    def _make_parts(self) -> Iterator[None]:
        """Make the page, a part at a time: each takes a moment, all together more than an eye forgives.

        Each part is put into its place before the next is made: a widget that changes its parent is styled anew.
        """
        session, document = self._session, self.document
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for spec in panels.of_area("band"):
            self._bands[spec.id] = spec.create(session, document)
            box.addWidget(self._bands[spec.id])
            yield
        self.horizontal = QSplitter(Qt.Orientation.Horizontal, self)
        self.horizontal.setHandleWidth(1)
        self.horizontal.setChildrenCollapsible(False)
        box.addWidget(self.horizontal, 1)
        self.vertical = QSplitter(Qt.Orientation.Vertical, self.horizontal)
        self.vertical.setHandleWidth(1)
        self.vertical.setChildrenCollapsible(False)
        self.horizontal.setStretchFactor(0, 1)
        self.timeline = _timeline(session, document)
        self.vertical.addWidget(self.timeline)
        self.vertical.setStretchFactor(0, 1)
        yield
        self._make_bottom()
        yield
        self.side = QFrame(self.horizontal)
        self.side.setObjectName("side")
        self.side.setMinimumWidth(SIDE_MIN_PX)
        side_box = QVBoxLayout(self.side)
        side_box.setContentsMargins(0, 0, 0, 0)
        for spec in panels.of_area("side"):
            side_box.addWidget(spec.create(session, document), 1)
            yield
        self._height_px = 0
        self._whole_px = 0  # of the timeline and the views under it, as shared out last
        self._side_share = SplitShare(self.horizontal, side_px)
        self._bottom_share = SplitShare(self.vertical, bottom_px)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._follow_height)
        self.vertical.installEventFilter(self)
        self.vertical.splitterMoved.connect(self._split_dragged)
        self._remember_timeline(restore=True)
        self.show_panel(self._settings.get("window/bottom_tab"))
        self.bottom.currentChanged.connect(self._tab_chosen)
        self._range = document.selected_range
        document.selectionChanged.connect(self._selection_changed)
        document.highlightChanged.connect(self._evidence_shown)
        session.textSizeChanged.connect(self._text_size_changed)

    def _make_bottom(self) -> None:
        """Tabs under the timeline, all of them empty: a panel is made when its tab is first shown."""
        self.bottom = QTabWidget(self.vertical)
        self.bottom.setTabBar(EndsWhole())
        self.bottom.setDocumentMode(True)
        self.bottom.tabBar().setDrawBase(False)  # document mode draws a line, and beside the tabs another
        self.bottom.setObjectName("bottom")
        self.bottom.setMinimumHeight(1)  # else that of what they hold
        for part in (self.bottom, self.bottom.tabBar()):
            part.setAccessibleName(self.tr("Views under the timeline"))
        self.bottom.tabBar().setUsesScrollButtons(True)
        self.bottom.setCornerWidget(self._corner(), Qt.Corner.TopRightCorner)
        self.bottom.tabBarClicked.connect(self._tab_clicked)
        self.bottom.tabBarDoubleClicked.connect(self._tab_double_clicked)
        self._tab_ids: list[str] = []
        self._unmade: dict[str, panels.PanelSpec] = {}
        for spec in panels.of_area("bottom"):
            holder = QWidget()
            QVBoxLayout(holder).setContentsMargins(0, 0, 0, 0)
            self._tab_ids.append(spec.id)
            self._unmade[spec.id] = spec
            index = self.bottom.addTab(holder, QCoreApplication.translate("panels", spec.title))
            keys = f"\nAlt+{index + 1}" if index < 9 else ""
            self.bottom.setTabToolTip(index, plain_tip(QCoreApplication.translate("panels", spec.tip) + keys))

    def lay_out(self, width_px: int, height_px: int) -> None:
        """Give the parts their saved sizes, or sensible ones for this window; once."""
        if self._laid_out:
            return
        self._laid_out = True
        saved = self._settings.get("window/main_split"), self._settings.get("window/bottom_split")
        self._side_share.restore(saved[0])
        self._side_share.give(width_px)
        self._height_px = height_px
        self._by_hand = self._bottom_share.restore(saved[1])
        self._compact = self._has_nothing_to_show()
        self._share_out(height_px)
        self._later.start()

    def _corner(self) -> QWidget:
        """At the right of the tabs: a list of all of them, for where they have no room, and a switch for the height."""
        views = button("▾", None, "flat", self.tr("All views"))
        views.setAccessibleName(self.tr("All views"))
        self._views = QMenu(views)
        self._views.aboutToShow.connect(self._list_views)
        views.setMenu(self._views)
        tall = button("⇕", self.toggle_tall, "flat", self.tr("Taller, and back (Shift+Q)"))
        tall.setAccessibleName(self.tr("Make the views under the timeline taller, and back"))
        corner = BesideTabs(self.bottom.tabBar())
        row = QHBoxLayout(corner)
        row.setContentsMargins(0, 0, 6, 0)
        row.setSpacing(0)
        for made in (views, tall):
            made.setFixedSize(28, 26)
            made.setStyleSheet("padding: 0;")
            row.addWidget(made)
        return corner

    def _list_views(self) -> None:
        self._views.clear()
        for index in range(self.bottom.count()):
            keys = f"\tAlt+{index + 1}" if index < 9 else ""
            made = self._views.addAction(self.bottom.tabText(index) + keys)
            made.triggered.connect(partial(self._view_chosen, self._tab_ids[index]))

    def _view_chosen(self, panel_id: str, _checked: bool = False) -> None:
        self.show_panel(panel_id)

    def toggle_tall(self) -> None:
        """Give the views under the timeline most of the height, or what they had before."""
        whole = sum(self.vertical.sizes())
        self.bottom.show()
        self._tall = not self._tall
        if self._tall:
            self._compact = False
            if self.vertical.sizes()[-1] >= round(whole * TALL_SHARE) - 40:  # as tall as that by hand
                self._bottom_share.ratio = 1.0
        else:
            self._compact = self._has_nothing_to_show()
        self._share_out(whole)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """A window made smaller takes from the plan and the lower views, too, not from the timeline alone."""
        super().resizeEvent(event)
        self._fit_bands(event.size().height())
        old, new = event.oldSize(), event.size()
        if not self._laid_out or not old.isValid():
            return
        if self.side.isVisible():
            self._side_share.give(new.width())
        self._later.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Bands above that take another height, as when the verdict comes, leave another one to share out."""
        if event.type() == QEvent.Type.Resize and self._laid_out:
            self._later.start()
        return super().eventFilter(watched, event)

    def _follow_height(self) -> None:
        """The bands have their heights: what is left is shared out as before."""
        whole = sum(self.vertical.sizes())
        if not self._laid_out or not self.bottom.isVisible() or whole == self._whole_px:
            return
        self._share_out(whole)
        self._whole_px = whole

    def _share_out(self, whole_px: int) -> None:
        """What the views under the timeline get follows from the room, from what they show and from the user's hand."""
        if self._tall:
            low = round(whole_px * TALL_SHARE)
        elif self._compact and not self._is_folded(whole_px):
            low = min(px(COMPACT_PX), bottom_px(whole_px))
        elif self._is_folded(whole_px):
            low = self.bottom.tabBar().sizeHint().height()
        elif whole_px < px(LOW_PX) and not self._by_hand and self.shown_panel() != "details":
            low = round(whole_px * ROWS_SHARE)
        else:
            self._bottom_share.give(whole_px)
            return
        self.vertical.setSizes([whole_px - low, low])

    def _is_folded(self, whole_px: int) -> bool:
        """There is no room for more than the tabs, unless they are made tall."""
        return whole_px < px(VERY_LOW_PX) and not self._by_hand

    def _tab_clicked(self, index: int) -> None:
        """Folded views open by a click on any tab, and fold again by one on the tab that is in front."""
        folded = index >= 0 and self._is_folded(sum(self.vertical.sizes()))
        if folded and (not self._tall or index == self.bottom.currentIndex()):
            self.toggle_tall()

    def _tab_double_clicked(self, _index: int) -> None:
        if not self._is_folded(sum(self.vertical.sizes())):
            self.toggle_tall()

    def _split_dragged(self, _place: int, _handle: int) -> None:
        self._by_hand, self._compact, self._tall = True, False, False

    def _fit_bands(self, height_px: int) -> None:
        """Bands above the timeline take fewer lines in a low window."""
        for band in self._bands.values():
            fit = getattr(band, "fit_to", None)
            if fit is not None:
                fit(height_px)

    def _has_selection(self) -> bool:
        return self.document.selected_slice >= 0 or self.document.selected_range is not None

    def _has_nothing_to_show(self) -> bool:
        return not self._by_hand and self.shown_panel() == "details" and not self._has_selection()

    def grow(self) -> None:
        """There is something to show now: the views under the timeline take their whole height."""
        self._set_compact(False)

    def _set_compact(self, compact: bool) -> None:
        if compact != self._compact:
            self._compact = compact
            if not self._tall and self._laid_out:
                self._share_out(sum(self.vertical.sizes()) or self._height_px)

    def _remember_timeline(self, *, restore: bool = False) -> None:
        """Take over how the user arranged the tracks, or hand it back to the timeline."""
        restore_state, state = (getattr(self.timeline, name, None) for name in ("restore_state", "state"))
        if restore and restore_state is not None and self.document.timeline_state:
            restore_state(self.document.timeline_state)
        elif not restore and state is not None:
            self.document.timeline_state = state()

    def save_layout(self) -> None:
        """Keep the sizes, and the tracks' arrangement with the document."""
        self._remember_timeline()
        if self._laid_out:
            self._settings.set("window/main_split", QByteArray(self.horizontal.saveState()))
            if self._by_hand and not self._tall:
                self._settings.set("window/bottom_split", QByteArray(self.vertical.saveState()))

    def show_panel(self, panel_id: str) -> bool:
        """Bring a bottom tab to the front."""
        if panel_id not in self._tab_ids:
            return False
        self.panel(panel_id)
        self.bottom.setCurrentIndex(self._tab_ids.index(panel_id))
        return True

    def band(self, panel_id: str) -> QWidget | None:
        """Return one of the bands above the timeline."""
        return self._bands.get(panel_id)

    def panel(self, panel_id: str) -> QWidget | None:
        """Return the panel of a bottom tab; it is made when first asked for."""
        if panel_id not in self._tab_ids:
            return None
        holder = self.bottom.widget(self._tab_ids.index(panel_id))
        layout = holder.layout() if holder is not None else None
        assert layout is not None
        spec = self._unmade.pop(panel_id, None)
        if spec is not None:
            layout.addWidget(spec.create(self._session, self.document))
        item = layout.itemAt(0)
        return item.widget() if item is not None else None

    def shown_panel(self) -> str:
        """Id of the tab under the timeline that is in front."""
        at = self.bottom.currentIndex()
        return self._tab_ids[at] if 0 <= at < len(self._tab_ids) else ""

    def panel_ids(self) -> tuple[str, ...]:
        """Ids of the tabs under the timeline, in their order."""
        return tuple(self._tab_ids)

    def _selection_changed(self) -> None:
        """A new stretch of time brings its statistics to the front, a slice after it, or none, the details."""
        chosen = self.document.selected_range
        shown = self.shown_panel()
        if chosen is not None and chosen != self._range:
            self.show_panel("selection")
        elif chosen is None and (
            (self.document.selected_slice >= 0 and shown in ABOUT_THE_WHOLE)
            or (self._range is not None and shown == "selection")  # it would have nothing to say
        ):
            self.show_panel("details")
        self._range = chosen
        self._set_compact(self._has_nothing_to_show())

    def _text_size_changed(self) -> None:
        """Larger words need a wider plan; the views under the timeline take no more than their share."""
        self._fit_bands(self.height())
        if not self._laid_out:
            return
        if self.side.isVisible():
            self._side_share.give(self.width())
        self._whole_px = 0
        self._later.start()

    def _evidence_shown(self) -> None:
        """What a suggestion points to is seen in the timeline: views made tall give its height back."""
        if self.document.highlighted and self._tall:
            self.toggle_tall()

    def _tab_chosen(self, index: int) -> None:
        if 0 <= index < len(self._tab_ids):
            self.panel(self._tab_ids[index])
            self._set_compact(self._has_nothing_to_show())
            if self._laid_out:
                self._share_out(sum(self.vertical.sizes()) or self._height_px)
            self._settings.set("window/bottom_tab", self._tab_ids[index])


def _timeline(session: Session, document: Document) -> QWidget:
    if importlib.util.find_spec("gui.timeline.view") is None:
        place = label(QCoreApplication.translate("panels", "The timeline is not installed."), "dim")
        place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        place.setMinimumHeight(120)
        return place
    from gui.timeline.view import TimelineView

    view: QWidget = TimelineView(session, document)
    return view
