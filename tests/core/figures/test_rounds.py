"""Longer steps that come back are the loop's own; what they add is told with the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.analysis import analyze, outlook
from core.figures.compute import compute_figures
from core.figures.rounds import (
    IN_TURN,
    LEFT_OUT,
    LEFT_OUT_WENT_TO,
    LONGER,
    NOW_AND_THEN,
    SHORTER,
    more_words,
)
from core.importing import open_trace
from core.kinds import GapCause
from core.reporting.phrases import verdict_head
from core.trace import Trace
from core.words import fill
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder


def loop(durations: list[int], device: int = 70) -> Trace:
    """Marked steps of these lengths, us, each with so much device work at its beginning."""
    builder, at = TraceBuilder(), 0
    for i, dur in enumerate(durations):
        builder.step(i, at, dur).op("aten::mm", at + 5, 50).launch("k", at=at + 10, call=5, start=at + 20, dur=device)
        at += dur
    return builder.build()


@pytest.mark.parametrize(("first", "every", "count"), [(1, 4, 12), (2, 3, 9), (0, 3, 9), (1, 2, 8)])
def test_longer_steps_that_come_back_count_in_whole_rounds(first: int, every: int, count: int):
    trace = loop([1000 if i % every == first else 100 for i in range(count)])
    analysis = analyze(trace)
    assert analysis.figures.step_figures.counted.all()
    assert analysis.figures.summary.step_ns == pytest.approx((1000 + 100 * (every - 1)) / every * 1000)
    template, values = more_words(trace, analysis.figures)
    assert template == IN_TURN
    assert values["every"] == every
    assert values["share_pct"] == pytest.approx(100 * 900 / (900 + 100 * every))
    assert "warmup-captured" not in {s.rule_id for s in analysis.suggestions}
    (note,) = [s for s in analysis.suggestions if s.rule_id == "outlier-step"]
    assert note.headline.startswith(f"One step in {every} ")


@pytest.mark.parametrize("longer", [[3], [3, 7, 8], [0, 6], [2, 9], [2, 8]])
def test_longer_steps_without_a_rhythm_are_left_out_and_told(longer: list[int]):
    trace = loop([1000 if i in longer else 100 for i in range(12)])
    figures = compute_figures(trace)
    assert np.flatnonzero(~figures.step_figures.counted).tolist() == longer
    template, values = more_words(trace, figures)
    assert template.startswith(LEFT_OUT)
    assert values["count"] == len([i for i in longer if i])


@pytest.mark.parametrize("off", [5, 9])
def test_a_rhythm_whose_long_steps_lie_around_the_limit_is_found(off: int):
    """Three times as long, but for some percent: the limit of outliers goes through the middle of them."""
    durations = [(300 + off * (i * 7 % 11 - 5) // 5) if i % 4 == 0 else 100 + (i * 5 % 7 - 3) for i in range(40)]
    trace = loop(durations)
    figures = compute_figures(trace)
    own = figures.step_figures
    assert own.counted.all() and own.round_steps == 4
    assert figures.summary.step_ns == pytest.approx(1000 * sum(durations) / 40)
    template, values = more_words(trace, figures)
    assert (template, values["every"]) == (IN_TURN, 4)


def test_no_cut_goes_through_steps_of_one_length():
    durations = [100] * 30
    for i, long in ((4, 292), (9, 308), (11, 290), (18, 315), (25, 900)):
        durations[i] = long
    own = compute_figures(loop(durations)).step_figures
    assert np.flatnonzero(~own.counted).tolist() == [25]


def test_a_long_first_step_is_warm_up_whatever_others_take():
    own = compute_figures(loop([310, 100, 100, 100, 290, 100, 100, 100, 100])).step_figures
    assert np.flatnonzero(~own.counted).tolist() == [0] and own.why_not[0].startswith("warm-up")


def test_a_step_that_only_waits_for_queued_work_adds_nothing(tmp_path: Path):
    def program(m: Machine, number: int) -> None:
        for _ in range(4):
            m.kernel_op("aten::mm", 500)
        if number % 4 == 0:
            m.item()

    run = simulate(program, steps=12)
    trace = open_trace(run.write(tmp_path / "t.json"))
    assert more_words(trace, compute_figures(trace)) == ("", {})


def test_a_read_back_in_an_evaluation_every_few_steps_is_priced_by_the_whole_loop(tmp_path: Path):
    def program(m: Machine, number: int) -> None:
        for _ in range(4):
            m.kernel_op("aten::mm", 100)
        if number % 4 == 1:
            for _ in range(12):
                m.kernel_op("aten::mm", 200)
                m.item()
                m.cpu(300)

    run = simulate(program, steps=16)
    trace = open_trace(run.write(tmp_path / "t.json"))
    analysis = analyze(trace)
    assert analysis.figures.summary.sustained_step_ns == pytest.approx(1000 * run.sustained_step_us, rel=0.05)
    assert "scalar-read-back" in {s.rule_id for s in analysis.suggestions if s.severity != "low"}
    assert more_words(trace, analysis.figures)[0] == IN_TURN


@pytest.mark.parametrize(
    ("round_us", "count"), [((100, 290), 9), ((110, 100, 105, 280), 11), ((100, 250, 180), 10), ((100, 290), 8)]
)
def test_lengths_that_come_back_make_rounds(round_us: tuple[int, ...], count: int):
    """Not far enough from the others for outliers: as with gradients accumulated, or every so many evaluated."""
    every, jitter = len(round_us), (0, 3, -2, 1)
    analysis = analyze(loop([round_us[i % every] + jitter[i % 4] for i in range(count)]))
    own, summary = analysis.figures.step_figures, analysis.figures.summary
    assert own.round_steps == every
    assert own.counted.sum() == count - count % every
    mean_ns = 1000 * sum(round_us) / every
    assert summary.step_ns == pytest.approx(mean_ns, rel=0.01)
    assert summary.sustained_step_ns == pytest.approx(mean_ns, rel=0.01)
    assert summary.held_out_error_pct is not None and summary.held_out_error_pct < 2
    # The last step has no period: the mean leaves out its round, and not the one step alone.
    assert summary.period_ns == pytest.approx(mean_ns, rel=0.01)
    assert analysis.figures.budget.period_ns == pytest.approx(mean_ns, rel=0.01)


@pytest.mark.parametrize(
    "durations",
    [
        [100, 103, 98, 101, 99, 102, 100, 97, 104, 100],  # all alike
        [100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 210],  # slower and slower
        [100, 100, 100, 100, 100, 100, 200, 200, 200, 200, 200, 200],  # slower at once
        [100, 180, 130, 220, 170, 105, 240, 115, 205, 140, 190, 125],  # as the batches come
        [100, 100, 100, 100, 250, 100, 100, 100, 100, 100],  # one longer step
        [100, 100, 280, 100, 100, 280, 100, 100, 100, 100],  # two
    ],
)
def test_other_lengths_have_no_rhythm(durations: list[int]):
    own = compute_figures(loop(durations)).step_figures
    assert own.round_steps == 1 and own.counted.all()


def hiccup(us: float, where: str) -> Callable[[Machine, int], None]:
    """A healthy loop of which one step does something for so long."""

    def program(m: Machine, number: int) -> None:
        with m.frame("train.py", 20, "train"):
            m.loader(us if number == 9 and where == "loader" else 20)
            for _ in range(4):
                m.kernel_op("aten::mm", 500)
            if number == 9 and where == "python":
                with m.frame("train.py", 10, "save"):
                    m.cpu(us)
            if number == 9 and where == "device":
                with m.frame("train.py", 12, "evaluate"):
                    for _ in range(10):
                        m.kernel_op("aten::mm", us / 10)
                    m.item()

    return program


@pytest.mark.parametrize(
    ("where", "cause", "named"),
    [
        ("python", GapCause.PYTHON, "save"),
        ("loader", GapCause.LOADER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("device", -1, "evaluate"),
    ],
)
def test_what_one_step_of_a_healthy_loop_does_besides_is_said(where: str, cause: int, named: str, tmp_path: Path):
    trace = open_trace(simulate(hiccup(60_000, where), steps=14, warmup=4).write(tmp_path / "t.json"))
    analysis = analyze(trace)
    summary = analysis.figures.summary
    assert summary.verdict == "healthy"
    assert verdict_head(trace, analysis) == ("Healthy but for 1 step", True)
    # What the long step does before its own device work lies in the period of the one before it.
    assert summary.period_ns == pytest.approx(2_000_000, rel=0.03)
    assert summary.sustained_step_ns == pytest.approx(2_000_000, rel=0.03)
    assert summary.held_out_error_pct is not None and summary.held_out_error_pct < 3
    template, values = more_words(trace, analysis.figures)
    assert template == LEFT_OUT_WENT_TO[int(cause)]
    assert values["count"] == 1 and values["share_pct"] > 40 and values["most_pct"] > 80
    (note,) = [s for s in analysis.suggestions if s.rule_id == "outlier-step"]
    assert note.values["what"] == named
    assert outlook(trace, analysis) == "healthy_but"


def test_a_short_hiccup_restricts_no_verdict(tmp_path: Path):
    trace = open_trace(simulate(hiccup(5_000, "python"), steps=40, warmup=4).write(tmp_path / "t.json"))
    assert verdict_head(trace, analyze(trace)) == ("Healthy", False)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("regular", [True, False])
def test_a_loop_that_its_loader_keeps_waiting_in_bursts_is_bound_by_it(reads: bool, regular: bool, tmp_path: Path):
    """Four processes deliver four batches at once: the wait of one step in four is part of the loop."""

    def program(m: Machine, number: int) -> None:
        m.loader(16_000 + (0 if regular else 1_000 * (number * 7 % 5 - 2)), workers=4)
        for _ in range(4):
            m.kernel_op("aten::mm", 500)
        if reads:
            m.item()

    run = simulate(program, steps=24, warmup=8)
    trace = open_trace(run.write(tmp_path / "t.json"))
    analysis = analyze(trace)
    summary = analysis.figures.summary
    assert summary.verdict == "input_bound"
    assert analysis.figures.step_figures.counted.sum() == 24
    assert summary.sustained_step_ns == pytest.approx(1000 * run.sustained_step_us, rel=0.03 if regular else 0.1)
    assert more_words(trace, analysis.figures) == ("", {})
    assert "outlier-step" not in {s.rule_id for s in analysis.suggestions}
    (card,) = [s for s in analysis.suggestions if s.rule_id == "loader-starves-step"]
    assert card is analysis.suggestions[0]
    assert 6 <= card.values["late"] < 12 and "of 24 steps wait" in card.explanation


def test_what_the_steps_take_with_those_left_out_is_said():
    trace = loop([1000 if i in (2, 9) else 100 for i in range(12)])
    template, values = more_words(trace, compute_figures(trace))
    words = fill(template, values)
    assert values["with_ms"] == pytest.approx((10 * 0.1 + 2 * 1.0) / 12, rel=0.15)  # the last step has no period
    assert "With them a step takes 2" in words and "µs on average" in words


@pytest.mark.parametrize("long", [290, 240])
def test_long_steps_below_the_limit_of_outliers_are_told(long: int):
    trace = loop([long if i in (2, 3, 9) else 100 for i in range(12)])
    figures = compute_figures(trace)
    assert figures.step_figures.counted.all()
    template, values = more_words(trace, figures)
    assert (template, values["count"], values["steps"]) == (NOW_AND_THEN, 3, 12)
    assert values["share_pct"] == pytest.approx(100 * 3 * (long - 100) / (900 + 3 * long), rel=0.1)


def test_a_rhythm_of_steps_below_the_limit_of_outliers_is_told():
    trace = loop([290 if i % 4 == 1 else 100 for i in range(16)])
    template, values = more_words(trace, compute_figures(trace))
    assert (template, values["every"]) == (IN_TURN, 4)
    assert values["share_pct"] == pytest.approx(100 * 190 / 590)


@pytest.mark.parametrize("rising", [True, False])
def test_steps_that_get_longer_or_shorter_are_told(rising: bool):
    """With some noise, as where a GPU's clock drops, or where caches fill."""
    durations = [200 + 6 * i + (7 * i % 5) * 4 for i in range(24)]
    trace = loop(durations if rising else durations[::-1])
    template, values = more_words(trace, compute_figures(trace))
    low, high = sorted((values["first_ms"], values["last_ms"]))
    assert template == (LONGER if rising else SHORTER)
    assert (low, high) == pytest.approx((np.mean(durations[:6]) / 1000, np.mean(durations[-6:]) / 1000), rel=0.05)


@pytest.mark.parametrize("later", [200, 500, 40])
def test_a_loop_that_turns_slower_or_faster_and_stays_so_has_no_outliers_and_is_told(later: int):
    """However much slower: half of the steps are no exception, and the mean is that of all."""
    durations = [100 + i % 3 for i in range(6)] + [later + i % 3 for i in range(5)]
    figures = compute_figures(trace := loop(durations))
    assert figures.step_figures.counted.all()
    assert figures.summary.step_ns == pytest.approx(1000 * np.mean(durations))
    template, values = more_words(trace, figures)
    assert template == (LONGER if later > 100 else SHORTER)
    assert (values["first_ms"], values["last_ms"]) == pytest.approx((0.1, later / 1000), rel=0.05)


@pytest.mark.parametrize("durations", [[100] * 9 + [500] * 3, [100] * 6 + [500, 100, 500, 100, 500]])
def test_a_few_long_steps_and_such_among_others_are_outliers_still(durations: list[int]):
    figures = compute_figures(loop(durations)).step_figures
    assert figures.counted.tolist() == [one == 100 for one in durations]


@pytest.mark.parametrize("seed", range(4))
def test_chance_makes_no_trend(seed: int):
    durations = np.random.default_rng(seed).integers(100, 180, 8 + 8 * seed).tolist()
    trace = loop(durations)
    assert more_words(trace, compute_figures(trace)) == ("", {})


def test_where_the_loader_takes_up_what_waits_leave_it_is_the_verdict(tmp_path: Path):
    """The device idles longer after waits than for the loader, whose processes set the pace all the same."""

    def program(m: Machine, number: int) -> None:
        m.loader(13_200, workers=4)
        for _ in range(6):
            m.kernel_op("aten::mm", 300)
            m.item()
            m.kernel_op("aten::add", 20, host_us=120)

    run = simulate(program, steps=24, warmup=8)
    trace = open_trace(run.write(tmp_path / "t.json"))
    analysis = analyze(trace)
    summary, idle = analysis.figures.summary, analysis.figures.budget.idle_by_cause_ns
    assert idle[GapCause.SYNC] > idle[GapCause.LOADER]
    assert summary.verdict == "input_bound"
    assert summary.sustained_step_ns == pytest.approx(1000 * run.sustained_step_us, rel=0.03)
