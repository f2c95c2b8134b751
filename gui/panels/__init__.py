"""Panels: one file each, listed here in display order.

A panel's module has ``PANEL = PanelSpec(...)``. ``create(session, document)`` gets the `Session`, and the `Document`
whose panel it is (None for a page of the whole app); it listens to their signals and calls their intents. Panels
never import one another. A module that is listed but absent is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.session import Document, Session

    Create = Callable[[Session, Document | None], QWidget]


@dataclass(frozen=True)
class PanelSpec:
    """Declaration of one panel.

    ``area`` is where it goes: ``bottom`` is a tab under the timeline of a document, ``side`` the right side,
    ``band`` the line on top of a document, ``page`` a tab of its own in the window (one for the whole app).
    ``title`` and ``tip``, which says what is in it, are English and translated in the context "panels".
    """

    id: str
    title: str
    area: str
    create: Create
    shortcut: str = ""
    tip: str = ""


PANELS = (
    "start",
    "launch",
    "runs",
    "iterations",
    "compare",
    "tour",
    "ended",
    "verdict",
    "plan",
    "details",
    "selection",
    "operators",
    "kernels",
    "ranges",
    "modules",
    "python",
    "flame",
    "syncs",
    "memory",
    "import_report",
    "rules",
    "output",
)


def exists(name: str) -> bool:
    """The panel's module is there (nothing is imported)."""
    return importlib.util.find_spec(f"{__name__}.{name}") is not None


def load(name: str) -> PanelSpec | None:
    """Return the spec of one panel, None when its module is not there."""
    if not exists(name):
        return None
    spec = importlib.import_module(f"{__name__}.{name}").PANEL
    assert isinstance(spec, PanelSpec)
    return spec


def of_area(area: str) -> list[PanelSpec]:
    """All panels of one area, in display order."""
    return [spec for spec in map(load, PANELS) if spec is not None and spec.area == area]
