"""The one mutable state of the app: panels and overlays listen to it, call its intents, and never hold each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from core.analysis import Analysis
from core.run_folder import RunRecord
from core.search import first_call
from core.source import SourceFinder
from core.suggestions import Suggestion
from core.tables import I32
from core.trace import Trace
from gui import evidence
from gui.gentle import Listeners
from gui.timeline.viewport import Viewport

DONE, DISMISSED, LATER = "done", "dismissed", "later"
CHOSEN = "chosen"  # ticked, to be applied with the others that are
ALLOWED = "allowed"  # as dismissed, and an allow file says so
HIT_LEAST, HIT_MOST, HIT_SHARE = 0.004, 0.9, 0.06  # shares of the view: that a hit keeps, that it is given
SET_ASIDE = (DISMISSED, ALLOWED)  # no part of the plan any more


@dataclass(frozen=True)
class TimeRange:
    """A selected stretch of time, ns, half-open; ``tracks`` empty means all."""

    start_ns: int
    end_ns: int
    tracks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A marker the user set."""

    start_ns: int
    end_ns: int
    text: str = ""


class Document(QObject):
    """One opened trace and everything the user did to the view of it."""

    viewChanged = Signal()  # viewport moved
    selectionChanged = Signal()  # slice or time range
    highlightChanged = Signal()  # evidence
    searchChanged = Signal()  # search hits or the current one
    analysisChanged = Signal()  # figures, suggestions, plan arrived
    fixDerived = Signal(int)  # whether a suggestion's fix can be made in the code is known now; its position
    suggestionChanged = Signal()  # current suggestion or its state (done, dismissed, later)
    marksChanged = Signal()
    layoutChanged = Signal()  # tracks expanded, hidden, pinned, reordered, filtered
    hoverChanged = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.trace = trace
        self.analysis: Analysis | None = None
        self.analysis_running = False
        self.analysis_error: BaseException | None = None
        self.viewport = Viewport(*trace.extent_ns)
        self.selected_slice = -1
        self.selected_range: TimeRange | None = None
        self.highlighted: tuple[int, ...] = ()
        self.search_text = ""
        self.search_hits: I32 = np.empty(0, np.int32)  # slice ids in time order
        self.search_at = -1  # position in search_hits
        self.current_suggestion = -1
        self.small_shown = False  # suggestions that save next to nothing are listed too
        self.suggestion_state: dict[str, str] = {}  # Suggestion.key -> one of the states above
        self.dismiss_reason: dict[str, str] = {}
        self.marks: list[Mark] = []
        self.timeline_state: dict[str, Any] = {}  # tracks expanded, hidden, pinned ..., as the timeline keeps it
        self.run_folder: Path | None = None
        self.run: RunRecord | None = None  # what the run that made the trace left beside it
        self.finder: SourceFinder | None = None
        self.keeps_view = False  # it was brought back: the first diagnosis leaves the view as it is
        self.kept = True  # marks and states are written to the user's data folder
        self.prepared: Any = None  # `gui.timeline.prepared.Prepared`, made where the trace was read
        self.search_query: Any = None  # `gui.models.query.Query` behind search_text
        self.search_fault: Any = None  # `gui.models.query.Fault`, where it could not be run
        self.title = trace.path.name if trace.sources else ""
        self.panel = ""  # the view under the timeline that its page is to show; "" the one used last
        self._slow = Listeners(self)
        self.analysisChanged.connect(self._analysis_changed)

    # Intents -------------------------------------------------------------------------------------------------

    def select(self, slice_id: int) -> None:
        """Select one slice (-1: nothing)."""
        if slice_id != self.selected_slice:
            self.selected_slice = slice_id
            self.selectionChanged.emit()

    def select_range(self, time_range: TimeRange | None) -> None:
        """Select a stretch of time."""
        self.selected_range = time_range
        self.selectionChanged.emit()

    def highlight(self, slice_ids: tuple[int, ...]) -> None:
        """Mark slices as evidence."""
        self.highlighted = slice_ids
        self.highlightChanged.emit()

    def zoom_to(self, start_ns: float, end_ns: float, *, remember: bool = True) -> None:
        """Show ``[start_ns, end_ns)``."""
        self.viewport.show(start_ns, end_ns, remember=remember)
        self.viewChanged.emit()

    def go_to_slice(self, slice_id: int) -> None:
        """Select a slice and zoom so that it fills about a third of the view."""
        if not 0 <= slice_id < len(self.trace.slices):
            return
        self.zoom_to(*evidence.window_about(self.trace, (slice_id,)))
        self.select(slice_id)

    def show_slices(self, slice_ids: tuple[int, ...], lead: int = -1, *, typical: bool = False) -> None:
        """Highlight slices, zoom to those of them that lie in one typical step (all, without steps), and select one.

        That is ``lead`` if given, else the one selected already, the longest, or with ``typical`` one like the median.
        """
        if not slice_ids:
            return
        figures = self.analysis.figures if self.analysis else None
        if lead < 0:
            kept = -1 if typical else self.selected_slice
            lead = evidence.lead_among(self.trace, figures, slice_ids, kept=kept, typical=typical)
        self.zoom_to(*evidence.window_of(self.trace, figures, slice_ids, lead))
        self.highlight(slice_ids)
        self.select(lead)

    def set_search(self, text: str, hits: I32) -> None:
        """Take over the result of a search."""
        self.search_text, self.search_hits = text, hits
        self.search_at = -1
        self.searchChanged.emit()

    @property
    def current_hit(self) -> int:
        """Slice that the search has gone to, -1 while it has gone to none."""
        return int(self.search_hits[self.search_at]) if 0 <= self.search_at < len(self.search_hits) else -1

    def go_to_hit(self, offset: int) -> None:
        """Go to the next (+1) or previous (-1) search hit, at first to the first (last) in view, around the ends.

        The view keeps its width while the hit can be read in it, and its place while the hit is in it.
        """
        count, view = len(self.search_hits), self.viewport
        if not count:
            return
        if self.search_at < 0:
            starts = self.trace.slices.start_ns[self.search_hits]
            at = int(np.searchsorted(starts, view.start_ns if offset > 0 else view.end_ns))
            self.search_at = first_call(self.trace, self.search_hits, at % count) if offset > 0 else (at - 1) % count
        else:
            self.search_at = (self.search_at + offset) % count
        hit = self.current_hit
        start, dur = float(self.trace.slices.start_ns[hit]), float(self.trace.slices.dur_ns[hit])
        if not HIT_LEAST <= dur / view.width_ns <= HIT_MOST:
            half = max(dur / (HIT_SHARE if dur < view.width_ns else 1 / 3) / 2, 1.0)
            self.zoom_to(start + dur / 2 - half, start + dur / 2 + half)
        elif start < view.start_ns or start + dur > view.end_ns:
            self.zoom_to(start + dur / 2 - view.width_ns / 2, start + dur / 2 + view.width_ns / 2)
        self.select(hit)
        self.searchChanged.emit()

    def when_analysed(self, method: Callable[[], None]) -> None:
        """Call a slow method of a QObject at every ``analysisChanged``, as one of several that may take turns."""
        self._slow.add(method)

    def _analysis_changed(self) -> None:
        self._slow.call()

    def set_analysis(self, analysis: Analysis, *, gently: bool = False) -> None:
        """Take over figures and suggestions (may come in several instalments); the current suggestion is kept.

        With ``gently`` the slow listeners are called one in each turn of the event loop.
        """
        self._slow.gently = gently
        self._read_old_keys(analysis)
        current = self.suggestion(self.current_suggestion)
        self.analysis = analysis
        self.current_suggestion = -1
        if current is not None:
            keys = [s.key for s in analysis.suggestions]
            self.current_suggestion = keys.index(current.key) if current.key in keys else -1
        self.analysisChanged.emit()

    def _read_old_keys(self, analysis: Analysis) -> None:
        """A state kept when a key was rule and function only is of all suggestions there, as it was when it was set."""
        for states in (self.suggestion_state, self.dismiss_reason):
            for old in {s.place_key for s in analysis.suggestions} & set(states):
                state = states.pop(old)
                for suggestion in analysis.suggestions:
                    if suggestion.place_key == old:
                        states.setdefault(suggestion.key, state)

    def set_analysis_state(self, *, running: bool, error: BaseException | None = None) -> None:
        """Say that the diagnosis runs, has ended, or has failed."""
        self.analysis_running, self.analysis_error = running, error
        self._slow.gently = False
        self.analysisChanged.emit()

    def suggestion(self, index: int) -> Suggestion | None:
        """Suggestion at a position of the list, None where there is none."""
        found = self.analysis.suggestions if self.analysis else ()
        return found[index] if 0 <= index < len(found) else None

    def show_suggestion(self, index: int) -> None:
        """Make one suggestion the current one; zoom to its evidence in one typical step and highlight all of it."""
        suggestion = self.suggestion(index)
        self.current_suggestion = index if suggestion else -1
        if suggestion is not None and self.analysis is not None:
            ids = evidence.slices_of(suggestion)
            if ids and not suggestion.is_about_recording:
                self.show_slices(ids, evidence.lead_of(self.trace, self.analysis.figures, suggestion))
            else:
                self.highlight(())
        self.suggestionChanged.emit()

    def step_suggestion(self, offset: int) -> None:
        """Show the next (+1) or previous (-1) open suggestion, around the ends."""
        order = self._open_ones() or self._steppable()
        if not order:
            return
        if self.current_suggestion in order:
            at = (order.index(self.current_suggestion) + offset) % len(order)
        else:
            later = [k for k, i in enumerate(order) if i > self.current_suggestion]
            at = (later[0] if later else 0) if offset > 0 else (later[0] - 1 if later else len(order) - 1)
        self.show_suggestion(order[at])

    def _open_ones(self) -> list[int]:
        found = self.analysis.suggestions if self.analysis else ()
        over = (DONE, LATER, CHOSEN, *SET_ASIDE)
        return [i for i in self._steppable() if self.suggestion_state.get(found[i].key) not in over]

    def _steppable(self) -> list[int]:
        """Suggestions to walk through: no notes, and small ones only when they were asked for."""
        if self.analysis is None:
            return []
        if self.small_shown:
            return [i for i, s in enumerate(self.analysis.suggestions) if not s.informational]
        return list(self.analysis.headlined()) or list(range(len(self.analysis.suggestions)))

    def set_suggestion_state(self, index: int, state: str, reason: str = "") -> None:
        """Mark a suggestion as done, dismissed, for later or chosen; "" takes the mark away."""
        suggestion = self.suggestion(index)
        if suggestion is None:
            return
        if state:
            self.suggestion_state[suggestion.key] = state
        else:
            self.suggestion_state.pop(suggestion.key, None)
        if reason:
            self.dismiss_reason[suggestion.key] = reason
        else:
            self.dismiss_reason.pop(suggestion.key, None)
        if state in (LATER, *SET_ASIDE) and index == self.current_suggestion:
            others = self._open_ones()
            if others:  # what is put off or aside makes room for the next one
                self.show_suggestion(next((i for i in others if i > index), others[0]))
                return
            if state in SET_ASIDE:  # it is no part of the plan any more
                self.current_suggestion = -1
        self.suggestionChanged.emit()

    def set_marks(self, marks: list[Mark]) -> None:
        """Replace the user's marks."""
        self.marks = marks
        self.marksChanged.emit()

    def show_typical_step(self) -> None:
        """Start on one typical step, not on the whole trace, when there are steps."""
        if self.analysis is None:
            return
        window = evidence.typical_step(self.analysis.figures)
        if window:
            self.zoom_to(*window, remember=False)


@dataclass(frozen=True)
class Recent:
    """An entry of the recent files."""

    path: Path
    opened_at: float


class Session(QObject):
    """All documents, the runs, and what the window shows."""

    documentsChanged = Signal()
    currentChanged = Signal()
    runChanged = Signal()
    statusChanged = Signal()
    themeChanged = Signal()
    textSizeChanged = Signal()
    recentChanged = Signal()
    servicesChanged = Signal()  # something provided by a part of the app became available
    openRequested = Signal(object, object)  # list[Path], run folder or None
    openingEnded = Signal(str)  # a path, as text: it is open, could not be opened, or was called off
    pageRequested = Signal(str)  # show a page of the window by panel id
    panelRequested = Signal(str)  # bring a panel of the current document to the front
    errorRaised = Signal(object)  # TraceError, ProfilingError, or any exception

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.documents: list[Document] = []
        self.current: Document | None = None
        self.dark = True
        self.text_scale = 1.0  # of all texts, and of what must grow with them
        self.recent: list[Recent] = []
        self.status = ""
        self._services: dict[str, Callable[..., Any]] = {}

    def open(self, paths: list[Path], run_folder: Path | None = None) -> None:
        """Ask for traces to be opened (off the GUI thread, each in a tab of its own)."""
        self.openRequested.emit(paths, run_folder)

    def add_document(self, document: Document, at: int | None = None, *, front: bool = True) -> None:
        """Add an opened trace, at a place among the others (None: the last), and make it the current one."""
        document.setParent(self)
        self.documents.insert(len(self.documents) if at is None else at, document)
        self.documentsChanged.emit()
        if front:
            self.set_current(document)

    def set_current(self, document: Document | None) -> None:
        """Show one document (None: the start page, or another page)."""
        if document is not self.current:
            self.current = document
            self.currentChanged.emit()

    def close_document(self, document: Document) -> None:
        """Close a trace; its neighbour becomes the current one."""
        at = self.documents.index(document)
        self.documents.remove(document)
        if document is self.current:
            self.set_current(self.documents[min(at, len(self.documents) - 1)] if self.documents else None)
        self.documentsChanged.emit()
        document.setParent(None)
        document.deleteLater()

    def set_dark(self, dark: bool) -> None:
        """Switch the theme."""
        if dark != self.dark:
            self.dark = dark
            self.themeChanged.emit()

    def set_text_scale(self, scale: float) -> None:
        """Choose how large texts are; 1 is the desktop's size."""
        if scale != self.text_scale:
            self.text_scale = scale
            self.textSizeChanged.emit()

    def set_recent(self, recent: list[Recent]) -> None:
        """Replace the recent files."""
        self.recent = recent
        self.recentChanged.emit()

    def remember(self, path: Path, limit: int) -> None:
        """Put a path on top of the recent files."""
        rest = [r for r in self.recent if r.path != path]
        self.set_recent([Recent(path, time.time()), *rest][:limit])

    def set_status(self, text: str) -> None:
        """Say one thing in the status bar; it leaves after a while, and when another page is shown."""
        self.status = text
        self.statusChanged.emit()

    def raise_error(self, error: BaseException) -> None:
        """Show an error: a banner where the user can act, the crash dialog where it is our bug."""
        self.errorRaised.emit(error)

    # Services: what one part of the app does for another without either knowing the other -------------------

    def provide(self, name: str, handler: Callable[..., Any]) -> None:
        """Offer a service, such as ``apply_fix(document, index)``, ``compare()``, ``report(document, path)``."""
        self._services[name] = handler
        self.servicesChanged.emit()

    def can(self, name: str) -> bool:
        """Somebody provides this service."""
        return name in self._services

    def ask(self, name: str, *args: Any) -> Any:
        """Call a service; nothing happens where nobody provides it."""
        handler = self._services.get(name)
        return handler(*args) if handler else None
