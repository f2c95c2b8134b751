"""The line over each timeline of a comparison: which trace it is, and what is selected in it."""

from __future__ import annotations

from gui.session import Document
from gui.timeline.tooltip import slice_lines
from gui.widgets.labels import Elided


class SideTitle(Elided):
    """Uses ``selectionChanged`` of the document: no panel of Compare tells what a slice is.

    Parameters
    ----------
    side
        "Before" or "After", in the user's language.
    document
        The trace of that side.
    """

    def __init__(self, side: str, document: Document) -> None:
        super().__init__("", "dim", at_end=True)
        self._side, self._document = side, document
        self.setContentsMargins(4, 4, 4, 2)
        document.selectionChanged.connect(self.show_selection)
        document.analysisChanged.connect(self.show_selection)
        self.show_selection()

    def show_selection(self) -> None:
        """Name the trace, and the selected slice with its times."""
        document = self._document
        words = self.tr("{side}: {name}").format(side=self._side, name=document.title)
        if document.selected_slice >= 0:
            figures = document.analysis.figures if document.analysis is not None else None
            facts = " · ".join(slice_lines(document.trace, figures, document.selected_slice))
            words = self.tr("{trace} · selected: {slice}").format(trace=words, slice=facts)
        self.set_text(words)
