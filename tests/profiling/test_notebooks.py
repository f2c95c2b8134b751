"""A notebook becomes a script beside it; nothing that is there is overwritten."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from profiling.errors import ProfilingError
from profiling.notebooks import make_script, to_source
from profiling.spec import RunSpec


def cells(*sources: Any) -> dict[str, Any]:
    """A notebook of these code cells."""
    return {"nbformat": 4, "cells": [{"cell_type": "code", "source": source} for source in sources]}


@pytest.mark.parametrize(
    ("source", "expected", "lost"),
    [
        ("x = 1", "x = 1", 0),
        ("%matplotlib inline\nx = 1", "# %matplotlib inline\nx = 1", 1),
        ("for i in y:\n    !ls\n", "for i in y:\n    pass  # !ls", 1),
        ("files = !ls\nx = 1", "# files = !ls\nx = 1", 1),
        ("torch?\nx = 1", "# torch?\nx = 1", 1),
        ("%%time\nx = 1", "# %%time\nx = 1", 1),
        ("%%bash\nrm x\nls", "# %%bash\n# rm x\n# ls", 3),
        ("%time y = 3", "y = 3", 0),
        ("if x:\n    %time y = f(-1)", "if x:\n    y = f(-1)", 0),
        ("%prun -s cumulative -q train(x)", "train(x)", 0),
        ("%timeit y = 3", "# %timeit y = 3", 1),
        ("%time", "# %time", 1),
        ("%cd data", "import os; os.chdir(os.path.expanduser('data'))", 0),
        ("if x:\n    %cd -q '~/my data'", "if x:\n    import os; os.chdir(os.path.expanduser('~/my data'))", 0),
        ("cd ../data\nx = 1", "import os; os.chdir(os.path.expanduser('../data'))\nx = 1", 0),
        ("%cd {folder}", "# %cd {folder}", 1),
        ("%cd", "# %cd", 1),
        ("!ls\ncd = 3\nif cd is None: pass", "# !ls\ncd = 3\nif cd is None: pass", 1),
        ("!ls\ncd if cd else 4", "# !ls\ncd if cd else 4", 1),
        ("/f 1, 2", "f(1, 2)", 0),
        (",a.f b c", "a.f('b', 'c')", 0),
        (";f it's so", 'f("it\'s so")', 0),
        ("x = (a\n/b)\ny = [1\n,c]\n!ls", "x = (a\n/b)\ny = [1\n,c]\n# !ls", 1),
        ("%%prun -q\nx = 1", "# %%prun -q\nx = 1", 1),
        ("x = (a\n% b)", "x = (a\n% b)", 0),
        ('s = """\n!no\n"""', 's = """\n!no\n"""', 0),
        (["import torch\n", "x = 1"], "import torch\nx = 1", 0),
        (["x = 1\n", None, "y = 2"], "x = 1\ny = 2", 0),
        ("!ls\nx = 1  # why?\n# why?\ny = 'a?'", "# !ls\nx = 1  # why?\n# why?\ny = 'a?'", 1),
        ("!ls\ns = '''\n!no\n%no'''", "# !ls\ns = '''\n!no\n%no'''", 1),
        ("!ls\ns = \"(\" + 'it\\'s (\"'\n!ls", "# !ls\ns = \"(\" + 'it\\'s (\"'\n# !ls", 2),
        ("!ls\nx = (a  # (\n% b)\ny = a \\\n% b\n!ls", "# !ls\nx = (a  # (\n% b)\ny = a \\\n% b\n# !ls", 2),
        ("!pip install a \\\n  b\nx = 1", "# !pip install a \\\n# b\nx = 1", 2),
        ("if x:\n    !a \\\n      b\n    y = 1", "if x:\n    pass  # !a \\\n# b\n    y = 1", 2),
        ("f.g[0].h??\n?f\nx = 1", "# f.g[0].h??\n# ?f\nx = 1", 2),
        ("%%!\nls", "# %%!\n# ls", 2),
    ],
)
def test_cells_become_python(source: Any, expected: str, lost: int) -> None:
    text, left_out = to_source(cells(source), "a.ipynb")
    assert text.split("# %% cell 1\n")[1] == expected + "\n"
    assert left_out == lost
    compile(text, "a.py", "exec")


def test_other_cells_are_passed_over_and_old_notebooks_are_read() -> None:
    new = {"cells": [{"cell_type": "markdown", "source": "# no"}, {"cell_type": "code", "source": "display(1)"}, 3]}
    text, _ = to_source(new, "new\n.ipynb")
    assert "# no" not in text
    assert text.index("display = print") < text.index("# %% cell 2\ndisplay(1)")
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1"]}]}]}
    assert to_source(old, "old.ipynb")[0].endswith("\na = 1\n")
    old["worksheets"].append({"cells": [{"cell_type": "code", "input": "b = 2"}]})
    assert to_source(old, "old.ipynb")[0].endswith("\n# %% cell 2\nb = 2\n")
    assert "None" not in to_source(cells(None, 3, "x = 1"), "empty.ipynb")[0]
    for language in ({"kernelspec": {"language": "julia"}}, {"language_info": {"name": "R"}}):
        with pytest.raises(ValueError, match="language"):
            to_source({**cells("x = 1"), "metadata": language}, "other.ipynb")
    for wrong in ([], {}, {"cells": 3}, {"worksheets": []}):
        with pytest.raises(ValueError, match="no"):
            to_source(wrong, "wrong.ipynb")


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text(json.dumps(cells("print(1)")))
    (tmp_path / "train.py").write_text("mine")
    first = make_script(str(notebook))
    assert first.path == tmp_path / "train_2.py"
    assert make_script(str(notebook)) == first
    assert (tmp_path / "train.py").read_text() == "mine"
    notebook.write_text("{")
    with pytest.raises(ProfilingError, match="cannot be read"):
        make_script(str(notebook))


def test_a_notebook_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text("{}")
    with pytest.raises(ProfilingError, match="is a notebook"):
        RunSpec(sys.executable, str(tmp_path / "train.ipynb")).check()


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "mark.ipynb").write_text(json.dumps(cells("x = 1")), "utf-8-sig")
    assert make_script(str(tmp_path / "mark.ipynb"), sys.executable).path.read_text().endswith("\nx = 1\n")


def test_imports_from_the_future_go_to_the_top() -> None:
    later = "é = 1; from __future__ import (annotations,\n  division); b = 2"
    text, _ = to_source(cells("display(1)", later, "from __future__ import annotations"), "a.ipynb")
    assert text.split("\n\n")[1] == "from __future__ import annotations, division"
    assert "# %% cell 2\né = 1; pass; b = 2\n" in text
    compile(text, "a.py", "exec")


@pytest.mark.parametrize("name", ["random", "torch", "pytest", "main"])
def test_a_script_does_not_stand_in_the_way_of_a_module(tmp_path: Path, name: str) -> None:
    notebook = tmp_path / f"{name}.ipynb"
    notebook.write_text(json.dumps(cells("import random")))
    made = make_script(str(notebook)).path
    assert made.name == ("main.py" if name == "main" else f"{name}_notebook.py")
    assert make_script(str(notebook)).path == made


def test_a_cell_that_no_script_can_run_is_named(tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text(json.dumps(cells("x = 1", "import asyncio\nawait asyncio.sleep(0)")))
    with pytest.raises(ProfilingError, match=r"Cell 2 of train\.ipynb \(import asyncio\) uses await"):
        make_script(str(notebook))
    for wrong in ("x = (", "return 3", "x = '\0'"):
        notebook.write_text(json.dumps(cells("%time x = 1", wrong)))
        with pytest.raises(ProfilingError, match=r"Cell 2 of .* is not valid Python"):
            make_script(str(notebook))
    assert not (tmp_path / "train.py").exists()


def test_what_only_a_newer_python_understands_is_left_to_it(tmp_path: Path) -> None:
    newer = tmp_path / "python"
    newer.write_text("#!/bin/sh\nexit 0\n")
    newer.chmod(0o755)
    assert "x = $3" in to_source(cells("x = $3"), "a.ipynb", [str(newer)])[0]
