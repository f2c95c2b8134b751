"""All rules with their outcome: found, clean, not checkable here, failed."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from core.suggestions import Outcome
from gui import text
from gui.models.columns import Column, ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button
from gui.widgets.table import TableBox


class RulesPanel(TableBox):
    """Uses the document's ``analysisChanged``; opening a row shows the evidence of what it found."""

    def __init__(self, session: Session, document: Document) -> None:
        self._document = document
        self._shown: object = None
        super().__init__(ColumnModel([]), self._show_evidence, name=document.tr("Rules"))
        self.failures = button(self.tr("Copy failures"), self.copy_failures, "flat")
        self.failures.hide()
        layout = self.layout()
        assert layout is not None
        layout.addWidget(self.failures)
        self.set_empty(self.tr("The rules have not run yet."))
        document.analysisChanged.connect(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the outcomes when they are there."""
        analysis = self._document.analysis
        if analysis is None or analysis.rules is self._shown:
            return
        self._shown = analysis.rules
        results = sorted(analysis.rules, key=lambda r: (list(Outcome).index(r.outcome), r.rule.id))
        names = {
            Outcome.FOUND: self.tr("found"),
            Outcome.CLEAN: self.tr("clean"),
            Outcome.NOT_CHECKED: self.tr("not checkable here"),
            Outcome.FAILED: self.tr("failed"),
        }
        first = [next((i for s in r.suggestions for e in s.evidence for i in e.slices), -1) for r in results]
        columns = [
            Column(self.tr("Rule"), "text", [r.rule.id for r in results]),
            Column(self.tr("Outcome"), "text", [names[r.outcome] for r in results]),
            Column(self.tr("Found"), "count", [len(r.suggestions) for r in results]),
            Column(self.tr("What it looks for"), "text", [text.rule_title(r.rule.title) for r in results]),
            Column(self.tr("Reason"), "text", [" ".join(r.reason.split()) for r in results]),
        ]
        self.model.replace(columns, first)
        counts = {o: sum(r.outcome is o for r in results) for o in Outcome}
        words = self.tr("{found} found, {clean} clean, {not_checked} not checkable here, {failed} failed.")
        self.note.setText(words.format(**{o.value: n for o, n in counts.items()}))
        self.failures.setVisible(counts[Outcome.FAILED] > 0)
        self.refresh()

    def copy_failures(self) -> None:
        """Copy the tracebacks of the rules that failed."""
        analysis = self._document.analysis
        failed = [r for r in (analysis.rules if analysis else ()) if r.outcome is Outcome.FAILED]
        words = "\n\n".join(f"{r.rule.id}: {r.reason}\n{r.details}" for r in failed)
        QGuiApplication.clipboard().setText(words)

    def _show_evidence(self, slice_id: int) -> None:
        document, analysis = self._document, self._document.analysis
        for index, s in enumerate(analysis.suggestions if analysis else ()):
            if any(slice_id in e.slices for e in s.evidence):
                document.show_suggestion(index)
                return
        document.go_to_slice(slice_id)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return RulesPanel(session, document)


PANEL = PanelSpec("rules", "Rules", "bottom", create)
