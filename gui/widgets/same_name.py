"""How one slice compares with the others of its name: their durations, and their time per step."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from core.figures.per_step import per_step
from core.tables import StepTable
from core.trace import Trace
from gui import text
from gui.models import slice_facts
from gui.ranks import ranks_of
from gui.session import Document
from gui.text_size import px
from gui.widgets.charts import Histogram
from gui.widgets.labels import button, label
from gui.widgets.step_bars import StepBars

BARS_PX = 40
ABOVE_PX = 26  # of the panel: the name, and its edges
TEXTS_PX = 112  # of name and words above the histogram, and of its scale
LEAST_CHART_PX, CHART_PX = 44, 120


class SameName(QWidget):
    """Count, spread, histogram, the slowest one, and a bar for each step."""

    def __init__(self, document: Document, slice_id: int) -> None:
        super().__init__()
        self._document, self._slice = document, slice_id
        self.chart: Histogram | None = None
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        box.addWidget(label(self.tr("Same name elsewhere"), "dim"))
        same = slice_facts.same_name(document.trace, slice_id)
        if len(same.ids) < 2:
            box.addWidget(label(self.tr("This is the only one.")))
            return
        self._add_durations(box, same)
        self._add_steps(box)

    def fit_to(self, height_px: int) -> None:
        """Give the histogram the height that a panel of so much leaves it: whole, with the words below it."""
        if self.chart is None:
            return
        others_px = self.layout().sizeHint().height() - self.chart.height_px  # type: ignore[union-attr]
        all_px, words_px = height_px - px(ABOVE_PX) - others_px, height_px - px(TEXTS_PX)
        room_px = all_px if all_px >= px(LEAST_CHART_PX) else words_px
        self.chart.set_height(min(max(room_px, px(LEAST_CHART_PX)), px(CHART_PX)))

    def _add_durations(self, box: QVBoxLayout, same: slice_facts.SameName) -> None:
        dur = same.dur_ns
        if text.duration(int(dur.min())) == text.duration(int(dur.max())):  # alike as far as one can read
            words = self.tr("{count} calls, each {time} long").format(
                count=text.count(len(dur)), time=text.duration(int(dur.max()))
            )
            box.addWidget(label(words, wrap=True))
            return
        words = self.tr("{count} calls · mean {mean} · {low} to {high}").format(
            count=text.count(len(dur)),
            mean=text.duration(float(dur.mean())),
            low=text.duration(int(dur.min())),
            high=text.duration(int(dur.max())),
        )
        box.addWidget(label(words, wrap=True))
        chart = self.chart = Histogram()
        chart.show_values(dur, float(self._document.trace.slices.dur_ns[self._slice]))
        box.addWidget(chart)
        slowest = same.slowest
        if slowest == self._slice:
            box.addWidget(label(self.tr("This is the slowest one.")))
        else:
            words = self.tr("Go to the slowest")
            box.addWidget(button(words, partial(self._document.go_to_slice, slowest), "link"))

    def _add_steps(self, box: QVBoxLayout) -> None:
        bars = StepBars(BARS_PX)
        if not show_per_step(bars, self._document, self._slice):
            return
        bars.opened.connect(self._document.go_to_slice)
        box.addSpacing(6)
        box.addWidget(label(bars.summary(), wrap=True))
        box.addWidget(bars)


def _step_names(trace: Trace, steps: StepTable) -> list[str]:
    """What steps are called after the word step; of several ranks, each has its own of a number."""
    numbers = [str(n if n >= 0 else row) for row, n in enumerate(steps.number.tolist())]
    ranks = ranks_of(trace, steps)
    if not ranks.several:
        return numbers
    words = QCoreApplication.translate("ranks", "{number} of {rank}")
    names = (ranks.names[rank] for rank in ranks.of_step.tolist())
    return [words.format(number=number, rank=name) for number, name in zip(numbers, names, strict=True)]


def show_per_step(bars: StepBars, document: Document, slice_id: int) -> bool:
    """Show the time per step of a slice's name; False where there are no two steps to compare."""
    analysis = document.analysis
    if analysis is None or len(analysis.figures.steps) < 2 or slice_id < 0:
        return False
    figures = analysis.figures
    found = per_step(document.trace, figures, slice_id)
    if not found.calls.any():
        return False
    bars.show_steps(found, _step_names(document.trace, figures.steps), int(figures.step_of[slice_id]))
    return True
