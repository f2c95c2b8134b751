"""What looks like a fault with a mechanical fix and is not: left alone, with the reason; or changed in one way only."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.fixes import attempt
from tests.core.fixes.test_propose import suggestion

CASES = [
    (*(word.strip(" ") for word in head.split("|", 4)), text)
    for head, _, text in (
        block.partition("\n")
        for block in Path(__file__).with_name("careful_sources.txt").read_text("utf-8").split("### ")[1:]
    )
]


@pytest.mark.parametrize(("outcome", "rule", "function", "near", "said", "text"), CASES)
def test_what_becomes_of_it(outcome: str, rule: str, function: str, near: str, said: str, text: str) -> None:
    edit, why = attempt(text, suggestion(rule, text, function, near == "exact"), "train.py")
    if outcome == "refused":
        assert edit is None, edit.diff
        assert said in why
    else:
        assert edit is not None, why
        assert said in edit.after
        compile(edit.after, "train.py", "exec")


def test_an_import_is_added_once() -> None:
    text = "from torch import nn\ndef f(x, y):  # here\n    d = x - y\n    return (d ** 2).mean()\n"
    edit, _ = attempt(text, suggestion("hand-written-composite-op", text, "f"), "train.py")
    assert edit is not None
    assert edit.after.count("import torch\n") == 1
