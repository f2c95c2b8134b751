"""What StepLens itself does in the process that it profiles is not shown as the script's."""

from __future__ import annotations

import json
from pathlib import Path

from core.importing import open_trace
from tests.trace_builder import TraceBuilder

WATCHER = 300


def _recorded() -> TraceBuilder:
    made = TraceBuilder(gpu=None, with_stack=1).step(1, 0, 1000)
    made.python("train.py(3): <module>", 0, 1000).python("<steplens>/hooks(79): _tell", 900, 5)
    made.python("threading.py(1): _bootstrap", 0, 1000, tid=WATCHER)
    made.python("<steplens>/guard(65): _loop", 1, 998, tid=WATCHER)
    return made.python("<built-in function sleep>", 2, 500, tid=WATCHER)


def test_the_thread_that_watches_a_script_is_left_out_and_counted() -> None:
    trace = _recorded().build()
    names = [trace.name(row) for row in range(len(trace.slices))]
    assert "train.py(3): <module>" in names
    assert "<steplens>/hooks(79): _tell" in names  # it is in the script's own thread, and takes its time
    assert not {"<steplens>/guard(65): _loop", "<built-in function sleep>", "threading.py(1): _bootstrap"} & set(names)
    assert str(WATCHER) not in trace.threads.tid
    assert {note.code: note.count for note in trace.report.notes}["profiler-span"] == 3


def test_a_thread_of_that_number_in_another_process_stays() -> None:
    trace = _recorded().slice("python_function", "worker.py(1): run", 0, 10, WATCHER, 77).build()
    assert "worker.py(1): run" in [trace.name(row) for row in range(len(trace.slices))]


def test_notes_beside_the_traces_of_ranks_are_no_traces_left_out(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": "steplens.run/1"}))
    for rank in range(2):
        made = TraceBuilder(distributedInfo={"rank": rank, "world_size": 2}).step(0, 0, 100).op("aten::mm", 0, 50)
        made.write(tmp_path / f"trace-rank{rank}.json")
        (tmp_path / f"trace-rank{rank}.lines.json").write_text("{}")
    trace = open_trace(tmp_path)
    assert len(trace.sources) == 2
    assert "file-left-out" not in trace.report.repaired
