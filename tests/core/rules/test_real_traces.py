"""Rules on real traces: none fails, and what somebody who knows these programs expects is said, and nothing silly."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.suggestions import Outcome, Suggestion
from tests.shared import TRACES, needs_shared, trace_path

pytestmark = needs_shared

LARGEST = 3_000_000  # bytes on disk; larger traces are only opened when asked for
EVERY = sorted(TRACES.glob("*.json*")) if TRACES.is_dir() else []


@cache
def analysed(trace_id: str) -> Analysis:
    return analyze(open_trace(trace_path(trace_id)))


def worth(trace_id: str) -> list[Suggestion]:
    """Suggestions that are shown unasked: worth one percent of the step, alone or in the plan."""
    planned = {i for step in analysed(trace_id).plan for i in step.suggestions}
    found = analysed(trace_id).suggestions
    return [s for i, s in enumerate(found) if not s.informational and ((s.saving.pct or 0) >= 1 or i in planned)]


def ids(trace_id: str) -> set[str]:
    return {s.rule_id for s in analysed(trace_id).suggestions}


@pytest.mark.parametrize("path", EVERY, ids=[p.name[:3] for p in EVERY])
def test_no_rule_fails_and_every_claim_has_its_slices(path: Path) -> None:
    if path.stat().st_size > LARGEST and not os.environ.get("STEPLENS_ALL_TRACES"):
        pytest.skip("a large trace: set STEPLENS_ALL_TRACES to include it")
    analysis = analysed(path.name[:3])
    assert [r.details for r in analysis.rules if r.outcome is Outcome.FAILED] == []
    for suggestion in analysis.suggestions:
        assert "{" not in suggestion.headline.replace("{...}", "")
        for evidence in suggestion.evidence:
            assert evidence.slices, (suggestion.rule_id, evidence.label)
        shares = {name: value for name, value in suggestion.values.items() if name.endswith("_pct")}
        assert all(0 <= value <= 100.001 for value in shares.values()), (suggestion.rule_id, shares)


def test_a_loader_without_workers_comes_before_the_waits_it_hides() -> None:
    first = worth("d01")[0]
    assert first.rule_id == "loader-without-workers"
    assert first.saving.pct is not None
    assert first.saving.pct > 20
    assert first.source is not None
    assert (first.source.file, first.source.line) == ("resnet50_profiler_api.py", 42)


def test_with_workers_the_pageable_copy_is_what_is_left() -> None:
    first = worth("d02")[0]
    assert first.rule_id == "pageable-batch-copy"
    assert first.source is not None
    assert first.source.line == 44
    assert "loader-without-workers" not in ids("d02")


@pytest.mark.parametrize("trace_id", ["d01", "d02", "d07", "m40"])
def test_tf32_is_not_asked_of_a_gpu_that_has_none(trace_id: str) -> None:
    assert "fp32-matmul-without-tf32" not in ids(trace_id)


@pytest.mark.parametrize("trace_id", ["d01", "d02", "d07"])
def test_resnets_of_torchvision_have_no_bias_before_batch_norm(trace_id: str) -> None:
    assert "conv-bias-before-batch-norm" not in ids(trace_id)


def test_one_long_final_read_back_is_a_note() -> None:
    found = [s for s in analysed("m25").suggestions if s.rule_id == "tensor-read-back"]
    assert [s.informational for s in found] == [True]
    assert worth("m25")[0].rule_id != "tensor-read-back"


def test_a_table_that_is_kept_on_the_cpu_is_found_in_a_chain_of_copies() -> None:
    found = next(s for s in analysed("m27").suggestions if s.rule_id == "constant-copied-each-step")
    assert found.values["wait_ms"] > 100
    assert found.source is not None
    assert "transformers/" in found.source.reason


def test_real_control_flow_on_the_gpu_is_found_with_its_function() -> None:
    first = worth("m48")[0]
    assert first.rule_id == "control-flow-on-device-tensor"
    assert first.occurrences == 20
    assert first.source is not None
    assert first.source.file == "switch_transformers/model.py"


def test_without_recorded_gpu_work_nothing_is_said_about_waits() -> None:
    outcomes = {r.rule.id: r for r in analysed("m47").rules}
    assert outcomes["control-flow-on-device-tensor"].outcome is Outcome.NOT_CHECKED
    assert outcomes["control-flow-on-device-tensor"].reason


@pytest.mark.parametrize("trace_id", ["m45", "m47"])
def test_a_model_left_on_the_cpu_is_found(trace_id: str) -> None:
    """Both name a GPU, recorded its runtime calls, and hold no launch; m47's memory events are all of the CPU."""
    assert "model-on-cpu" in ids(trace_id)


def test_a_gpu_bound_run_is_not_told_to_launch_faster() -> None:
    assert "launch-bound" not in ids("d07")
    assert {s.rule_id for s in worth("d07")} == {"tensor-cores-unused"}


@pytest.mark.parametrize("trace_id", ["d08", "d10", "m40"])
def test_short_kernels_on_an_idle_gpu_are_launch_bound(trace_id: str) -> None:
    assert worth(trace_id)[0].rule_id == "launch-bound"
