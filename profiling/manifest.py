"""``run.json``: what was run, where, with what, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FORMAT = "steplens.run/1"
NAME = "run.json"
LARGEST_SOURCE_BYTES = 2_000_000
MOST_SOURCES = 2000


def default_runs_root() -> Path:
    """Where run folders are kept unless the user says otherwise."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "steplens" / "runs"


def new_run_folder(root: Path, title: str) -> Path:
    """Create a folder for a run; an existing one is never taken."""
    root.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:60] or "run"
    stem = time.strftime("%Y-%m-%d_%H-%M-%S_") + slug
    for number in range(1, 1000):
        folder = root / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"no free name for a run in {root}")


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``run.json``; a reader sees the old one or the new one, never half of one."""
    partial = folder / (NAME + ".partial")
    try:
        partial.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8", "backslashreplace")
        os.replace(partial, folder / NAME)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def read(folder: Path) -> dict[str, Any] | None:
    """Manifest of a run folder, None where there is none that can be read."""
    try:
        found = json.loads((folder / NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not str(found.get("format", "")).startswith("steplens.run/"):
        return None
    return found


def git_revision(folder: str) -> dict[str, Any] | None:
    """Commit, branch and whether the tree had changes; None outside a repository or without git."""

    def ask(*args: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", folder, *args],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=5,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return None
    changes = ask("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "branch": ask("rev-parse", "--abbrev-ref", "HEAD"), "dirty": bool(changes)}


def copy_sources(files: Iterable[str], folder: Path) -> list[dict[str, str]]:
    """Copy the user's sources into ``sources/``; returns where each one came from.

    Paths are kept below the deepest folder that all share, so that names stay readable and none collide.
    """
    known = [f for f in dict.fromkeys(files) if os.path.isfile(f) and os.path.getsize(f) <= LARGEST_SOURCE_BYTES]
    known = known[:MOST_SOURCES]
    if not known:
        return []
    top = os.path.commonpath([os.path.dirname(f) for f in known]) if _one_drive(known) else ""
    rows = []
    for file in known:
        relative = os.path.relpath(file, top) if top else re.sub(r"[:\\/]+", "/", file).lstrip("/")
        target = folder / "sources" / relative
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        except OSError:
            with contextlib.suppress(OSError):
                target.unlink()  # half of a source is none
            continue
        rows.append({"path": file, "copy": str(target.relative_to(folder))})
    return rows


def _one_drive(files: list[str]) -> bool:
    return len({os.path.splitdrive(f)[0] for f in files}) == 1


# Variables that change how a run behaves or how fast it is; nothing else of the environment is kept.
_VARIABLES = re.compile(
    r"^(CUDA_|NCCL_|PYTORCH_|TORCH_|OMP_|MKL_|KMP_|NVIDIA_|HIP_|ROCR_|ROCM_|HSA_|XLA_|PYTHON(PATH|HASHSEED|OPTIMIZE)"
    r"|CONDA_DEFAULT_ENV|VIRTUAL_ENV|LD_PRELOAD|LD_LIBRARY_PATH|WORLD_SIZE|RANK|LOCAL_RANK)"
)


def environment(env: Mapping[str, str]) -> dict[str, Any]:
    """Machine and settings, without anything secret."""
    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "variables": {k: env[k] for k in sorted(env) if _VARIABLES.match(k)},
    }
