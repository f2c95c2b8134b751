"""Steps of several ranks are told apart wherever steps are counted or drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtWidgets import QPushButton

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.importing.ranks import merge
from core.kinds import SliceKind
from core.trace import Trace
from gui.main_window import MainWindow
from gui.ranks import ranks_of, steps_text
from gui.session import Document
from gui.timeline.step_strip import StepStrip
from gui.widgets.same_name import show_per_step
from gui.widgets.step_bars import StepBars
from tests.trace_builder import TraceBuilder


def ranks(tmp_path: Path, *durations: tuple[int, ...]) -> Trace:
    """One file per rank, with steps of these lengths."""
    files = []
    for rank, steps in enumerate(durations):
        made, at = TraceBuilder(distributedInfo={"rank": rank * 3}), rank * 7
        for k, dur in enumerate(steps):
            made.step(10 + k, at, dur).launch("gemm", at=at + 5, call=5, start=at + 15, dur=50)
            at += dur
        files.append(made.build(tmp_path / f"rank{rank}.json"))
    return merge(files)


def test_steps_are_counted_per_rank(tmp_path: Path) -> None:
    one = ranks(tmp_path, (100,), (140,))
    assert steps_text(one, one.steps) == "1 step on each of 2 ranks"
    more = ranks(tmp_path, (100, 100), (140, 140))
    assert steps_text(more, more.steps) == "2 steps on each of 2 ranks"
    odd = ranks(tmp_path, (100, 100), (140,))
    assert steps_text(odd, odd.steps) == "1 to 2 steps on each of 2 ranks"
    alone = ranks(tmp_path, (100, 100))
    assert steps_text(alone, alone.steps) == ""
    assert not ranks_of(alone, alone.steps).several


def test_the_strip_groups_steps_by_rank_and_names_the_one_with_the_longest(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    trace = ranks(tmp_path, (100, 100), (150, 150))
    show(trace, Analysis(compute_figures(trace)))
    page = window.current_page()
    assert page is not None
    strip = page.findChild(StepStrip)
    assert strip is not None
    figures = strip.figures()
    assert figures is not None
    of_step = ranks_of(trace, figures.steps).of_step
    bars = strip.bars_px(figures)
    assert bars[of_step == 0, 0].max() < bars[of_step == 1, 0].min()
    for step, (x, _, width, _) in enumerate(bars.tolist()):
        assert strip.step_at(x + width / 2) == step
    last = int(np.flatnonzero(of_step == 1)[-1])
    assert strip.step_name(figures, last) == "rank 3, step 11"
    assert "longest: rank 3" in strip.note(figures)
    assert "2 steps on each of 2 ranks" in window.status.counts.accessibleName()


def test_a_folder_can_be_opened_from_the_start_and_from_the_top_bar(window: MainWindow) -> None:
    start = window.pages["start"]
    assert any(b.text() == "Open a folder…" for b in start.findChildren(QPushButton))
    assert window.command_actions["open-folder"] in window.open_menu.actions()


def test_the_time_per_step_of_a_name_says_the_rank(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    trace = ranks(tmp_path, (100, 100), (150, 150))
    document = show(trace, Analysis(compute_figures(trace)))
    bars = StepBars(40)
    assert show_per_step(bars, document, int(np.flatnonzero(trace.slices.kind == SliceKind.STEP)[0]))
    assert bars.summary().endswith("most in step 10 of rank 3")
    assert bars.words_at(1).startswith("Step 10 of rank 0: ")
