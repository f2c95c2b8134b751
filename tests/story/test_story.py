"""The story: per stage what must be found, with function and line, and what must not."""

from __future__ import annotations

from functools import cache

import pytest

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.pricing import price
from core.rule_runner import run_rules
from core.source import SourceFinder
from core.suggestions import Outcome
from tests.story.program import EXAMPLES, STAGES, line_of, run_stage
from tests.story.write_samples import sample_path

LOSS_RULES = frozenset(
    (
        "constant-copied-each-step",
        "control-flow-on-device-tensor",
        "host-list-index",
        "hand-written-composite-op",
        "object-built-in-step",
        "unfused-cross-entropy",
        "compile-without-gain",
    )
)
EXPECTED: dict[int, frozenset[str]] = {
    0: LOSS_RULES - {"object-built-in-step", "unfused-cross-entropy", "compile-without-gain"},
    1: frozenset(("control-flow-on-device-tensor", "host-list-index", "hand-written-composite-op")),
    2: frozenset(("host-list-index", "hand-written-composite-op")),
    3: frozenset(("hand-written-composite-op",)),
    4: frozenset(("hand-written-composite-op", "object-built-in-step", "unfused-cross-entropy")),
    5: frozenset(("hand-written-composite-op", "unfused-cross-entropy")),
    6: frozenset(),
    7: frozenset(("compile-without-gain",)),
}


@cache
def analysed(stage: int, with_source: bool = True) -> Analysis:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        trace = open_trace(run_stage(stage).write(Path(folder) / "trace.json"))
        figures = compute_figures(trace)
        source = SourceFinder(trace, roots=(EXAMPLES,) if with_source else ())
        return price(trace, figures, run_rules(trace, figures, source=source))


def found(stage: int) -> set[str]:
    return {s.rule_id for s in analysed(stage).suggestions if not s.informational}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_shows_its_own_faults_and_no_other(stage: int) -> None:
    failed = [r.rule.id for r in analysed(stage).rules if r.outcome is Outcome.FAILED]
    assert not failed
    assert found(stage) & LOSS_RULES == EXPECTED[stage]


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_shows_a_fault_that_is_not_there(stage: int) -> None:
    # four passes over the batch, and its copy on the stream of the kernels: no stage puts these right
    allowed = LOSS_RULES | {"float-batch-copied", "copy-not-overlapped"}
    assert found(stage) <= allowed


@pytest.mark.parametrize(
    ("stage", "rule", "function", "text"),
    [
        (0, "constant-copied-each-step", "forward", "torch.Tensor([0.1] * 10)"),
        (0, "control-flow-on-device-tensor", "weighted_nll", "assert target.max()"),
        (0, "host-list-index", "weighted_nll", "-log_probs[rows, target]"),
        (1, "control-flow-on-device-tensor", "weighted_nll", "assert target.max()"),
        (1, "host-list-index", "weighted_nll", "-log_probs[rows, target]"),
        (2, "host-list-index", "weighted_nll", "-log_probs[rows, target]"),
        (4, "object-built-in-step", "forward", "nn.NLLLoss(self.weight)"),
    ],
)
def test_the_line_is_named_exactly_where_the_source_is_at_hand(stage: int, rule: str, function: str, text: str) -> None:
    place = next(s.source for s in analysed(stage).suggestions if s.rule_id == rule)
    assert place is not None
    file = f"stage{stage}.py"
    assert (place.file, place.function, place.line) == (file, function, line_of(file, text))
    assert place.exact
    assert place.reason


def test_without_the_source_the_function_is_named_and_the_line_is_not_called_exact() -> None:
    place = next(s.source for s in analysed(0, False).suggestions if s.rule_id == "control-flow-on-device-tensor")
    assert place is not None
    assert (place.file, place.function, place.exact) == ("stage0.py", "weighted_nll", False)
    assert "function begins" in place.reason


def test_every_fault_of_a_stage_is_counted_in_every_step() -> None:
    for suggestion in analysed(0).suggestions:
        if suggestion.rule_id in EXPECTED[0] and suggestion.rule_id != "hand-written-composite-op":
            assert suggestion.occurrences == 3
            assert len(suggestion.steps) == 3
            assert suggestion.evidence
            assert all(e.slices for e in suggestion.evidence)


def test_removing_the_waits_lets_the_cpu_run_ahead_and_the_pace_stays_that_of_the_device() -> None:
    before, after = analysed(2).figures.summary, analysed(3).figures.summary
    assert before.step_ns is not None
    assert after.step_ns is not None
    assert after.step_ns < 0.2 * before.step_ns  # the time to enqueue
    assert before.sustained_step_ns is not None
    assert after.sustained_step_ns is not None
    assert after.sustained_step_ns > 0.9 * before.sustained_step_ns  # the pace
    assert any(s.rule_id == "enqueue-time" for s in analysed(3).suggestions)


def test_both_chains_of_the_loss_are_told_apart() -> None:
    what = {s.values["what"] for s in analysed(0).suggestions if s.rule_id == "hand-written-composite-op"}
    assert what == {"log-softmax", "a negative log-likelihood loss"}


@pytest.mark.parametrize("stage", STAGES)
def test_the_samples_in_the_repository_are_simulated_and_show_the_same(stage: int) -> None:
    trace = open_trace(sample_path(stage))
    assert trace.meta.simulated
    figures = compute_figures(trace)
    shown = {s.rule_id for r in run_rules(trace, figures) for s in r.suggestions if not s.informational}
    assert shown & LOSS_RULES == EXPECTED[stage]
