"""Lines by order: what ran inside a call of a function, laid against what its code evaluates."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.analysis import analyze
from core.importing import open_trace
from core.run_folder import SAMPLES, finder_for
from core.source import SourceFinder, lines_in_words
from core.source_calls import calls_of
from core.suggestions import SourceRef
from core.trace import Trace
from tests.trace_builder import TraceBuilder

Places = dict[tuple[str, str], tuple[str, int, tuple[int, ...]]]

# What a step runs, of programs of several shapes; "" is a call of a module.
SETUP_AND_LOOP = """def train(loader, device):
    model = Net().to(device)
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        x = x.to(torch.float32) / 255.0
        loss = model(x).sum()
"""
BRANCHES = """def train(loader, device):
    for x, y in loader:
        if x is None:
            x = y.exp()
        x = x.exp().abs()
        y = y.exp()
        x.sum()
"""
INNER_LOOP = """def train(loader, out, y):
    for x in loader:
        x = x.exp()
        for j in range(3):
            if out[j].argmax().item() == y[j].item():
                x = x + 1
        x = x.exp()
"""
AT_TOP = """import torch
weights = torch.ones(3).exp()
for _ in range(9):
    weights = weights.exp()
    weights.abs()
"""
TWINS = """def train(loader, fast):
    for x in loader:
        if fast:
            y = x.exp()
        else:
            y = x.exp()
"""


def _trace(function: str, line: int, ops: list[str], rounds: int = 3, first: int = 0) -> Trace:
    """Some steps of one call of a function; ``first`` turns the step's operators, as a step can begin anywhere."""
    builder = TraceBuilder()
    turned = ops[first:] + ops[:first]
    builder.python(f"train.py({line}): {function}", 0, 100 * rounds + 1)
    for step in range(rounds):
        builder.step(step, 100 * step, 100)
        for at, name in enumerate(turned):
            if name:
                builder.op(f"aten::{name}", 100 * step + 2 * at + 1, 1)
            else:
                builder.python("nn.Module: Net_0", 100 * step + 2 * at + 1, 1)
    return builder.build()


def _nth(trace: Trace, name: str, nth: int) -> int:
    return [i for i in range(len(trace.slices)) if trace.name(i) == name][nth]


def _found(tmp_path: Path, text: str, trace: Trace, slice_id: int, hint: str = "") -> SourceRef:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    found = SourceFinder(trace, [tmp_path]).of_slice(slice_id, hint)
    assert found is not None
    return found


STEP = ["to", "to", "to", "div", "", "sum"]


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("hint", ["", "batch"])
def test_what_recurs_is_in_the_loop_and_in_its_order_wherever_the_step_begins(
    tmp_path: Path, first: int, hint: str
) -> None:
    trace = _trace("train", 1, STEP, first=first)
    lines = sorted(
        _found(tmp_path, SETUP_AND_LOOP, trace, _nth(trace, "aten::to", 3 + k), hint).line for k in range(3)
    )  # of the second step
    assert lines == [4, 5, 6]
    assert _found(tmp_path, SETUP_AND_LOOP, trace, _nth(trace, "aten::div", 1)).line == 6


def test_the_first_step_counts_as_a_round_as_what_it_runs_runs_again(tmp_path: Path) -> None:
    trace = _trace("train", 1, STEP)
    found = _found(tmp_path, SETUP_AND_LOOP, trace, _nth(trace, "aten::to", 0), "batch")
    assert (found.line, found.exact) == (4, True)


def test_a_call_that_is_sure_to_run_and_was_not_seen_tells_equal_matches_apart(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.python("train.py(1): train", 0, 100)  # one step of it alone, no steps marked
    for at, name in enumerate(["to", "to", "to", "div", "sum"]):
        builder.op(f"aten::{name}", 2 * at + 1, 1)
    trace = builder.build()
    assert [_found(tmp_path, SETUP_AND_LOOP, trace, _nth(trace, "aten::to", k)).line for k in range(3)] == [4, 5, 6]


def test_a_branch_that_did_not_run_is_passed_over(tmp_path: Path) -> None:
    trace = _trace("train", 1, ["exp", "abs", "exp", "sum"])
    lines = [_found(tmp_path, BRANCHES, trace, _nth(trace, "aten::exp", 2 + k)).line for k in range(2)]
    assert lines == [5, 6]


def test_the_rounds_of_an_inner_loop_lead_back_to_its_lines(tmp_path: Path) -> None:
    trace = _trace("train", 1, ["exp", *["select", "argmax", "item", "select", "item"] * 3, "exp"])
    for nth in range(6):
        assert _found(tmp_path, INNER_LOOP, trace, _nth(trace, "aten::select", nth)).line == 5
    assert [_found(tmp_path, INNER_LOOP, trace, _nth(trace, "aten::exp", k)).line for k in range(2)] == [3, 7]


def test_code_of_a_file_itself_has_no_function_that_begins(tmp_path: Path) -> None:
    trace = _trace("<module>", 3, ["exp", "abs"])
    found = _found(tmp_path, AT_TOP, trace, _nth(trace, "aten::exp", 1))
    assert (found.line, found.exact) == (4, True)
    blind = SourceFinder(trace).of_slice(_nth(trace, "aten::exp", 1))
    assert blind is not None
    assert not blind.exact
    assert "function begins" not in blind.reason


def test_lines_that_fit_alike_are_candidates_and_named(tmp_path: Path) -> None:
    trace = _trace("train", 1, ["exp"])
    found = _found(tmp_path, TWINS, trace, _nth(trace, "aten::exp", 1))
    assert (found.line, found.exact, found.candidates) == (4, False, (6,))
    assert "line 6" in found.reason


def test_of_a_call_that_ran_very_much_only_what_is_near_is_looked_at(tmp_path: Path) -> None:
    builder = TraceBuilder().python("train.py(1): <module>", 0, 100_000)
    for at in range(4000):
        builder.op("aten::exp" if at % 2 == 0 else "aten::abs", 10 * at + 1, 5)
    trace = builder.build()
    assert _found(tmp_path, AT_TOP, trace, _nth(trace, "aten::exp", 1500)).line == 4
    assert _found(tmp_path, AT_TOP, trace, _nth(trace, "aten::abs", 1999)).line == 5


def test_what_the_code_does_not_hold_is_not_placed(tmp_path: Path) -> None:
    trace = _trace("train", 1, ["exp", "cumsum", "exp"])
    found = _found(tmp_path, TWINS, trace, _nth(trace, "aten::cumsum", 1))
    assert not found.exact


def test_calls_stand_in_the_order_of_their_evaluation() -> None:
    tree = ast.parse("y = -f(a @ b)[c > 0]\nz = [g(x) for x in h(y)]\nx += 1")
    labels = [min(call.labels - {"()", "radd", "rmatmul"}) for call in calls_of(tree)]
    assert labels == ["matmul", "f", "gt", "index", "neg", "h", "g", "add"]


def test_lines_are_listed_in_words() -> None:
    assert lines_in_words([5]) == "line 5"
    assert lines_in_words([8, 5]) == "lines 5 and 8"
    assert lines_in_words([8, 5, 9, 11, 12]) == "lines 5, 8, 9 and 2 more"


def _of_stage(stage: int) -> Places:
    """Every place that the story's suggestions must name: (rule, function) -> file, line, other lines."""
    own = f"stage{stage}.py"
    places: Places = {("float-batch-copied", "train"): ("common.py", 117, ())}
    softmax = {0: 13, 1: 12, 2: 12, 3: 12, 4: 12, 5: 12}
    nll = {0: 19, 1: 18, 2: 17, 3: 17}
    if stage in softmax:
        places["hand-written-composite-op", "log_softmax"] = (own, softmax[stage], ())
    if stage in nll:
        places["hand-written-composite-op", "weighted_nll"] = (own, nll[stage], ())
    if stage in (0, 1, 2):
        places["host-list-index", "weighted_nll"] = (own, nll[stage], ())
    if stage in (0, 1):
        places["control-flow-on-device-tensor", "weighted_nll"] = (own, 17 - stage, ())
    if stage == 0:
        places["constant-copied-each-step", "forward"] = (own, 28, ())
    if stage == 4:
        places["object-built-in-step", "forward"] = (own, 21, ())
    if stage in (4, 5):
        places["unfused-cross-entropy", "forward"] = (own, 22 if stage == 4 else 21, ())
    return places


COPIES: Places = {("copy-not-overlapped", "train"): ("common.py", 115, (116,))}
COMPILED: Places = {("compile-without-gain", "train"): ("common.py", 118, ())}
EXPECTED: dict[str, Places] = {f"story_stage{k}": _of_stage(k) for k in range(8)}
EXPECTED["story_stage6"] |= COPIES
EXPECTED["story_stage7"] |= COPIES | COMPILED
EXPECTED |= {f"article_stage{k}": _of_stage(k) | COPIES for k in (0, 2, 3, 6)}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_suggestion_of_the_story_points_at_its_line(name: str) -> None:
    trace = open_trace(SAMPLES / f"{name}_simulated.json.gz")
    found = [s for s in analyze(trace, source=finder_for(trace)).suggestions if s.source is not None]
    places = {(s.rule_id, s.source.function): (s.source.file, s.source.line, s.source.also) for s in found if s.source}
    assert places == EXPECTED[name]
    assert all(s.source.exact for s in found if s.source)
