"""Times on a card are those of a step, as savings are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.figures.compute import compute_figures
from core.kinds import GapCause
from core.rule_tools import giant
from core.rule_tools.report import PER_STEP
from core.suggestions import Suggestion
from core.trace import Trace
from tests.core.rules.kit import built, keep, run_rule, steps, work
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder


def _pinned(builder: TraceBuilder, count: int) -> Trace:
    for number in range(count):
        at = number * 1000.0 + 10
        builder.op("aten::pin_memory", at, 200)
        builder.op("aten::mm", at + 300, 60).launch("gemm", at + 310, 5, at + 330, 100)
    return built(builder)


def _zeroed(builder: TraceBuilder, count: int) -> Suggestion:
    for number in range(count):
        at = number * 1000.0 + 10
        builder.op("aten::mm", at, 60).launch("gemm", at + 10, 5, at + 20, 100)
        builder.range("Optimizer.zero_grad#SGD.zero_grad", at + 100, 200)
        for tensor in range(3):
            builder.op("aten::zero_", at + 110 + 50 * tensor, 40)
            builder.launch("fill", at + 120 + 50 * tensor, 5, at + 130 + 50 * tensor, 10)
    (found,) = run_rule("gradients-zeroed", built(builder)).suggestions
    return found


def _times(found: Suggestion) -> dict[str, object]:
    return {one.label: one.value for one in found.evidence if one.unit == "ms"}


def test_evidence_of_several_steps_is_told_per_step() -> None:
    found = _zeroed(steps(4), 4)
    assert _times(found) == {"CPU time per step": 0.12, "GPU time per step": 0.03}
    assert "120 µs of CPU time" in found.explanation


def test_without_steps_and_in_a_single_one_it_is_told_of_all() -> None:
    assert _times(_zeroed(TraceBuilder(), 4)) == {"CPU time": 0.48, "GPU time": 0.12}
    assert _times(_zeroed(steps(1), 1)) == {"CPU time": 0.12, "GPU time": 0.03}


def test_a_time_of_all_steps_in_a_sentence_is_told_per_step_as_well() -> None:
    (found,) = run_rule("pinning-in-step", _pinned(steps(4), 4)).suggestions
    assert "800 µs for 4 calls" in found.explanation
    assert found.explanation.endswith("800 µs in 4 steps is 200 µs per step.")
    (single,) = run_rule("pinning-in-step", _pinned(steps(1), 1)).suggestions
    assert "per step" not in single.explanation


def test_every_label_that_is_told_per_step_says_so() -> None:
    assert all("per step" in label for label in PER_STEP.values())


def test_every_time_per_step_has_words_for_a_step_of_several_iterations() -> None:
    """Rules give their labels as constants; those that `PER_STEP` makes are of several steps."""
    of_several = {
        *PER_STEP.values(),
        "GPU idle per step until the next launch",
        "GPU idle per step until the next launch, in the rank that idles longest",
    }
    labels = set()
    for file in [*Path(giant.__file__).parent.glob("*.py"), *(Path(giant.__file__).parents[1] / "rules").glob("*.py")]:
        labels |= set(re.findall(r'"([A-Z][^"{}.]*per step[^"{}.]*)"', file.read_text(encoding="utf-8")))
    labels = {label for label in labels if "No steps are marked" not in label} - of_several
    assert labels == set(giant.IN_THE_STEP)
    assert not any("per step" in words for words in giant.IN_THE_STEP.values())


def test_the_loader_idles_the_device_for_as_long_as_the_budget_says() -> None:
    def program(m: Machine, number: int) -> None:
        m.loader(900 if number > 2 else 400)  # the first step finds an idle device, and the last one has no period
        work(m, 300, 3)

    trace = keep(simulate(program, steps=5, sustained=False).to_json())
    (found,) = run_rule("loader-without-workers", trace).suggestions
    budget = compute_figures(trace).budget
    idle_ns = budget.idle_by_cause_ns[int(GapCause.LOADER)]
    assert budget.period_ns is not None
    assert found.values["period_ms"] * 1e6 == budget.period_ns
    assert found.values["idle_ms"] * 1e6 == idle_ns
    assert found.evidence[-1].value == pytest.approx(idle_ns / 1e6)
    assert "of which" not in found.explanation  # the loader's calls are of all steps, the idle time of the periods
    assert found.explanation.endswith("the GPU idles 29.5 µs for the loader.")


@pytest.mark.parametrize(("every", "words"), [(1, "In each step the CPU spends"), (2, "On average over all steps")])
def test_calls_that_not_every_step_makes_are_told_on_average(every: int, words: str) -> None:
    def program(m: Machine, number: int) -> None:
        work(m)
        if number % every == 0:
            m.item()
        work(m)

    (found,) = run_rule("scalar-read-back", keep(simulate(program, steps=6).to_json())).suggestions
    assert words in found.explanation
