"""The tabs of the window, one per trace and per page: a mixin of `MainWindow`, which holds the parts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMainWindow, QStackedWidget, QTabBar, QWidget

from gui import names, quitting
from gui.session import Document
from gui.widgets.close_button import CloseButton
from gui.widgets.labels import plain_tip, restyle

TIP_FILES = 12

if TYPE_CHECKING:
    from gui.early_pages import EarlyPages
    from gui.session import Session
    from gui.topbar import TopBar

    class _Base(QMainWindow):
        """What the window itself brings."""

        def show_page(self, panel_id: str) -> None:
            """Show a page of the whole app."""

        def _drop_page(self, key: object) -> None: ...

        early: EarlyPages

else:
    _Base = object


class WindowTabs(_Base):
    """Which tab stands where, and what it shows. The start page has none: it is shown while no tab is in front."""

    session: Session
    top: TopBar
    stack: QStackedWidget
    pages: dict[object, QWidget]

    def _add_tab(self, key: object, title: str) -> None:
        tabs = self.top.tabs
        tabs.blockSignals(True)
        index = tabs.insertTab(self._place_of(key), title.replace("&", "&&"))
        tabs.setTabData(index, key if isinstance(key, str) else id(key))
        name = self.tr("Close {title}").format(title=title)
        close = CloseButton(partial(self._close_key, key), self.tr("Close this tab (Ctrl+W)"), name)
        tabs.setTabButton(index, QTabBar.ButtonPosition.RightSide, close)
        tabs.blockSignals(False)
        self._name_tabs()

    def _name_tabs(self) -> None:
        """Give traces the shortest names that tell them apart; the tooltip has the whole path."""
        documents = self.session.documents
        paths = [d.trace.path if d.trace.sources else None for d in documents]
        titles = [d.title for d in documents]
        for document, name in zip(documents, names.told_apart(titles, paths), strict=True):
            index = self._tab_of(document)
            shown = name.replace("&", "&&")
            if index >= 0 and self.top.tabs.tabText(index) != shown:
                self.top.tabs.setTabText(index, shown)
            if index >= 0:
                self.top.tabs.setTabToolTip(index, plain_tip("\n".join([document.title, *self._files(document)])))

    def _files(self, document: Document) -> list[str]:
        """Paths of the files of a trace, as many as a tooltip has room for."""
        held = [str(source.path) for source in document.trace.sources]
        left = len(held) - TIP_FILES
        return held if left <= 0 else [*held[:TIP_FILES], self.tr("and {count} more").format(count=left)]

    def _place_of(self, key: object) -> int:
        """Where a new tab goes: before the trace that follows it among the documents, else to the end."""
        documents = self.session.documents
        later = documents[documents.index(key) + 1 :] if isinstance(key, Document) else []
        return next((i for i in map(self._tab_of, later) if i >= 0), self.top.tabs.count())

    def _tab_of(self, key: object) -> int:
        data = key if isinstance(key, str) else id(key)
        return next((i for i in range(self.top.tabs.count()) if self.top.tabs.tabData(i) == data), -1)

    def _choose_tab(self, key: object) -> None:
        tabs = self.top.tabs
        tabs.blockSignals(True)
        tabs.setCurrentIndex(self._tab_of(key))
        tabs.blockSignals(False)
        restyle(tabs, "none", self._tab_of(key) < 0)  # a tab bar has always one in front: not while the start is shown

    def key_of_tab(self, index: int) -> object | None:
        """The trace or the id of the page that a tab is of."""
        data = self.top.tabs.tabData(index)
        return data if isinstance(data, str) else next((d for d in self.session.documents if id(d) == data), None)

    def _tab_chosen(self, index: int) -> None:
        key = self.key_of_tab(index)
        if isinstance(key, Document):
            if key in self.pages or self.early.has(key):
                self.session.set_current(key)
            else:
                self.early.make(key, self._page_there)
        elif isinstance(key, str):
            self.show_page(key)

    def _page_there(self, document: Document) -> None:
        """The page of a tab that was chosen is made: show it, unless another one was chosen meanwhile."""
        tabs = self.top.tabs
        if self.key_of_tab(tabs.currentIndex()) is document and not tabs.property("none"):
            self.session.set_current(document)

    def _tab_clicked(self, index: int) -> None:
        if index >= 0 and self._start_shown():
            self._tab_chosen(index)

    def shown_page(self) -> str:
        """Id of the page that is shown; "" while a trace is."""
        shown = self.stack.currentWidget()
        return next((key for key, page in self.pages.items() if page is shown and isinstance(key, str)), "")

    def _start_shown(self) -> bool:
        return self.stack.currentWidget() is self.pages.get("start")

    def _close_key(self, key: object) -> None:
        if isinstance(key, Document):
            self.session.close_document(key)
        elif isinstance(key, str):
            if key == quitting.RUN_PAGE and quitting.run_is_on(self.session):
                self._hide_tab(key)
                quitting.say_hidden(self.session)
            else:
                self._drop_page(key)
            documents = self.session.documents
            self.session.set_current(documents[-1] if documents else None)
            if not documents:
                self.show_page("start")

    def _hide_tab(self, key: object) -> None:
        """Take a tab away; its page stays as it is, and comes back when it is asked for."""
        index = self._tab_of(key)
        if index >= 0:
            self.top.tabs.blockSignals(True)
            self.top.tabs.removeTab(index)
            self.top.tabs.blockSignals(False)
            self._name_tabs()

    def close_tab(self) -> None:
        """Close the tab in front, be it a trace or a page."""
        key = self.key_of_tab(self.top.tabs.currentIndex())
        if key is not None and not self._start_shown():
            self._close_key(key)

    def step_tab(self, offset: int) -> None:
        """Go to the next or previous tab of the top bar."""
        count = self.top.tabs.count()
        if count and self.top.tabs.property("none"):  # from the start page to the first or the last
            at = 0 if offset > 0 else count - 1
            self.top.tabs.setCurrentIndex(at)
            self.top.tabs.tabBarClicked.emit(at)
        elif count:
            self.top.tabs.setCurrentIndex((self.top.tabs.currentIndex() + offset) % count)
