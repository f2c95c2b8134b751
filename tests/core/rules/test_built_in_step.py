"""Objects that are built in the loop: the line is that of the call in it, not of one before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.rule_tools.report import MOST_PLACES
from core.source import SourceFinder
from core.source_lines import LineRecord
from core.suggestions import SourceRef
from tests.core.rules.kit import built, run_rule
from tests.trace_builder import TraceBuilder

SOURCE = """class Head(nn.Module):
    def __init__(self):
        super().__init__()

net = nn.Sequential(nn.Linear(4, 4))
data = torch.ones(4)
for _ in range(9):
    z = net(data)
    head = Head() if mine else nn.CrossEntropyLoss(weight=torch.rand(9))
    head(z).backward()
"""


@pytest.mark.parametrize("frame", ["train.py(2): __init__", "torch/nn/modules/loss.py(1385): __init__"])
def test_the_line_is_that_of_the_call_in_the_loop(tmp_path: Path, frame: str) -> None:
    (tmp_path / "train.py").write_text(SOURCE)
    builder = TraceBuilder(gpu=None).python("train.py(1): <module>", 0, 4000)
    for number in range(4):
        at = 10 + number * 900.0
        builder.step(number + 2, at, 890).python("nn.Module: Sequential_0", at + 10, 300)
        builder.python(frame, at + 320, 60).python("torch/nn/modules/module.py(400): __init__", at + 325, 30)
        builder.python("nn.Module: Head_0", at + 390, 100).python("torch/_tensor.py(500): backward", at + 500, 300)
    result = run_rule("object-built-in-step", built(builder), roots=(tmp_path,))
    (found,) = result.suggestions
    assert found.source is not None
    assert (found.source.line, found.source.function, found.source.exact) == (9, "<module>", True)
    # of a torch class the line holds two calls that could be it; one of the user's own is known by its constructor
    assert found.values["what"] == ("Head" if frame.startswith("train") else "loss.py(1385)")


def test_the_class_is_named_where_the_source_says_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "def fit():\n    for _ in data:\n        norm = nn.LayerNorm(4)\n        norm(x)\n"
    )
    builder = TraceBuilder(gpu=None).python("train.py(1): fit", 0, 4000)
    for number in range(4):
        at = 10 + number * 900.0
        builder.step(number + 2, at, 890).python("torch/nn/modules/normalization.py(188): __init__", at + 20, 60)
        builder.python("nn.Module: LayerNorm_0", at + 100, 60)
    (found,) = run_rule("object-built-in-step", built(builder), roots=(tmp_path,)).suggestions
    assert found.headline == "An object is built anew in every step: nn.LayerNorm"


def test_two_kinds_that_one_function_builds_are_both_named_with_their_lines() -> None:
    names = ("normalization.py(188)", "linear.py(96)")
    builder = TraceBuilder(gpu=None).python("train.py(1): fit", 0, 4000)
    for number in range(4):
        at = 10 + number * 900.0
        builder.step(number + 2, at, 890)
        for offset, name in zip((20, 120), names, strict=True):
            builder.python(f"torch/nn/modules/{name}: __init__", at + offset, 60)
    trace = built(builder)
    made = [i for i in range(len(trace.slices.start_ns)) if trace.name(i).endswith("__init__")]
    made.sort(key=lambda i: int(trace.slices.start_ns[i]))
    lines = LineRecord(
        [trace.meta.origin_ns + int(trace.slices.start_ns[i]) for i in made],
        [trace.meta.origin_ns + int(trace.end_ns[i]) for i in made],
        ["train.py"] * len(made),
        [4 if "normalization" in trace.name(i) else 7 for i in made],
        ["fit"] * len(made),
    )
    (found,) = run_rule("object-built-in-step", trace, lines=lines).suggestions
    assert found.values["what"] == "normalization.py(188), linear.py(96)"
    assert found.source is not None
    assert (found.source.line, found.source.also, found.source.exact) == (4, (7,), True)


def test_the_lines_of_many_objects_are_not_all_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TraceBuilder(gpu=None).python("train.py(1): fit", 0, 4000)
    for number in range(3):
        builder.step(number + 2, 10 + number * 900.0, 890)
        for k in range(20):
            builder.python("torch/nn/modules/linear.py(96): __init__", 20 + number * 900.0 + k * 40, 30)
    asked: list[int] = []

    def of_slice(self: SourceFinder, slice_id: int, hint: str = "", is_call: bool = False) -> SourceRef:
        if is_call:
            asked.append(slice_id)
        return SourceRef("train.py", 2, "fit", True)

    monkeypatch.setattr(SourceFinder, "of_slice", of_slice)
    assert run_rule("object-built-in-step", built(builder)).suggestions
    assert 2 <= len(asked) <= MOST_PLACES + 1  # and once for its name
