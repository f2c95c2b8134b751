"""Pages of traces, made a part at a time before their trace is first shown: the window stays alive in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

from PySide6.QtCore import QRect, Qt, QTimer
from PySide6.QtWidgets import QStackedWidget, QWidget
from shiboken6 import isValid

from gui.document_page import DocumentPage
from gui.gentle import TURN_MS
from gui.session import Document, Session
from gui.settings import Settings

PART_S = 0.01  # of styling widgets


class EarlyPages:
    """Makes the pages of the window; provides the service ``page_parts(document)``.

    Parameters
    ----------
    session, settings
        What the pages get.
    stack
        Where they are going to stand. They are its children from the start: a widget that changes its parent later
        is styled anew, with all that is in it.
    """

    def __init__(self, session: Session, settings: Settings, stack: QStackedWidget) -> None:
        self._session, self._settings, self._stack = session, settings, stack
        self._made: dict[Document, DocumentPage] = {}
        self._under_way: dict[Document, Generator[None]] = {}
        session.provide("page_parts", self.parts)

    def parts(self, document: Document) -> Generator[None]:
        """Make the page of a document, a part with each step; closed before the end, it drops the page."""
        page = DocumentPage(self._session, document, self._settings, self._stack, at_once=False)
        self._made[document] = page
        try:
            yield
            while page.make_part():
                yield
            self._stack.addWidget(page)
            yield
            yield from self._looks(page)
        except GeneratorExit:
            if self._made.pop(document, None) is not None:
                self._stack.removeWidget(page)
                page.deleteLater()
            raise

    def _looks(self, page: DocumentPage) -> Generator[None]:
        """What Qt would do all at once when the page is first shown: styles, places, the timeline's picture."""
        page.resize(self._stack.size())
        page.lay_out(self._stack.width(), self._stack.height())
        yield
        waiting = [page, *page.findChildren(QWidget)]
        while waiting:
            end = time.perf_counter() + PART_S
            while waiting and time.perf_counter() < end:
                one = waiting.pop()
                if isValid(one):
                    one.ensurePolished()
            yield
        page.grab(QRect(0, 0, 1, 1))  # lays all of it out
        yield
        canvas = getattr(page.timeline, "canvas", None)
        if canvas is not None:
            yield from canvas.early_parts()
            yield
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        for part in page.timeline.findChildren(QWidget, options=direct):
            if isValid(part) and not part.isHidden():
                part.grab()
                yield

    def has(self, document: Document) -> bool:
        """All parts of the page of a document are made."""
        return document in self._made and document not in self._under_way

    def make(self, document: Document, then: Callable[[Document], None]) -> None:
        """Make the page of a document, a part in each turn of the event loop, and call ``then`` when it is there."""
        if document not in self._under_way:
            self._under_way[document] = self.parts(document)
            QTimer.singleShot(TURN_MS, document, lambda: self._make_on(document, then))

    def _make_on(self, document: Document, then: Callable[[Document], None]) -> None:
        parts = self._under_way.get(document)
        if parts is None:  # it was taken, or its trace closed
            return
        if next(parts, parts) is not parts:
            if document in self._under_way:
                QTimer.singleShot(TURN_MS, document, lambda: self._make_on(document, then))
            return
        self._under_way.pop(document, None)
        then(document)

    def drop(self, document: Document) -> None:
        """Its trace is closed: a page that was never shown goes."""
        parts, page = self._under_way.pop(document, None), self._made.pop(document, None)
        if page is not None:
            self._stack.removeWidget(page)
            page.deleteLater()
        if parts is not None:
            QTimer.singleShot(0, self._stack, parts.close)  # it may be at work right now

    def take(self, document: Document) -> DocumentPage:
        """Return the page of a document, whole and in its place."""
        page = self._made.pop(document, None)
        self._under_way.pop(document, None)
        if page is None:
            page = DocumentPage(self._session, document, self._settings, self._stack)
        page.finish()
        if self._stack.indexOf(page) < 0:
            self._stack.addWidget(page)
        return page
