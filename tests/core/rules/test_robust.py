"""Rules on whatever comes: random programs, odd and damaged traces, traces with hardly anything in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.analysis import analyze
from core.errors import TraceError
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.rule_runner import run_rules
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import keep
from tests.shared import CASES, needs_shared
from tests.simulator import simulate
from tests.simulator.random_programs import random_program
from tests.trace_builder import TraceBuilder

CASE_FILES = sorted(p for p in CASES.glob("*/*") if p.suffix in (".json", ".gz")) if CASES.is_dir() else []


def check(trace: Trace) -> None:
    results = run_rules(trace, compute_figures(trace))
    assert [r.details for r in results if r.outcome is Outcome.FAILED] == []
    for result in results:
        assert result.outcome is not Outcome.NOT_CHECKED or result.reason
        for suggestion in result.suggestions:
            assert all(e.slices for e in suggestion.evidence), (result.rule.id, suggestion.evidence)
            assert all(0 <= i < len(trace.slices) for e in suggestion.evidence for i in e.slices)
            assert all(0 <= i < len(trace.slices) for e in suggestion.effects for i in e.slices)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    check(keep(simulate(random_program(seed).step, 4, stacks=seed % 2 == 0, sustained=False).to_json()))


@pytest.mark.parametrize(
    "builder",
    [
        TraceBuilder(gpu=None),
        TraceBuilder().step(1, 0, 100),
        TraceBuilder().kernel("k", 0, 5),
        TraceBuilder().op("aten::mm", 0, 10).python("train.py(1): f", 0, 50),
        TraceBuilder().runtime("cudaDeviceSynchronize", 0, 10),
        TraceBuilder().step(1, 0, 100).step(2, 100, 0).op("aten::item", 10, 0),
        TraceBuilder().memory(5, 100, allocated=100, reserved=100),
        TraceBuilder().range("Optimizer.step#Adam.step", 0, 10).range("enumerate(DataLoader)#x.__next__", 20, 5),
        TraceBuilder().step(1, 0, 50).copy("HtoD (Pageable -> Device)", 5, 10, 8, 5).copy("odd", 20, 5, 22, 1),
    ],
    ids=lambda b: "-".join(e["name"][:12] for e in b.events) or "empty",
)
def test_traces_with_hardly_anything_in_them(builder: TraceBuilder) -> None:
    try:
        trace = keep(builder.to_json())
    except TraceError:
        pytest.skip("the importer refuses a trace without events")
    check(trace)


@pytest.mark.parametrize(
    "builder",
    [
        TraceBuilder().step(0, 0, 0).step(1, 0, 0).launch("k", at=0, call=0, start=0, dur=0),
        TraceBuilder().op("aten::mm", 0, 0).launch("k", at=0, call=0, start=0, dur=0),
        TraceBuilder().op("aten::mm", 0, 0).op("aten::mm", 0, 0),
    ],
    ids=lambda b: "-".join(e["name"][:12] for e in b.events),
)
def test_what_takes_no_time_is_not_replayed_and_fails_nothing(builder: TraceBuilder) -> None:
    analysis = analyze(keep(builder.to_json()))
    assert analysis.notes == {}
    assert analysis.figures.summary.sustained_step_ns in (None, 0)


def test_arguments_of_another_kind_fail_no_rule() -> None:
    builder = TraceBuilder()
    for step in range(4):
        at = step * 1000
        builder.step(step, at, 1000)
        for call in range(40):
            builder.op("aten::linear", at + call * 20, 15, Sequence_number=[[call], {"a": 1}])
            builder.launch("gemm", at=at + call * 20 + 2, call=5, start=at + call * 20 + 8, dur=10)
        for size in (2**63, -1, 2**62):
            odd = {"bytes": size, "In_msg_nelems": size, "dtype": "Float", "Collective_name": "allreduce"}
            builder.launch("ncclDevKernel_AllReduce_Sum_f32", at=at + 900, call=2, start=at + 910, dur=10, **odd)
    check(keep(builder.to_json()))


@needs_shared
@pytest.mark.parametrize("path", CASE_FILES, ids=[f"{p.parent.name[:2]}-{p.name[:24]}" for p in CASE_FILES])
def test_odd_and_damaged_traces(path: Path) -> None:
    try:
        trace = open_trace(path)
    except TraceError as error:
        pytest.skip(f"cannot be opened: {error.title}")
    check(trace)


def _same_start(event: dict[str, Any], rng: random.Random) -> None:
    event["ts"] = 1_000_000.0 if rng.random() < 0.3 else event["ts"]


def _no_length(event: dict[str, Any], rng: random.Random) -> None:
    event["dur"] = 0 if rng.random() < 0.3 else event.get("dur", 0)


def _crossing(event: dict[str, Any], rng: random.Random) -> None:
    if rng.random() < 0.2:
        event["ts"] += rng.uniform(-300, 300)
        event["dur"] = rng.uniform(0, 600)


def _odd_arguments(event: dict[str, Any], rng: random.Random) -> None:
    args = event.get("args")
    if isinstance(args, dict) and args and rng.random() < 0.3:
        args[rng.choice(sorted(args))] = rng.choice([None, -1, 10**9, 2**63, "", "{0}", [[]], {"a": 1}, True, 1e300])
    elif rng.random() < 0.1:
        event["args"] = rng.choice([5, True, "text", [1]])


@pytest.mark.parametrize("damage", [_same_start, _no_length, _crossing, _odd_arguments], ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_damaged_programs(seed: int, damage: Callable[[dict[str, Any], random.Random], None]) -> None:
    whole = json.loads(simulate(random_program(seed).step, 4, stacks=seed % 2 == 0, sustained=False).to_json())
    rng = random.Random(seed)
    for event in whole["traceEvents"]:
        if event.get("ph") == "X":
            damage(event, rng)
    check(keep(json.dumps(whole).encode()))


def test_a_name_of_megabytes_is_looked_through_once() -> None:
    made = TraceBuilder(with_stack=1)
    for k in range(3):
        made.step(k, k * 1000, 990)
        for place, part in enumerate(("torch/nn/modules/", "torch/optim/", "torch/fx/traceback.py")):
            made.python(part * (2_000_000 // len(part)), k * 1000 + 10 + 10 * place, 900 - 20 * place)
    check(keep(made.to_json()))
