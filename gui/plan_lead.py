"""The line above the cards that ties the verdict to them (`core.plan_lead`)."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from core.plan_lead import lead
from gui import text
from gui.session import Document
from gui.widgets.labels import label
from gui.widgets.wrapped_link import WrappedLink


def is_priced(document: Document) -> bool:
    """Whether the plan stands: the diagnosis has ended, or only rules of the user's own are still at work."""
    return not document.analysis_running or (document.analysis is not None and document.analysis.awaits_own_rules)


class LeadLine(QWidget):
    """Which card is about what the verdict names, with a way there; hidden where the first card is."""

    def __init__(self, choose: Callable[[int], object]) -> None:
        super().__init__()
        self._card = -1
        self.words = label("", "", wrap=True)
        self.link = WrappedLink("", lambda: choose(self._card))
        row = QHBoxLayout()
        row.addWidget(self.link)
        row.addStretch(1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.words)
        box.addLayout(row)
        self.hide()

    def show_lead(self, document: Document) -> None:
        """Say it of a document's plan, once that is priced."""
        analysis = document.analysis
        found = lead(analysis) if analysis is not None and is_priced(document) else None
        self.setVisible(found is not None)
        if found is not None:
            self._card = found.card
            self.words.setText(text.filled(found.template, found.values))
            self.link.setVisible(found.card >= 0)
            if analysis is not None and found.card >= 0:
                about = analysis.suggestions[found.card]
                self.link.set_words(text.filled(about.title, about.values))
