"""Operators by name, or finer: by input shapes, by line, by stack; with the device work they launched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QWidget

from core.analysis import Analysis
from core.figures.grouping import STACK_FRAMES, Grouped, operators_by_line, operators_by_shapes
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.grouped_panel import GroupedPanel, Grouping, Progress
from gui.widgets.stat_box import stat_columns
from gui.widgets.stat_groups import grouped_columns
from gui.widgets.stat_panel import Rows


class OperatorsPanel(GroupedPanel):
    """Groupings are those of ``torch.profiler``'s ``key_averages``."""

    def __init__(self, session: Session, document: Document) -> None:
        self._trace, tr = document.trace, document.tr
        self._note = tr("Double-click a row to see its slowest call.")
        shapes = tr("Shapes of the inputs, in the order of the arguments")
        line = tr("The innermost line of your own code that it is called from; the line is that of the function")
        stack = tr("Up to {count} functions of your own code, innermost first").format(count=STACK_FRAMES)
        groupings = (
            Grouping(tr("By name"), preview=self._by_name),
            Grouping(
                tr("By name and shapes"),
                make=partial(
                    self._by,
                    operators_by_shapes,
                    (tr("Input shapes"), shapes),
                    tr("No shapes were recorded: record_shapes=True."),
                ),
            ),
            Grouping(
                tr("By name and line"),
                make=partial(
                    self._by,
                    operators_by_line,
                    (tr("Called from"), line),
                    tr("No lines were recorded: with_stack=True."),
                ),
            ),
            Grouping(
                tr("By name and stack"),
                make=partial(
                    self._by,
                    partial(operators_by_line, frames=STACK_FRAMES),
                    (tr("Called from"), stack),
                    tr("No lines were recorded: with_stack=True."),
                ),
            ),
        )
        super().__init__(session, document, groupings, name=tr("Operators"))

    def _by_name(self, analysis: Analysis, note: str = "") -> Rows:
        columns = stat_columns(self._trace, analysis.figures.operators)
        empty = self._document.tr("No operators were recorded.")
        advice = self._document.tr("Record with ProfilerActivity.CPU.")
        return Rows(columns, analysis.figures.operators.first_slice, note or self._note, empty, advice, by_name=True)

    def _by(
        self,
        group: Callable[..., Grouped],
        column: tuple[str, str],
        missing: str,
        analysis: Analysis,
        progress: Progress,
    ) -> Rows:
        grouped = group(self._trace, progress)
        if not grouped.known:
            return self._by_name(analysis, missing)
        return Rows(grouped_columns(self._trace, grouped, *column), grouped.stats.first_slice, self._note)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return OperatorsPanel(session, document)


PANEL = PanelSpec(
    "operators",
    "Operators",
    "bottom",
    create,
    tip="Operators of PyTorch, by name, shapes or line, with the device work that they launch",
)
