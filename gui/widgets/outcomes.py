"""What became of the rules that found nothing: a line per outcome, which opens to its rules."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from core.suggestions import Outcome, RuleResult
from gui import text
from gui.widgets.fold import Fold
from gui.widgets.labels import label


class OutcomeList(QWidget):
    """Clean, not checkable and failed rules, folded."""

    def __init__(self) -> None:
        super().__init__()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2)
        self._folds: dict[Outcome, Fold] = {}
        self._shown: tuple[RuleResult, ...] | None = None
        for outcome in (Outcome.CLEAN, Outcome.NOT_CHECKED, Outcome.FAILED):
            self._folds[outcome] = Fold(spacing_px=4)
            self._folds[outcome].column.setContentsMargins(16, 0, 0, 6)
            self._folds[outcome].toggled.connect(partial(self._fill, outcome))
            box.addWidget(self._folds[outcome])

    def show_results(self, results: tuple[RuleResult, ...]) -> None:
        """Show the outcomes of all rules; what they say is made when a line is opened."""
        if results is self._shown:
            return
        self._shown = results
        words = {
            Outcome.CLEAN: self.tr("Checked and clean: {count}"),
            Outcome.NOT_CHECKED: self.tr("Not checkable here: {count}"),
            Outcome.FAILED: self.tr("Failed while checking: {count}"),
        }
        for outcome, fold in self._folds.items():
            while (item := fold.column.takeAt(0)) is not None:
                widget = item.widget()
                if widget is not None:
                    widget.hide()
                    widget.deleteLater()
            count = sum(r.outcome is outcome for r in results)
            fold.set_words(words[outcome].format(count=count) if count else "")
            if fold.opened:
                self._fill(outcome)

    def _fill(self, outcome: Outcome, opened: bool = True) -> None:
        """Name the rules of an outcome, with the reasons."""
        column = self._folds[outcome].column
        if not opened or column.count():
            return
        for result in (r for r in self._shown or () if r.outcome is outcome):
            column.addWidget(label(text.rule_title(result.rule.title), "", wrap=True))
            if result.reason:
                column.addWidget(label(result.reason, "faint", wrap=True))
