"""What the process that reads traces does beside answering (its life and its errors: ``tests/gui/test_helpers.py``)."""

from __future__ import annotations

import multiprocessing
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import helper, parcels
from core.analysis import analyze
from core.figures import compute
from core.importing import open_trace
from tests.trace_builder import TraceBuilder


def test_figures_are_worked_out_before_they_are_asked_for_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = TraceBuilder()
    for number in range(3):
        trace.step(number, 100 * number, 100).op("aten::mm", 100 * number + 10, 30)
        trace.launch("gemm", at=100 * number + 15, call=5, start=100 * number + 40, dur=20)
    path = trace.write(tmp_path / "train.json")
    ours, theirs = multiprocessing.Pipe()
    server = helper._Server(theirs)
    asked: list[Any] = []
    worked_out = compute.compute_figures

    def counted(*given: Any, **named: Any) -> Any:
        asked.append(given)
        return worked_out(*given, **named)

    monkeypatch.setattr(compute, "compute_figures", counted)
    reading = threading.Thread(target=server._open, args=(path, None))
    reading.start()
    while ours.recv()[0] != helper.TRACE:
        pass
    parcels.receive(ours)
    reading.join()
    assert len(asked) == 1
    diagnosing = threading.Thread(target=server._analyze)
    diagnosing.start()
    kinds, known, found = [], None, None
    while not kinds or kinds[-1] != helper.DONE:
        kind, *_ = ours.recv()
        if kind != helper.PROGRESS:
            kinds.append(kind)
            found = helper.joined(parcels.receive(ours), known)
            known = found.figures
    diagnosing.join()
    assert len(asked) == 1
    assert kinds[0] == helper.PARTIAL
    assert server._early is None
    monkeypatch.undo()
    expected = analyze(open_trace(path))
    assert found is not None
    assert found.figures.summary == expected.figures.summary
    assert [s.key for s in found.suggestions] == [s.key for s in expected.suggestions]


def test_what_was_handed_over_is_held_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the figures are worked out only the shared columns are there, not those that were copied from."""
    path = TraceBuilder().op("aten::mm", 10, 30).write(tmp_path / "train.json")
    copied: list[weakref.ref[np.ndarray]] = []
    left: list[int] = []
    send = parcels.send

    def noting(connection: Any, content: Any) -> Any:
        copied.extend(weakref.ref(column) for column in (content.end_ns, content.device_ids, content.slices.start_ns))
        return send(connection, content)

    monkeypatch.setattr(parcels, "send", noting)
    ours, theirs = multiprocessing.Pipe()
    server = helper._Server(theirs)
    monkeypatch.setattr(server, "_work_ahead", lambda: left.append(sum(one() is not None for one in copied)))
    reading = threading.Thread(target=server._open, args=(path, None))
    reading.start()
    while ours.recv()[0] != helper.TRACE:
        pass
    parcels.receive(ours)
    reading.join()
    assert len(copied) == 3
    assert left == [0]
