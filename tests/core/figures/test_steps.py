"""Steps: what belongs to them, their three times, which of them count, and when they only measure queueing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis import analyze
from core.figures.compute import compute_figures
from core.figures.model import BREAKDOWN_PARTS
from core.figures.steps import median_of_others
from core.importing import open_trace
from core.suggestions import Outcome
from core.trace import Trace
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder, rows

US = 1000


def steady(durations: list[int], kernels: list[int] | None = None) -> TraceBuilder:
    """Steps one after the other, each with as many kernels of 20 us as stated."""
    builder, at = TraceBuilder(), 0
    for i, dur in enumerate(durations):
        builder.step(i, at, dur)
        for k in range(kernels[i] if kernels else 2):
            builder.launch("k", at=at + 1 + 25 * k, call=3, start=at + 5 + 25 * k, dur=20)
        at += max(dur, 100)
    return builder


def test_device_work_belongs_to_the_step_that_launched_it():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 100)
        .launch("late", at=90, call=5, start=150, dur=30)
        .launch("own", at=120, call=5, start=180, dur=10)
        .kernel("orphan", 20, 10)
        .build()
    )
    figures = compute_figures(trace)
    assert figures.step_of[rows(trace, "late")].tolist() == [0]
    assert figures.step_of[rows(trace, "own")].tolist() == [1]
    assert figures.step_of[rows(trace, "orphan")].tolist() == [-1]
    assert figures.step_figures.gpu_lag_ns.tolist() == [80 * US, -10 * US]
    assert figures.step_figures.device_end_ns.tolist() == [180 * US, 190 * US]


def test_three_step_times_and_the_period_of_the_same_work():
    builder = TraceBuilder()
    for i in range(4):
        at = i * 100
        if i % 2:  # every other step begins with a memset of its own
            builder.memset(at + 3, 2)
        builder.step(i, at, 100).launch("first", at=at + 5, call=2, start=at + 10 + i, dur=30)
    figures = compute_figures(builder.build())
    assert figures.summary.step_ns == 100 * US
    assert figures.summary.device_step_ns == 30 * US
    assert figures.step_figures.period_ns.tolist() == [101 * US] * 3 + [-1]
    assert figures.summary.kernels_per_step == 1


def test_a_copy_stream_that_runs_ahead_does_not_set_the_period():
    builder = TraceBuilder()
    for i in range(5):  # 50 us to queue; copies at the CPU's pace, kernels one after the other
        at = i * 50
        builder.step(i, at, 50).copy("HtoD (Pinned -> Device)", at=at + 2, call=3, start=at + 6, dur=5, stream=20)
        builder.launch("k", at=at + 10, call=5, start=20 + 300 * i, dur=299)
    assert compute_figures(builder.build()).summary.period_ns == 300 * US


def test_holes_between_windows_have_no_period():
    builder = steady([100, 100])
    builder.step(10, 5000, 100).launch("k", at=5001, call=3, start=5005, dur=20)
    figures = compute_figures(builder.build())
    assert figures.step_figures.period_ns.tolist() == [100 * US, -1, -1]
    assert figures.summary.gpu_busy_pct is not None
    assert figures.summary.gpu_busy_pct > 30  # the hole of 4.8 ms is not idle time


def test_warm_up_truncated_and_outlier_steps_are_left_out_and_say_why():
    figures = compute_figures(steady([900, 100, 100, 500, 100, 100], [2, 2, 2, 2, 2, 1]).build()).step_figures
    assert figures.counted.tolist() == [False, True, True, False, True, False]
    assert [why.split(":")[0] for why in figures.why_not] == ["warm-up", "", "", "outlier", "", "truncated"]


def test_a_step_without_a_valid_duration_is_in_no_mean():
    figures = compute_figures(steady([100, 100, -1, 100, 100]).build())
    assert figures.step_figures.counted.tolist() == [True, True, False, True, True]
    assert figures.step_figures.why_not[2].startswith("unfinished")
    assert (figures.summary.step_ns, figures.summary.step_median_ns) == (100 * US, 100 * US)


def test_when_no_step_is_faultless_the_least_bad_count():
    figures = compute_figures(steady([900, 100], [4, 1]).build()).step_figures
    assert figures.counted.tolist() == [True, False]


def test_means_leave_out_uncounted_steps():
    summary = compute_figures(steady([900, 100, 110, 120, 130]).build()).summary
    assert summary.steps == 5
    assert summary.step_ns == 115 * US
    assert summary.step_median_ns == 115 * US


def test_enqueue_time_is_recognised_and_judged_by_the_device():
    builder = TraceBuilder()
    for i in range(5):  # 100 us to queue, 300 us to run
        builder.step(i, i * 100, 100).op("aten::mm", i * 100 + 5, 50)
        builder.launch("k", at=i * 100 + 10, call=5, start=20 + 300 * i, dur=299)
    figures = compute_figures(builder.build())
    assert figures.summary.enqueue_bound is True
    assert figures.summary.step_ns == 100 * US
    assert figures.summary.period_ns == 300 * US
    assert figures.summary.verdict == "device_bound"
    assert "enqueue-time" in [note.code for note in figures.doctor]


def test_enqueue_time_is_recognised_around_a_long_step_in_which_the_device_catches_up():
    builder, at, device = TraceBuilder(), 0, 1000
    for i in range(9):  # 100 us to queue, 300 us to run; an evaluation in the fifth step; work queued before
        dur = 3000 if i == 4 else 100
        builder.step(i, at, dur).op("aten::mm", at + 5, 50)
        device = max(device, at + 20)
        builder.launch("k", at=at + 10, call=5, start=device, dur=299)
        at, device = at + dur, device + 300
    summary = compute_figures(builder.build()).summary
    assert summary.step_ns == 100 * US
    assert summary.enqueue_bound is True


def test_steady_steps_are_no_enqueue_time():
    assert compute_figures(steady([100] * 5).build()).summary.enqueue_bound is False


def test_breakdown_goes_by_priority_and_adds_up():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .op("aten::mm", 0, 60)
        .range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 50, 20)
        .range("Optimizer.step#SGD.step", 70, 20)
        .launch("k", at=10, call=10, start=15, dur=10)
        .memcpy("DtoD (Device -> Device)", 20, 10)
        .memset(28, 4)
        .build()
    )
    parts = dict(
        zip(BREAKDOWN_PARTS, (compute_figures(trace).step_figures.breakdown_ns[0] // US).tolist(), strict=True)
    )
    assert parts == {
        "kernel": 10,
        "memcpy": 5,
        "memset": 2,
        "communication": 0,
        "runtime": 5,
        "dataloader": 20,
        "cpu_exec": 28,
        "other": 30,
    }


def test_the_device_twin_of_a_step_is_no_step():
    trace = steady([100, 100]).device_range("ProfilerStep#0", 5, 60).build()
    assert compute_figures(trace).summary.steps == 2


def test_own_step_ranges_become_inferred_steps():
    builder = TraceBuilder()
    for i in range(3):
        builder.range(f"train_step {i}", i * 100, 90).op("aten::mm", i * 100 + 5, 20)
    builder.range("backward", 250, 20)
    figures = compute_figures(builder.build())
    assert figures.steps.inferred.tolist() == [True] * 3
    assert figures.step_figures.dur_ns.tolist() == [100 * US, 100 * US, 90 * US]  # each up to the next one


def named_ranges(gaps: list[int], length: int = 100, loader: bool = False) -> TraceBuilder:
    """Ranges named like a step with a kernel each, and that much time before each."""
    builder, at = TraceBuilder(), 0
    for i, gap in enumerate(gaps):
        if loader and gap:
            builder.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, gap)
        at += gap
        builder.range(f"train_step {i}", at, length)
        builder.launch("k", at=at + 1, call=3, start=at + 5, dur=60)
        at += length
    return builder


@pytest.mark.parametrize("gap", [50, 150, 900])
def test_time_between_the_users_own_ranges_is_in_the_step(gap):
    """A loop fetches its batch there; whether a gap is longer than the range makes no difference."""
    figures = compute_figures(named_ranges([gap] * 5).build())
    assert figures.step_figures.dur_ns.tolist() == [(100 + gap) * US] * 4 + [100 * US]
    assert figures.summary.period_ns == (100 + gap) * US
    assert figures.budget.period_ns == (100 + gap) * US
    assert figures.step_figures.counted.tolist() == [True] * 4 + [False]  # what follows the last one is unknown
    assert figures.step_figures.why_not[-1].startswith("truncated")


def test_ranges_that_follow_each_other_closely_are_whole_steps():
    figures = compute_figures(named_ranges([1] * 5).build()).step_figures
    assert figures.counted.all()
    assert figures.dur_ns.tolist() == [101 * US] * 4 + [100 * US]


def test_a_pause_of_the_loop_is_in_no_step():
    figures = compute_figures(named_ranges([20, 20, 20, 900, 20, 20]).build()).step_figures
    assert figures.dur_ns.tolist() == [120 * US] * 2 + [100 * US] + [120 * US] * 2 + [100 * US]
    assert figures.counted.tolist() == [True, True, False, True, True, False]
    assert figures.period_ns.tolist() == [120 * US, 120 * US, -1, 120 * US, 120 * US, -1]
    closely = compute_figures(named_ranges([1, 1, 1, 900, 1, 1]).build()).step_figures
    assert closely.counted.all()
    assert closely.dur_ns.max() == 101 * US


def test_a_long_wait_for_the_loader_is_no_pause():
    figures = compute_figures(named_ranges([0, 0, 0, 250, 0, 0], loader=True).build()).step_figures
    assert figures.dur_ns.tolist() == [100 * US] * 2 + [350 * US] + [100 * US] * 3


def test_two_ranges_far_apart_are_no_loop():
    figures = compute_figures(named_ranges([0, 900]).build()).step_figures
    assert figures.dur_ns.tolist() == [100 * US] * 2
    assert figures.period_ns.tolist() == [-1, -1]


def test_loader_marks_stand_at_the_beginning_of_a_step():
    builder = TraceBuilder()
    for i in range(4):
        builder.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", i * 100, 30)
        builder.range("Optimizer.step#SGD.step", i * 100 + 80, 10)
    figures = compute_figures(builder.build())
    assert figures.steps.start_ns.tolist() == [0, 100 * US, 200 * US]
    assert "no-steps-marked" in [note.code for note in figures.doctor]


def test_nothing_that_repeats_gives_no_steps():
    figures = compute_figures(TraceBuilder().op("aten::mm", 0, 10).range("Optimizer.step#SGD.step", 20, 5).build())
    assert len(figures.steps) == 0
    assert figures.summary.step_ns is None
    assert figures.summary.sync_points_per_step is None


@given(st.lists(st.integers(0, 50), min_size=2, max_size=12))
def test_median_of_others(values):
    array = np.array(values, dtype=np.int64)
    expected = [float(np.median(np.delete(array, i))) for i in range(len(array))]
    assert median_of_others(array).tolist() == expected


@pytest.mark.parametrize("durations", [[900, 100, 100, 100, 100], [100, 100, 900, 100, 100], [900, 800, 100, 100, 100]])
def test_warm_up_and_outliers_are_not_in_the_busy_share(durations):
    """The share beside the budget is of the same steps as the budget: a step of start-up must not dilute it."""
    builder, at = TraceBuilder(), 0
    for number, length in enumerate(durations):
        builder.step(number, at, length).launch("k", at=at + 1, call=3, start=at + 5, dur=60)
        at += length
    figures = compute_figures(builder.build())
    budget = figures.budget
    assert not figures.step_figures.counted.all()
    assert figures.summary.gpu_busy_pct == pytest.approx(60, abs=0.1)
    assert figures.summary.kernel_busy_pct == pytest.approx(60, abs=0.1)
    assert list(figures.busy_by_device_pct.values()) == [pytest.approx(60, abs=0.1)]
    assert list(figures.busy_by_stream_pct.values()) == [pytest.approx(60, abs=0.1)]
    assert figures.summary.gpu_busy_pct == pytest.approx(100 * budget.busy_ns / budget.period_ns, abs=1)
    assert figures.gaps.start_ns.min() < 1000 * 100  # the idle time of the others is still shown


def test_the_only_step_is_in_the_busy_share_whatever_it_is():
    builder = TraceBuilder().step(0, 0, 100).launch("k", at=1, call=3, start=5, dur=60)
    assert compute_figures(builder.build()).summary.gpu_busy_pct == pytest.approx(60)


def every_third_logs(m: Machine, number: int) -> None:
    """10 ms of work that is queued in no time; every third step reads the loss."""
    for _ in range(10):
        m.kernel_op("aten::mm", 1_000)
    if number % 3 == 0:
        m.item()


@pytest.mark.parametrize("first_number", [2, 3])
def test_steps_that_wait_for_what_was_queued_before_are_no_outliers(tmp_path, first_number):
    run = simulate(every_third_logs, steps=9, first_number=first_number)
    figures = compute_figures(open_trace(run.write(tmp_path / "t.json")))
    steps = figures.step_figures
    assert steps.dur_ns.max() > 20 * np.median(steps.dur_ns)
    assert steps.counted.all()
    assert figures.summary.sync_wait_ns_per_step == pytest.approx(1000 * run.wait_us_per_step, rel=0.01)


def test_a_step_that_keeps_the_device_waiting_is_an_outlier_though_it_waits_too(tmp_path):
    """Start-up, an evaluation and a stop of the host change the pace; reading a number does not."""

    def program(m: Machine, number: int) -> None:
        if number == 2:
            m.cpu(60_000)  # before the first work: the periods do not show it
        if number == 5:
            for _ in range(40):
                m.kernel_op("aten::mm", 1_000)
            m.item()
        if number == 9:
            m.cpu(90_000)
        every_third_logs(m, number)

    run = simulate(program, steps=12, first_number=2, warmup=0)
    why = compute_figures(open_trace(run.write(tmp_path / "t.json"))).step_figures.why_not
    beside = "beside an outlier"  # the stop lies before the first work of its step
    assert [one.split(":")[0] for one in why] == ["warm-up", "", "", "outlier", "", "", beside, "outlier", *[""] * 4]


@pytest.mark.parametrize("rule", ["outlier-step", "warmup-captured"])
def test_no_rule_calls_a_step_odd_that_only_waits(tmp_path, rule):
    run = simulate(every_third_logs, steps=9, first_number=3)
    analysis = analyze(open_trace(run.write(tmp_path / "t.json")))
    assert next(r for r in analysis.rules if r.rule.id == rule).outcome is Outcome.CLEAN


def two_models(m: Machine) -> None:
    """A discriminator and a generator, each with an optimizer of the same class; the loss is read."""
    for layers in (6, 3):
        for _ in range(layers):
            m.kernel_op("aten::mm", 100)
        for _ in range(layers):
            m.kernel_op("aten::mul", 100)
        with m.range("Optimizer.step#Adam.step"):
            m.kernel_op("aten::_fused_adam_", 20)
    m.item()


@pytest.mark.parametrize("with_loader", [False, True])
def test_two_optimizers_of_one_class_make_one_iteration(tmp_path, with_loader):
    def program(m: Machine, number: int) -> None:
        if with_loader:
            m.loader(50, workers=2)
        two_models(m)

    run = simulate(program, steps=6, marked=False)
    figures = compute_figures(open_trace(run.write(tmp_path / "t.json")))
    assert len(figures.steps) == 5
    assert figures.step_figures.counted.all()
    assert figures.summary.period_ns == pytest.approx(1000 * run.sustained_step_us, rel=0.02)
    assert figures.summary.sync_wait_ns_per_step == pytest.approx(1000 * run.wait_us_per_step, rel=0.1)


def train(m: Machine, ops: tuple[str, ...], optimizer: str = "Adam") -> None:
    for op in ops:
        m.kernel_op(f"aten::{op}", 100)
    with m.range(f"Optimizer.step#{optimizer}.step"):
        m.kernel_op("aten::_fused_adam_", 20)


@pytest.mark.parametrize("generators", ["Adam", "RMSprop"])
@pytest.mark.parametrize("critics", [2, 5])
def test_several_steps_of_a_critic_and_one_of_a_generator_make_one_iteration(tmp_path, critics, generators):
    def program(m: Machine, number: int) -> None:
        for _ in range(critics):
            train(m, ("mm", "mm", "mul", "sub", "norm", "pow"))
        train(m, ("conv", "conv", "mm", "tanh"), generators)
        m.item()

    run = simulate(program, steps=5, marked=False)
    figures = compute_figures(open_trace(run.write(tmp_path / "t.json")))
    assert len(figures.steps) == 4
    assert figures.summary.period_ns == pytest.approx(1000 * run.sustained_step_us, rel=0.02)


@pytest.mark.parametrize("every", [3, 5])
def test_an_iteration_with_an_evaluation_is_still_one(tmp_path, every):
    def program(m: Machine, number: int) -> None:
        train(m, ("mm", "mul", "sub", "norm"))
        if number % every == 0:
            for _ in range(6):
                m.kernel_op("aten::mm", 100)

    run = simulate(program, steps=16, marked=False)
    assert len(compute_figures(open_trace(run.write(tmp_path / "t.json"))).steps) == 15


def test_an_iteration_that_logs_every_other_time_is_still_one(tmp_path):
    def program(m: Machine, number: int) -> None:
        for _ in range(12):
            m.kernel_op("aten::mm", 100)
        with m.range("Optimizer.step#Adam.step"):
            m.kernel_op("aten::_fused_adam_", 20)
        if number % 2:
            m.item()

    run = simulate(program, steps=9, marked=False)
    assert len(compute_figures(open_trace(run.write(tmp_path / "t.json"))).steps) == 8


@pytest.mark.parametrize("outer", ["CombinedOptimizer", "Adam"])
def test_the_marks_of_an_optimizer_made_of_others_are_one_iteration_each(outer):
    builder = TraceBuilder()
    for i in range(3):
        builder.op("aten::mm", 100 * i, 50).range(f"Optimizer.step#{outer}.step", 100 * i + 60, 36)
        for part in range(3):
            builder.range("Optimizer.step#Adam.step", 100 * i + 61 + 10 * part, 9)
    steps = compute_figures(builder.build()).steps
    assert steps.start_ns.tolist() == [60 * US, 160 * US]
    assert steps.end_ns.tolist() == [160 * US, 260 * US]


def micro_batches(durations: list[int], first: int) -> Trace:
    """Marked micro batches; every fourth one, from ``first`` on, holds the optimizer's step."""
    builder, at = TraceBuilder(), 0
    for i, dur in enumerate(durations):
        builder.step(i, at, dur).op("aten::mm", at + 5, 50).launch("k", at=at + 10, call=5, start=at + 20, dur=70)
        if i % 4 == first:
            builder.range("Optimizer.step#SGD.step", at + 95, dur - 96)
        at += dur
    return builder.build()


@pytest.mark.parametrize("first", [0, 3])
def test_the_optimizers_step_after_several_micro_batches_is_no_outlier(first: int):
    analysis = analyze(micro_batches([400 if i % 4 == first else 100 for i in range(9)], first))
    assert analysis.figures.step_figures.counted.tolist() == [True] * 8 + [False]  # whole rounds
    assert analysis.figures.summary.step_ns == 175 * US
    assert {"outlier-step", "warmup-captured"}.isdisjoint(s.rule_id for s in analysis.suggestions)


def test_an_update_far_longer_than_the_others_is_an_outlier_still():
    durations = [400 if i % 4 == 3 else 100 for i in range(12)]
    durations[7] = 9000
    figures = compute_figures(micro_batches(durations, 3)).step_figures
    assert figures.why_not[7].startswith("outlier")
    assert figures.why_not[3] == ""
