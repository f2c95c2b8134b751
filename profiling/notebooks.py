"""Turns a notebook into a script that can be run, profiled and edited: a file of the user's own beside the notebook."""

from __future__ import annotations

import ast
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiling.errors import ProfilingError
from profiling.sentences import say

SUFFIX = ".ipynb"
LARGEST_BYTES = 500_000_000
MOST_NAMES = 100
_TIMED = ("time", "timeit", "prun", "capture")  # magics of a cell whose code is run all the same
_MAGIC = re.compile(r"^\s*(%|!|\?)|\?\s*$|^\s*[\w, ]+=\s*(%|!)")
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


def make_script(notebook: str) -> Script:
    """Write the script of a notebook beside it; a file that is there with another content is left alone.

    Raises
    ------
    ProfilingError
        Where the notebook cannot be read or the script not be written.
    """
    source = Path(os.path.abspath(os.path.expanduser(notebook)))
    try:
        if source.stat().st_size > LARGEST_BYTES:
            raise ValueError(f"{source.stat().st_size} bytes")
        text, left_out = to_source(json.loads(source.read_text("utf-8")), source.name)
    except (OSError, ValueError, RecursionError) as error:
        raise ProfilingError(say("no-notebook", path=source), str(error), say("cure-notebook")) from error
    content = text.encode("utf-8", "backslashreplace")
    try:
        for number in range(1, MOST_NAMES):
            path = source.with_name(f"{source.stem}{'' if number == 1 else f'_{number}'}.py")
            if not path.exists():
                with path.open("xb") as out:
                    out.write(content)
                return Script(path, left_out)
            if path.is_file() and path.read_bytes() == content:
                return Script(path, left_out)
    except OSError as error:
        raise ProfilingError(say("no-script-beside", path=source), str(error), say("cure-notebook")) from error
    raise ProfilingError(say("no-script-beside", path=source), "", say("cure-notebook"))


def to_source(notebook: Any, name: str) -> tuple[str, int]:
    """Code of all cells in order, and how many lines of it only a notebook understands.

    Raises
    ------
    ValueError
        Where this is no notebook.
    """
    if not isinstance(notebook, dict):
        raise ValueError("no object")
    sheets = notebook.get("worksheets")  # notebooks until 2015
    cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
    cells = notebook.get("cells", cells)
    if not isinstance(cells, list):
        raise ValueError("no cells")
    parts = [
        f"# The code of {_one_line(name)}, cell by cell. What only a notebook understands stands here as comments."
    ]
    left_out = 0
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            code = cell.get("source", cell.get("input", ""))
            code = "".join(map(str, code)) if isinstance(code, list) else str(code)
            told, lost = _without_magics(code.rstrip())
            left_out += lost
            if told.strip():
                parts.append(f"# %% cell {number}\n{told}")
    if re.search(r"\bdisplay\(", "\n".join(parts[1:])):
        parts.insert(1, _DISPLAY.rstrip())
    return "\n\n".join(parts) + "\n", left_out


def _without_magics(code: str) -> tuple[str, int]:
    """A cell's code with its magics as comments, and their number; as it is, where it is plain Python."""
    if _is_python(code):
        return code, 0
    lines = code.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    found = re.match(r"%%(\w+)", lines[first].strip())
    if found and found[1] not in _TIMED:
        return "\n".join(f"# {line}" for line in lines), len(lines)
    lost = 0
    for index, line in enumerate(lines):
        if _MAGIC.search(line):
            lost += 1
            indent = line[: len(line) - len(line.lstrip())]
            lines[index] = f"{indent}pass  # {line.strip()}" if indent else f"# {line.strip()}"
    return "\n".join(lines), lost


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _one_line(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
