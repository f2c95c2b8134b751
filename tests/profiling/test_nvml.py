"""GPUs are sampled beside a run; a driver that is missing or refuses costs nothing."""

from __future__ import annotations

import ctypes
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from profiling import nvml
from profiling.errors import ProfilingError
from profiling.events import Gathered
from profiling.notices import notices_of
from profiling.spec import RunSpec, from_json


class FakeNvml:
    """Two GPUs: the first answers everything, the second refuses to tell its power and clocks."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.ended = False

    def nvmlInit_v2(self) -> int:
        return self.status

    def nvmlShutdown(self) -> int:
        self.ended = True
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, handle: Any) -> int:
        handle._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetName(self, handle: ctypes.c_void_p, buffer: Any, length: ctypes.c_uint) -> int:
        buffer.value = b"GPU %d" % handle.value
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, rates: Any) -> int:
        rates._obj.gpu, rates._obj.memory = 87, 30
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:
        memory._obj.total, memory._obj.used = 24 << 30, 5 << 30
        return 0

    def nvmlDeviceGetClockInfo(self, handle: ctypes.c_void_p, which: ctypes.c_uint, value: Any) -> int:
        value._obj.value = {1: 1410, 2: 1215}[which.value]
        return 0 if handle.value == 1 else 3

    def nvmlDeviceGetPowerUsage(self, handle: ctypes.c_void_p, value: Any) -> int:
        value._obj.value = 71_500
        return 0 if handle.value == 1 else 3


def test_samples_are_written(tmp_path: Path) -> None:
    library = FakeNvml()
    sampler = nvml.Sampler(library, interval_s=30)
    sampler.start()
    assert sampler._thread is not None
    sampler.stop()
    sampler.stop()
    assert library.ended
    summary = sampler.write(tmp_path)
    content = json.loads((tmp_path / "gpu_metrics.json").read_text())
    assert content["format"] == "steplens.gpu-metrics/1"
    first, second = content["devices"]
    assert (first["name"], first["memory_total_bytes"]) == ("GPU 1", 24 << 30)
    assert first["uuid"] == ""  # this library cannot be asked
    assert first["utilization_percent"] == [87]
    assert (first["sm_clock_mhz"], first["memory_clock_mhz"], first["power_w"]) == ([1410], [1215], [71.5])
    assert first["memory_used_bytes"] == [5 << 30]
    assert (second["sm_clock_mhz"], second["power_w"], second["throttle_mask"]) == ([None], [None], [None])
    assert summary[0]["power_w"] == {"median": 71.5, "min": 71.5, "max": 71.5}
    assert summary[1]["power_w"] is None
    assert sampler.now == [(0, 87, 5 << 30), (1, 87, 5 << 30)]


class SlowNvml(FakeNvml):
    """Answers when it is let: a driver that is loaded first, or that hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer, self.waited = threading.Event(), False

    def nvmlInit_v2(self) -> int:
        self.waited = self.may_answer.wait(5)
        return 0


def test_a_slow_driver_keeps_nobody_waiting() -> None:
    library = SlowNvml()
    sampler = nvml.Sampler(library, interval_s=30)
    sampler.start()
    assert sampler.now == []
    library.may_answer.set()
    sampler.stop()
    assert (library.waited, library.ended) == (True, True)
    assert sampler.now[0] == (0, 87, 5 << 30)


class RenamedNvml(FakeNvml):
    """No GPU is refused anything, but one question has the name of newer drivers."""

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: ctypes.c_void_p, value: Any) -> int:
        value._obj.value = 4
        return 0


def test_either_name_of_a_question_is_known() -> None:
    sampler = nvml.Sampler(RenamedNvml(), interval_s=30)
    sampler.start()
    sampler.stop()
    assert [one.throttle_mask for one in sampler.series] == [[4], [4]]


def test_the_driver_is_let_go_of_where_it_has_no_gpu() -> None:
    library = FakeNvml()
    library.nvmlDeviceGetCount_v2 = lambda count: 0  # type: ignore[method-assign]
    sampler = nvml.Sampler(library)
    sampler.start()
    sampler.stop()
    assert (sampler.series, library.ended) == ([], True)


def test_a_long_run_is_thinned() -> None:
    series = nvml.GpuSeries(0, "", "")
    for k in range(5):
        for name in series.COLUMNS:
            getattr(series, name).append(k)
    series.thin()
    assert series.time_s == series.power_w == [0, 2, 4]


def test_without_a_driver_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "LIBRARIES", ("libno-such-library.so",))
    for sampler in (nvml.Sampler(), nvml.Sampler(FakeNvml(status=9)), nvml.Sampler(object())):
        sampler.start()
        sampler.stop()
        assert sampler.write(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_choice_of_gpus() -> None:
    spec = RunSpec("python", script="a.py", gpu="0,2")
    assert from_json(spec.to_json()).gpu == "0,2"
    with pytest.raises(ProfilingError, match="names no GPU"):
        RunSpec("python", script="a.py", gpu="0,,1")


@pytest.mark.parametrize(
    ("build", "gpu", "devices", "words"),
    [
        ("", "", [], "CPU build"),
        ("12.4", "", [], "although this torch is built for a GPU (12.4)"),
        ("12.4", "none", [], "as was asked for"),
        ("12.4", "", ["cuda"], ""),
    ],
)
def test_a_fallback_to_the_cpu_is_said(build: str, gpu: str, devices: list[str], words: str) -> None:
    gathered = Gathered(torch_version="2.5.1", device_build=build)
    traces = [{"path": "trace.json", "kind": "own", "steps": [1], "devices": devices}]
    found = [notice for notice in notices_of(gathered, traces, 0, "", gpu) if "CPU" in notice]
    assert len(found) == bool(words)
    assert all(words in notice for notice in found)
