"""What is ticked on the plan: one button that applies all of it in one round."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout

from gui.session import CHOSEN, Document, Session
from gui.widgets.labels import button


class TickedRow(QFrame):
    """Hidden while nothing is ticked. ``ticked_at`` gives positions of the suggestions in some states."""

    def __init__(self, session: Session, document: Document, ticked_at: Callable[..., list[int]]) -> None:
        super().__init__()
        self._session, self._document, self._ticked_at = session, document, ticked_at
        self.apply = button("", self._apply, "primary")
        self.clear = button(self.tr("Clear"), self._clear, "flat", self.tr("Take all ticks away"))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 10, 2)
        row.addWidget(self.apply, 1)
        row.addWidget(self.clear)

    def show_count(self) -> None:
        """Say how many are ticked."""
        count = len(self._ticked_at(CHOSEN))
        self.setVisible(bool(count))
        self.apply.setText(
            self.tr("Apply what is ticked, re-run…")
            if count == 1
            else self.tr("Apply the {count} ticked in one round…").format(count=count)
        )

    def _apply(self) -> None:
        self._session.ask("apply_fixes", self._document, *self._ticked_at(CHOSEN))

    def _clear(self) -> None:
        for index in self._ticked_at(CHOSEN):
            self._document.set_suggestion_state(index, "")
