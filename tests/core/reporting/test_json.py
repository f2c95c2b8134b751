"""``analyze --json``: every key, always."""

from __future__ import annotations

import orjson
import pytest

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.reporting import json
from tests.core.reporting.cases import NOTE, SUGGESTION, analysed, training, with_suggestions
from tests.core.reporting.schema import ANALYSIS, check
from tests.shared import TRACES, needs_shared
from tests.trace_builder import TraceBuilder

LARGEST_BYTES = 1_000_000  # bigger files hold nothing of another form, and take long


def real_traces():
    if not TRACES.is_dir():
        return []
    paths = sorted(p for p in TRACES.iterdir() if ".json" in p.name and p.stat().st_size < LARGEST_BYTES)
    return [p for p in paths if "INVALID" not in p.name]


def values_of(trace, analysis):
    return orjson.loads(json.to_bytes(json.document(trace, analysis)))


def test_every_key_of_a_gpu_trace():
    values = values_of(*analysed(training()))
    check(values, ANALYSIS)
    assert values["trace"]["has_gpu"]
    assert values["trace"]["has_stacks"]
    assert not values["trace"]["has_memory"]
    assert [s["name"] for s in values["steps"]] == [f"ProfilerStep#{n}" for n in range(4)]
    assert values["steps"][1]["start_us"] == 1000.0
    assert values["steps"][1]["dur_us"] == 900.0
    (sync,) = [s for s in values["sync_points"] if s["step"] == 1]
    assert sync["call"] == "cudaMemcpyAsync"
    assert sync["kind"] == "memcpy"
    assert sync["direction"] == "DtoH"
    assert sync["op"] == "aten::item"
    assert sync["thread"] == "100"
    assert sync["dur_us"] == 280.0
    assert sync["start_us"] == 1210.0


def test_breakdown_adds_up_to_the_step():
    for step in values_of(*analysed(training()))["steps"]:
        assert sum(step["breakdown_us"].values()) == pytest.approx(step["dur_us"])


def test_unknown_is_null():
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 10).build()
    values = values_of(trace, analyze(trace))
    check(values, ANALYSIS)
    assert not values["trace"]["has_gpu"]
    assert values["summary"]["gpu_busy_pct"] is None
    assert values["summary"]["step_us"] is None
    assert values["summary"]["sustained_step_us"] is None
    assert values["trace"]["torch"] is None
    assert values["steps"] == []


def test_suggestions_and_plan():
    values = values_of(*with_suggestions(training(), SUGGESTION, NOTE))
    check(values, ANALYSIS)
    first = values["suggestions"][0]
    assert first["title"] == "A value is read back 4 times"
    assert first["saving_us"] == 270.0
    assert first["source"] == {"file": "/home/user/project/train.py", "line": 12, "function": "train_step"}
    assert first["evidence"] == [{"label": "Waiting per step", "value": 280_000, "unit": "ns", "slices": [1, 2]}]
    assert values["plan"] == [{"rules": ["scalar-read-back"], "predicted_step_us": 630.0}]
    assert {r["rule"]: r["outcome"] for r in values["rules"]} == {
        "broken-rule": "failed",
        "launch-bound": "clean",
        "memory-creep": "not_checked",
        "scalar-read-back": "found",
    }


def test_damaged_text_is_still_json():
    trace, analysis = with_suggestions(training(), SUGGESTION)
    broken = Analysis(analysis.figures, notes={})
    values = json.document(trace, broken)
    values["trace"]["path"] = "broken\udcff"
    assert orjson.loads(json.to_bytes(values))["trace"]["path"] == "broken?"


@needs_shared
@pytest.mark.parametrize("path", real_traces(), ids=lambda p: p.name.partition("_")[0])
def test_every_key_of_real_traces(path):
    trace = open_trace(path)
    values = values_of(trace, analyze(trace))
    check(values, ANALYSIS)
    assert [r["rule"] for r in values["rules"] if r["outcome"] == "failed"] == []
    for step in values["steps"]:
        assert sum(v or 0 for v in step["breakdown_us"].values()) == pytest.approx(step["dur_us"], abs=1e-3)
    saved = [s["saving_us"] for s in values["suggestions"] if s["saving_us"] is not None]
    whole = values["summary"]["sustained_step_us"] or values["trace"]["span_us"]  # of the recording without steps
    assert not saved or max(saved) <= whole
