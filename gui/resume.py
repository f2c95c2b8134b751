"""What was open is kept while the window runs, so that the next start can bring it back: also after a crash."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSaveFile, QTimer

from core.words import visible
from gui import jobs, names, store, together
from gui.document_page import DocumentPage
from gui.opened import FORMAT, MOST, PAGES, Opened, Shown, exists, folder, last_opened, machine
from gui.session import Document, TimeRange

if TYPE_CHECKING:
    from gui.main_window import MainWindow

log = logging.getLogger(__name__)
QUIET_MS = 400  # after the last change: a crash costs no more than that


class Resume(QObject):
    """Writes down what is open, a moment after each change, and opens it again when asked."""

    def __init__(self, window: MainWindow, where: Path | None = None) -> None:
        super().__init__(window)
        self._window, self._session = window, window.session
        self._where = where or folder()
        self.file = self._where / f"{os.getpid()}-{machine()}-{time.time_ns()}.json"
        self._closed = False
        self.last = Opened()
        self._coming: dict[str, Shown] = {}  # by path: asked for, and not there yet
        self._front, self._compared = "", tuple[str, ...]()
        self._stretch: tuple[float, float] | None = None  # of the two that come back
        self._order: tuple[str, ...] = ()  # of the tabs that come back
        self._rounds = ""  # of which script, those that come back
        self._suggestions: dict[Document, str] = {}  # keys of those to be shown once they are found
        self._known: set[Document] = set()
        self._arranged: set[Document] = set()  # tracks were moved since they were kept
        self._timer = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._timer.timeout.connect(self.keep)
        for changed in (self._session.currentChanged, self._session.pageRequested):
            changed.connect(self._later)
        self._session.documentsChanged.connect(self._documents)
        loop: Any = self._session.ask("loop")
        if loop is not None:
            loop.changed.connect(self._later)  # another script's rounds may be shown
        window.pageMade.connect(self._page_made)
        window.opener.ended.connect(self._ended)
        window.closing.connect(self._close)

    def _later(self, *_: object) -> None:
        self._timer.start()

    # Writing -----------------------------------------------------------------------------------------------------

    def _documents(self) -> None:
        for document in [d for d in self._session.documents if d not in self._known]:
            self._known.add(document)
            for changed in (document.viewChanged, document.selectionChanged, document.suggestionChanged):
                changed.connect(self._later)
            document.layoutChanged.connect(partial(self._layout_changed, document))
            document.destroyed.connect(partial(self._known.discard, document))
            self._bring_back(document)
        self._known &= set(self._session.documents)
        self._suggestions = {d: key for d, key in self._suggestions.items() if d in self._known}
        self._later()

    def _page_made(self, document: Document) -> None:
        page = self._window.pages.get(document)
        if isinstance(page, DocumentPage):
            page.show_panel(document.panel)
            page.bottom.currentChanged.connect(self._later)

    def _layout_changed(self, document: Document) -> None:
        self._arranged.add(document)
        self._timer.start()

    def _close(self) -> None:
        """The window closes with all that is open: what is closed with it stays written down."""
        self.keep()
        self._closed = True

    def keep(self) -> None:
        """Write down what is open now, all or nothing; where nothing is, the file goes."""
        self._timer.stop()
        if self._closed:
            return
        self._keep_arranged()
        opened = self.opened()
        if not opened:
            if self.file.exists():
                with contextlib.suppress(OSError):
                    self.file.unlink()
            return
        values = {"format": FORMAT, **asdict(opened)}
        del values["files"]
        try:
            self._where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.info("what is open cannot be kept: %s", error)
            return
        out = QSaveFile(str(self.file))
        if out.open(QSaveFile.OpenModeFlag.WriteOnly):
            out.write(json.dumps(values).encode())
            if out.commit():
                self._drop_last()
            else:
                log.info("what is open cannot be kept: %s", out.errorString())

    def _keep_arranged(self) -> None:
        """The arrangement of the tracks, which is otherwise kept when a trace is closed."""
        for document in self._arranged & set(self._session.documents):
            page = self._window.pages.get(document)
            if isinstance(page, DocumentPage):
                page.save_layout()
                store.save(document)
        self._arranged.clear()

    def _drop_last(self) -> None:
        """Another session has begun: the one before it is over."""
        for file in self.last.files:
            if file != self.file:
                with contextlib.suppress(OSError):
                    file.unlink()
        self.last = Opened()

    def opened(self) -> Opened:
        """What is open now; traces that are still being read again are among it."""
        from gui import tour_story

        current, pages = self._session.current, self._window.pages
        own = [d for d in self._session.documents if d.trace.sources and d.trace.path.parent != tour_story.FOLDER]
        documents = [self._shown(d) for d in own]
        front = _path(current) if current is not None and current in own else ""
        at = self._window.stack.currentWidget()
        front = front or next((str(key) for key, page in pages.items() if page is at and key in PAGES), "")
        page = pages.get("compare")
        pair = getattr(page, "pair", None)  # as it is chosen there now
        compared = [_path(d) for d in pair if d in own] if pair else []
        stretch = getattr(page, "stretch", None) if len(compared) == 2 else None
        if self._coming:  # a crash now must not cost what was to be in front
            front, compared, stretch = self._front, list(self._compared), self._stretch
        return Opened(
            tuple([*documents, *self._coming.values()][:MOST]),
            tuple(key for key in PAGES if key in pages),
            front,
            tuple(compared if len(compared) == 2 else ()),
            self._order if self._coming else self._tabs(),
            self._rounds if self._coming else str(self._session.ask("rounds_of") or ""),
            stretch,
        )

    def _tabs(self) -> tuple[str, ...]:
        """Paths and pages in the order of their tabs."""
        window = self._window
        keys = [window.key_of_tab(index) for index in range(window.top.tabs.count())]
        return tuple(_path(key) if isinstance(key, Document) else str(key) for key in keys)

    def _arrange_tabs(self) -> None:
        """Put the tabs where they stood; what came beside them goes to the end."""
        order, tabs = self._order, self._window.top.tabs
        tabs.blockSignals(True)
        for place, wanted in enumerate([key for key in order if key in self._tabs()]):
            tabs.moveTab(self._tabs().index(wanted), place)
        tabs.blockSignals(False)

    def _shown(self, document: Document) -> Shown:
        page, viewport, chosen = self._window.pages.get(document), document.viewport, document.selected_range
        suggestion = document.suggestion(document.current_suggestion)
        files = together.files_of(Path(_path(document)))
        own_view = getattr(self._window.pages.get("compare"), "own_view", lambda _: None)(document)  # not that of both
        return Shown(
            _path(document),
            str(document.run_folder or ""),
            _stamp(document),
            own_view or (viewport.start_ns, viewport.end_ns),
            document.selected_slice,
            (chosen.start_ns, chosen.end_ns) if chosen is not None else None,
            chosen.tracks if chosen is not None else (),
            suggestion.key if suggestion is not None else self._suggestions.get(document, ""),
            document.small_shown,
            page.shown_panel() if isinstance(page, DocumentPage) else document.panel,
            tuple(map(str, files)) if len(files) > 1 else (),
        )

    # Bringing back -----------------------------------------------------------------------------------------------

    def look(self, mode: str) -> None:
        """At a start without traces: offer what was open last, or open it ("always"); nothing where "never"."""
        jobs.run(self, partial(_look, self._where, self.file), partial(self._found, mode), self._session.raise_error)

    def _found(self, mode: str, last: Opened) -> None:
        self.last = last
        faster = self._session.documents or self._window.opener.busy
        if not last or mode == "never" or faster:
            return
        if mode == "always":
            self.reopen()
            return
        called = [visible(names.of_path(Path(shown.path))) for shown in last.documents]
        words = self.tr("Last time, {name} was open.").format(name=called[0])
        if len(called) > 1:
            words = self.tr("Last time, {count} traces were open: {names}.")
            words = words.format(count=len(called), names="; ".join(called))
        self._window.notice.say(words, self.tr("Open again, as it was"), self.reopen)

    def reopen(self) -> None:
        """Open all of it again, each as it was."""
        last = self.last
        self._window.notice.hide()
        self._coming = {shown.path: shown for shown in last.documents}
        self._front, self._compared, self._order = last.front, last.compared, last.tabs
        self._rounds, self._stretch = last.rounds, last.stretch
        for page in last.pages:
            self._session.pageRequested.emit(page)
        asked = []
        for shown in last.documents:
            folder_of_run = Path(shown.run_folder) if shown.run_folder and exists(shown.run_folder) else None
            if shown.files:
                together.remember(Path(shown.path), [Path(file) for file in shown.files])
            asked.append((Path(shown.path), folder_of_run))
        self._window.opener.open_again(asked, last.front)

    def _bring_back(self, document: Document) -> None:
        """A trace that was asked for is there: show it as it was. Its suggestions come later."""
        shown = self._coming.pop(_path(document), None)
        if shown is None:
            return
        document.small_shown = shown.small_shown
        if shown.stamp == _stamp(document):
            if shown.selected_slice >= 0 and shown.selected_slice < len(document.trace.slices):
                document.select(shown.selected_slice)
            if shown.selected_range is not None:
                document.select_range(TimeRange(*shown.selected_range, shown.range_tracks))
            if shown.view is not None:
                document.keeps_view = True
                document.zoom_to(*shown.view, remember=False)
            if shown.suggestion:
                self._suggestions[document] = shown.suggestion
                document.analysisChanged.connect(partial(self._analysed, document))
        elif shown.path in self._compared:
            self._stretch = None  # it was one of another file
        document.panel = shown.tab
        page = self._window.pages.get(document)
        if shown.tab and isinstance(page, DocumentPage):
            page.show_panel(shown.tab)

    def _ended(self, key: str) -> None:
        """A trace came, failed, or was called off."""
        self._coming.pop(key, None)
        if not self._coming and (self._front or self._compared or self._order):
            self._all_there()

    def _analysed(self, document: Document) -> None:
        """Open the card that was open; the view stays where it was."""
        key, analysis = self._suggestions.get(document), document.analysis
        if key is None or analysis is None or document.analysis_running:
            return
        del self._suggestions[document]
        index = next((i for i, s in enumerate(analysis.suggestions) if s.key == key), -1)
        if index >= 0 and document.current_suggestion < 0:  # nothing was chosen meanwhile
            document.current_suggestion = index
            from gui import evidence

            document.highlight(evidence.slices_of(analysis.suggestions[index]))
            document.suggestionChanged.emit()

    def _all_there(self) -> None:
        """All came, or failed: show what was in front."""
        by_path = {_path(d): d for d in self._session.documents if d.trace.sources}
        front, compared = self._front, [by_path.get(path) for path in self._compared]
        self._front, self._compared = "", ()
        if len(compared) == 2 and all(compared):
            self._session.ask("compare_documents", *compared)
            restore = getattr(self._window.pages.get("compare"), "restore", None)
            if self._stretch is not None and restore is not None:
                restore(self._stretch)
        self._stretch = None
        if front in by_path:
            self._session.set_current(by_path[front])
        elif front:
            self._session.pageRequested.emit(front)
        self._arrange_tabs()
        if self._rounds:  # the trace in front may be of another script
            self._session.ask("show_rounds_of", self._rounds)
        self._order, self._rounds = (), ""


def _look(where: Path, own: Path, _progress: jobs.Progress) -> Opened:
    return last_opened(where, own)


def _path(document: Document) -> str:
    """The file or folder that was opened."""
    return str(document.property("asked") or document.trace.path)


def _stamp(document: Document) -> str:
    """What tells whether a file is still the one that was open."""
    sources: Sequence[Any] = document.trace.sources
    return "|".join(f"{s.size_bytes}:{s.mtime_ns}" for s in sources)
