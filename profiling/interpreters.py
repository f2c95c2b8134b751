"""Finds the Pythons that a script may be meant for."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WINDOWS = os.name == "nt"
VENV_NAMES = (".venv", "venv", "env", ".env", "virtualenv")
CONDA_NAMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "miniconda", "anaconda", "conda")
PARENTS = 6  # folders above the script that are looked into
_VERSION = re.compile(r"__version__\s*=\s*[\"']([^\"'+]+)")
_HOME = re.compile(r"^home\s*=\s*(.+?)\s*$", re.MULTILINE)
_NUMBER = re.compile(r"^python(3\.\d+)")


@dataclass(frozen=True)
class Interpreter:
    """One Python: its path as it is started (a virtual environment's link is kept), and where it was found."""

    path: str
    origin: str
    has_torch: bool | None  # judged by its folders alone; None where that cannot be told
    torch_version: str = ""  # as its files say; empty where they do not


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
        *(("in this folder", p) for p in _beside(os.getcwd(), whole_path=False)),
        *(("active environment", p) for p in _active()),
        *(("of StepLens", p) for p in _own()),
        *(("conda", p) for p in _conda()),
        *(("pyenv", p) for p in _pyenv()),
        *(("on the path", p) for p in _on_path()),
    ]
    for origin, path in candidates:
        key = _identity(path)
        if key not in found and os.path.isfile(path) and os.access(path, os.X_OK):
            version = torch_version(path)
            found[key] = Interpreter(path, origin, has_torch(path), version or "")
    rank = {True: 0, None: 1, False: 2}
    near = "beside the script"
    return sorted(found.values(), key=lambda i: (i.has_torch is not True, i.origin != near, rank[i.has_torch]))


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
    """Whether torch lies where the interpreter looks; None for one that may look elsewhere too (a system Python)."""
    if torch_version(path) is not None:
        return True
    prefix = Path(os.path.abspath(path)).parent.parent
    own = (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").is_dir()
    return False if own and not _sees_system(prefix) else None


def torch_version(path: str) -> str | None:
    """Version of the torch that an interpreter would import, as its files say; None where there is none to be seen.

    Nothing is started: the folders of packages are looked through, those of the user and of the system where the
    interpreter takes them in. Empty where torch is there and its version cannot be read.
    """
    for folder in packages_of(path):
        try:
            text = (folder / "torch" / "version.py").read_text("utf-8", "replace")
        except OSError:
            continue
        found = _VERSION.search(text)
        return found[1] if found else ""
    return None


def packages_of(path: str) -> Iterator[Path]:
    """Folders in which an interpreter looks for packages, in its order."""
    prefix = Path(os.path.abspath(path)).parent.parent
    config = prefix / "pyvenv.cfg"
    yield from _site(prefix)
    if config.exists():
        home = _HOME.search(_text(config))
        if not _sees_system(prefix) or home is None:
            return
        path = os.path.join(home[1], os.path.basename(path))
        yield from _site(Path(home[1]).parent)
    elif (prefix / "conda-meta").is_dir():
        return
    real = os.path.realpath(path)
    if Path(real).parent.parent != prefix:  # a link on the path to a Python elsewhere
        yield from _site(Path(real).parent.parent)
    version = _NUMBER.search(os.path.basename(real))
    if version is not None:
        yield Path.home() / ".local" / "lib" / f"python{version[1]}" / "site-packages"


def _site(prefix: Path) -> Iterator[Path]:
    for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages"):
        for folder in prefix.glob(pattern):
            yield folder
            yield from _named_in(folder)
    yield from (prefix / "local").glob("lib/python3*/dist-packages")


def _named_in(folder: Path) -> Iterator[Path]:
    """Folders that the ``.pth`` files of one add to it, as those of a torch built from its source do."""
    for file in sorted(folder.glob("*.pth")):
        for line in _text(file).splitlines():
            if line and not line.startswith(("#", "import ", "import\t")):
                yield folder / line.rstrip()


def _sees_system(prefix: Path) -> bool:
    return "include-system-site-packages = true" in _text(prefix / "pyvenv.cfg").lower()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _beside(script: str, *, whole_path: bool = True) -> Iterator[str]:
    """Virtual environments in the folder of a script (or in a folder) and, with ``whole_path``, in those above it."""
    if not script:
        return
    start = Path(os.path.abspath(os.path.expanduser(script)))
    folders = [start, *start.parents] if start.is_dir() else list(start.parents)
    for folder in folders[: PARENTS if whole_path else 1]:
        for name in VENV_NAMES:
            if (folder / name / "pyvenv.cfg").exists():
                yield python_of(folder / name)
        for environment in (folder / ".conda", *sorted((folder / ".pixi" / "envs").glob("*"))):
            if (environment / "conda-meta").is_dir():
                yield python_of(environment)


def _active() -> Iterator[str]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield python_of(Path(os.environ[variable]))


def _own() -> Iterator[str]:
    """The Python that runs this program, where it is an environment that somebody has made."""
    if sys.prefix != sys.base_prefix:
        yield sys.executable


def _conda() -> Iterator[str]:
    home = Path.home()
    for line in _text(home / ".conda" / "environments.txt").splitlines():
        if line.strip():
            yield python_of(Path(line.strip()))
    named = [Path(os.environ[name]).parent.parent for name in ("CONDA_EXE", "MAMBA_EXE") if os.environ.get(name)]
    named += [Path(os.environ["MAMBA_ROOT_PREFIX"])] if os.environ.get("MAMBA_ROOT_PREFIX") else []
    usual = [place / name for name in CONDA_NAMES for place in (home, Path("/opt"))]
    for base in (*named, *usual, home / ".local" / "share" / "mamba", home / ".conda"):
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
