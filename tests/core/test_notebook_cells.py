"""A line of a script that was made of a notebook is found again in its cell."""

from __future__ import annotations

import json

from core.notebook_cells import Cell, cell_of
from profiling.notebooks import make_script


def test_lines_of_a_notebooks_script_are_found_in_their_cells(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": "import json\nfrom __future__ import annotations\n%matplotlib inline\na = 1"},
        {"cell_type": "code", "source": ["for i in range(3):\n", "    wanted = i\n", "\n"]},
    ]
    notebook = tmp_path / "train it.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    script = make_script(str(notebook), "python").path
    lines = script.read_text().split("\n")
    assert cell_of(script, lines.index("    wanted = i") + 1) == Cell("train it.ipynb", 3, 2)
    assert cell_of(script, lines.index("a = 1") + 1) == Cell("train it.ipynb", 2, 4)
    assert cell_of(script, 1) == Cell("train it.ipynb")


def test_other_scripts_have_none(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("# %% cell 1\nx = 1\n")
    assert cell_of(script, 2) is None
    assert cell_of(tmp_path / "gone.py", 2) is None
