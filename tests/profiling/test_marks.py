"""Marks of steps: torch 2.5 writes some of them, with stacks, as if they had begun where they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiling._child_session import set_marks_right

BASE_NS = 1_790_857_026_000_000_000


def event(name: str, ts: float, dur: float, category: str = "user_annotation") -> str:
    """An event as torch writes it."""
    head = f'"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 1'
    return "{\n    " + head + f',\n    "ts": {ts}, "dur": {dur},\n    "args": {{\n      "External id": 1\n    }}\n  }}'


@pytest.mark.parametrize("base", [BASE_NS, 0])
def test_a_mark_that_begins_late_begins_with_its_step(tmp_path: Path, base: int) -> None:
    origin = 0.0 if base else BASE_NS / 1e3
    marks = [
        event("ProfilerStep#3", origin + 1900.0, 100.0),
        event("ProfilerStep#4", origin + 2010.0, 500.0),
        event("ProfilerStep#3", origin + 1950.0, 10.0, "gpu_user_annotation"),
        event("ProfilerStep#9", origin + 1900.0, 100.0),
    ]
    tail = f', "baseTimeNanoseconds": {base}' if base else ""
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + ",".join(marks) + f"]{tail}}}")
    set_marks_right(str(path), {3: BASE_NS + 400_000, 4: BASE_NS + 2_000_000})
    times = [(round(e["ts"] - origin), round(e["dur"])) for e in json.loads(path.read_text())["traceEvents"]]
    assert times == [(400, 1600), (2010, 500), (1950, 10), (1900, 100)]
