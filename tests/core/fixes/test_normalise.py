"""A batch normalised in several passes becomes one operator, with the same values."""

from __future__ import annotations

import pytest

from core.fixes import attempt
from core.suggestions import SourceRef, Suggestion
from tests.core.fixes.test_propose import changed

CASES = (
    ("(x.to(torch.float32) / 255.0 - 0.5) / 0.5", "torch.add(-1.0, x, alpha=2 / 255)"),
    ("x.float() / 255 * 2 - 1", "torch.add(-1.0, x, alpha=2 / 255)"),
    ("1 - 2 * x.to(dtype=torch.float) / 128", "torch.add(1.0, x, alpha=-0.015625)"),
    ("(x.float() - 127) * 3", "torch.add(-381.0, x, alpha=3)"),
    ("((x.float() - 0.1) / 255 + 7) / -3", "torch.add(-17849 / 7650, x, alpha=-1 / 765)"),
)


@pytest.mark.parametrize(("before", "after"), CASES)
def test_what_it_becomes(before: str, after: str) -> None:
    text = f"import torch\n\ndef step(x):\n    y = {before}  # here\n    return y\n"
    made = changed("float-batch-copied", text, "step")
    assert made == text.replace(before, after)


def test_no_tensor_is_made_for_it_in_each_step_and_the_form_is_explained() -> None:
    """A tensor made in the step is a fault of its own."""
    text = f"import torch\n\ndef step(x):\n    y = {CASES[0][0]}\n    return y\n"
    edit, _ = attempt(text, Suggestion("float-batch-copied", "t", source=SourceRef("train.py", 4, "step")), "train.py")
    assert edit is not None
    assert "tensor" not in edit.after
    assert "torch.add(a, x, alpha=b) works out a + b · x" in edit.summary


@pytest.mark.torch
@pytest.mark.parametrize(("before", "after"), CASES)
def test_the_values_are_the_same(before: str, after: str) -> None:
    import torch

    x = torch.arange(256, dtype=torch.uint8).reshape(2, 2, 8, 8)
    old, new = (eval(code, {"torch": torch, "x": x}) for code in (before, after))  # our own texts
    assert new.dtype == old.dtype == torch.float32
    assert new.shape == old.shape
    torch.testing.assert_close(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "y = (x.float() - mean) / std",  # of each channel
        "y = x.half() / 255 - 0.5",  # another type
        "y = x.to(device) / 255 - 0.5",
        "y = x.to(torch.float32, non_blocking=True) / 255 - 0.5",
        "y = x.float() / 255",  # one pass more is no run of them
        "y = 2 / x.float() - 1",
        "y = load(x).float() / 255 - 0.5",  # what is called could have a float's type by now
        "y = x.float() / 255 - 0.5; z = w.float() / 255 - 0.5",
    ],
)
def test_what_is_left_alone_and_why(line: str) -> None:
    text = f"import torch\n\ndef step(x):\n    {line}\n    return y\n"
    source = SourceRef("train.py", 3, "step")
    edit, why = attempt(text, Suggestion("float-batch-copied", "title", source=source), "train.py")
    assert edit is None
    assert why
