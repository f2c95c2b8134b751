"""Running a script from a changed copy of its sources, with the options of the first run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.run_folder import RunRecord


def source_root(run: RunRecord) -> Path | None:
    """Folder to copy for a changed run: the deepest one that holds the script and the sources it used.

    It never reaches above the script's folder where the sources lie far apart (the user's home, say).
    """
    script = run.spec.get("script") or ""
    folders = [os.path.dirname(os.path.abspath(p)) for p in run.sources]
    own = os.path.dirname(os.path.abspath(script)) if script else str(run.spec.get("cwd") or "")
    if not own:
        return None
    related = [f for f in folders if _near(f, own)]
    try:
        common = os.path.commonpath([own, *related])
    except ValueError:  # other drives
        common = own
    return Path(common)


def _near(folder: str, own: str) -> bool:
    """Below the script's folder, or beside it in the same project (marked by a project file or repository)."""
    if folder == own or folder.startswith(own + os.sep):
        return True
    marks = ("pyproject.toml", "setup.py", ".git")
    parent = Path(own)
    for above in (parent, *list(parent.parents)[:4]):
        if any((above / mark).exists() for mark in marks):
            return folder == str(above) or folder.startswith(f"{above}{os.sep}")
    return False


def moved_spec(spec: Mapping[str, Any], root: Path, copy: Path) -> dict[str, Any]:
    """The options of a run, for running its changed copy: paths below ``root`` point into the copy."""

    def moved(path: str) -> str:
        absolute = Path(os.path.abspath(path))
        return str(copy / absolute.relative_to(root)) if absolute.is_relative_to(root) else path

    out = dict(spec)
    if out.get("script"):
        out["script"] = moved(str(out["script"]))
    if out.get("cwd"):
        out["cwd"] = moved(str(out["cwd"]))
    return out


def changed_since(run: RunRecord) -> tuple[str, ...]:
    """Paths of the user's files that are no longer what a run used, or are gone."""
    return tuple(path for path, copy in sorted(run.sources.items()) if _differ(Path(path), copy))


def _differ(path: Path, copy: Path) -> bool:
    try:
        return path.read_bytes() != copy.read_bytes()
    except OSError:
        return True
