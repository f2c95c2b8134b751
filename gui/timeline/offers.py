"""What the timeline can do, by name: for the command palette. Its keys are in `gui.timeline.keys`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication

from gui.timeline import menus, saving
from gui.timeline.export import image_of

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView


HEADINGS_PX = 32  # wider or narrower at once


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def offers(view: TimelineView) -> list[tuple[str, str, Callable[[], object]]]:
    """Title, keys (as `QKeySequence` reads them, "" for none), and what it does."""
    document = view.document
    part = _tr("Save the selected part of the trace…") if document.selected_range else _tr("Save the part in view…")
    return [
        (_tr("Fit the selection"), "F", view.fit),
        (_tr("Select the time of the selected slice"), "R", view.select_area),
        (_tr("Mark the selection"), "M", lambda: view.mark(keep=False)),
        (_tr("Mark the selection and keep the mark"), "Shift+M", lambda: view.mark(keep=True)),
        (_tr("Remove all marks"), "", lambda: document.set_marks([])),
        (_tr("Previous slice on the row"), ",", lambda: view.neighbour(-1)),
        (_tr("Next slice on the row"), ".", lambda: view.neighbour(1)),
        (_tr("Follow the arrow forward"), "]", lambda: view.follow(forward=True)),
        (_tr("Follow the arrow back"), "[", lambda: view.follow(forward=False)),
        (_tr("Previous sync point"), "J", lambda: view.go_to_sync(-1)),
        (_tr("Next sync point"), "L", lambda: view.go_to_sync(1)),
        (_tr("Back to the view before"), "Backspace", view.back),
        (_tr("Forward to the view after"), "Alt+Right", view.forward),
        (_tr("Clear the selection"), "Esc", view.clear),
        (_tr("Show or hide the legend"), "K", view.toggle_legend),
        (_tr("Colour by name, or by kind"), "C", view.toggle_colours),
        (_tr("Arrows of all below the selection"), "G", view.toggle_all_flows),
        (_tr("Filter tracks by text…"), "Shift+T", view.filter.open),
        (_tr("Hide tracks without a slice in view"), "H", view.empty_rows.toggle),
        (_tr("Expand all groups"), "", partial(menus.arrange, view, expanded=True)),
        (_tr("Collapse all groups"), "", partial(menus.arrange, view, expanded=False)),
        (_tr("Wider headings"), "", partial(view.headings.widen, HEADINGS_PX)),
        (_tr("Narrower headings"), "", partial(view.headings.widen, -HEADINGS_PX)),
        (_tr("Headings as wide as suits the window"), "", partial(view.headings.set_width, 0)),
        (_tr("Default arrangement"), "", partial(menus.arrange, view)),
        (_tr("Copy all about the selected slice as text"), "Ctrl+C", view.copy_text),
        (_tr("Copy a picture of the timeline"), "", lambda: QGuiApplication.clipboard().setImage(image_of(view))),
        (_tr("Save a picture of the timeline…"), "", lambda: saving.picture(view, vectors=False)),
        (_tr("Save the timeline as SVG…"), "", lambda: saving.picture(view, vectors=True)),
        (part, "", lambda: saving.trimmed_trace(view)),
    ]
