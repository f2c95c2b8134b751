"""Context menus of rows and slices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from gui.session import Mark, TimeRange
from gui.timeline import saving
from gui.timeline.export import image_of
from gui.timeline.row import Row, RowKind

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def row_menu(view: TimelineView, row: Row | None) -> QMenu:
    """Menu of a row's heading."""
    menu = QMenu(view)
    rows, changed = view.rows, view.document.layoutChanged.emit

    def act(change: object, *args: object) -> None:
        change(*args)  # type: ignore[operator]
        changed()

    if row is not None:
        if row.can_collapse:
            words = _tr("Collapse") if row.expanded else _tr("Expand")
            menu.addAction(words, lambda: view.toggle(row.key))
        if row.kind is not RowKind.GROUP:
            words = _tr("Unpin") if row.pinned else _tr("Pin to the top")
            menu.addAction(words, lambda: act(rows.set_pinned, row.key, not row.pinned))
        menu.addAction(_tr("Hide"), lambda: act(rows.set_hidden, row.key, True))
        if row.kind is RowKind.SLICES and row.lanes > row.shown_lanes and row.expanded:
            menu.addAction(_tr("Show all lanes"), lambda: act(rows.resize, row.key, row.lanes * rows.lane_px + 6))
        menu.addSeparator()
    hidden = [r for r in rows.rows if r.hidden or r.key in rows.aside]
    show = menu.addAction(_tr("Show hidden rows ({count})").format(count=len(hidden)), lambda: act(rows.show_all))
    show.setEnabled(bool(hidden))
    menu.addAction(_tr("Filter tracks by text…") + "\tShift+T", view.filter.open)
    empty = menu.addAction(_tr("Hide tracks without a slice in view") + "\tH", view.empty_rows.toggle)
    empty.setCheckable(True)
    empty.setChecked(rows.hides_empty)
    for words, expanded in ((_tr("Expand all groups"), True), (_tr("Collapse all groups"), False)):
        menu.addAction(words, partial(arrange, view, expanded=expanded))
    menu.addAction(_tr("Default arrangement"), partial(arrange, view))
    return menu


def arrange(view: TimelineView, *, expanded: bool | None = None) -> None:
    """Open or close all groups; None puts all rows back as they were at first."""
    if expanded is None:
        _reset(view)
    else:
        for row in view.rows.rows:
            if row.kind is RowKind.GROUP:
                row.expanded = expanded
        view.rows.place()
    view.document.layoutChanged.emit()


def _reset(view: TimelineView) -> None:
    view.rows.filter_text = ""
    for row in view.rows.rows:
        row.expanded, row.pinned, row.hidden = row.default_expanded, row.default_pinned, False
        row.max_lanes, row.height_px, row.first_lane = row.default_lanes, row.default_height_px, 0
    view.rows.restore({"version": 1, "order": view.rows.default_order})


def slice_menu(view: TimelineView, slice_id: int, time_ns: float) -> QMenu:
    """Menu of a slice, or of a place without one."""
    menu = QMenu(view)
    document = view.document
    if slice_id >= 0:
        trace = document.trace
        document.select(slice_id)
        menu.addAction(_tr("Zoom to it"), lambda: view.zoom_to_slice(slice_id))
        start, end = int(trace.slices.start_ns[slice_id]), int(trace.end_ns[slice_id])
        menu.addAction(_tr("Select its time"), lambda: document.select_range(TimeRange(start, max(end, start + 1))))
        menu.addAction(_tr("Copy its name"), lambda: QGuiApplication.clipboard().setText(trace.name(slice_id)))
        menu.addAction(_tr("Copy all about it as text") + "\tCtrl+C", view.copy_text)
        menu.addAction(_tr("Follow its arrow"), lambda: view.follow(forward=True))
        menu.addAction(_tr("Back along its arrow"), lambda: view.follow(forward=False))
        menu.addSeparator()
    here = round(time_ns)
    menu.addAction(_tr("Mark this time"), lambda: document.set_marks([*document.marks, Mark(here, here)]))
    clear = menu.addAction(_tr("Remove all marks"), lambda: document.set_marks([]))
    clear.setEnabled(bool(document.marks))
    menu.addSeparator()
    for words, checked, toggle in (
        (_tr("Legend"), view.canvas.show_legend, view.toggle_legend),
        (_tr("Colour by name"), view.canvas.by_name, view.toggle_colours),
        (_tr("Arrows of all below the selection"), view.canvas.all_flows, view.toggle_all_flows),
    ):
        action = menu.addAction(words, toggle)
        action.setCheckable(True)
        action.setChecked(checked)
    menu.addSeparator()
    menu.addAction(_tr("Copy a picture of the timeline"), lambda: QGuiApplication.clipboard().setImage(image_of(view)))
    menu.addAction(_tr("Save a picture…"), lambda: saving.picture(view, vectors=False))
    menu.addAction(_tr("Save as SVG…"), lambda: saving.picture(view, vectors=True))
    what = _tr("Save the selected part of the trace…") if document.selected_range else _tr("Save the part in view…")
    menu.addAction(what, lambda: saving.trimmed_trace(view))
    return menu
