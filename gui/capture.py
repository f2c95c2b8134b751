"""Profiling from the window: one run at a time, its output and progress brought into the GUI thread."""

from __future__ import annotations

import os
import re
import shlex
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from gui import find_line, staying, together
from gui.said import spoken
from gui.session import Document, Session
from gui.settings import Settings
from profiling.errors import ProfilingError
from profiling.events import Progress
from profiling.manifest import default_runs_root, read
from profiling.result import RunResult
from profiling.run import Run
from profiling.spec import RunSpec, from_json

FLUSH_MS = 50
CLOSE_SECONDS = 5.0
_LINE = re.compile(r"[^\r\n]*[\r\n]|[^\r\n]+")
MOST_LINE_CHARS = 20_000  # nobody reads on; the file with the output has all of it
MOST_PENDING_CHARS = 400_000  # a flood: what the window could not show anyway is left out


class LongLines:
    """Cuts lines that are too long to be shown, however they arrive: they must not push out what stands around them."""

    def __init__(self) -> None:
        self._open_chars: dict[str, int] = {}  # of the line that has not ended yet, by stream

    def shortened(self, stream: str, text: str) -> str:
        """Return what is kept of a piece; the view cuts such a line further, and marks it as cut."""
        at = self._open_chars.get(stream, 0)
        if at + len(text) <= MOST_LINE_CHARS:
            end = max(text.rfind("\n"), text.rfind("\r"))
            self._open_chars[stream] = at + len(text) if end < 0 else len(text) - end - 1
            return text
        kept: list[str] = []
        for line in _LINE.findall(text):
            body = line.rstrip("\r\n")
            kept.append(body[: max(MOST_LINE_CHARS - at, 0)] + line[len(body) :])
            at = 0 if len(line) > len(body) else at + len(body)
        self._open_chars[stream] = at
        return "".join(kept)


class Capture(QObject):
    """The run that is on, or the last one.

    Signals
    -------
    started()
        A run began; ``spec`` is new and the output starts empty.
    output(list)
        Pieces of ``(stream, text)`` in order of arrival; a stream ``""`` tells how many characters were left out.
    progressed()
        ``progress`` is new.
    ended()
        ``result`` is there.
    """

    started = Signal()
    output = Signal(list)
    progressed = Signal()
    ended = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.run: Run | None = None
        self.spec: RunSpec | None = None
        self.result: RunResult | None = None
        self.progress = Progress("starting")
        self.wished: RunSpec | None = None  # what the launch page shall show when it is next seen
        self.aside = False  # that run is of the example: what the user has filled in is kept for afterwards
        self.open_when_done = True
        self.sought: find_line.Sought | None = None  # what the round that marks lines shall show
        self._lock = threading.Lock()
        self._pieces: list[tuple[str, str]] = []
        self._pending_chars = 0
        self._dropped_chars = 0
        self._long_lines = LongLines()
        self._newest: Progress | None = None
        self._finished: RunResult | None = None
        self._titles: dict[Path, str] = {}
        self._began: set[Path] = set()  # folders of the runs started from this window
        self._sought_in: Path | None = None
        self._opening: set[Path] = set()  # files of the run that has ended, until they are shown
        self._timer = QTimer(self)
        self._timer.setInterval(FLUSH_MS)
        self._timer.timeout.connect(self.flush)
        session.documentsChanged.connect(self._name_documents)
        session.openingEnded.connect(self._opened)

    @property
    def running(self) -> bool:
        """A run is on."""
        return self.run is not None and self.result is None

    def start(self, spec: RunSpec, *, open_when_done: bool = True, show: bool = True) -> None:
        """Start a run and show its page, unless it is not to be shown; errors are shown as a banner."""
        if self.running:
            self._session.raise_error(
                ProfilingError(
                    self.tr("A script is already running."), "", self.tr("Stop it first, or wait for its end.")
                )
            )
            return
        self.result, self._finished, self._newest = None, None, None
        self._pieces, self._pending_chars, self._dropped_chars = [], 0, 0
        self.open_when_done = open_when_done
        try:
            self._long_lines = LongLines()
            run = Run(spec, self._take_output, self._take_progress, self._take_result)
            run.start()
        except ProfilingError as error:
            self.run = None
            self._session.raise_error(error)
            return
        self.run, self.spec, self.progress = run, spec, Progress("starting")
        self._began.add(Path(run.folder))
        self.started.emit()
        self._session.runChanged.emit()
        if show:
            self._session.pageRequested.emit(staying.RUN)
        else:
            staying.say_started(self._session, spec.title)
        self._timer.start()

    def stop(self) -> None:
        """Ask the script to end; a second call ends it at once."""
        if self.run is not None:
            self.run.stop()

    def close(self) -> None:
        """End the script at once: the app ends, and nothing may be left behind."""
        if self.run is not None and self.run.running:
            self.run.stop(now=True)
            self.run.wait(CLOSE_SECONDS)

    def is_on(self, folder: Path) -> bool:
        """Whether the run of a folder is on."""
        return self.running and self.run is not None and Path(self.run.folder) == folder

    def saved(self) -> list[Path]:
        """Traces that the run has saved so far: they can be opened while the script runs on."""
        if self.run is None or self.progress.phase != "done":
            return []
        folder = Path(self.run.folder)
        paths = [folder / Path(str(event.get("path", ""))).name for event in tuple(self.run.gathered.traces)]
        return [path for path in paths if path.is_file()]

    def open_now(self) -> None:
        """Open what is saved; when the script has ended it is read again, with the sources and the times of the run."""
        if self.run is not None and (paths := self.saved()):
            self._session.open(paths[:1], Path(self.run.folder))

    def write(self, text: str) -> None:
        """Send a line to the script's input and show it in the output."""
        if self.run is not None:
            self.run.write_stdin(text)
            self._take_output("stdin", text)

    # From the run's threads -----------------------------------------------------------------------------------

    def _take_output(self, stream: str, text: str) -> None:
        with self._lock:
            text = self._long_lines.shortened(stream, text)
            self._pieces.append((stream, text))
            self._pending_chars += len(text)
            while self._pending_chars > MOST_PENDING_CHARS and len(self._pieces) > 1:
                _, old = self._pieces.pop(0)
                self._pending_chars -= len(old)
                self._dropped_chars += len(old)

    def _take_progress(self, progress: Progress) -> None:
        with self._lock:
            self._newest = progress

    def _take_result(self, result: RunResult) -> None:
        with self._lock:
            self._finished = result

    # In the GUI thread ------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand on what has come since the last time."""
        with self._lock:
            pieces, self._pieces = self._pieces, []
            dropped, self._dropped_chars, self._pending_chars = self._dropped_chars, 0, 0
            progress, self._newest = self._newest, None
            finished, self._finished = self._finished, None
        if dropped:
            pieces.insert(0, ("", str(dropped)))
        if pieces:
            self.output.emit(pieces)
        if progress is not None:
            self.progress = progress
            self.progressed.emit()
        if finished is not None:
            self._end(finished)

    def _end(self, result: RunResult) -> None:
        self._timer.stop()
        self.result = result
        self.ended.emit()
        self._session.runChanged.emit()
        self._opening = set()
        if result.trace is not None and self.open_when_done and not staying.is_partial(result):
            ranks = [path for path in result.traces if path.name.startswith("trace-rank")]
            paths = ranks if len(ranks) > 1 else [result.trace]
            self._sought_in = result.trace if self.spec is not None and self.spec.line_ranges else None
            for path in paths:
                self._titles[path] = str(result.manifest.get("name") or path.name)
            self._opening = {path.absolute() for path in paths}
            self._session.open(paths, result.folder)
        elif not staying.is_watched(self._session, staying.RUN):
            self._session.set_status(spoken(result.words))

    def stays_behind(self, key: str) -> bool:
        """Whether a trace that opens by itself stays behind what is shown: an error to be read, or another page."""
        if self._opening.isdisjoint(together.files_of(Path(key))) or self.result is None:
            return False
        return self.result.outcome == "failed" or not staying.is_watched(self._session, staying.RUN)

    def _opened(self, key: str) -> None:
        if self._opening.isdisjoint(together.files_of(Path(key))):
            return
        there = [d for d in self._session.documents if any(s.path in self._opening for s in d.trace.sources)]
        self._opening = set()
        if there and self._session.current not in there and self.result is not None:
            staying.say_opened(self._session, str(self.result.manifest.get("name") or ""))

    def _name_documents(self) -> None:
        for document in self._session.documents:
            path = document.trace.path if document.trace.sources else None
            if path in self._titles and document.title == path.name:
                document.title = self._titles.pop(path)
            if self.sought is not None and path is not None and path == self._sought_in:
                self._sought_in = None
                document.analysisChanged.connect(self._show_found)

    # Services ---------------------------------------------------------------------------------------------------

    def show_launcher(self, spec: RunSpec | None = None, *, aside: bool = False) -> None:
        """Show the page that starts a run, filled with ``spec``; ``aside``: the user's own form comes back after it."""
        self.wished, self.aside = spec, aside
        self._session.pageRequested.emit("launch")
        self._session.runChanged.emit()

    def find_line(self, document: Document, index: int) -> None:
        """Run the document's script again with statements marked, and show the suggestion with its line."""
        folder = document.run_folder
        content = read(folder) if folder else None
        suggestion = document.suggestion(index)
        if content is None or suggestion is None:
            self._session.raise_error(
                ProfilingError(
                    self.tr("The line can only be searched in a run of this program's own."),
                    "",
                    self.tr("Profile the script from here; then each suggestion can find its line."),
                )
            )
            return
        assert folder is not None
        marks = find_line.patterns(suggestion, document.trace, document.finder)
        try:
            first = from_json(content["spec"])
            options = replace(first.options, stacks=True)  # they name what no statement holds, such as a loop's head
            spec = replace(first, options=options, line_ranges=marks, runs_root=str(folder.parent), stdin="pipe")
            spec.check()
        except (ProfilingError, KeyError, TypeError) as error:
            self._session.raise_error(ProfilingError(self.tr("This run cannot be run again."), str(error)))
            return
        self.sought = find_line.Sought(suggestion.rule_id, suggestion.key, find_line.function_of(suggestion))
        if find_line.needs_the_user(content["spec"]):  # its variables are not kept: they may be secrets
            self._session.set_status(self.tr("Set the variables of the first run again, then press Run."))
            self.show_launcher(spec)
        elif not self.is_own(folder):
            self.show_foreign(spec)
        else:
            self.start(spec)

    def is_own(self, folder: Path) -> bool:
        """Whether a run was started by this user. A folder from elsewhere names a program that nobody here chose."""
        if folder in self._began:
            return True
        settings: Any = self._session.ask("capture_settings")
        roots = [default_runs_root()] + ([runs_root(settings)] if settings is not None else [])
        return any(os.path.realpath(folder.parent) == os.path.realpath(root) for root in roots)

    def show_foreign(self, spec: RunSpec) -> None:
        """Show what a run from elsewhere would start, and let the user decide."""
        words = self.tr("This run comes from elsewhere. Look at what it would start, then press Run.")
        self._session.set_status(words)
        self.show_launcher(spec)

    def _show_found(self) -> None:
        """Make the suggestion that was searched the current one, once the new trace is diagnosed."""
        document = self.sender()
        if self.sought is None or not isinstance(document, Document) or document.analysis_running:
            return
        document.analysisChanged.disconnect(self._show_found)
        found = document.analysis.suggestions if document.analysis else ()
        at = find_line.best(self.sought, found)
        self.sought = None
        if at >= 0:
            document.show_suggestion(at)
            self._session.set_status(find_line.outcome_words(found[at]))
        else:
            self._session.set_status(self.tr("The suggestion whose line was searched did not come up again."))


def split_arguments(text: str) -> tuple[str, ...]:
    """Arguments as a shell splits them (quotes, backslashes), without expanding anything.

    Raises
    ------
    ValueError
        For a quote that is never closed.
    """
    return tuple(shlex.split(text))


def runs_root(settings: Settings) -> Path:
    """Folder of the runs: the user's choice, else the default."""
    chosen = settings.get("runs/folder")
    return Path(chosen) if chosen else default_runs_root()


def install(session: Session, settings: Settings) -> None:
    """Offer profiling to the rest of the window."""
    capture = Capture(session)
    app = QCoreApplication.instance()
    if app is not None:
        app.aboutToQuit.connect(capture.close)
    session.provide("capture", lambda: capture)
    session.provide("capture_settings", lambda: settings)
    session.provide("stays_behind", capture.stays_behind)
    session.provide("profile", capture.show_launcher)
    session.provide("find_line", capture.find_line)
