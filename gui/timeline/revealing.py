"""Brings slices into view: opens what hides them, scrolls as little as needed, folds back what a search passed by.

A slice that waits for the device, or launches work there, is shown together with that work: what stands between them
gives up lanes, Python stacks are folded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QTimer

from gui.timeline import navigation, pairing
from gui.timeline.row import Row
from gui.timeline.tooltip import slice_lines

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

_State = tuple[bool, bool, int]  # hidden, expanded, first lane


def _state(row: Row) -> _State:
    return row.hidden, row.expanded, row.first_lane


@dataclass(frozen=True)
class _Opened:
    """A row as it was before a hit opened it, and as the hit left it."""

    row: Row
    before: _State
    after: _State


class Revealer(QObject):
    """Follows highlights and selection of the document of a view."""

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._view, self._document, self._rows = view, view.document, view.rows
        self._opened: list[_Opened] = []  # by the present hit of the search
        self._both = -1  # slice that was revealed with its device work
        self._alone = -1  # one that was revealed last without
        self._left_px, self._kept = -1, False  # how far the rows were scrolled then; nobody has scrolled them since
        self._again = QTimer(self, singleShot=True, interval=0)
        self._again.timeout.connect(self._fitted)
        view.canvas.fitted.connect(self._rows_fitted)
        document = view.document
        document.highlightChanged.connect(self._highlight)
        document.selectionChanged.connect(self._selection)
        document.searchChanged.connect(self._search_moved)

    def first(self) -> None:
        """Reveal what was chosen before there was a view."""
        self._highlight()
        self._selection()

    def reveal(self, slice_id: int) -> None:
        """Make the row and the lane of a slice visible, scrolling as little as needed."""
        row, canvas = self._rows.reveal(slice_id), self._view.canvas
        if row is None:
            return
        self._document.layoutChanged.emit()
        if row.pinned:
            return
        frame = canvas.frame()
        place = frame.place_of(slice_id)
        top = place[1] if place is not None else frame.row_y(row)
        if top < self._rows.pinned_px:
            canvas.set_scroll(canvas.scroll_px + top - self._rows.pinned_px - 8)
        elif top + 20 > canvas.high():
            canvas.set_scroll(canvas.scroll_px + top + 40 - canvas.high())
        self._alone, self._left_px = slice_id, canvas.scroll_px

    def reveal_both(self, slice_id: int, anew: bool = False) -> None:
        """Make a slice visible together with the device work that it waits for or launches, where there is the room.

        Nothing moves where all are in view; ``anew`` looks for a better place all the same, as the room has changed.
        """
        document, canvas = self._document, self._view.canvas
        figures = document.analysis.figures if document.analysis else None
        call, work = navigation.waiting(figures, document.trace, slice_id)
        launch = int(document.trace.links.launch_of[slice_id])
        if launch >= 0:  # work of a device: with the call that launched it
            call, work = launch, slice_id
        apart = call >= 0 and self._rows.row_of(call) is not self._rows.row_of(slice_id)  # a range around the call
        if not anew and min(call, work) >= 0 and all(self._is_in_view(i) for i in (slice_id, call, work)):
            self._both, self._left_px = slice_id, canvas.scroll_px
            return
        self.reveal(slice_id)
        if launch < 0 and not navigation.is_of_host(document.trace, slice_id):
            return
        version = self._rows.version
        upper = (call,) if launch >= 0 else (call, slice_id) if apart else (slice_id, call)
        scroll = pairing.show_both(self._rows, canvas.scroll_px, canvas.high(), upper, work)
        canvas.set_scroll(scroll)
        if self._rows.version != version:
            document.layoutChanged.emit()
        self._both, self._left_px = slice_id, canvas.scroll_px

    def _is_in_view(self, slice_id: int) -> bool:
        """Whether the whole lane of a slice is between the upper and the lower edge of the rows."""
        frame, canvas = self._view.canvas.frame(), self._view.canvas
        place = frame.place_of(slice_id)
        return place is not None and self._rows.pinned_px <= place[1] <= canvas.high() - frame.slice_px

    def _rows_fitted(self, scrolled_px: int) -> None:
        """The rows suit another height now: what stood together still does, unless it was scrolled away."""
        self._kept = self._kept or scrolled_px == self._left_px
        self._again.start()

    def _fitted(self) -> None:
        selected = self._document.selected_slice
        if self._kept and selected >= 0:
            if selected == self._both:
                self.reveal_both(selected, anew=True)
            elif selected == self._alone:  # a hit of the search: the lanes of its row were those of the view before
                self.reveal(selected)
        self._kept = False

    def _highlight(self) -> None:
        chosen = self._document.highlighted
        if not chosen and self._rows.bring_back():
            self._document.layoutChanged.emit()
        if chosen and 0 <= chosen[0] < len(self._document.trace.slices):
            selected = self._document.selected_slice  # asked for once more, it is the one to be seen
            self.reveal_both(selected if selected in chosen else self._first_in_view(chosen))

    def _first_in_view(self, ids: tuple[int, ...]) -> int:
        """Return the first slice whose start is in view, else the first."""
        at = np.asarray(ids, np.int64)
        at = at[(at >= 0) & (at < len(self._document.trace.slices))]
        start, view = self._document.trace.slices.start_ns[at], self._document.viewport
        inside = at[(start >= view.start_ns) & (start < view.end_ns)]
        return int(inside[0]) if len(inside) else ids[0]

    def _selection(self) -> None:
        selected, trace = self._document.selected_slice, self._document.trace
        if not 0 <= selected < len(trace.slices):
            return
        rows = self._of(selected)
        self._fold_back(rows)
        before = [(row, _state(row)) for row in rows]
        if selected in self._document.highlighted:
            self.reveal_both(selected)
        else:
            self.reveal(selected)
        if selected == self._document.current_hit:
            kept = {opened.row.key for opened in self._opened}
            changed = [(row, state) for row, state in before if state != _state(row) and row.key not in kept]
            self._opened += [_Opened(row, state, _state(row)) for row, state in changed]
        else:
            self._opened.clear()  # chosen by hand: it stays
        figures = self._document.analysis.figures if self._document.analysis else None
        self._view.canvas.setAccessibleDescription(", ".join(slice_lines(trace, figures, selected)))

    def _of(self, slice_id: int) -> list[Row]:
        """Row of a slice and the heading of its group."""
        row = self._rows.row_of_track(int(self._document.trace.slices.track_id[slice_id]))
        group = self._rows.by_key.get(row.group) if row is not None else None
        return [one for one in (row, group) if one is not None]

    def _search_moved(self) -> None:
        """A search that has ended leaves open only what the selected slice needs."""
        if self._document.current_hit < 0:
            selected = self._document.selected_slice
            self._fold_back(self._of(selected) if selected >= 0 else [])
            self._opened.clear()

    def _fold_back(self, needed: list[Row]) -> None:
        """Put the rows that the last hit opened back as they were, those aside that are needed or were changed."""
        left = [opened for opened in self._opened if opened.row in needed]
        passed = [opened for opened in self._opened if opened.row not in needed]
        for opened in passed:
            if _state(opened.row) == opened.after:
                opened.row.hidden, opened.row.expanded, opened.row.first_lane = opened.before
        self._opened = left
        if passed:
            self._rows.place()
            self._document.layoutChanged.emit()
