"""Opening traces off the GUI thread, one job each, and the diagnosis that follows."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal

from core.run_folder import name_of
from core.words import visible
from gui import diagnosing, helpers, jobs, own_rules, rereading, source_folders, store, text, together, warmup
from gui.diagnosing import Consent, analyze_document
from gui.errors import offer_again
from gui.gentle import TURN_MS
from gui.session import Document, Session
from gui.settings import Settings

if TYPE_CHECKING:
    from core.analysis import Analysis
    from core.run_folder import RunRecord
    from core.source import SourceFinder
    from core.trace import Trace
    from gui.helper_process import Helper
    from gui.timeline.prepared import Prepared

FIRST_PAINT_MS = 30  # the first frame has the interpreter to itself, then the diagnosis begins
LARGE_BYTES = 2 << 20  # on disk; a .gz of this size holds ten times as much
LET_GO_MS = 400  # after a trace is closed; whatever painted it has gone by then
SUFFIXES = (".json", ".json.gz", ".zip", ".json.zst", ".gz", ".zst")


def load_trace(paths: Sequence[Path], progress: jobs.Progress) -> Trace:
    """Read one trace, a folder of ranks, or several files of them, in this thread, for want of a helper process.

    Raises
    ------
    TraceError
        When it cannot be used.
    Cancelled
        When the user called it off.
    """
    from core import cache
    from core.importing import open_trace  # late: the start page needs no importer

    return open_trace(paths, progress=progress, cache_dir=cache.user_folder())


@dataclass
class Loaded:
    """What `load_document` returns: the trace, all that a view of it needs, and who is going to diagnose it."""

    trace: Trace
    run: RunRecord | None
    finder: SourceFinder
    prepared: Prepared
    helper: Helper | None
    stamp: rereading.Stamp = ()


def load_document(path: Path, progress: jobs.Progress) -> Loaded:
    """Read a trace, what the run that made it left beside it, and all that a view of it needs (in a worker thread)."""
    import core.importing  # noqa: F401  # before its parts, see `gui.warmup.MODULES`
    from core import cache, memory
    from core.run_folder import finder_for, run_of

    stamp = rereading.stamp_of(path)  # before it is read: what is written meanwhile is a change
    helper = helpers.take(progress, start_one=_is_large(path))
    files = together.files_of(path)
    try:
        if helper is None:
            trace = load_trace(files, progress)
        else:
            trace = helper.open(files, cache.user_folder(), progress)
        warmup.finish()
        from gui.timeline.prepared import prepare

        prepared = prepare(trace)
        memory.give_back()
        return Loaded(trace, run_of(trace.path), finder_for(trace), prepared, helper, stamp)
    except BaseException:
        if helper is not None:
            helpers.give_back(helper)
        helpers.renew()  # a cancel has ended it: the next trace does not wait for another one
        raise


def _is_large(path: Path) -> bool:
    """Whether reading takes longer than starting a process; a folder may hold any number of ranks."""
    try:
        return path.is_dir() or sum(file.stat().st_size for file in together.files_of(path)) >= LARGE_BYTES
    except OSError:
        return False


def title_of(trace: Trace, run: RunRecord | None) -> str:
    """Name of a trace: its file, the folder of several ranks, or script and time of the run that made it."""
    title = name_of(trace, run)
    if trace.meta.simulated and "simulated" not in title:
        title = QCoreApplication.translate("Opener", "{name} (simulated)").format(name=title)
    return visible(title)


class Opener(QObject):
    """Answers `Session.openRequested`.

    Signals
    -------
    started(key, title), progressed(key, fraction, note), ended(key)
        Of running work; ``key`` is the path as text.
    """

    started = Signal(str, str)
    progressed = Signal(str, float, str)
    ended = Signal(str)
    _partial = Signal(object, object)

    def __init__(self, session: Session, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._settings = session, settings
        self._jobs: dict[str, jobs.Job] = {}
        self._analyses: dict[Document, jobs.Job] = {}
        self._helpers: dict[Document, Helper] = {}  # who has read a trace and is going to diagnose it
        self._arriving: dict[str, tuple[Document, Generator[None]]] = {}  # read, its page is being made
        self._replaced: dict[str, Document] = {}  # shown until its file, which has changed, is read again
        self._asked: list[str] = []  # paths in the order in which they were asked for together
        self._waiting: set[Document] = set()  # shown first, diagnosed a moment later
        self._late: dict[Document, tuple[Analysis, bool]] = {}  # shown when a dialog is closed; whether it is the last
        self._open_count, self._preferred = 0, ""  # which is to be in front, wherever its tab stands
        self._let_go = QTimer(self)  # a closed trace may refer to itself in circles, and be gigabytes
        self._let_go.setSingleShot(True)
        self._let_go.setInterval(LET_GO_MS)
        self._let_go.timeout.connect(lambda: gc.collect())  # noqa: PLW0108 - found when it is called
        session.openRequested.connect(self.open)
        session.provide("diagnose", self.diagnose_again)
        session.documentsChanged.connect(self._drop_closed)
        self._partial.connect(self._take_partial, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Something is being opened or diagnosed."""
        return bool(self._jobs or self._waiting or self._analyses or self._late)

    def open(self, paths: list[Path], run_folder: Path | None = None) -> None:
        """Open each path in a tab, ranks of one job in one; what is open is shown instead, or read again if changed."""
        if not self._jobs:
            self._asked, self._preferred = [], ""
        for path in together.gather(paths):
            shown = rereading.open_from(self._session, path)
            if shown is not None and rereading.is_still_shown(self._session, shown, path):
                self._diagnose_failed(shown)
                continue
            if str(path) not in self._jobs:
                if shown is not None:
                    self._replaced[str(path)] = shown
                self._asked.append(str(path))
                self._start(path, run_folder)

    def open_again(self, paths: list[tuple[Path, Path | None]], front: str) -> None:
        """Open traces in this order, each with its run folder; ``front`` is read and shown first."""
        for path, run_folder in sorted(paths, key=lambda one: str(one[0]) != front):
            self._session.open([path], run_folder)
        order = [str(path) for path, _ in paths]
        self._asked.sort(key=lambda key: order.index(key) if key in order else -1)
        self._preferred = front

    def cancel(self, key: str) -> None:
        """Call off one opening; nothing changes."""
        job = self._jobs.pop(key, None)
        self._replaced.pop(key, None)
        document, parts = self._arriving.pop(key, (None, None))
        if document is not None and parts is not None:
            QTimer.singleShot(0, self, parts.close)  # it may be at work right now
            self._let_helper_go(document)
        if job is not None:
            job.cancel()
            self.ended.emit(key)

    def _start(self, path: Path, run_folder: Path | None) -> None:
        key, began = str(path), time.monotonic()
        warmup.start()
        self.started.emit(key, self.tr("Opening {name}").format(name=visible(path.name)))
        self._jobs[key] = jobs.run(
            self,
            partial(load_document, path),
            partial(self._opened, key, path, run_folder),
            lambda error: self._failed(key, offer_again(error, partial(self._session.open, [path], run_folder))),
            on_progress=partial(self._progress, key, began),
        )

    def _progress(self, key: str, began: float, fraction: float, what: str) -> None:
        spent = time.monotonic() - began
        note = what
        if fraction > 0.05 and spent > 1.0:
            seconds = spent / fraction - spent
            left = (
                self.tr("about {time} left").format(time=text.seconds(seconds))
                if seconds > 1
                else self.tr("nearly done")
            )
            note = " · ".join(part for part in (what, left) if part)
        self.progressed.emit(key, fraction, note)

    def _opened(self, key: str, path: Path, run_folder: Path | None, loaded: Loaded) -> None:
        document = Document(loaded.trace)
        if loaded.helper is not None:
            self._helpers[document] = loaded.helper
        try:
            self._fill(document, path, run_folder, loaded)
            self._arriving[key] = document, self._page_parts(key, document)
        except Exception as error:  # else its line would stay busy, and the path could not be opened again
            self._let_helper_go(document)
            self._failed(key, error)
        else:
            self._arrive(key)

    def _fill(self, document: Document, path: Path, run_folder: Path | None, loaded: Loaded) -> None:
        """Put what was read with the trace into its document."""
        trace, run = loaded.trace, loaded.run
        from gui import tour_story  # late: the start needs no tour

        document.prepared = loaded.prepared
        document.title = title_of(trace, run)
        document.run, document.finder = run, loaded.finder
        folders = self._consent(trace).sources
        if folders:
            from core.run_folder import finder_for

            document.finder = finder_for(trace, folders)
        document.run_folder = run_folder or (run.folder if run is not None else None)
        store.restore(document)
        rereading.remember(document, loaded.stamp)
        old = self._replaced.get(str(path))
        if old is not None and old in self._session.documents:
            rereading.carry_over(self._session, old, document)
        if path.parent != tour_story.FOLDER:  # the example is at hand anyway; it would push the user's own files out
            self._session.remember(path, self._settings.get("files/recent_max"))
        document.analysis_running = True  # soon: the page says so from the start

    def _page_parts(self, key: str, document: Document) -> Generator[None]:
        """Make the page of a trace that is going to be in front; any other is made when it is first shown."""
        while any(self._rank(other) < self._rank(key) for other in self._arriving):
            yield
        if self._comes_to_front(key):
            yield from self._session.ask("page_parts", document) or ()

    def _comes_to_front(self, key: str) -> bool:
        """Whether nothing is shown yet that was asked for with this trace and stands before it."""
        if self._session.ask("stays_behind", key):
            return False
        shown = str(self._session.current.property("asked")) if self._session.current is not None else ""
        return shown not in self._asked or shown == key or self._rank(key) < self._rank(shown)

    def _arrive(self, key: str) -> None:
        """Have the page made, a part in each turn of the event loop; then show the trace and diagnose it."""
        document, parts = self._arriving.get(key, (None, None))
        if document is None or parts is None:  # called off
            return
        try:
            if next(parts, parts) is not parts or key not in self._arriving:
                QTimer.singleShot(TURN_MS, self, partial(self._arrive, key))
                return
            self._add(document, key)
        except Exception as error:
            self._arriving.pop(key, None)
            if document not in self._session.documents:
                self._let_helper_go(document)
            self._failed(key, error)
            return
        del self._arriving[key]
        self._jobs.pop(key, None)
        self.ended.emit(key)
        self.analyze(document)

    def _add(self, document: Document, key: str) -> None:
        """Tabs stand in the order in which the files were named, whichever was read first; the first is in front."""
        document.setProperty("asked", key)
        old = self._replaced.pop(key, None)
        if old is not None and old in self._session.documents:
            rereading.take_place(self._session, old, document, front=self._comes_to_front(key))
            return
        held, place = self._session.documents, self._place(key)
        after = next((k for k, d in enumerate(held) if self._place(str(d.property("asked"))) > place >= 0), None)
        self._session.add_document(document, after, front=self._comes_to_front(key))

    def _place(self, key: str) -> int:
        return self._asked.index(key) if key in self._asked else -1

    def _rank(self, key: str) -> int:
        return -1 if key == self._preferred else self._place(key)

    def _failed(self, key: str, error: BaseException) -> None:
        self._jobs.pop(key, None)
        self._replaced.pop(key, None)
        self.ended.emit(key)
        self._session.raise_error(error)

    def analyze(self, document: Document) -> None:
        """Diagnose in the background; figures arrive first, then the suggestions, then what they save."""
        if not document.analysis_running:
            document.set_analysis_state(running=True)
        self._waiting.add(document)
        QTimer.singleShot(FIRST_PAINT_MS, document, partial(self._start_analysis, document))

    def diagnose_again(self, document: Document) -> None:
        """Diagnose anew, after the user has allowed or forbidden a folder; what runs already is called off."""
        self._late.pop(document, None)
        running = self._analyses.pop(document, None)
        if running is not None:
            running.cancel()
        if document not in self._waiting:
            self.analyze(document)

    def _diagnose_failed(self, document: Document) -> None:
        """Once more, where it failed: it may have been for want of memory, or of a process."""
        if document.analysis_error is not None and document in self._session.documents:
            self.diagnose_again(document)

    def _consent(self, trace: Trace) -> Consent:
        return Consent(own_rules.allowed(self._settings), source_folders.roots(self._settings, trace))

    def _start_analysis(self, document: Document) -> None:
        self._waiting.discard(document)
        if document not in self._session.documents:
            return
        send = partial(self._partial.emit, document)
        helper, consent = self._helpers.pop(document, None), self._consent(document.trace)
        self._analyses[document] = jobs.run(
            document,
            partial(analyze_document, document, helper, consent, send),
            partial(self._diagnosed, document),
            partial(self._not_diagnosed, document),
        )

    def _take_partial(self, document: Document, analysis: Analysis) -> None:
        if document in self._analyses:
            self._take(document, analysis)

    def _take(self, document: Document, analysis: Analysis, done: bool = False) -> None:
        """Show what has come; not under a dialog or menu, which speaks of a position in the list as it stands."""
        self._late.pop(document, None)
        if document.analysis is not None and diagnosing.something_is_asked():
            self._late[document] = analysis, done
            QTimer.singleShot(diagnosing.ASKED_MS, document, partial(self._take_late, document))
            return
        first = document.analysis is None
        document.analysis_running = document.analysis_running and not done
        document.set_analysis(analysis, gently=True)
        whole = document.viewport.start_ns <= document.viewport.first_ns
        moved = document.keeps_view or document.selected_slice >= 0
        if first and whole and not moved:  # the user has not moved yet
            document.show_typical_step()

    def _take_late(self, document: Document) -> None:
        found = self._late.pop(document, None)
        if found is not None and document in self._session.documents:
            self._take(document, *found)

    def _diagnosed(self, document: Document, analysis: Analysis) -> None:
        self._analyses.pop(document, None)
        helpers.renew()
        self._take(document, analysis, done=True)
        if "replay" in analysis.notes:
            self._session.raise_error(diagnosing.replay_failed(document))

    def _not_diagnosed(self, document: Document, error: BaseException) -> None:
        self._analyses.pop(document, None)
        self._late.pop(document, None)
        helpers.renew()
        if document.analysis is not None:
            document.analysis = diagnosing.given_up(document.analysis)
        document.set_analysis_state(running=False, error=error)
        self._session.raise_error(offer_again(error, partial(self._diagnose_failed, document)))

    def _drop_closed(self) -> None:
        if len(self._session.documents) < self._open_count:
            self._let_go.start()
        self._open_count = len(self._session.documents)
        self._waiting.intersection_update(self._session.documents)
        self._late = {d: found for d, found in self._late.items() if d in self._session.documents}
        for document in [d for d in self._helpers if d not in self._session.documents and not self._arrives(d)]:
            self._let_helper_go(document)
        for document in [d for d in self._analyses if d not in self._session.documents]:
            self._analyses.pop(document).cancel()
            helpers.renew()  # its helper ends with it

    def _arrives(self, document: Document) -> bool:
        return any(document is other for other, _ in self._arriving.values())

    def _let_helper_go(self, document: Document) -> None:
        helper = self._helpers.pop(document, None)
        if helper is not None:
            helper.close()
        helpers.renew()
