"""The runs that are kept: listed, renamed, measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiling import manifest
from profiling.errors import ProfilingError
from profiling.sentences import say


@dataclass(frozen=True)
class KeptRun:
    """A run folder with its manifest and its size on disk."""

    folder: Path
    manifest: dict[str, Any]
    size_bytes: int

    @property
    def name(self) -> str:
        """The user's name for it, else the script's."""
        return str(self.manifest.get("name") or self.folder.name)

    @property
    def created(self) -> float:
        """When it was started, seconds since the epoch; 0 where that is not known."""
        value = self.manifest.get("created", 0)
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def state(self) -> str:
        """``ok``, ``failed``, ``stopped``, ``killed``, ``running``, or ``lost`` (its launcher died with it)."""
        state = str(self.manifest.get("state", ""))
        recent = time.time() - self.folder.stat().st_mtime < 3600 if self.folder.exists() else False
        return "lost" if state == "running" and not recent else state

    @property
    def traces(self) -> list[Path]:
        """Traces that are there; a name that leaves the folder is not followed."""
        found = []
        for row in self.manifest.get("traces") or []:
            name = row.get("path") if isinstance(row, dict) else None
            if isinstance(name, str) and Path(name).name == name and (self.folder / name).is_file():
                found.append(self.folder / name)
        return found


def list_runs(root: Path) -> list[KeptRun]:
    """Runs below ``root``, newest first; folders without a manifest are passed over."""
    found = []
    try:
        folders = [folder for folder in root.iterdir() if folder.is_dir()]
    except OSError:
        return []
    for folder in folders:
        content = manifest.read(folder)
        if content is not None:
            found.append(KeptRun(folder, content, size_of(folder)))
    return sorted(found, key=lambda run: -run.created)


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                total += path.stat().st_size
        except OSError:
            continue
    return total


def rename(folder: Path, name: str) -> None:
    """Give a run another name; its folder keeps its own, so that what refers to it still holds.

    Raises
    ------
    ProfilingError
        Where the name is empty or the manifest cannot be written.
    """
    content = manifest.read(folder)
    if content is None or not name.strip():
        raise ProfilingError(say("not-renamed"), str(folder), say("cure-name"))
    content["name"] = name.strip()
    try:
        manifest.write(folder, content)
    except OSError as error:
        raise ProfilingError(say("not-renamed"), str(error)) from error
