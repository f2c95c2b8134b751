"""The one mutable state of the app: panels and overlays listen to it, call its intents, and never hold each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from core.analysis import Analysis
from core.trace import Trace
from gui.timeline.viewport import Viewport


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
    highlightChanged = Signal()  # evidence, search hits
    analysisChanged = Signal()  # figures, suggestions, plan arrived
    suggestionChanged = Signal()  # current suggestion or its state (done, dismissed, later)
    marksChanged = Signal()
    layoutChanged = Signal()  # tracks expanded, hidden, pinned, reordered, filtered
    hoverChanged = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.trace = trace
        self.analysis: Analysis | None = None
        self.viewport = Viewport(*trace.span_ns)
        self.selected_slice = -1
        self.selected_range: TimeRange | None = None
        self.highlighted: tuple[int, ...] = ()
        self.current_suggestion = -1
        self.suggestion_state: dict[str, str] = {}  # Suggestion.key -> "done" | "dismissed" | "later"
        self.marks: list[Mark] = []
        self.run_folder: Path | None = None

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

    def set_analysis(self, analysis: Analysis) -> None:
        """Take over figures and suggestions (may come in several instalments)."""
        self.analysis = analysis
        self.analysisChanged.emit()

    def show_suggestion(self, index: int) -> None:
        """Make one suggestion the current one and bring its evidence into view."""
        self.current_suggestion = index
        self.suggestionChanged.emit()


@dataclass
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

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.documents: list[Document] = []
        self.current: Document | None = None
        self.dark = True
        self.recent: list[Recent] = field(default_factory=list)  # type: ignore[assignment]
