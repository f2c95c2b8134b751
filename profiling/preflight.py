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

from profiling.errors import ProfilingError, cannot_start
from profiling.sentences import say

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
            return say("python-alone", python=self.python)
        if self.devices:
            first = self.devices[0]
            free, total = f"{first.free_bytes / 2**30:.1f}", f"{first.total_bytes / 2**30:.1f}"
            values = {"device": first.name, "free": free, "total": total, "more": len(self.devices) - 1}
            key = "python-gpus" if len(self.devices) > 1 else "python-gpu"
            return say(key, python=self.python, torch=self.torch, **values)
        return say("python-cpu", python=self.python, torch=self.torch)


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
            say("interpreter-silent", path=interpreter, seconds=f"{timeout_s:.0f}"), "", say("cure-another")
        ) from error
    except (OSError, ValueError) as error:
        raise cannot_start(interpreter, error) from error
    try:
        found = json.loads(done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2])
        assert isinstance(found, dict)
    except (ValueError, AssertionError) as error:
        detail = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise ProfilingError(say("interpreter-none", path=interpreter), detail, say("cure-another")) from error
    devices = tuple(Device(**d) for d in found["devices"])
    cuda = bool(found["cuda_build"] and devices)
    remarks = [*_of_torch(found), *_of_devices(found, devices), *_of_cuda(merged) * cuda, *_of_disk(runs_root)]
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
        return [Remark("stop", say("torch-broken", error=found["torch_error"]), say("cure-install-anew"))]
    if not found["torch"]:
        return [Remark("stop", say("torch-missing"), say("cure-install", python=found["executable"]))]
    remarks = []
    if version_tuple(found["torch"]) < OLDEST_TORCH:
        remarks.append(Remark("stop", say("torch-old", version=found["torch"]), say("cure-newer")))
    if not found["kineto"]:
        remarks.append(Remark("stop", say("torch-bare"), say("cure-official")))
    return remarks


def _of_devices(found: Mapping[str, Any], devices: tuple[Device, ...]) -> list[Remark]:
    if not found["torch"] or devices:
        return []
    if not found["cuda_build"] and not found["hip_build"]:
        return [Remark("info", say("build-cpu"), say("cure-cuda-build"))]
    if found["cuda_error"]:
        error = found["cuda_error"].partition(" Please ")[0]  # what torch advises takes four lines; the cure is below
        if "no NVIDIA driver" in error:
            return [Remark("warn", say("gpu-driverless"), say("cure-driverless"))]
        return [Remark("warn", say("gpu-unusable", error=error.rstrip(". ")), say("cure-driver"))]
    return [Remark("warn", say("gpu-unseen"), say("cure-visible"))]


def _of_cuda(env: Mapping[str, str]) -> list[Remark]:
    """What spoils or forbids a recording of the GPU; nothing of it matters where none is used."""
    remarks = []
    if env.get("CUDA_LAUNCH_BLOCKING") == "1":
        remarks.append(Remark("warn", say("blocking-set"), say("cure-unset")))
    for name in ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        if env.get(name):
            remarks.append(Remark("warn", say("attached", name=name), say("cure-outside")))
            break
    try:
        restricted = "RmProfilingAdminOnly: 1" in RESTRICTION_FILE.read_text()
    except OSError:
        restricted = False
    if restricted and (not hasattr(os, "geteuid") or os.geteuid() != 0):
        remarks.append(Remark("warn", say("restricted"), say("cure-restricted")))
    return remarks


def _of_disk(runs_root: str) -> list[Remark]:
    root = Path(runs_root) if runs_root else Path.home()
    while not root.exists() and root != root.parent:
        root = root.parent
    free = shutil.disk_usage(root).free
    low = [Remark("warn", say("disk-low", free=f"{free / 1e6:.0f}"), say("cure-disk"))]
    return low if free < LEAST_DISK_BYTES else []
