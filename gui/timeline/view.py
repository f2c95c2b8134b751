"""The timeline of one document: step strip, minimap, axis and rows, and everything the hand can do with them.

Keys (Perfetto's meanings where it has one): W S zoom, A D and arrows move, F fits the selection and pressed again the
whole trace, R selects the time of the selected slice, M marks it (Shift+M keeps the mark), comma and period go along
the lane, brackets follow flows, J L go along the sync points, Backspace and Alt+arrows through the views.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QFocusEvent, QGuiApplication, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QScrollBar, QWidget

from core.lanes import LaneIndex
from gui import jobs
from gui.evidence import window_about
from gui.session import Document, Mark, Session, TimeRange
from gui.timeline import navigation, saving
from gui.timeline.axis import Origin
from gui.timeline.axis_bar import AxisBar
from gui.timeline.canvas import Canvas
from gui.timeline.counters import CounterData
from gui.timeline.empty_rows import EmptyRows
from gui.timeline.gestures import Gestures
from gui.timeline.heading_width import Headings
from gui.timeline.keys import Keys
from gui.timeline.layout import Layout
from gui.timeline.menus import row_menu, slice_menu
from gui.timeline.minimap import Minimap
from gui.timeline.motion import Motion
from gui.timeline.offers import offers
from gui.timeline.prepared import prepare
from gui.timeline.revealing import Revealer
from gui.timeline.step_strip import StepStrip
from gui.timeline.tooltip import slice_lines
from gui.timeline.track_filter import TrackFilter

VERY_LOW_PX = 250  # the whole trace gives its place to the rows
LOWEST_PX = 170  # so do the bars of the steps: the rows have a band of them, too
LOW_PX = 400  # of the whole timeline: the rows need the height more than what stands above them


class TimelineView(QWidget):
    """Timeline of a document. Listens to all its signals; calls its intents."""

    def __init__(self, session: Session, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session, self.document = session, document
        prepared = document.prepared or prepare(document.trace, whole=False)
        self.index: LaneIndex = prepared.index
        self.counters: CounterData = prepared.counters
        self.rows: Layout = prepared.layout()
        self.origin = Origin.TRACE
        self.motion = Motion(document, self)
        self._loose_mark: Mark | None = None
        self._fitted: tuple[float, float] | None = None
        self._sync_view, self._usual_ns = (0.0, 0.0), 0.0  # view of the sync point gone to last; width before that
        self.canvas = Canvas(session, document, self.rows, prepared, self)
        self.gestures = Gestures(self)
        self.strip = StepStrip(session, document, self)
        self._left_out: set[QWidget] = set()  # parts that there is no room for now
        self.minimap = Minimap(session, document, self.index, self.counters, self)
        self.axis = AxisBar(self)
        self.gestures.serve(self.strip, self.minimap, self.axis)
        self.headings = Headings(self)
        self.scroll_bar = QScrollBar(Qt.Orientation.Vertical, self)
        self.scroll_bar.setAccessibleName(self.tr("Scroll the rows"))
        self.scroll_bar.valueChanged.connect(self.canvas.set_scroll)
        self.canvas.scrolled.connect(self._sync_scroll_bar)
        self.empty_rows = EmptyRows(self)
        self.filter = TrackFilter(self)
        self._keys = Keys(self)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(0)
        for place, widget in enumerate((self.strip, self.minimap, self.axis, self.canvas)):
            grid.addWidget(widget, place, 0)
        grid.addWidget(self.scroll_bar, 3, 1)
        grid.setRowStretch(3, 1)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Timeline"))
        self.setAccessibleDescription(self.tr("W and S zoom, A and D move, comma and period go from slice to slice."))
        document.layoutChanged.connect(self._layout_changed)
        document.analysisChanged.connect(self._analysis_changed)
        self.revealer = Revealer(self)
        view = document.viewport
        if (view.start_ns, view.end_ns) == (view.first_ns, view.last_ns):  # nobody has chosen another one
            view.fit()
        self._reveals = document.selected_slice >= 0 or bool(document.highlighted)  # when it is first shown
        self._analysis_changed()
        self.empty_rows.settle()

    def showEvent(self, event: QShowEvent) -> None:
        if self._reveals:  # chosen before there was a view that could have brought it into view
            self._reveals = False
            QTimer.singleShot(0, self.revealer, self.revealer.first)

    def resizeEvent(self, event: QResizeEvent) -> None:
        low = event.size().height() < self.canvas.outer(LOW_PX)
        self.strip.set_low(low)
        self.minimap.set_low(low)
        for part, least_px in ((self.minimap, VERY_LOW_PX), (self.strip, LOWEST_PX)):
            fits = event.size().height() >= self.canvas.outer(least_px)
            if fits and part in self._left_out:
                self._left_out.remove(part)
                part.show()
            elif not fits and part.isVisibleTo(self):  # what somebody else has hidden stays so
                self._left_out.add(part)
                part.hide()

    # Layout of the rows --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What the user made of rows and axis, as plain values for JSON."""
        return {**self.rows.state(), "origin": self.origin.value, "by_name": self.canvas.by_name,
                "legend": self.canvas.show_legend, "filter": self.rows.filter_text,
                "headings": self.headings.chosen_px}  # fmt: skip

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take over a state; whatever does not fit is left out."""
        if not isinstance(state, dict):
            return
        self.rows.restore(state)
        if state.get("origin") in [o.value for o in Origin]:  # a list: what is no text cannot be looked up in a set
            self.origin = Origin(state["origin"])
        self.canvas.show_legend = state.get("legend") is True
        self.headings.restore(state.get("headings"))
        if isinstance(state.get("filter"), str):
            self.filter.show_text(state["filter"])
        if (state.get("by_name") is True) != self.canvas.by_name:
            self.canvas.set_by_name(not self.canvas.by_name)
        self._layout_changed()

    def _analysis_changed(self) -> None:
        """Inferred steps give a band to a trace without marked ones."""
        analysis, steps = self.document.analysis, self.rows.by_key["steps"]
        count = len(analysis.figures.steps) if analysis else len(self.document.trace.steps)
        if steps.empty != (count == 0):
            steps.empty = count == 0
            self.rows.place()
            self._layout_changed()

    def _layout_changed(self) -> None:
        self.canvas.set_scroll(self.canvas.scroll_px)
        self.canvas.update()

    def _sync_scroll_bar(self, value_px: int) -> None:
        self.scroll_bar.blockSignals(True)
        self.scroll_bar.setRange(0, self.canvas.max_scroll_px())
        self.scroll_bar.setPageStep(max(self.canvas.high() - self.rows.pinned_px, 1))
        self.scroll_bar.setSingleStep(40)
        self.scroll_bar.setValue(value_px)
        self.scroll_bar.blockSignals(False)

    def toggle(self, key: str, expanded: bool | None = None) -> None:
        """Expand or collapse a row or group."""
        self.rows.toggle(key, expanded)
        self.document.layoutChanged.emit()

    def set_filter(self, text: str) -> None:
        """Show only the rows whose name or group holds a text."""
        self.rows.set_filter(text)
        self.document.layoutChanged.emit()

    def reveal_track(self, track_id: int) -> None:
        """Bring a track's row into view, opening its group."""
        row = self.rows.row_of_track(track_id)
        first = int(self.document.trace.tracks.first_id[track_id])
        if row is not None and first < int(self.document.trace.tracks.end_id[track_id]):
            row.pinned = row.pinned or False
            self.reveal(first)

    def reveal(self, slice_id: int) -> None:
        """Make the row and the lane of a slice visible, scrolling as little as needed."""
        self.revealer.reveal(slice_id)

    # Going places --------------------------------------------------------------------------------------------

    def zoom_to_slice(self, slice_id: int) -> None:
        """Zoom so that a slice fills a good part of the view."""
        self.motion.release()
        self.document.zoom_to(*window_about(self.document.trace, (slice_id,)))

    def go_to(self, slice_id: int) -> None:
        """Select a slice and bring it into view: moves only, unless it would be too narrow or too wide to read."""
        if not 0 <= slice_id < len(self.document.trace.slices):
            return
        trace, view = self.document.trace, self.document.viewport
        start, dur = int(trace.slices.start_ns[slice_id]), int(trace.slices.dur_ns[slice_id])
        share = dur / view.width_ns * self.canvas.frame().lanes_px
        if share < 1 or dur > 4 * view.width_ns:
            self.document.zoom_to(*window_about(trace, (slice_id,)))
        elif start < view.start_ns or start + dur > view.end_ns:
            middle = start + dur / 2
            self.document.zoom_to(middle - view.width_ns / 2, middle + view.width_ns / 2)
        self.document.select(slice_id)

    def fit(self) -> None:
        """Fit range or slice; the second time, or without a selection, the whole trace."""
        view, chosen = self.document.viewport, self.document.selected_range
        target: tuple[float, float] | None = None
        if chosen is not None:
            margin = (chosen.end_ns - chosen.start_ns) * 0.05
            target = (chosen.start_ns - margin, chosen.end_ns + margin)
        elif self.document.selected_slice >= 0:
            target = window_about(self.document.trace, (self.document.selected_slice,))
        here = (view.start_ns, view.end_ns)
        if target is None or here == self._fitted:
            self._fitted = None
            view.fit(remember=True)
            self.document.viewChanged.emit()
            return
        self.document.zoom_to(*target)
        self._fitted = (view.start_ns, view.end_ns)

    def select_area(self) -> None:
        """Select the time of the selected slice (without one: of the view)."""
        chosen, view = self.document.selected_slice, self.document.viewport
        if chosen >= 0:
            start = int(self.document.trace.slices.start_ns[chosen])
            self.document.select_range(TimeRange(start, max(int(self.document.trace.end_ns[chosen]), start + 1)))
        else:
            self.document.select_range(TimeRange(round(view.start_ns), round(view.end_ns)))

    def mark(self, keep: bool) -> None:
        """Mark range, slice or the pointer's time; an unkept mark is replaced by the next."""
        chosen, selected = self.document.selected_range, self.document.selected_slice
        if chosen is not None:
            mark = Mark(chosen.start_ns, chosen.end_ns)
        elif selected >= 0:
            start = int(self.document.trace.slices.start_ns[selected])
            mark = Mark(start, int(self.document.trace.end_ns[selected]))
        else:
            time = round(self.anchor_ns())
            mark = Mark(time, time)
        rest = [m for m in self.document.marks if m is not self._loose_mark]
        self._loose_mark = None if keep else mark
        self.document.set_marks([*rest, mark])

    def neighbour(self, offset: int) -> None:
        """Go to the next or previous slice on the lane of the selected one."""
        selected = self.document.selected_slice
        if selected >= 0:
            self.go_to(self.index.lane_of(selected).neighbour(selected, offset))

    def follow(self, forward: bool) -> None:
        """Go along a flow: from a launch to its work and back, from forward to backward."""
        self.go_to(navigation.follow(self.document.trace, self.document.selected_slice, forward))

    def go_to_sync(self, offset: int) -> None:
        """Go to the next or previous sync point."""
        if self.document.analysis is None:
            return
        figures, view = self.document.analysis.figures, self.document.viewport
        middle = (view.start_ns + view.end_ns) / 2
        sync = navigation.next_sync(figures, middle, self.document.selected_slice, offset)
        if sync < 0:
            return
        call = int(figures.syncs.slice_id[sync])
        start, end = float(self.document.trace.slices.start_ns[call]), float(self.document.trace.end_ns[call])
        shown = (view.start_ns, view.end_ns)
        usual_ns = self._usual_ns if shown == self._sync_view else view.width_ns
        target = navigation.with_context(start, end, shown, self.canvas.frame().lanes_px, usual_ns)
        if target != shown:
            self.document.zoom_to(*target)
        self._usual_ns, self._sync_view = usual_ns, (view.start_ns, view.end_ns)
        self.document.select(call)
        self.revealer.reveal_both(call)

    def back(self) -> None:
        """Return to the view before."""
        self.motion.release()
        if self.document.viewport.back():
            self.document.viewChanged.emit()

    def forward(self) -> None:
        """Undo `back`."""
        if self.document.viewport.forward():
            self.document.viewChanged.emit()

    def clear(self) -> None:
        """Clear range, selection and highlights, the innermost first."""
        if self.document.selected_range is not None:
            self.document.select_range(None)
        elif self.document.selected_slice >= 0:
            self.document.select(-1)
        else:
            self.document.highlight(())

    def anchor_ns(self) -> float:
        """Time about which keys zoom: under the pointer while it is over the lanes, else the middle."""
        frame, pointer = self.canvas.frame(), self.canvas.pointer
        if pointer is not None and pointer.x() > frame.left_px:
            return frame.time_at(pointer.x())
        return (frame.start_ns + frame.end_ns) / 2

    # Looks ---------------------------------------------------------------------------------------------------

    def set_origin(self, origin: Origin) -> None:
        """Choose what the axis counts from."""
        self.origin = origin
        self.axis.update()

    def origin_ns(self) -> float:
        """Time that the axis calls 0."""
        if self.origin is Origin.SELECTION:
            if self.document.selected_range is not None:
                return float(self.document.selected_range.start_ns)
            if self.document.selected_slice >= 0:
                return float(self.document.trace.slices.start_ns[self.document.selected_slice])
        if self.origin is not Origin.TRACE:
            view, analysis = self.document.viewport, self.document.analysis
            figures = analysis.figures if analysis else None
            step = navigation.step_at(figures, self.document.trace, (view.start_ns + view.end_ns) / 2)
            steps = figures.steps if figures is not None else self.document.trace.steps
            if step >= 0:
                return float(steps.start_ns[step])
        return 0.0

    def copy_text(self) -> None:
        """Copy what is known of the selected slice as text, its arguments with it (read again off the GUI thread)."""
        selected, document = self.document.selected_slice, self.document
        if not 0 <= selected < len(document.trace.slices):
            return
        figures = document.analysis.figures if document.analysis else None
        known = [document.trace.name(selected), *slice_lines(document.trace, figures, selected)[1:]]
        jobs.run(
            document,
            partial(saving.arguments_text, document.trace, selected),
            lambda more: QGuiApplication.clipboard().setText("\n".join([*known, *more])),
            self.session.raise_error,
            key="copy",
        )

    def toggle_legend(self) -> None:
        """Show or hide what the colours mean."""
        self.canvas.show_legend = not self.canvas.show_legend
        self.canvas.update()

    def toggle_colours(self) -> None:
        """Colour by name instead of by kind, or back."""
        self.canvas.set_by_name(not self.canvas.by_name)

    def toggle_all_flows(self) -> None:
        """Draw the flows of everything below the selected slice too."""
        self.canvas.all_flows = not self.canvas.all_flows
        self.canvas.update()

    def offers(self) -> list[tuple[str, str, Callable[[], object]]]:
        """What the timeline can do, for the command palette: title, keys, and how."""
        return offers(self)

    def show_menu(self, position: QPointF, place: QPoint) -> None:
        """Context menu of a row or a slice."""
        self.canvas.hush()
        frame = self.canvas.frame()
        row = self.canvas.row_at(position.y())
        if position.x() < frame.left_px:
            menu = row_menu(self, row)
        else:
            menu = slice_menu(self, self.canvas.slice_at(position), frame.time_at(position.x()))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    # Qt ------------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._keys.wants(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self.canvas.hush()
        if not self._keys.pressed(event):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if not self._keys.released(event):
            super().keyReleaseEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.axis.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.motion.release()
        self.axis.update()
        super().focusOutEvent(event)
