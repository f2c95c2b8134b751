"""The story by the app's own edits: the suggestions of its traces, applied to its sources, lose nothing on the way.

The suggestions are those of the shipped traces of a (simulated) GPU. The code is run on the CPU: every version trains
the story's small network under the story's seed, and all of them must see the same losses.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from core.analysis import Analysis, analyze
from core.fixes import attempt
from core.importing import open_trace
from core.results import compare_losses
from core.suggestions import Suggestion

ROOT = Path(__file__).parents[3]
STORY = ROOT / "examples" / "reference_story"
RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
texts, losses = json.load(sys.stdin), {}
torch.set_num_threads(1)
sys.argv = ["x", "--batch", "4", "--side", "32", "--steps", "5", "--device", "cpu"]
original = torch.Tensor.backward
for name, text in texts.items():
    kept = losses[name] = []
    def backward(self, *args, **kwargs):
        kept.append(self.item())
        return original(self, *args, **kwargs)
    torch.Tensor.backward = backward
    exec(compile(text, name, "exec"), {"__name__": "__main__"})
print(json.dumps(losses))
"""


@cache
def analysis_of(stage: int) -> Analysis:
    """Analysis of a stage's shipped trace."""
    return analyze(open_trace(ROOT / "resources" / "samples" / f"story_stage{stage}_simulated.json.gz"))


def hand_written(stage: int) -> str:
    """The stage as it stands in the examples."""
    return (STORY / f"stage{stage}.py").read_text("utf-8")


def fixed(text: str, stage: int, rule: str, function: str) -> str:
    """The text after the fix that the trace of a stage suggests for a function, wherever that stands in the text."""
    found = [
        s for s in analysis_of(stage).suggestions if s.rule_id == rule and s.source and s.source.function == function
    ]
    assert found, f"{rule} is not suggested for {function} of stage {stage}"
    edit, why = attempt(text, moved(found[0], text, function), STORY / f"stage{stage}.py")
    assert edit is not None, f"{rule}: {why}"
    return edit.after


def moved(suggestion: Suggestion, text: str, function: str) -> Suggestion:
    """The suggestion as a trace of this text would place it: at the function, whose lines an edit may have shifted."""
    line = next(n for n, row in enumerate(text.splitlines(), 1) if f"def {function}(" in row)
    assert suggestion.source is not None
    return replace(suggestion, source=replace(suggestion.source, line=line))


def edited(text: str, rule: str) -> str:
    """The text of a file after the fix that the last stage suggests."""
    found = next(s for s in analysis_of(7).suggestions if s.rule_id == rule)
    edit, why = attempt(text, found, STORY / "x.py")
    assert edit is not None, f"{rule}: {why}"
    return edit.after


LAST_LINE = "train(lambda device: nn.CrossEntropyLoss().to(device), check_labels=True)\n"
WALK = (
    (0, "constant-copied-each-step", "forward"),
    (1, "control-flow-on-device-tensor", "weighted_nll"),
    (2, "host-list-index", "weighted_nll"),
    (3, "hand-written-composite-op", "weighted_nll"),
    (5, "hand-written-composite-op", "log_softmax"),
    (5, "unfused-cross-entropy", "forward"),
)


@pytest.fixture(scope="module")
def losses() -> dict[str, list[float]]:
    """Losses of every version: hand-written, fixed once, and fixed one on top of the other."""
    texts = {f"stage{stage}": hand_written(stage) for stage in range(7)}
    for stage, rule, function in (*WALK, (4, "object-built-in-step", "forward")):
        texts[f"stage{stage} without {rule}"] = fixed(hand_written(stage), stage, rule, function)
    texts["stage7 without compile-without-gain"] = edited(hand_written(7), "compile-without-gain")
    common = edited((STORY / "common.py").read_text("utf-8"), "float-batch-copied")
    texts["the batch in one pass"] = common + LAST_LINE
    text = hand_written(0)
    for stage, rule, function in WALK:
        text = texts[f"walk: {rule} in {function}"] = fixed(text, stage, rule, function)
    assert "torch._assert_async(target.max() < 10)" in text
    assert "def weighted_nll(scores, target, weight):" in text
    assert "cross_entropy(scores, target, weight=weight)" in text
    assert "log_probs" not in text
    assert "torch.compile" not in texts["stage7 without compile-without-gain"].partition('"""\n\n')[2]
    assert "alpha=2 / 255" in common
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(STORY)], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_version_has_the_losses_of_the_first_stage(losses: dict[str, list[float]]) -> None:
    first = tuple(losses["stage0"])
    assert len(first) == 5
    assert len(set(first)) == 5
    for name, values in losses.items():
        check = compare_losses(first, tuple(values), allowed=1e-5)
        assert (check.status, check.compared) == ("same", 5), f"{name}: {check}"


def test_a_changed_computation_is_seen(losses: dict[str, list[float]]) -> None:
    first = losses["stage0"]
    check = compare_losses(tuple(first), (*first[:3], first[3] * 1.01, first[4]))
    assert (check.status, check.first) == ("differs", 3)
