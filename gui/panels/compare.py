"""Two opened traces side by side: step times, timelines aligned by a step, tables of differences, suggestions."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSplitter, QTabWidget, QVBoxLayout, QWidget

from core.compare import Comparison, compare
from core.device_words import USUAL, devices_word
from core.run_folder import run_of
from core.same_program import is_same_program
from gui import compare_tables, compare_words, jobs, text
from gui.compare_side import SideTitle
from gui.linked_views import Link, make_low
from gui.models.columns import ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.calm import CalmCombo
from gui.widgets.empty import EmptyState
from gui.widgets.figure_grid import FigureGrid
from gui.widgets.labels import button, heading, label, named, restyle
from gui.widgets.scrolled import scrolled
from gui.widgets.table import TableBox

TABS_PX, ROWS_PX = 420, 110  # of timelines and tables, and of the rows of one timeline, at least


class ComparePage(QWidget):
    """Uses ``documentsChanged`` of the session and ``analysisChanged`` of both documents."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._link: Link | None = None
        self._fresh: list[Any] = []  # timelines that have not been fitted to their height
        self._pair: tuple[Document, Document] | None = None
        self._found: Comparison | None = None
        self.before, self.after = CalmCombo(), CalmCombo()
        self.before.give_way()
        self.after.give_way()
        self.before.setAccessibleName(self.tr("Trace before"))
        self.after.setAccessibleName(self.tr("Trace after"))
        row = QHBoxLayout()
        row.addWidget(label(self.tr("Before"), "dim"))
        row.addWidget(self.before, 1)
        row.addWidget(named(button("⇄", self.swap, "flat", self.tr("Swap the two")), self.tr("Swap the two")))
        row.addWidget(label(self.tr("After"), "dim"))
        row.addWidget(self.after, 1)
        self.title = heading("", 4)
        self.words = label("", "dim", wrap=True)
        self.differs = label("", "warn", wrap=True)
        self.differs.hide()
        self.grid = FigureGrid()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.timelines = QSplitter(Qt.Orientation.Vertical)
        self.timelines.setChildrenCollapsible(False)
        # Not what both timelines would like to have: they share what the window leaves, so that both are seen.
        self.tabs.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self.tabs.setMinimumHeight(px(TABS_PX))
        box = scrolled(self, self.tr("Compare"))
        box.setContentsMargins(24, 24, 24, 16)
        box.setSpacing(8)
        said = QHBoxLayout()
        said.setSpacing(16)
        said.addWidget(self.title)
        said.addWidget(self.words, 1)
        box.addLayout(row)
        box.addLayout(said)
        box.addWidget(self.differs)
        box.addWidget(self.grid)
        box.addWidget(self.tabs, 1)
        self._tables = self._make_tabs()
        session.documentsChanged.connect(self.list_documents)
        session.servicesChanged.connect(self._take_pair)
        for combo in (self.before, self.after):
            combo.currentIndexChanged.connect(self.show_pair)
        self.list_documents()
        self._take_pair()

    def _make_tabs(self) -> dict[str, TableBox]:
        self.tabs.addTab(self.timelines, self.tr("Timelines"))
        tables = {}
        for field, title in (
            ("operators", self.tr("Operators")),
            ("kernels", self.tr("Kernels and copies")),
            ("ranges", self.tr("Ranges")),
            ("sync_points", self.tr("Sync points")),
            ("suggestions", self.tr("Suggestions")),
        ):
            opened = self._show_suggestion if field == "suggestions" else partial(self._show_row, field)
            tables[field] = TableBox(ColumnModel([]), opened, name=title)  # a row opens by its number
            tables[field].set_empty(self.tr("Choose two traces that are open."))
            self.tabs.addTab(tables[field], title)
        return tables

    @property
    def pair(self) -> tuple[Document, Document] | None:
        """The two that are compared now, however they were chosen."""
        return self._pair

    @property
    def stretch(self) -> tuple[float, float] | None:
        """What of the trace before is in view, or was when the page was left."""
        return self._link.stretch if self._link is not None else None

    def own_view(self, document: Document) -> tuple[float, float] | None:
        """The view of a document in its own tab, where it differs from its view here; else None."""
        return self._link.own_view(document) if self._link is not None else None

    def restore(self, stretch: tuple[float, float]) -> None:
        """Show the stretch that an earlier session showed."""
        if self._link is not None:
            self._link.restore(stretch)

    # Which two ---------------------------------------------------------------------------------------------------

    def list_documents(self) -> None:
        """Offer the opened traces; keep the choice where it is still there."""
        documents = self._session.documents
        for combo, default in zip((self.before, self.after), self._alike(documents), strict=True):
            chosen = combo.currentData()
            combo.blockSignals(True)
            combo.clear()
            for document in documents:
                combo.addItem(document.title, document)
            at = documents.index(chosen) if chosen in documents else default
            combo.setCurrentIndex(at)
            combo.blockSignals(False)
        self.show_pair()

    def _alike(self, documents: list[Document]) -> tuple[int, int]:
        """Which two to begin with: the current one and the newest of the same program before it, -1 for none."""
        runs = [d.run if d.run is not None else run_of(d.trace.path) if d.trace.sources else None for d in documents]
        current = self._session.current
        first = [documents.index(current)] if current in documents else []
        for after in [*first, *(i for i in reversed(range(len(documents))) if i not in first)]:
            for before in [*reversed(range(after)), *range(after + 1, len(documents))]:
                if is_same_program(documents[before].trace, documents[after].trace, (runs[before], runs[after])):
                    return min(before, after), max(before, after)
        return (first or [len(documents) - 1])[0], -1

    def _take_pair(self) -> None:
        """Show the two documents that somebody asked to compare."""
        pair = self._session.ask("compared")
        if pair and pair != self._pair and all(d in self._session.documents for d in pair):
            for combo, document in zip((self.before, self.after), pair, strict=True):
                combo.blockSignals(True)
                combo.setCurrentIndex(self._session.documents.index(document))
                combo.blockSignals(False)
            self.show_pair()

    def swap(self) -> None:
        """Exchange before and after."""
        before, after = self.before.currentIndex(), self.after.currentIndex()
        self.before.setCurrentIndex(after)
        self.after.setCurrentIndex(before)

    def show_pair(self) -> None:
        """Compare the chosen two, off the GUI thread."""
        before, after = self.before.currentData(), self.after.currentData()
        if before is None or after is None or before is after:
            self._pair = None
            several = len(self._session.documents) > 1
            same = several and before is not None and before is after
            words = self.tr("Choose the trace to compare with: no two of those that are open are of the same program.")
            if same:
                words = self.tr("Before and after are one and the same trace: choose another one for one of them.")
            self._clear(words if several else self.tr("Open two traces to compare them."))
            return
        if self._pair != (before, after):
            self._pair, self._found = (before, after), None
            for document in self._pair:
                document.analysisChanged.connect(self._compare, Qt.ConnectionType.UniqueConnection)
            self._show_timelines(before, after)
        self._compare()

    def _clear(self, words: str) -> None:
        self._found = None
        self.differs.hide()
        self.title.setText(self.tr("Compare"))
        self.words.setText(words)
        self._fill_grid([])
        self._show_timelines(None, None)
        self.timelines.addWidget(EmptyState(self.tr("Choose two traces that are open.")))
        for box in self._tables.values():
            box.model.replace([])
            box.refresh()

    def _compare(self) -> None:
        if self._pair is None:
            return
        before, after = self._pair
        if before.analysis is None or after.analysis is None:
            self.title.setText(self.tr("Compare"))
            self.words.setText(self.tr("The figures are being worked out."))
            return
        work = partial(_compare, before, before.analysis, after, after.analysis)
        jobs.run(self, work, self._show, self._session.raise_error, key="compare")

    # What came of it ---------------------------------------------------------------------------------------------

    def _show(self, found: Comparison) -> None:
        if self._pair is None:
            return
        fresh, self._found = self._found is None, found
        self._verdict(found)
        self._fill_grid(self._rows(found))
        for field in ("operators", "kernels", "ranges", "sync_points"):
            box = self._tables[field]
            rows = getattr(found, field)
            box.model.replace(compare_tables.columns(field, rows, found.per_step), range(len(rows)))
            box.say(compare_tables.note(field, found.per_step))
            box.set_empty(self.tr("Neither trace has any."))
            box.refresh()
        box = self._tables["suggestions"]
        box.model.replace(compare_tables.suggestions(found), range(len(found.suggestions)))
        box.say(self.tr("Double-click a row to see it in its trace."))
        box.set_empty(self.tr("Neither trace has a suggestion."))
        box.refresh()
        if self._link is not None and fresh:
            self._link.begin()
        QTimer.singleShot(0, self, self._make_low)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Move both views together from now on."""
        super().showEvent(event)
        if self._link is not None:
            self._link.enter()
        QTimer.singleShot(0, self, self._make_low)  # when the views have their heights

    def _make_low(self) -> None:
        if self._found is None or not self.isVisible():
            return  # the table above them is not there yet
        for view in self._fresh:
            make_low(view)
        self._fresh = []

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Give the documents their own views back."""
        super().hideEvent(event)
        if self._link is not None:
            self._link.leave()

    def _verdict(self, found: Comparison) -> None:
        doubts = compare_words.doubts(found)
        self.differs.setText(doubts)
        self.differs.setVisible(bool(doubts))
        title, role = compare_words.headline(found)
        self.title.setText(title)
        restyle(self.title, "role", role)
        self.words.setText(compare_words.what_changed(found))

    def _rows(self, found: Comparison) -> list[tuple[str, str, str, str]]:
        fields = (
            (self.tr("Sustained step"), "sustained_step_ns", text.duration),
            (self.tr("Host step"), "step_ns", text.duration),
            (self.tr("Device step"), "device_step_ns", text.duration),
            (self.tr("Period"), "period_ns", text.duration),
            (self.tr("{device} busy").format(device=self._device()), "gpu_busy_pct", text.percent),
            (self.tr("Sync points per step"), "sync_points_per_step", text.count),
            (self.tr("Sync wait per step"), "sync_wait_ns_per_step", text.duration),
            (self.tr("Kernels per step"), "kernels_per_step", text.count),
        )
        rows = []
        for name, field, show in fields:
            old, new = getattr(found.before, field), getattr(found.after, field)
            if old is None and new is None:  # of a device that neither has
                continue
            change = ""
            if old is not None and new is not None and field.endswith("_pct"):
                points = round(new - old)
                change = self.tr("{points} points").format(points=f"{points:+d}".replace("-", "−") if points else "0")
            elif old and new is not None:
                change = text.change(100.0 * (new - old) / old)
            rows.append((name, show(old), show(new), change))
        old, new = found.wall_ns
        if old is not None or new is not None:
            change = text.change(100.0 * (new - old) / old) if old and new is not None else ""
            rows.insert(0, (self.tr("Wall, no profiler"), text.duration(old), text.duration(new), change))
        sides = zip(self._pair or (), (found.before, found.after), strict=True)
        bound, now = (text.verdict_of(document.trace, side.verdict) for document, side in sides)
        return [*rows, (self.tr("Verdict"), bound, now, "" if bound != now else self.tr("the same"))]

    def _device(self) -> str:
        """What both call their devices."""
        words = {devices_word(document.trace) for document in self._pair or ()}
        return words.pop() if len(words) == 1 else USUAL

    def _fill_grid(self, rows: list[tuple[str, str, str, str]]) -> None:
        heads = [("", self.tr("before"), self.tr("after"), self.tr("change"))] if rows else []
        self.grid.show_rows([*heads, *rows])

    def _show_row(self, field: str, row: int) -> None:
        """Select what a row stands for in both timelines, and bring it into view."""
        if self._pair is None or self._found is None or self._link is None:
            return
        name = getattr(self._found, field)[row].name
        before, after = (compare_tables.example(document, field, name) for document in self._pair)
        self.tabs.setCurrentWidget(self.timelines)
        self._link.show((before, after))

    def _show_suggestion(self, row: int) -> None:
        """Open the plan of the newer trace that has a suggestion, at that one."""
        if self._pair is None or self._found is None:
            return
        change = self._found.suggestions[row]
        document = self._pair[0 if change.after is None else 1]
        keys = [s.key for s in document.analysis.suggestions] if document.analysis is not None else []
        if change.either.key in keys:
            self._session.set_current(document)
            document.show_suggestion(keys.index(change.either.key))

    def _show_timelines(self, before: Document | None, after: Document | None) -> None:
        if self._link is not None:
            self._link.leave()
            self._link.setParent(None)
            self._link.deleteLater()
            self._link = None
        self._fresh = []
        while self.timelines.count():
            widget = self.timelines.widget(0)
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        if before is None or after is None or importlib.util.find_spec("gui.timeline.view") is None:
            return
        from gui.timeline.view import TimelineView

        own = [(d.viewport.start_ns, d.viewport.end_ns) for d in (before, after)]
        views = []
        for side, document in ((self.tr("Before"), before), (self.tr("After"), after)):
            view = TimelineView(self._session, document)
            for part in (view.strip, view.minimap):  # they show the whole trace; here a step of each is what counts
                part.hide()
            view.canvas.setMinimumHeight(px(ROWS_PX))  # the handle between the two can be moved
            held = QWidget()
            column = QVBoxLayout(held)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(0)
            column.addWidget(SideTitle(side, document))
            column.addWidget(view, 1)
            self.timelines.addWidget(held)
            views.append(view)
        for here, there in (views, views[::-1]):  # a row of one stands beside the same row of the other
            here.scroll_bar.valueChanged.connect(there.scroll_bar.setValue)
        for document, window in zip((before, after), own, strict=True):  # a new view begins with the whole trace
            document.zoom_to(*window, remember=False)
        self._link = Link(before, after, self)
        self._fresh = views
        if self.isVisible():
            self._link.enter()


def _compare(before: Any, before_analysis: Any, after: Any, after_analysis: Any, progress: jobs.Progress) -> Comparison:
    progress(0.0, "")
    sides = (before, after)
    runs = [d.run if d.run is not None else run_of(d.trace.path) if d.trace.sources else None for d in sides]
    return compare(before.trace, before_analysis, after.trace, after_analysis, (runs[0], runs[1]))


def _create(session: Session, _: Document | None) -> QWidget:
    return ComparePage(session)


PANEL = PanelSpec("compare", "Compare", "page", _create)
