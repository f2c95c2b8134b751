"""Turns a notebook into a script that can be run, profiled and edited: a file of the user's own beside the notebook."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from profiling.errors import ProfilingError
from profiling.interpreters import find_interpreters, packages_of
from profiling.sentences import say

SUFFIX = ".ipynb"
LARGEST_BYTES = 500_000_000
MOST_NAMES = 100
_TIMED = ("time", "timeit", "prun", "capture")  # magics of a cell whose code is run all the same
_MAGIC = re.compile(r"^\s*(%|!|\?)|^\s*(?!\d)[\w*][\w.*]*(\[[^\]]*\][\w.*]*)*\?\??\s*$|^\s*[\w, ]+=\s*(%|!)")
_OPENING = re.compile(r"\\.|\'\'\'|\"\"\"|['\"#()\[\]{}]")  # what decides whether a line goes on in the next one
_KEPT = re.compile(  # a line's magic that only looks on while its statement runs, and the magic's own options
    r"^(?P<indent>\s*)%(?:time|prun)\s+(?:(?:-[lsTD]\s+\S+|-[rq]|--no-raise-error)\s+)*(?P<statement>[^-\s].*)$"
)
# A change of the working folder, whose path names no variable; without its % it is one word, as in other Python never.
_CD = re.compile(r"^(?P<indent>\s*)(?:%cd\s+(?:-q\s+)?|cd\s+(?=\S+\s*$))(?P<path>[\w~./\\\"'][^{}$]*?)\s*;?\s*$")
_CALL = re.compile(r"^(?P<indent>\s*)(?P<how>[/,;])(?P<name>[^\W\d][\w.]*)\s*(?P<given>.*?)\s*$")  # IPython's autocall
_FOLDER = Path(__file__).parents[1]
_COMPILE = "import sys; compile(sys.stdin.buffer.read(), 'cell', 'exec')"
_DISPLAY = """try:
    from IPython.display import display
except ImportError:
    display = print
"""


@dataclass(frozen=True)
class Script:
    """A notebook as a script.

    Parameters
    ----------
    path
        The file that was written, or that was there already with the same content.
    left_out
        Lines that only a notebook understands; they stand in it as comments.
    """

    path: Path
    left_out: int


def is_notebook(path: str) -> bool:
    """Whether a path names a notebook."""
    return path.lower().endswith(SUFFIX)


def make_script(notebook: str, interpreter: str = "") -> Script:
    """Write the script of a notebook beside it; a file that is there with another content is left alone.

    Its name is that of the notebook, unless the script would stand in the way of a module of that name.

    Parameters
    ----------
    notebook
        Its path.
    interpreter
        The Python that will run it; looked for where it is not given.

    Raises
    ------
    ProfilingError
        Where the notebook cannot be read, a cell of it cannot be run in a script, or the script not be written.
    """
    source = Path(os.path.abspath(os.path.expanduser(notebook)))
    try:
        if source.stat().st_size > LARGEST_BYTES:
            raise ValueError(f"{source.stat().st_size} bytes")
        pythons = [interpreter] if interpreter else [found.path for found in find_interpreters(str(source))]
        text, left_out = to_source(json.loads(source.read_text("utf-8-sig")), source.name, pythons)
    except (OSError, ValueError, RecursionError) as error:
        raise ProfilingError(say("no-notebook", path=source), str(error), say("cure-notebook")) from error
    content = text.encode("utf-8", "backslashreplace")
    stem = source.stem + "_notebook" * is_module(source.stem, source.parent, pythons)
    try:
        for number in range(1, MOST_NAMES):
            path = source.with_name(f"{stem}{'' if number == 1 else f'_{number}'}.py")
            if not path.exists():
                with path.open("xb") as out:
                    out.write(content)
                return Script(path, left_out)
            if path.is_file() and path.read_bytes() == content:
                return Script(path, left_out)
    except OSError as error:
        raise ProfilingError(say("no-script-beside", path=source), str(error), say("cure-notebook")) from error
    raise ProfilingError(say("no-script-beside", path=source), "", say("cure-notebook"))


def is_module(name: str, folder: Path, pythons: Iterable[str] = ()) -> bool:
    """Whether a script of this name in this folder would be found instead of a module of Python's or of a package."""
    if name in sys.stdlib_module_names or name in ("torch", "numpy"):
        return True
    ours = [Path(entry) for entry in sys.path if entry]
    places = [place for python in pythons for place in packages_of(python)]
    places += [place for place in ours if place.resolve() not in (_FOLDER.resolve(), folder.resolve())]
    try:
        return PathFinder.find_spec(name, [str(place) for place in places]) is not None
    except (ImportError, ValueError):
        return False


def to_source(notebook: Any, name: str, pythons: Iterable[str] = ()) -> tuple[str, int]:
    """Code of all cells in order, and how many lines of it only a notebook understands.

    Raises
    ------
    ValueError
        Where this is no notebook.
    ProfilingError
        Where a cell can be run by no script, nor by one of ``pythons``, which may be newer than ours.
    """
    if not isinstance(notebook, dict):
        raise ValueError("no object")
    cells = _cells_of(notebook)
    parts = [
        f"# The code of {_one_line(name)}, cell by cell. What only a notebook understands stands here as comments."
    ]
    left_out, features = 0, dict[str, None]()
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            code = cell.get("source", cell.get("input", ""))
            code = "".join(part for part in (code if isinstance(code, list) else [code]) if isinstance(part, str))
            told, lost = _without_magics(code.rstrip())
            left_out += lost
            if told.strip():
                told = _without_futures(told, features)
                _check(told, number, name, pythons)
                parts.append(f"# %% cell {number}\n{told}")
    if re.search(r"\bdisplay\(", "\n".join(parts[1:])):
        parts.insert(1, _DISPLAY.rstrip())
    if features:  # they hold for a whole file, and only at its top
        parts.insert(1, f"from __future__ import {', '.join(features)}")
    return "\n\n".join(parts) + "\n", left_out


def _cells_of(notebook: dict[str, Any]) -> list[Any]:
    """All cells of a notebook in Python; raises ValueError where there are none."""
    sheets = notebook.get("worksheets")  # notebooks until 2015
    parts = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
    parts = [notebook.get("cells"), *parts]
    if not any(isinstance(cells, list) for cells in parts):
        raise ValueError("no cells")
    about = notebook.get("metadata")
    for part, key in (("kernelspec", "language"), ("language_info", "name")):
        told = about.get(part) if isinstance(about, dict) else None
        language = told.get(key) if isinstance(told, dict) else None
        if isinstance(language, str) and language and "python" not in language.lower():
            raise ValueError(f"its language is {_one_line(language)[:60]}")
    return [cell for cells in parts if isinstance(cells, list) for cell in cells]


def _without_magics(code: str) -> tuple[str, int]:
    """A cell's code with its magics as comments, and their number; as it is, where it is plain Python."""
    if _is_python(code):
        return code, 0
    lines = code.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    found = re.match(r"%%(\w+|!)", lines[first].strip())
    if found and found[1] not in _TIMED:
        return "\n".join(f"# {line}" for line in lines), len(lines)
    lost, magic, place = 0, False, _Place()
    for index, line in enumerate(lines):
        if not magic and place.is_start and (kept := _KEPT.match(line)):
            lines[index] = line = kept["indent"] + kept["statement"]
        elif not magic and place.is_start and (said := _as_python(line)):
            lines[index] = line = said
        elif magic or (place.is_start and _MAGIC.search(line)):
            lost += 1
            indent = line[: len(line) - len(line.lstrip())]
            lines[index] = f"{indent}pass  # {line.strip()}" if indent and not magic else f"# {line.strip()}"
            magic = line.rstrip("\r").endswith("\\")  # it goes on in the next line
            continue
        place.pass_over(line.rstrip("\r"))
    return "\n".join(lines), lost


def _as_python(line: str) -> str:
    """What a line of IPython's means in Python: a change of the folder, a call without brackets; else nothing."""
    if found := _CD.match(line):
        path = found["path"].strip("\"'")
        return f"{found['indent']}import os; os.chdir(os.path.expanduser({path!r}))"
    if not (found := _CALL.match(line)):
        return ""
    given = found["given"]
    if found["how"] == ",":
        given = ", ".join(map(repr, given.split()))
    return f"{found['indent']}{found['name']}({repr(given) if found['how'] == ';' else given})"


class _Place:
    """Whether a line begins a statement, or goes on with a string, a bracket or a line that ends in a backslash."""

    def __init__(self) -> None:
        self._depth, self._quote, self._joined = 0, "", False

    @property
    def is_start(self) -> bool:
        """The next line begins a statement."""
        return not (self._depth or self._quote or self._joined)

    def pass_over(self, line: str) -> None:
        """Take notice of what a line of Python leaves open."""
        self._joined = line.endswith("\\")
        for found in _OPENING.finditer(line):
            token = found[0]
            if self._quote:
                if token == self._quote or token[0] * len(token) == self._quote * len(token):
                    self._quote = ""
            elif token == "#":
                self._joined = False
                break
            elif token[0] in "'\"":
                self._quote = token
            elif token[0] != "\\":
                self._depth = max(0, self._depth + (1 if token in "([{" else -1))
        if len(self._quote) == 1 and not self._joined:
            self._quote = ""


def _check(code: str, number: int, name: str, pythons: Iterable[str]) -> None:
    """Raise a :class:`ProfilingError` that names the cell, where no script can run it."""
    error = _error_of(code)
    if error is None:
        return
    first = next(line.strip() for line in code.split("\n") if line.strip())
    place = {"number": number, "path": name, "line": first[:60]}
    if _error_of(code, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT) is None:
        raise ProfilingError(say("cell-await", **place), "", say("cure-await"))
    for python in list(pythons)[:3]:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command, content = [python, "-I", "-S", "-W", "ignore", "-c", _COMPILE], code.encode("utf-8", "replace")
            if subprocess.run(command, input=content, capture_output=True, timeout=20, check=False).returncode == 0:
                return
    raise ProfilingError(say("cell-broken", **place), str(error), say("cure-cell"))


def _error_of(code: str, flags: int = 0) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "cell", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return error
    except (RecursionError, MemoryError):  # the interpreter itself shall judge
        return None
    return None


def _without_futures(code: str, features: dict[str, None]) -> str:
    """The code without its imports from ``__future__``, which are added to ``features``."""
    if "__future__" not in code or not _is_python(code):
        return code
    lines = code.encode().split(b"\n")  # columns of a syntax tree count bytes
    for node in reversed(ast.parse(code).body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            features.update(dict.fromkeys(alias.name for alias in node.names))
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            rest = lines[last][node.end_col_offset :]
            lines[first : last + 1] = [lines[first][: node.col_offset] + b"pass" + rest]
    return b"\n".join(lines).decode()


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _one_line(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
