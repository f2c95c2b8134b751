"""Lines of what is made in one place and used in another: modules of builders, loops around helpers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.source import SourceFinder
from core.source_making import built_at, class_of_method, made_elsewhere
from core.source_syntax import find_function, loop_heads
from tests.core.rules.kit import built, run_rule, steps
from tests.trace_builder import TraceBuilder

NET = """class Block(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.bn(self.conv(x))

class Stem(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))

def build():
    return nn.Sequential(
        Stem(),
        nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8),
    )

net = build()
other = nn.Linear(1, 1), nn.ReLU()
for x in data:
    net(x)
"""


def _is_conv(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "Conv2d"


def test_modules_without_a_forward_of_their_own_are_made_in_constructors_and_builders() -> None:
    assert made_elsewhere(ast.parse(NET), _is_conv) == ((10, "__init__"), (15, "build"))


def test_a_line_that_makes_one_object_names_its_class() -> None:
    tree = ast.parse(NET)
    assert built_at(tree, 15) == "nn.Conv2d"
    assert built_at(tree, 20) == ""  # two of them
    assert built_at(tree, 22) == ""
    assert class_of_method(tree, "__init__", 9) == "Stem"
    assert class_of_method(tree, "build", 12) == ""


def test_the_bias_of_a_module_called_by_the_script_is_looked_for_where_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    dims = [[8, 8, 32, 32], [8, 8, 3, 3], [8], [], [], [], []]
    builder = steps(3).python(f"{tmp_path / 'net.py'}(1): <module>", 0, 3000)
    for number in range(3):
        for k in range(2):
            at = number * 1000.0 + 10 + 200 * k
            builder.python(f"nn.Module: Conv2d_{k}", at, 80).op("aten::conv2d", at + 2, 60, Input_Dims=dims)
            builder.op("aten::batch_norm", at + 90, 50, Input_Dims=[[8, 8, 32, 32], [8], [8], [8], [8]])
    (found,) = run_rule("conv-bias-before-batch-norm", built(builder), roots=(tmp_path,)).suggestions
    assert found.source is not None
    assert (found.source.line, found.source.also, found.source.exact) == (10, (15,), True)


HELPED = """def pick(rows, i):
    return rows[i]

def smooth(signal):
    out = []
    for i in range(len(signal)):
        row = pick(signal, i)
        out.append(row * 0.5)
    for other in range(3):
        out.append(other)
    return torch.stack(out)
"""


def test_a_loop_around_a_helper_is_named_by_its_head_not_by_the_helpers_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HELPED)
    builder = steps(3, 10_000.0, deviceProperties=[])
    for number in range(3):
        at = number * 10_000.0 + 10
        builder.python("train.py(4): smooth", at, 9_900)
        for one in range(20):
            start = at + 10 + one * 100
            builder.python("train.py(1): pick", start, 30).op("aten::select", start + 2, 20)
            builder.op("aten::mul", start + 40, 40)
        builder.op("aten::stack", at + 3_000, 100)
    (found,) = run_rule("loop-over-tensor-elements", built(builder), roots=(tmp_path,)).suggestions
    assert found.source is not None
    assert (found.source.line, found.source.function, found.source.exact) == (6, "smooth", True)


@pytest.mark.parametrize(("lines", "heads"), [((7,), (6,)), ((7, 8), (6,)), ((8, 10), (6, 9)), ((11,), ())])
def test_the_innermost_loop_around_a_line(lines: tuple[int, ...], heads: tuple[int, ...]) -> None:
    function = find_function(ast.parse(HELPED), "smooth", 4)
    assert function is not None
    assert loop_heads(function, lines) == heads


def test_without_the_source_a_loop_has_the_place_of_its_first_operator() -> None:
    trace = TraceBuilder(gpu=None).python("train.py(4): smooth", 0, 900).op("aten::select", 10, 20).build()
    op = next(i for i in range(len(trace.slices)) if trace.name(i) == "aten::select")
    place = SourceFinder(trace).of_loop(op, op)
    assert place is not None
    assert (place.line, place.exact) == (4, False)


SCRIPT = """torch.autograd.set_detect_anomaly(True)

def optimizer_of(net):
    return torch.optim.AdamW(net.parameters(), foreach=False)

def train(net, opt, data):
    for x, y in data:
        loss(net(x), y).backward()
        opt.step()
"""


def test_an_optimizer_and_a_debugging_mode_are_named_where_they_are_made_and_switched_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    builder = steps(3, 10_000.0, deviceProperties=[]).python("train.py(6): train", 0, 30_000)
    for number in range(3):
        at = number * 10_000.0 + 10
        for k in range(4):
            builder.python("torch/fx/traceback.py(70): format_stack", at + 50 * k, 40)
        builder.range("Optimizer.step#AdamW.step", at + 1_000, 3_000)
        for k in range(60):
            builder.op("aten::mul_", at + 1_010 + 40 * k, 30)
    trace = built(builder)
    for rule, line, function in (
        ("single-tensor-optimizer", 4, "optimizer_of"),
        ("debug-mode-left-on", 1, "<module>"),
    ):
        (seen,) = run_rule(rule, trace).suggestions
        (made,) = run_rule(rule, trace, roots=(tmp_path,)).suggestions
        assert made.source is not None
        assert (made.source.line, made.source.function, made.source.exact) == (line, function, True)
        assert seen.key == made.key
