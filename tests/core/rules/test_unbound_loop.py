"""``for x in t``: one ``aten::unbind``, and as many rounds of the loop's operators behind it as it has pieces."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.trace import Trace
from tests.trace_builder import TraceBuilder

RULE = "loop-over-tensor-elements"


def program(pieces: int, rounds: int) -> Trace:
    """Steps of 2 ms on the CPU: a tensor is taken into pieces, then some rounds of three operators run."""
    builder = TraceBuilder(gpu=None)
    for step in range(4):
        at = step * 2000.0
        builder.step(step, at, 2000).op("aten::linear", at + 5, 200).op("aten::unbind", at + 210, 3 * pieces + 5)
        for k in range(pieces):
            builder.op("aten::select", at + 212 + 3 * k, 2)
        start = at + 230 + 3 * pieces
        for k in range(rounds):
            for number, name in enumerate(("aten::max", "aten::min", "aten::sub")):
                builder.op(name, start + 30 * k + 10 * number, 9)
    return builder.build()


def test_a_loop_over_a_tensor_is_found_and_priced() -> None:
    found = [s for s in analyze(program(20, 20)).suggestions if s.rule_id == RULE]
    assert [s.headline for s in found] == ["A Python loop takes a tensor piece by piece: 20 rounds"]
    assert found[0].saving.pct is not None
    assert 15 < found[0].saving.pct < 31


@pytest.mark.parametrize(("pieces", "rounds"), [(3, 3), (20, 12)])
def test_few_pieces_or_other_rounds_are_no_such_loop(pieces: int, rounds: int) -> None:
    assert RULE not in {s.rule_id for s in analyze(program(pieces, rounds)).suggestions}


@pytest.mark.parametrize(("node", "loops"), [("StackBackward0", 0), ("MyFunctionBackward", 4)])
def test_a_node_of_the_backward_pass_takes_its_gradient_apart_by_itself(node: str, loops: int) -> None:
    builder = TraceBuilder(gpu=None)
    for step in range(4):
        at = step * 2000.0
        builder.step(step, at, 2000).op("aten::linear", at + 5, 200).op(node, at + 210, 900)
        for k in range(40):
            builder.op("aten::select", at + 215 + 20 * k, 19)
    found = [s.occurrences for s in analyze(builder.build()).suggestions if s.rule_id == RULE]
    assert sum(found) == loops
