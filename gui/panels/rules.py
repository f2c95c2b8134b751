"""All rules with their outcome: found, clean, not checkable here, failed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from core.analysis import Analysis
from core.suggestions import Outcome
from gui import text
from gui.models.columns import SORT_ROLE, Column
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button, label
from gui.widgets.stat_panel import FiguresTable, Rows

ORDER = (Outcome.FAILED, Outcome.FOUND, Outcome.NOT_CHECKED, Outcome.CLEAN)  # what needs a look comes first
RULE_COLUMN = 4
MOST_SAID = 3  # failures told in full under the table


class RulesPanel(FiguresTable):
    """Opening a row shows the evidence of what the rule found."""

    offers_callers = False  # its rows are rules

    def __init__(self, session: Session, document: Document) -> None:
        self.failures = button(document.tr("Copy failures"), self.copy_failures, "flat")
        self.failures.hide()
        self.failed = label("", "", wrap=True, select=True)
        self.failed.hide()
        super().__init__(
            document,
            self._outcomes,
            name=document.tr("Rules"),
            part=lambda analysis: analysis.rules,
        )
        self.table.open_words = self._open_words
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        row = QHBoxLayout()
        row.setContentsMargins(16, 4, 8, 4)
        row.addWidget(self.failed, 1)
        row.addWidget(self.failures, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(row)

    def _outcomes(self, analysis: Analysis) -> Rows:
        results = sorted(analysis.rules, key=lambda r: (ORDER.index(r.outcome), r.rule.id))
        names = {
            Outcome.FOUND: self.tr("found"),
            Outcome.CLEAN: self.tr("clean"),
            Outcome.NOT_CHECKED: self.tr("not checkable here"),
            Outcome.FAILED: self.tr("failed"),
        }
        columns = [
            Column(self.tr("What it looks for"), "text", [text.rule_title(r.rule.title) for r in results]),
            Column(self.tr("Outcome"), "text", [names[r.outcome] for r in results]),
            Column(self.tr("Found"), "count", [len(r.suggestions) for r in results], self.tr("How many suggestions")),
            Column(self.tr("Reason"), "text", [" ".join(r.reason.split()) for r in results]),
            Column(self.tr("Rule"), "text", [r.rule.id for r in results], self.tr("Its name in allow files")),
        ]
        counts = {o: sum(r.outcome is o for r in results) for o in Outcome}
        words = self.tr("{found} found, {clean} clean, {not_checked} not checkable here, {failed} failed.")
        failed = [f"{r.rule.id}: {' '.join(r.reason.split())}" for r in results if r.outcome is Outcome.FAILED]
        more = [self.tr("and {count} more").format(count=len(failed) - MOST_SAID)] if len(failed) > MOST_SAID else []
        self.failed.setText("\n".join([*failed[:MOST_SAID], *more]))
        for widget in (self.failed, self.failures):
            widget.setVisible(bool(failed))
        note = words.format(**{o.value: n for o, n in counts.items()})
        return Rows(columns, [-1] * len(results), note, self.tr("The rules have not run yet."))

    def copy_failures(self) -> None:
        """Copy the tracebacks of the rules that failed."""
        analysis = self._document.analysis
        failed = [r for r in (analysis.rules if analysis else ()) if r.outcome is Outcome.FAILED]
        words = "\n\n".join(f"{r.rule.id}: {r.reason}\n{r.details}" for r in failed)
        QGuiApplication.clipboard().setText(words)

    def _card_of(self, row: int) -> int:
        """First suggestion of the rule of a row, -1 none: other rules may point to the same slices."""
        analysis = self._document.analysis
        rule = self.model.index(row, RULE_COLUMN).data(SORT_ROLE)
        found = analysis.suggestions if analysis else ()
        return next((i for i, s in enumerate(found) if s.rule_id == rule), -1)

    def _open(self, row: int) -> None:
        index = self._card_of(row)
        if index >= 0:
            self._document.show_suggestion(index)

    def _open_words(self, row: int) -> str:
        return self.tr("Show it in the plan") if self._card_of(row) >= 0 else ""


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return RulesPanel(session, document)


PANEL = PanelSpec("rules", "Rules", "bottom", create, tip="Every fault that was looked for, and what came of it")
