"""What a dialog belongs to that no page opens."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from gui.session import Session


def window_of(session: Session) -> QWidget | None:
    """The window of a session.

    A dialog without one holds nobody up: it can lie behind the window, and what waits for its end waits unseen.
    """
    window = session.parent()
    return window if isinstance(window, QWidget) else None
