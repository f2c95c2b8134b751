"""Samples the GPUs beside a run through NVIDIA's management library; where it is missing, nothing is."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "steplens.gpu-metrics/1"
NAME = "gpu_metrics.json"
INTERVAL_S = 0.1  # the driver refreshes utilisation and power about that often
MOST_SAMPLES = 20_000  # per GPU; then every second one is dropped and the interval doubles
MOST_DEVICES = 32
JOIN_SECONDS = 2.0  # that the driver may take to answer what it was asked last
LIBRARIES = ("nvml.dll",) if os.name == "nt" else ("libnvidia-ml.so.1", "libnvidia-ml.so")
REASONS = ("EventReasons", "ThrottleReasons")  # two names of one question, the first one since driver 535
_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # nvmlClockType_t


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@dataclass
class GpuSeries:
    """Samples of one GPU; all lists have one entry per sample, None where the driver does not tell.

    ``time_s`` is seconds since the epoch. ``utilization_percent`` is the share of the driver's last interval in which
    any kernel ran (which says nothing about how much of the GPU it used). ``throttle_mask`` holds NVML's bits for why
    clocks are held down.
    """

    index: int
    name: str
    uuid: str
    memory_total_bytes: int | None = None
    time_s: list[float] = field(default_factory=list)
    utilization_percent: list[int | None] = field(default_factory=list)
    memory_busy_percent: list[int | None] = field(default_factory=list)
    sm_clock_mhz: list[int | None] = field(default_factory=list)
    memory_clock_mhz: list[int | None] = field(default_factory=list)
    power_w: list[float | None] = field(default_factory=list)
    memory_used_bytes: list[int | None] = field(default_factory=list)
    throttle_mask: list[int | None] = field(default_factory=list)

    COLUMNS = (
        "time_s", "utilization_percent", "memory_busy_percent", "sm_clock_mhz", "memory_clock_mhz", "power_w",
        "memory_used_bytes", "throttle_mask",
    )  # fmt: skip

    def thin(self) -> None:
        """Drop every second sample."""
        for name in self.COLUMNS:
            setattr(self, name, getattr(self, name)[::2])

    def summary(self) -> dict[str, Any]:
        """Medians and extremes, for the manifest."""
        row: dict[str, Any] = {"index": self.index, "name": self.name, "uuid": self.uuid, "samples": len(self.time_s)}
        for name in self.COLUMNS[1:-1]:
            known = [value for value in getattr(self, name) if value is not None]
            row[name] = {"median": statistics.median(known), "min": min(known), "max": max(known)} if known else None
        return row


def load_library() -> Any:
    """NVML as a ctypes library, None where there is none."""
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


class Nvml:
    """The few questions to NVML; each is answered by None where the driver refuses.

    Parameters
    ----------
    library
        What :func:`load_library` found.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handles: list[ctypes.c_void_p] = []
        self._reached = False

    def start(self) -> list[GpuSeries]:
        """Connect to the driver; returns the GPUs, empty where it cannot be reached."""
        if self._call("nvmlInit_v2") != 0:
            return []
        self._reached = True
        count = ctypes.c_uint()
        if self._call("nvmlDeviceGetCount_v2", ctypes.byref(count)) != 0:
            return []
        found = []
        for index in range(min(count.value, MOST_DEVICES)):
            handle = ctypes.c_void_p()
            if self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)) != 0:
                continue
            self._handles.append(handle)
            memory = self._memory(handle)
            total = memory.total if memory is not None else None
            found.append(GpuSeries(index, self._text("Name", handle), self._text("UUID", handle), total))
        return found

    def stop(self) -> None:
        """Let go of the driver, where it could be reached."""
        if self._reached:
            self._reached = False
            self._call("nvmlShutdown")

    def sample(self, series: list[GpuSeries], now_s: float) -> None:
        """Append one sample to each GPU's series."""
        for handle, one in zip(self._handles, series, strict=True):
            rates, memory = _Utilization(), self._memory(handle)
            known = self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates)) == 0
            power = self._number(ctypes.c_uint, "nvmlDeviceGetPowerUsage", handle)
            one.time_s.append(round(now_s, 4))
            one.utilization_percent.append(rates.gpu if known else None)
            one.memory_busy_percent.append(rates.memory if known else None)
            one.sm_clock_mhz.append(self._clock(handle, _SM_CLOCK))
            one.memory_clock_mhz.append(self._clock(handle, _MEMORY_CLOCK))
            one.power_w.append(None if power is None else power / 1000)
            one.memory_used_bytes.append(None if memory is None else memory.used)
            masks = (self._number(ctypes.c_ulonglong, "nvmlDeviceGetCurrentClocks" + name, handle) for name in REASONS)
            one.throttle_mask.append(next((mask for mask in masks if mask is not None), None))

    def _call(self, name: str, *arguments: Any) -> int:
        try:
            return int(getattr(self._library, name)(*arguments))
        except (AttributeError, OSError, ValueError, ctypes.ArgumentError):
            return -1

    def _number(self, kind: Any, name: str, handle: ctypes.c_void_p) -> int | None:
        value = kind()
        return int(value.value) if self._call(name, handle, ctypes.byref(value)) == 0 else None

    def _clock(self, handle: ctypes.c_void_p, which: int) -> int | None:
        value = ctypes.c_uint()
        done = self._call("nvmlDeviceGetClockInfo", handle, ctypes.c_uint(which), ctypes.byref(value))
        return int(value.value) if done == 0 else None

    def _memory(self, handle: ctypes.c_void_p) -> _Memory | None:
        memory = _Memory()
        return memory if self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == 0 else None

    def _text(self, what: str, handle: ctypes.c_void_p) -> str:
        buffer = ctypes.create_string_buffer(96)
        done = self._call("nvmlDeviceGet" + what, handle, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode("utf-8", "replace") if done == 0 else ""


class Sampler:
    """Samples in a thread of its own from :meth:`start` to :meth:`stop`.

    Parameters
    ----------
    library
        NVML; looked for where it is not given.
    interval_s
        Seconds between two samples.
    """

    def __init__(self, library: Any = None, interval_s: float = INTERVAL_S) -> None:
        found = library if library is not None else load_library()
        self._nvml = Nvml(found) if found is not None else None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self.interval_s = interval_s
        self.series: list[GpuSeries] = []

    def start(self) -> None:
        """Begin; without a driver nothing happens. One that takes its time to answer keeps nobody waiting."""
        if self._nvml is not None:
            self._thread = threading.Thread(target=self._run, args=(self._nvml,), name="run-gpu", daemon=True)
            self._thread.start()

    def _run(self, driver: Nvml) -> None:
        self.series = driver.start()
        try:
            if self.series:
                self._loop(driver)
        finally:
            driver.stop()

    def _loop(self, driver: Nvml) -> None:
        while True:
            driver.sample(self.series, time.time())
            if len(self.series[0].time_s) >= MOST_SAMPLES:
                self.interval_s *= 2
                for one in self.series:
                    one.thin()
            if self._end.wait(self.interval_s):
                return

    def stop(self) -> None:
        """End; may be called twice."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)
            self._thread = None

    @property
    def now(self) -> list[tuple[int, int | None, int | None]]:
        """Newest (index, utilisation in percent, memory in use in bytes) of each GPU."""
        return [
            (one.index, one.utilization_percent[-1], one.memory_used_bytes[-1])
            for one in self.series
            if one.memory_used_bytes and one.utilization_percent
        ]

    def write(self, folder: Path) -> list[dict[str, Any]]:
        """Write ``gpu_metrics.json`` where there is a sample; returns a summary of each GPU."""
        known = [one for one in self.series if one.time_s]
        if not known:
            return []
        plain = {"format": FORMAT, "interval_s": self.interval_s, "devices": [vars(one) for one in known]}
        partial = folder / (NAME + ".partial")
        partial.write_text(json.dumps(plain, separators=(",", ":")), "utf-8")
        os.replace(partial, folder / NAME)
        return [one.summary() for one in known]
