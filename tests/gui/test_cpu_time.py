"""Where the CPU's time goes: modules count what they call, per step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QLabel

from core.analysis import Analysis
from core.figures.compute import compute_figures
from gui import text
from gui.main_window import MainWindow
from gui.session import Document
from gui.suggestion_text import nothing_found
from gui.widgets.cpu_time import ShareRow
from gui.widgets.cpu_time_view import CpuTimeView
from tests.trace_builder import TraceBuilder


def test_modules_are_shown_with_what_they_call_per_step(window: MainWindow, show: Callable[..., Document]) -> None:
    made = TraceBuilder(gpu=None, with_stack=1)
    for k in range(2):
        at = 1000 * k
        made.step(k, at, 1000)
        made.python("nn.Module: Net_0", at + 10, 800).python("nn.Module: Linear_0", at + 20, 300)
        made.op("aten::mm", at + 30, 280).op("aten::relu", at + 400, 400)
    trace = made.build()
    show(trace, Analysis(compute_figures(trace)))
    page = window.current_page()
    assert page is not None
    view = page.findChild(CpuTimeView)
    assert view is not None
    tips = [row.accessibleName().replace(text.THIN, " ") for row in view.findChildren(ShareRow)]
    assert any(tip.startswith("Net_0: 800") and "a step with all it calls" in tip for tip in tips)
    assert any(tip.startswith("aten::mm: 280") and "a step of its own" in tip for tip in tips)
    assert tips.index(next(t for t in tips if t.startswith("Net_0"))) < tips.index(
        next(t for t in tips if t.startswith("Linear_0"))
    )
    words = " ".join(label.text() for label in view.findChildren(QLabel)).replace(text.THIN, " ")
    assert "a step takes 1 ms" in words or "a step takes 1.00 ms" in words or "a step takes 1000" in words


def test_what_lies_outside_the_steps_is_not_shared_out_among_them(
    window: MainWindow, show: Callable[..., Document]
) -> None:
    made = TraceBuilder(gpu=None).step(0, 0, 1000).step(1, 1000, 1000)
    made.op("aten::mm", 10, 900).op("aten::mm", 1010, 900).op("aten::mm", 2100, 900).op("aten::sort", 3000, 900)
    trace = made.build()
    show(trace, Analysis(compute_figures(trace)))
    page = window.current_page()
    assert page is not None
    view = page.findChild(CpuTimeView)
    assert view is not None
    (tip,) = [row.accessibleName().replace(text.THIN, " ") for row in view.findChildren(ShareRow)]
    assert tip.startswith("aten::mm: 900 µs a step of its own, in 1 call.")
    words = " ".join(label.text() for label in view.findChildren(QLabel)).replace(text.THIN, " ")
    assert "mean of the 2 counted steps" in words
    assert "of 900 µs in all" in words


def test_nothing_is_promised_below_where_there_is_nothing(tmp_path: Path) -> None:
    beside = TraceBuilder().step(1, 0, 100).step(2, 100, 100).op("aten::mm", 300, 100)  # nothing in the steps
    cases = ((TraceBuilder().op("aten::mm", 0, 100), True), (TraceBuilder().memory(10, 8, 8), False), (beside, False))
    for number, (made, promised) in enumerate(cases):
        trace = made.build(tmp_path / f"{number}.json")
        words = nothing_found(trace, Analysis(compute_figures(trace), rules=()))
        assert ("shown below" in words) == promised
