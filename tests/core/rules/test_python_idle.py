"""A GPU that waits for Python code: the function that holds most of that time is named, and priced."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import built, run_rule
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


def on_cpu(held_us: float, *calls: str, outer: str = "", stacks: bool = True) -> Trace:
    """Steps of a millisecond of a CPU: ``prepare`` with its calls one in another, and operators in what is left."""
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000)
        if stacks:
            builder.python("train.py(1): main", at, 1000).python("data.py(30): prepare", at + 1, held_us)
            for depth, name in enumerate(calls, 2):
                builder.python(name, at + depth, held_us - 2 * depth)
        if outer:
            builder.range(outer, at + 0.5, held_us + 1)
        builder.op("aten::mm", at + held_us + 5, 990 - held_us)
    return builder.build()


def test_on_a_cpu_the_function_that_keeps_operators_waiting_is_named_and_priced() -> None:
    analysis = analyze(on_cpu(400, "json/decoder.py(3): decode"))
    (found,) = [s for s in analysis.suggestions if s.rule_id == "python-work-in-step"]
    assert found.headline == "Python code of prepare takes 40 % of the step"
    assert "prepare (data.py:30)" in found.explanation
    assert "99 %, is the own time of json/decoder.py(3): decode" in found.explanation
    assert found.saving.pct is not None
    assert 38 < found.saving.pct < 42
    assert (found.saving.basis, found.occurrences, found.source.function) == ("rough", 4, "prepare")


def test_on_a_cpu_a_function_that_runs_operators_is_placed_by_what_it_costs() -> None:
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000).python("train.py(1): main", at, 1000).python("data.py(30): mix", at + 1, 998)
        for k in range(5):
            builder.op("aten::mm", at + 10 + 200 * k, 100)
    (found,) = [s for s in analyze(builder.build()).suggestions if s.rule_id == "python-work-in-step"]
    assert found.headline == "Python code of mix takes 50 % of the step"
    assert (found.saving.ns, found.costs_ns, found.severity) == (None, 498_000, "high")


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_on_a_cpu_little_python_torch_s_own_and_a_loader_s_is_not_named() -> None:
    for trace in (
        on_cpu(60),
        on_cpu(400, "torch/nn/modules/module.py(5): _call_impl"),
        on_cpu(400, "torch/autograd/graph.py(5): run", "<built-in method run_backward of torch._C._EngineBase>"),
        on_cpu(400, outer=LOADER),
    ):
        assert [s.headline for s in analyze(trace).suggestions if s.rule_id == "python-work-in-step"] == []


def test_on_a_cpu_without_stacks_nothing_is_decided() -> None:
    (result,) = [r for r in analyze(on_cpu(400, stacks=False)).rules if r.rule.id == "python-work-in-step"]
    assert (result.outcome, "with_stack=True" in result.reason) == (Outcome.NOT_CHECKED, True)


def test_on_a_cpu_a_script_s_own_code_is_named_and_its_comprehensions_are_part_of_it(tmp_path: Path) -> None:
    source = "import json\nx = build()\nfor _ in range(9):\n    y = x @ x\n    log.write(json.dumps(y.tolist()))\n"
    (tmp_path / "train.py").write_text(source)
    builder = TraceBuilder(gpu=None).python("train.py(1): <module>", 0, 4100)  # it begins before the steps
    for number in range(4):
        at = 10 + number * 1000.0
        builder.step(number + 2, at, 990).op("aten::matmul", at + 5, 480)
        builder.python("json/__init__.py(183): dumps", at + 500, 400).python("train.py(7): <listcomp>", at + 901, 50)
    result = run_rule("python-work-in-step", built(builder), roots=(tmp_path,))
    (found,) = result.suggestions
    assert found.headline == "Python code of the script itself takes 45 % of the step"
    assert found.source is not None
    assert (found.source.line, found.occurrences) == (5, 1)


@pytest.mark.parametrize(
    ("frame", "share"),
    [
        ("data.py(9): fetch", 59),  # it goes on after the step: 590 us of it lie in steps of a millisecond
        ("<steplens>/hooks(181): __next__", 0),  # around a loader, whose time has rules of its own
        ("<built-in function collect>", 0),
        ("Python GC", 0),
    ],
)
def test_on_a_cpu_only_time_of_the_steps_counts_and_only_that_of_no_other_rule(frame: str, share: int) -> None:
    builder = TraceBuilder(gpu=None).python("train.py(1): <module>", 0, 9000)
    for number in range(4):
        at = 10 + number * 2000.0
        builder.step(number + 2, at, 1000).op("aten::matmul", at + 5, 400).python(frame, at + 410, 1500)
    titles = [s.headline for s in run_rule("python-work-in-step", built(builder)).suggestions]
    assert titles == ([f"Python code of fetch takes {share} % of the step"] if share else [])


def _called_often(own_us: float) -> Trace:
    """Twenty calls of a helper a step, each with an operator and so much time of its own around it."""
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000).python("train.py(1): main", at, 1000)
        for k in range(20):
            builder.python("data.py(30): centre", at + 2 + 49 * k, 20 + own_us)
            builder.op("aten::mul", at + 3 + 49 * k, 20).op("aten::sub", at + 23 + own_us + 49 * k, 24 - own_us)
    return builder.build()


def test_what_many_short_calls_cost_around_operators_is_no_work_of_their_own() -> None:
    """Half of that is the recording's; what calls them so often has a rule of its own."""
    headlines = [
        [s.headline for s in analyze(_called_often(us)).suggestions if s.rule_id == "python-work-in-step"]
        for us in (10, 22)
    ]
    assert headlines == [[], ["Python code of centre takes 44 % of the step"]]
