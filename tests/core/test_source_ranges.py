"""Marks of a line-range round name the exact line, and count as nothing of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.importing import open_trace
from core.kinds import SliceKind
from core.source import SourceFinder
from core.source_ranges import LineRanges
from core.trace import Trace

MARK = "line: loss.py:12 (pick)"


def write(path: Path, category: str = "user_annotation") -> Trace:
    """A step with a marked statement that calls an operator itself and a function that is not marked."""

    def slice_of(name: str, cat: str, start: float, length: float) -> dict[str, object]:
        return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 1, "ts": start, "dur": length}

    events = [
        slice_of("ProfilerStep#3", "user_annotation", 0, 1000),
        slice_of("/home/me/loss.py(9): pick", "python_function", 10, 900),
        slice_of(MARK, category, 100, 400),
        slice_of("aten::item", "cpu_op", 150, 50),
        slice_of("/home/me/other.py(1): helper", "python_function", 250, 200),
        slice_of("aten::exp", "cpu_op", 300, 50),
        slice_of("aten::relu", "cpu_op", 600, 50),
        slice_of("my own range", "user_annotation", 650, 100),
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return open_trace(path)


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op"])
def test_marks_give_exact_lines(tmp_path: Path, category: str) -> None:
    trace = write(tmp_path / "trace.json", category)
    named = {trace.name(i): i for i in range(len(trace.slices))}
    finder = SourceFinder(trace)
    found = finder.of_slice(named["aten::item"])
    assert found is not None
    assert (found.file, found.line, found.function, found.exact) == ("/home/me/loss.py", 12, "pick", True)
    helper = finder.of_slice(named["aten::exp"])
    assert helper is not None
    assert (helper.function, helper.exact) == ("helper", False)
    outside = finder.of_slice(named["aten::relu"])
    assert outside is not None
    assert not outside.exact


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op"])
def test_marks_are_neither_operators_nor_ranges_of_the_users(tmp_path: Path, category: str) -> None:
    trace = write(tmp_path / "trace.json", category)
    kinds = {trace.name(i): int(trace.slices.kind[i]) for i in range(len(trace.slices))}
    assert kinds[MARK] == SliceKind.OTHER
    assert kinds["my own range"] == SliceKind.RANGE
    assert len(trace.steps) == 1


def test_a_name_of_megabytes_is_looked_through_once(tmp_path: Path) -> None:
    name = "line: " + "a:1 (" * 600_000
    event = {"ph": "X", "name": name, "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event, event | {"name": name + "f)"}]}))
    assert LineRanges(open_trace(path))
