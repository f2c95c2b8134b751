"""Looks before a run whether it can succeed, and says in words what is missing and how to cure it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiling.errors import ProfilingError

ASKER = Path(__file__).with_name("_child_preflight.py")
LONGEST_SECONDS = 60.0
LEAST_DISK_BYTES = 1_000_000_000
OLDEST_TORCH = (2, 0)
# A module option of NVIDIA's driver; 1 means that only administrators may profile.
RESTRICTION_FILE = Path("/proc/driver/nvidia/params")


@dataclass(frozen=True)
class Device:
    """One GPU that torch can use."""

    index: int
    name: str
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Remark:
    """Something to know before the run: ``stop`` (it cannot work), ``warn`` or ``info``; with its cure."""

    level: str
    text: str
    cure: str = ""


@dataclass(frozen=True)
class Preflight:
    """What an interpreter can do.

    Parameters
    ----------
    torch
        Version, empty where there is none.
    remarks
        Worst first.
    """

    interpreter: str
    python: str
    torch: str
    cuda_build: str
    devices: tuple[Device, ...]
    remarks: tuple[Remark, ...] = field(default=())

    @property
    def usable(self) -> bool:
        """Whether a run can succeed."""
        return not any(remark.level == "stop" for remark in self.remarks)

    @property
    def words(self) -> str:
        """One line about the interpreter."""
        if not self.torch:
            return f"Python {self.python}, no torch"
        if self.devices:
            first = self.devices[0]
            more = f" and {len(self.devices) - 1} more" if len(self.devices) > 1 else ""
            free = f"{first.free_bytes / 2**30:.1f} of {first.total_bytes / 2**30:.1f} GiB free"
            return f"Python {self.python}, torch {self.torch}, {first.name} ({free}){more}"
        return f"Python {self.python}, torch {self.torch}, CPU only"


def preflight(
    interpreter: str, env: Mapping[str, str] | None = None, runs_root: str = "", timeout_s: float = LONGEST_SECONDS
) -> Preflight:
    """Ask an interpreter what it can do; takes as long as ``import torch`` does there.

    Raises
    ------
    ProfilingError
        Where it cannot be started or does not answer as a Python does.
    """
    merged = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(
            [interpreter, str(ASKER)],
            capture_output=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env=merged,
            cwd=os.path.expanduser("~") if os.path.isdir(os.path.expanduser("~")) else None,
        )
    except subprocess.TimeoutExpired as error:
        raise ProfilingError(
            f"The interpreter {interpreter} did not answer within {timeout_s:.0f} seconds.", "", "Choose another one."
        ) from error
    except (OSError, ValueError) as error:
        raise ProfilingError(
            f"The interpreter {interpreter} cannot be started.", str(error), "Choose another one."
        ) from error
    try:
        found = json.loads(done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2])
        assert isinstance(found, dict)
    except (ValueError, AssertionError) as error:
        detail = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise ProfilingError(f"{interpreter} is no usable Python.", detail, "Choose another one.") from error
    devices = tuple(Device(**d) for d in found["devices"])
    remarks = [*_of_torch(found), *_of_devices(found, devices), *_of_machine(merged, runs_root)]
    order = {"stop": 0, "warn": 1, "info": 2}
    remarks.sort(key=lambda remark: order[remark.level])
    build = found["cuda_build"] or (f"ROCm {found['hip_build']}" if found["hip_build"] else "")
    return Preflight(interpreter, found["python"], found["torch"] or "", build, devices, tuple(remarks))


def version_tuple(version: str) -> tuple[int, ...]:
    """Leading numbers of a version: ``2.13.0+cpu`` gives ``(2, 13)``."""
    parts = version.split(".")[:2]
    return tuple(int(p) for p in parts if p.isdigit())


def _of_torch(found: Mapping[str, Any]) -> list[Remark]:
    if found["torch_error"]:
        return [Remark("stop", f"torch is there but cannot be imported: {found['torch_error']}", "Install it anew.")]
    if not found["torch"]:
        cure = f"Install it there ({found['executable']} -m pip install torch) or choose another interpreter."
        return [Remark("stop", "This interpreter has no torch.", cure)]
    remarks = []
    if version_tuple(found["torch"]) < OLDEST_TORCH:
        remarks.append(Remark("stop", f"torch {found['torch']} is too old.", "torch 2.0 or newer is needed."))
    if not found["kineto"]:
        remarks.append(Remark("stop", "This torch was built without its profiler (Kineto).", "Use an official build."))
    return remarks


def _of_devices(found: Mapping[str, Any], devices: tuple[Device, ...]) -> list[Remark]:
    if not found["torch"] or devices:
        return []
    if not found["cuda_build"] and not found["hip_build"]:
        cure = "A GPU can only be seen with a CUDA build of torch."
        return [Remark("info", "This torch is a CPU build: there is no device to wait for.", cure)]
    if found["cuda_error"]:
        cure = "Often the driver is older than this torch needs: update the driver or install a torch built for it."
        return [Remark("warn", f"torch cannot use the GPU: {found['cuda_error']}", cure)]
    return [
        Remark("warn", "No GPU is visible: the run will use the CPU.", "Look at CUDA_VISIBLE_DEVICES and the driver.")
    ]


def _of_machine(env: Mapping[str, str], runs_root: str) -> list[Remark]:
    remarks = []
    if env.get("CUDA_LAUNCH_BLOCKING") == "1":
        text = "CUDA_LAUNCH_BLOCKING=1 makes every launch wait for its kernel: the times will not be the true ones."
        remarks.append(Remark("warn", text, "Unset it before profiling."))
    for name in ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        if env.get(name):
            text = f"Another profiler seems to be attached ({name} is set); only one can use CUPTI."
            remarks.append(Remark("warn", text, "Start this program outside of it."))
            break
    try:
        restricted = "RmProfilingAdminOnly: 1" in RESTRICTION_FILE.read_text()
    except OSError:
        restricted = False
    if restricted and (not hasattr(os, "geteuid") or os.geteuid() != 0):
        cure = "Set the driver's option NVreg_RestrictProfilingToAdminUsers=0 (and restart), or run as administrator."
        remarks.append(Remark("warn", "The driver may refuse profiling: it is restricted to administrators.", cure))
    root = Path(runs_root) if runs_root else Path.home()
    while not root.exists() and root != root.parent:
        root = root.parent
    free = shutil.disk_usage(root).free
    if free < LEAST_DISK_BYTES:
        text = f"Only {free / 1e6:.0f} MB are free where runs are kept; a trace takes 1 to 500 MB."
        remarks.append(Remark("warn", text, "Delete old runs or choose another folder."))
    return remarks
