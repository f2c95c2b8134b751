"""Frames of autograd's anomaly module where the detection is switched off."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize("on", [False, True])
def test_anomaly_detection_that_is_switched_off_is_not_on(on: bool) -> None:
    """``with set_detect_anomaly(False)`` runs the same module; only where it is on, operators note their stacks."""
    builder = TraceBuilder()
    for i in range(4):
        at = i * 1000.0
        builder.step(i, at, 1000).python("torch/autograd/anomaly_mode.py(114): __init__", at + 10, 10)
        builder.python("torch/autograd/anomaly_mode.py(119): __enter__", at + 30, 10)
        builder.op("aten::mm", at + 100, 200).launch("gemm", at=at + 105, call=6, start=at + 112, dur=195)
        if on:
            builder.python("torch/fx/traceback.py(498): format_stack", at + 120, 10)
    found = {s.rule_id for s in analyze(builder.build()).suggestions}
    assert ("debug-mode-left-on" in found) is on
