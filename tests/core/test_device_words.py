"""Devices are called as the trace calls them; numbers of things have their thousands apart."""

from __future__ import annotations

import pytest

from core.device_words import device_word, devices_word, word_in
from core.figures.shares import device_label
from core.words import fill
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("MTIA 9", "MTIA"),
        ("GPU 2", "GPU"),
        ("gpu:0", "GPU"),
        ("NPU 0", "NPU"),
        ("Ascend Hardware", "NPU"),
        ("Intel Gaudi 2", "HPU"),
        ("XPU 1", "XPU"),
        ("HPU 0", "HPU"),
        ("MPS 0", "MPS"),
        ("python3", ""),
        ("npuscript.py", ""),
        ("Intel(R) Data Center GPU Max 1550", ""),
    ],
)
def test_a_word_is_read_from_the_name(name: str, word: str) -> None:
    assert word_in(name) == word


def test_a_device_of_another_kind_is_not_called_a_gpu() -> None:
    made = TraceBuilder(gpu=None)
    made.step(0, 0, 990).op("aten::mm", 10, 40).launch("gemm", at=15, call=10, start=30, dur=500)
    usual = made.build()
    assert device_word(usual, 0) == devices_word(usual) == "GPU"
    assert device_label(usual, 0) == "GPU 0"
    made.event(ph="M", name="process_labels", pid=0, tid=0, ts=0, args={"labels": "MTIA 0"})
    trace = made.build()
    assert device_word(trace, 0) == devices_word(trace) == "MTIA"
    assert device_label(trace, 0) == "MTIA 0"


def test_the_name_of_a_numbered_process_tells_the_kind_of_device() -> None:
    made = TraceBuilder(gpu=None).op("aten::mm", 0, 5).kernel("MatMul", 10, 20)
    made.name_process("python3", pid=0)
    assert device_word(made.build(), 0) == "GPU"
    made.name_process("Ascend Hardware", pid=0)
    assert device_word(made.build(), 0) == "NPU"


def test_thousands_stand_apart_in_numbers_of_things_only() -> None:
    values = {"kernels": 19370, "few": 1234, "line": 12345, "mean": 123456.7, "exact": 12345.67}
    words = fill("{kernels} {few} {line} {mean:.0f} {exact:.1f}", values)
    assert words == "19\u202f370 1\u202f234 12345 123\u202f457 12345.7"
    assert fill("{kernels|one|many}: {kernels}", {"kernels": 19370}) == "many: 19\u202f370"
