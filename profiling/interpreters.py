"""Finds the Pythons that a script may be meant for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WINDOWS = os.name == "nt"
VENV_NAMES = (".venv", "venv", "env", ".env", "virtualenv")
PARENTS = 6  # folders above the script that are looked into


@dataclass(frozen=True)
class Interpreter:
    """One Python: its path as it is started (a virtual environment's link is kept), and where it was found."""

    path: str
    origin: str
    has_torch: bool | None  # judged by its folders alone; None where that cannot be told


def find_interpreters(script: str = "", last_used: Iterable[str] = ()) -> list[Interpreter]:
    """Interpreters to offer for a script, the likeliest first; none is started.

    Parameters
    ----------
    script
        The script's path, or a folder; empty where there is none yet.
    last_used
        Paths of earlier runs, newest first.
    """
    found: dict[str, Interpreter] = {}
    candidates = [
        *(("beside the script", p) for p in _beside(script)),
        *(("last used", p) for p in last_used),
        *(("active environment", p) for p in _active()),
        *(("conda", p) for p in _conda()),
        *(("pyenv", p) for p in _pyenv()),
        *(("on the path", p) for p in _on_path()),
    ]
    for origin, path in candidates:
        key = _identity(path)
        if key not in found and os.path.isfile(path) and os.access(path, os.X_OK):
            found[key] = Interpreter(path, origin, has_torch(path))
    rank = {True: 0, None: 1, False: 2}
    return sorted(found.values(), key=lambda i: (i.origin != "beside the script", rank[i.has_torch]))


def _identity(path: str) -> str:
    """What makes two paths the same interpreter: the environment's folder and the binary behind it."""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return os.path.join(folder, os.path.basename(os.path.realpath(path)))


def python_of(environment: Path) -> str:
    """Path of an environment's interpreter."""
    if WINDOWS:
        direct = environment / "python.exe"
        return str(direct if direct.exists() else environment / "Scripts" / "python.exe")
    for name in ("python", "python3"):
        if (environment / "bin" / name).exists():
            return str(environment / "bin" / name)
    return str(environment / "bin" / "python")


def has_torch(path: str) -> bool | None:
    """Whether torch lies in the interpreter's own packages; None for one that may look elsewhere (a system Python)."""
    prefix = Path(os.path.abspath(path)).parent.parent
    patterns = ("lib/python3*/site-packages", "Lib/site-packages")
    folders = [f for pattern in patterns for f in prefix.glob(pattern)]
    if any((folder / "torch" / "version.py").exists() for folder in folders):
        return True
    own = (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").is_dir()
    if own and "include-system-site-packages = true" not in _text(prefix / "pyvenv.cfg").lower():
        return False
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _beside(script: str) -> Iterator[str]:
    if not script:
        return
    start = Path(os.path.abspath(os.path.expanduser(script)))
    folders = [start, *start.parents] if start.is_dir() else list(start.parents)
    for folder in folders[:PARENTS]:
        for name in VENV_NAMES:
            if (folder / name / "pyvenv.cfg").exists():
                yield python_of(folder / name)


def _active() -> Iterator[str]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield python_of(Path(os.environ[variable]))


def _conda() -> Iterator[str]:
    home = Path.home()
    for line in _text(home / ".conda" / "environments.txt").splitlines():
        if line.strip():
            yield python_of(Path(line.strip()))
    for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"):
        for base in (home / name, Path("/opt") / name):
            if base.is_dir():
                yield python_of(base)
                for environment in sorted((base / "envs").glob("*")):
                    yield python_of(environment)


def _pyenv() -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for version in sorted((root / "versions").glob("3.*"), key=lambda p: _numbers(p.name), reverse=True):
        if _numbers(version.name) >= (3, 8):
            yield python_of(version)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _on_path() -> Iterator[str]:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder.endswith("shims"):  # of pyenv and the like: they may start anything
            continue
        for name in ("python3", "python"):
            path = shutil.which(name, path=folder) if folder else None
            if path:
                yield path
