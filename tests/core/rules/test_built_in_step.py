"""Objects that are built in the loop: the line is that of the call in it, not of one before it."""

from __future__ import annotations

from pathlib import Path

import pytest

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
