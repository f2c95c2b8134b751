"""Idle time: every nanosecond has one cause, and the cause is what the launching thread was doing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.compute import compute_figures
from core.figures.gaps import _split_at, _step_at, spend
from core.kinds import GapCause
from core.tables import StepTable
from tests.trace_builder import TraceBuilder

US = 1000


def idle(figures) -> dict[GapCause, int]:
    gaps = figures.gaps
    total: dict[GapCause, int] = {}
    for cause, start, end in zip(gaps.cause, gaps.start_ns, gaps.end_ns, strict=True):
        total[GapCause(cause)] = total.get(GapCause(cause), 0) + int(end - start) // US
    return total


def loop(middle) -> TraceBuilder:
    """One step of 1000 us: a kernel until 100, something on the CPU, a kernel from 900 to the end."""
    builder = TraceBuilder().step(1, 0, 1000).op("aten::a", 0, 10).launch("first", at=0, call=5, start=0, dur=100)
    middle(builder)
    return builder.op("aten::b", 885, 10).launch("last", at=888, call=5, start=900, dur=100)


@pytest.mark.parametrize(
    ("cause", "middle"),
    [
        (GapCause.LOADER, lambda b: b.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 780)),
        (GapCause.LAUNCH, lambda b: b.op("aten::slow", 100, 780)),
        (GapCause.PYTHON, lambda b: b.python("train.py(3): think", 100, 780)),
        (GapCause.COMPILE, lambda b: b.python("torch/_dynamo/convert_frame.py(9): __call__", 100, 780)),
        (GapCause.COLLECTOR, lambda b: b.slice("python_function", "Python GC", 100, 780)),
        (GapCause.ALLOC, lambda b: b.runtime("cudaFree", 100, 780)),
        (GapCause.COMMUNICATION, lambda b: b.range("gloo:all_reduce", 100, 780)),
    ],
)
def test_cause(cause, middle):
    figures = compute_figures(loop(middle).build())
    assert idle(figures)[cause] == pytest.approx(785, abs=15)
    assert sum(idle(figures).values()) == 800
    mine = np.flatnonzero(figures.gaps.cause == cause)
    longest = mine[np.argmax((figures.gaps.end_ns - figures.gaps.start_ns)[mine])]
    assert figures.gaps.blame_id[longest] >= 0


def test_launched_work_that_the_device_does_not_start_is_held_up():
    trace = (
        TraceBuilder()
        .step(1, 0, 1000)
        .op("aten::a", 0, 10)
        .launch("first", at=0, call=5, start=400, dur=100)  # the device still does what was launched before
        .op("aten::b", 20, 10)
        .launch("last", at=20, call=5, start=700, dur=300)  # something unrecorded lies between
        .build()
    )
    figures = compute_figures(trace)
    assert idle(figures)[GapCause.QUEUED] == 395 + 200
    assert GapCause.UNKNOWN not in idle(figures)
    assert figures.budget.busy_ns + sum(figures.budget.idle_by_cause_ns.values()) == figures.budget.period_ns
    assert figures.extra["held_up_lead_ns"][0] == 395 * US
    assert [n.code for n in figures.doctor if n.code == "held-up-work"] == ["held-up-work"]


def test_a_step_in_which_nothing_of_the_cpu_was_recorded_says_nothing():
    figures = compute_figures(TraceBuilder().step(1, 0, 1000).kernel("k", 100, 300).build())
    assert idle(figures) == {GapCause.UNKNOWN: 700}
    assert figures.summary.verdict == "unknown"


def test_between_calls_without_operators_nobody_says_python():
    builder = TraceBuilder()
    for at in (0, 500):
        builder.launch("k", at=at, call=5, start=at + 5, dur=100)
    causes = idle(compute_figures(builder.build()))
    assert causes[GapCause.LAUNCH] == 5 + 400
    assert GapCause.PYTHON not in causes


def test_a_slow_call_is_start_up_not_launching():
    figures = compute_figures(
        TraceBuilder()
        .step(1, 0, 50_000)
        .runtime("cudaDeviceGetStreamPriorityRange", 10, 40_000)
        .launch("k", at=40_050, call=5, start=40_060, dur=9_940)
        .build()
    )
    assert idle(figures)[GapCause.COMPILE] == 40_000


def test_idle_inside_a_blocking_copy_is_the_copys():
    def middle(builder):
        builder.copy("HtoD (Pageable -> Device)", at=100, call=780, start=850, dur=30)

    figures = compute_figures(loop(middle).build())
    assert idle(figures)[GapCause.COPY] == 750
    assert sum(idle(figures).values()) == 770


def test_idle_after_a_wait_is_charged_to_it_as_far_as_it_is_long():
    trace = (
        TraceBuilder()
        .step(1, 0, 1000)
        .op("aten::a", 0, 10)
        .launch("first", at=0, call=5, start=0, dur=100)
        .runtime("cudaStreamSynchronize", 20, 80)  # waits 80 us for a busy device
        .op("aten::slow", 105, 790)
        .launch("last", at=888, call=5, start=900, dur=100)
        .build()
    )
    figures = compute_figures(trace)
    assert idle(figures)[GapCause.SYNC] == 80
    assert sum(idle(figures).values()) == 800
    first = int(np.argmax(figures.gaps.cause == GapCause.SYNC))
    assert trace.name(int(figures.gaps.blame_id[first])) == "cudaStreamSynchronize"


def test_nothing_recorded_is_unknown():
    trace = (
        TraceBuilder()
        .op("aten::a", 0, 10)
        .launch("first", at=0, call=5, start=0, dur=100)
        .op("aten::b", 9_885, 10)
        .launch("last", at=9_888, call=5, start=9_900, dur=100)
        .build()
    )
    causes = idle(compute_figures(trace))
    assert causes[GapCause.UNKNOWN] == pytest.approx(8_875, abs=2)
    assert causes[GapCause.PYTHON] == pytest.approx(910, abs=2)  # up to a millisecond after an operator


def test_backward_thread_is_judged_by_its_own_activity():
    trace = (
        TraceBuilder()
        .step(1, 0, 1000)
        .op("aten::a", 0, 10)
        .launch("first", at=0, call=5, start=0, dur=100)
        .op("autograd::engine", 100, 795, tid=200)
        .launch("last", at=888, call=5, start=900, dur=100, tid=200)
        .build()
    )
    assert idle(compute_figures(trace))[GapCause.LAUNCH] == pytest.approx(793, abs=8)


def test_busy_and_idle_make_the_period():
    builder = TraceBuilder()
    for i in range(5):
        at = i * 1000
        builder.step(i, at, 990).op("aten::a", at + 5, 300).launch("k", at=at + 10, call=5, start=at + 20, dur=400)
        builder.launch("m", at=at + 500, call=5, start=at + 510, dur=200)
    figures = compute_figures(builder.build())
    budget = figures.budget
    assert budget.basis == "period"
    assert budget.period_ns == 1000 * US
    assert budget.busy_ns == 600 * US
    assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns


amounts = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=8)


@given(amounts, amounts)
def test_bucket_spends_no_more_than_came_before(credits, uses):
    at, amount = (np.array(x, dtype=np.int64) for x in zip(*credits, strict=True))
    uses = sorted(uses)
    use_at, use = (np.array(x, dtype=np.int64) for x in zip(*uses, strict=True))
    spent, payer = spend(at, amount, use_at, use)
    level, events = (
        0,
        sorted(
            [(int(t), 0, int(c), -1) for t, c in credits] + [(int(t), 1, int(u), i) for i, (t, u) in enumerate(uses)]
        ),
    )
    for _, is_use, value, index in events:
        if is_use:
            took = min(level, value)
            assert spent[index] == took
            level -= took
        else:
            level += value
    assert all(payer[i] == -1 or at[payer[i]] <= use_at[i] for i in range(len(use)))


INSTANTS = st.integers(0, 50)


@given(st.lists(st.tuples(INSTANTS, st.integers(1, 30))), st.sets(INSTANTS))
def test_gaps_are_cut_at_every_border_inside(intervals, borders):
    lengths = np.array(list(itertools.chain.from_iterable(intervals)), np.int64)
    start, end = lengths.cumsum()[::2], lengths.cumsum()[1::2]
    wanted = []
    for number, (a, b) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        at = [a, *sorted(border for border in borders if a < border < b), b]
        wanted += [(left, right, number % 5, number) for left, right in itertools.pairwise(at)]
    number = np.arange(len(start))
    pieces = _split_at(
        start, end, (number % 5).astype(np.uint8), number.astype(np.int32), np.array(sorted(borders), np.int64)
    )
    assert list(zip(*(column.tolist() for column in pieces), strict=True)) == wanted


@given(st.lists(st.tuples(INSTANTS, INSTANTS)), st.lists(INSTANTS))
def test_each_gap_lies_in_the_step_that_begins_last_before_it(steps, instants):
    start, end = (np.array([step[k] for step in steps], np.int64) for k in (0, 1))
    ids = np.zeros(len(steps), np.int32)
    table = StepTable(start, end, start, ids, ids, ids, ids < 0)
    found = _step_at(table, np.array(sorted(instants), np.int64))
    wanted = []
    for at in sorted(instants):
        before = [(a, i) for i, (a, _) in enumerate(steps) if a <= at]
        last = max(before)[1] if before else -1
        wanted.append(last if before and at < steps[last][1] else -1)
    assert found.tolist() == wanted
