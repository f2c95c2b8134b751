"""A GPU that waits for Python code: the function that holds most of that time is named, and priced."""

from __future__ import annotations

from core.analysis import analyze
from core.trace import Trace
from tests.trace_builder import TraceBuilder


def program(prepare_us: float, kernel_us: float = 48) -> Trace:
    """Steps of a millisecond: ``prepare`` inside ``run`` in ``main``, then kernels of the rest."""
    builder = TraceBuilder()
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000).python("train.py(1): main", at, 1000).python("train.py(9): run", at, 995)
        builder.python("data.py(30): prepare", at + 1, prepare_us).python("data.py(50): resize", at + 2, prepare_us / 4)
        for k in range(6):
            start = at + prepare_us + 10 + (kernel_us + 2) * k
            builder.launch("k", at=start, call=3, start=start + 4, dur=kernel_us)
    return builder.build()


def test_the_deepest_function_that_holds_most_is_named_and_priced() -> None:
    analysis = analyze(program(640))
    found = next(s for s in analysis.suggestions if s.rule_id == "gpu-underfed")
    assert found.headline.endswith("the CPU is in prepare")
    assert "prepare (data.py:30)" in found.explanation  # not main or run around it, nor a part of it
    assert found.occurrences == 4
    assert found.saving.pct is not None
    assert 40 < found.saving.pct < 75
    assert found.saving.basis == "rough"
    assert found.source is not None
    assert "workers" in found.fix.summary


def test_a_busy_gpu_is_not_underfed() -> None:
    analysis = analyze(program(100))
    named = [s.headline for s in analysis.suggestions if s.rule_id == "gpu-underfed" and "prepare" in s.headline]
    assert named == []


def test_a_function_that_idles_a_gpu_that_works_most_of_the_time_is_named() -> None:
    """The GPU works 58 % of the time, but the rest is one function's, and could be won back."""
    found = [s for s in analyze(program(400, kernel_us=96)).suggestions if s.rule_id == "gpu-underfed"]
    assert [s.headline for s in found] == ["The GPU works 58 % of the time: the CPU is in prepare"]
    assert found[0].saving.pct is not None
    assert 25 < found[0].saving.pct < 42


def without_stacks(pause_us: float) -> Trace:
    """Steps of six operators with a kernel of 48 us each, and a pause in which nothing was recorded."""
    builder = TraceBuilder()
    for number in range(4):
        at = number * (390.0 + pause_us)
        builder.step(number, at, 390 + pause_us)
        for k in range(6):
            start = at + 10 + 60 * k + (pause_us if k > 2 else 0)
            builder.op(f"aten::op{k}", start, 20).launch("k", at=start + 2, call=3, start=start + 6, dur=48)
    return builder.build()


def test_without_stacks_the_place_is_named_and_what_to_record() -> None:
    (found,) = [s for s in analyze(without_stacks(600)).suggestions if s.rule_id == "gpu-underfed"]
    assert found.headline.endswith("what the CPU does then was not recorded")
    assert "between aten::op2 and aten::op3" in found.explanation
    assert found.fix.after == "with profile(with_stack=True) as prof:"
    assert len(found.steps) == 4
    assert found.saving.ns is None


def test_short_pauses_without_stacks_are_no_function() -> None:
    found = [s.headline for s in analyze(without_stacks(150)).suggestions if s.rule_id == "gpu-underfed"]
    assert [h for h in found if "was not recorded" in h] == []
