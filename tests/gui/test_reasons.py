"""What is said of an unknown figure follows from the trace: each reason on a trace that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.analysis import Analysis, analyze
from core.importing.ranks import merge
from core.pricing import POOR_REPLAY_PCT
from core.run_folder import RunRecord
from core.trace import Trace
from gui import figure_reasons as reasons
from gui import figure_words, text
from gui.main_window import MainWindow
from gui.models import range_stats
from gui.panels import selection
from gui.panels.verdict import ROUGH_PCT, VerdictBand
from gui.session import Document
from tests.gui.conftest import cpu_only, known_analysis, training
from tests.trace_builder import TraceBuilder


def band_of(window: MainWindow) -> VerdictBand:
    page = window.current_page()
    band = page.band("verdict") if page is not None else None
    assert isinstance(band, VerdictBand)
    return band


def shown_reasons(window: MainWindow) -> dict[str, str]:
    """Name of each unknown figure on top, with its explanation."""
    return {s.name: s.explanation() for s in band_of(window)._shown if s.is_unknown}


def one_step() -> TraceBuilder:
    made = TraceBuilder().step(10, 0, 900)
    return made.launch("gemm", at=40, call=10, start=60, dur=500)


def no_calls() -> TraceBuilder:
    """Device work, and nothing that says who launched it."""
    made = TraceBuilder()
    for k in range(3):
        made.step(k, k * 1000, 900).kernel("gemm", k * 1000 + 50, 500)
    return made


def start_up() -> TraceBuilder:
    """The only step loads a module for most of its time."""
    made = TraceBuilder().step(0, 0, 9000).runtime("cuModuleLoadData", 100, 6000)
    return made.launch("gemm", at=6200, call=10, start=6300, dur=500)


CASES: tuple[tuple[str, TraceBuilder, Callable[[Trace, Analysis], str], str], ...] = (
    ("no steps", TraceBuilder().launch("gemm", at=40, call=10, start=60, dur=500), reasons.host_step, "prof.step()"),
    ("no steps", TraceBuilder().launch("gemm", at=40, call=10, start=60, dur=500), reasons.period, "prof.step()"),
    ("no device", cpu_only(), reasons.period, "record with ProfilerActivity.CUDA"),
    ("no device", cpu_only(), reasons.busy, "record with ProfilerActivity.CUDA"),
    ("no device", cpu_only(), reasons.sync_wait, "record with ProfilerActivity.CUDA"),
    ("one step", one_step(), reasons.period, "only one step was recorded"),
    ("start-up", start_up(), reasons.sustained, "code is compiled or loaded"),
    ("no calls", no_calls(), reasons.sync_wait, "ProfilerActivity.CPU"),
    ("no calls", no_calls(), reasons.device_step, "calls that launched it are not in the trace"),
    (
        "launches lost",
        TraceBuilder().step(0, 0, 900).runtime("cudaLaunchKernel", 10, 5),
        reasons.period,
        "none of it is in the trace",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("name", "built", "reason", "words"), CASES)
def test_each_reason_is_that_of_the_trace(
    name: str, built: TraceBuilder, reason: Callable[[Trace, Analysis], str], words: str, tmp_path: Path
) -> None:
    trace = built.build(tmp_path / "t.json")
    assert words in reason(trace, analyze(trace)), name


def test_a_folder_of_ranks_with_a_step_each_says_that_a_period_needs_two(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    trace = merge([one_step().build(tmp_path / f"rank{k}.json") for k in range(2)])
    show(trace, analyze(trace))
    why = shown_reasons(window)["Period"]
    assert "each rank has one step only" in why
    assert "ProfilerActivity" not in why


def test_every_unknown_figure_has_a_reason_and_no_known_device_is_asked_for(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    for k, built in enumerate((one_step(), no_calls(), training(), cpu_only())):
        trace = built.build(tmp_path / f"t{k}.json")
        show(trace, analyze(trace))
        for shown in band_of(window)._shown:
            assert not shown.is_unknown or shown.how, shown.name
            if shown.is_unknown and trace.has_device_work:
                assert "ProfilerActivity.CUDA" not in shown.how


def test_the_time_without_the_profiler_says_what_became_of_it(tmp_path: Path) -> None:
    assert "started from StepLens" in reasons.wall(None)
    assert "timed no steps" in reasons.wall(RunRecord(tmp_path, "train", "ok", None, None, None))


def test_no_verdict_is_shown_that_the_replay_may_take_back(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    whole = known_analysis(trace)
    summary = replace(whole.figures.summary, sustained_step_ns=None, verdict="host_bound")
    document = show(trace)
    document.analysis_running = True
    document.set_analysis(Analysis(replace(whole.figures, summary=summary)))
    band = band_of(window)
    assert "bound" not in band.word.text()
    assert {s.name: s.value for s in band._shown}["Host step"] == text.duration(summary.step_ns)
    assert not shown_reasons(window).get("Sustained step")
    document.analysis_running = False
    document.set_analysis(whole)
    assert band.word.text() == text.verdict(whole.figures.summary.verdict)


def test_the_sustained_step_says_which_error_is_a_measure_of_accuracy(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    whole = known_analysis(trace)
    tips = []
    for held_out, error in ((3.4, 0.0), (None, 24.0)):
        summary = replace(whole.figures.summary, replay_error_pct=error, held_out_error_pct=held_out)
        show(trace, replace(whole, figures=replace(whole.figures, summary=summary)))
        tips.append({s.name: s.explanation() for s in band_of(window)._shown}["Sustained step"])
    assert "it gives the other half's time within 3.4" in tips[0]
    assert "close to 0 by construction" in tips[0]
    assert "telling that takes four counted steps" in tips[1]
    assert "miss their own time by 24" in tips[1]  # which is not close to 0
    assert "so savings are rough" in tips[1]
    assert ROUGH_PCT == POOR_REPLAY_PCT


def test_each_verdict_is_explained(window: MainWindow, document: Document) -> None:
    words = {
        text.verdict_meaning(v) for v in ("healthy", "host_bound", "device_bound", "input_bound", "sync_bound",
                                          "communication_bound", "unknown")
    }  # fmt: skip
    assert len(words) == 7
    assert band_of(window).word.toolTip()


def test_of_the_step_times_the_sustained_one_is_marked_as_the_one_to_go_by(
    window: MainWindow, document: Document
) -> None:
    metrics = {m.name.text(): m for m in band_of(window)._metrics if not m.isHidden()}
    main = metrics["Sustained step"]
    assert main.name.property("role") == "main"
    assert main.name.font().bold()
    assert main.value.property("role") == ""
    assert "The one to go by" in main.toolTip()
    for name in ("Host step", "Period", "Device step"):
        assert metrics[name].value.property("role") in ("dim", "unknown")
        assert not metrics[name].name.font().bold()
    assert metrics["GPU busy"].value.property("role") == ""


def unmarked() -> TraceBuilder:
    """Two waits, and no steps."""
    made = TraceBuilder()
    for at in (0, 1000):
        made.op("aten::item", at, 400).launch("gemm", at=at + 10, call=10, start=at + 30, dur=300)
        made.copy("DtoH (Device -> Pageable)", at=at + 40, call=320, start=at + 335, dur=5)
    return made


def test_without_steps_waits_are_those_of_the_recording(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    trace = unmarked().build(tmp_path / "unmarked.json")
    document = show(trace, analyze(trace))
    figures = document.analysis.figures if document.analysis is not None else None
    assert figures is not None and len(figures.syncs) == 2
    shown = next(one for one in band_of(window)._shown if one.name == "Sync wait")
    assert shown.value == f"{text.duration(int(figures.syncs.wait_ns.sum()))} in all"
    assert "sync points: 2" in shown.meaning and not shown.is_unknown


def test_without_calls_the_selection_does_not_deny_waits(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    for made, words in ((no_calls(), "waits unknown"), (unmarked(), "no sync points")):
        trace = made.build(tmp_path / f"{len(words)}.json")
        document = show(trace, analyze(trace))
        panel = selection.create(window.session, document)
        assert isinstance(panel, selection.SelectionPanel)
        analysis = document.analysis
        stats = range_stats.compute(document.trace, analysis.figures if analysis else None, 0, 10, ())
        assert words in panel._words(stats)


def test_a_selection_without_a_row_of_a_device_says_nothing_about_it(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    document = show(unmarked().build(tmp_path / "rows.json"), None)
    trace = document.trace
    panel = selection.create(window.session, document)
    assert isinstance(panel, selection.SelectionPanel)
    on_host = tuple(np.flatnonzero(trace.tracks.device < 0).tolist())
    for tracks, told in (((), True), (on_host, False)):
        words = panel._words(range_stats.compute(trace, None, *trace.span_ns, tracks))
        assert ("busy" in words) is told and "busy unknown" not in words


def test_a_share_names_its_window_and_the_steps_it_is_a_mean_of(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path
) -> None:
    made = TraceBuilder()
    for k, busy in enumerate((600, 500, 400, 300)):  # the last has no period, so that the bar does not divide it
        made.step(k, k * 1000, 950).launch("gemm", at=k * 1000 + 40, call=10, start=k * 1000 + 60, dur=busy)
    trace = made.build(tmp_path / "t.json")
    analysis = analyze(trace)
    show(trace, analysis)
    budget = analysis.figures.budget
    assert budget.period_ns and budget.busy_ns
    tip = {s.name: s.explanation() for s in band_of(window)._shown}["GPU busy"]
    assert f"{text.percent(100 * budget.busy_ns / budget.period_ns)} of the period, which the bar" in tip
    assert f"{text.percent(100 * 300 / 950)} to {text.percent(100 * 600 / 950)}" in tip


def test_one_share_of_one_window_needs_no_second(window: MainWindow, document: Document) -> None:
    figures = document.analysis.figures if document.analysis is not None else None
    assert figures is not None
    same = replace(figures.budget, period_ns=1000, busy_ns=round(10 * (figures.summary.gpu_busy_pct or 0)))
    assert figure_words.of_the_bar(replace(figures, budget=same)) == ""


@pytest.mark.parametrize(("kernel_us", "told"), [(300, True), (60, False)])
def test_a_host_step_that_only_queues_work_is_called_so_beside_the_figures(
    window: MainWindow, show: Callable[..., Document], tmp_path: Path, kernel_us: int, told: bool
) -> None:
    made = TraceBuilder()
    for k in range(5):  # queued every 100 us
        made.step(k, k * 100, 95)
        made.launch("gemm", at=k * 100 + 10, call=5, start=k * max(kernel_us, 100) + 20, dur=kernel_us)
    trace = made.build(tmp_path / "ahead.json")
    analysis = analyze(trace)
    show(trace, analysis)
    assert analysis.figures.summary.enqueue_bound is told
    assert ("The CPU runs ahead" in band_of(window).sentence.text()) is told
