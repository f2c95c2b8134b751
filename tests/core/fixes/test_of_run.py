"""Fixes derived from what a run kept, and shown in the reports."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from core.analysis import Analysis
from core.fixes.of_run import attempt_for_run, changed_lines, edits_for_run
from core.reporting import html, text
from core.run_folder import read_run
from core.suggestions import SourceRef
from tests.core.reporting.cases import SUGGESTION, training, with_suggestions

SOURCE = "def train_step(loader):\n    total = 0.0\n    for x in loader:\n        total += x.item()\n    return total\n"
HERE = replace(SUGGESTION, source=SourceRef("train.py", 4, "train_step", True))
LOADER = replace(SUGGESTION, rule_id="loader-without-workers", source=SourceRef("train.py", 3, "train_step", True))


@pytest.fixture
def run(tmp_path):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "train.py").write_text(SOURCE)
    (tmp_path / "sources" / "data.py").write_text("loader = DataLoader(data)\n")
    sources = [{"path": f"/home/u/{n}", "copy": f"sources/{n}"} for n in ("train.py", "data.py")]
    values = {"format": "steplens.run/1", "sources": sources, "spec": {"script": "/home/u/train.py"}}
    (tmp_path / "run.json").write_bytes(orjson.dumps(values))
    return read_run(tmp_path)


def test_edit_is_of_the_users_file(run):
    edit, _ = attempt_for_run(run, HERE)
    assert str(edit.path) == "/home/u/train.py"
    assert "+        total += x.detach()" in edit.diff


def test_loader_is_found_in_another_file(run):
    edit, _ = attempt_for_run(run, LOADER)
    assert str(edit.path) == "/home/u/data.py"


def test_reasons(run):
    assert attempt_for_run(run, replace(HERE, rule_id="dominant-kernel")) == (None, "")
    edit, why = attempt_for_run(run, replace(HERE, rule_id="host-list-index"))
    assert edit is None
    assert why


def test_trace_from_elsewhere_has_none():
    assert edits_for_run(None, (HERE,)) == {}


def test_reports_show_the_users_own_code(run, tmp_path):
    trace = training().build(tmp_path / "trace.json")
    _, analysis = with_suggestions(training(), HERE, LOADER)
    found = Analysis(analysis.figures, analysis.suggestions, analysis.plan)
    words = text.report(trace, found)
    assert "-         total += x.item()" in words
    assert "+         total += x.detach()" in words
    page = html.page(trace, found)
    assert '<div class="add">+         total += x.detach()</div>' in page
    assert "/home/u/train.py" in page


def test_two_changes_have_dots_between():
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n"
    assert changed_lines(diff) == ["-a", "+b", "⋯", "-c", "+d"]
