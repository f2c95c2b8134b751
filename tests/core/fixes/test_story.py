"""The fixes of the reference story, one on top of the other, from the example's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.fixes import attempt
from core.suggestions import SourceRef, Suggestion

STORY = Path(__file__).parents[3] / "examples" / "reference_story"


def fixed(text: str, rule: str, function: str, marker: str) -> str:
    """The text after the fix of a rule whose suggestion points to the line with the marker."""
    line = next(n for n, row in enumerate(text.splitlines(), 1) if marker in row)
    suggestion = Suggestion(rule, "t", source=SourceRef("stage.py", line, function, True))
    edit, why = attempt(text, suggestion, "stage.py")
    assert edit is not None, f"{rule}: {why}"
    return edit.after


def test_stage_0_to_the_end():
    text = (STORY / "stage0.py").read_text("utf-8")
    text = fixed(text, "constant-copied-each-step", "forward", "torch.Tensor([0.1]")
    assert "weight = torch.full((10,), 0.1, device=scores.device)" in text
    text = fixed(text, "control-flow-on-device-tensor", "weighted_nll", "assert target.max()")
    assert "torch._assert_async(target.max() < 10)" in text
    text = fixed(text, "host-list-index", "weighted_nll", "nll = -log_probs[rows")
    assert "rows = torch.arange(target.shape[0], device=log_probs.device)" in text
    text = text.replace("    torch._assert_async(target.max() < 10)\n", "")  # checked in the data set instead
    text = fixed(text, "hand-written-composite-op", "weighted_nll", "def weighted_nll")
    assert "return torch.nn.functional.nll_loss(log_probs, target, weight=weight)" in text
    text = fixed(text, "hand-written-composite-op", "log_softmax", "def log_softmax")
    text = fixed(text, "unfused-cross-entropy", "forward", "return weighted_nll")
    assert "return torch.nn.functional.cross_entropy(scores, target, weight=weight)" in text
    assert "log_probs = log_softmax(scores)" not in text


@pytest.mark.parametrize(
    ("stage", "rule", "function", "marker", "expected"),
    [
        ("stage1", "control-flow-on-device-tensor", "weighted_nll", "assert target", "torch._assert_async("),
        ("stage4", "object-built-in-step", "forward", "nll = nn.NLLLoss", "self.nll = nn.NLLLoss(self.weight)"),
        ("stage5", "unfused-cross-entropy", "forward", "return self.nll(", "self.nll = nn.CrossEntropyLoss("),
        ("stage5", "unfused-cross-entropy", "forward", "return self.nll(", "return self.nll(scores, target)"),
        ("stage7", "compile-without-gain", "<module>", "torch.compile(", "lambda device: nn.CrossEntropyLoss()"),
    ],
)
def test_other_stages(stage, rule, function, marker, expected):
    text = (STORY / f"{stage}.py").read_text("utf-8")
    assert expected in fixed(text, rule, function, marker)


def test_pinned_memory_that_depends_on_the_device_is_left_alone():
    suggestion = Suggestion("copy-not-overlapped", "t", source=SourceRef("common.py", 84, "train", False))
    edit, why = attempt((STORY / "common.py").read_text("utf-8"), suggestion, "common.py")
    assert edit is None
    assert "no copy of a batch that waits" in why
