"""A real trace several times over is as many recordings one after the other, whose numbers do not meet."""

from __future__ import annotations

import gzip

import numpy as np
import orjson
import pytest

from benchmarks.repeated import write_repeated
from core.importing import open_trace
from tests.trace_builder import TraceBuilder


def _write(builder: TraceBuilder, tmp_path, times: int):
    source = tmp_path / "one.json"
    builder.build(source)
    out = tmp_path / "many.json"
    with out.open("wb") as file:
        written = write_repeated(source, file, times)
    return open_trace(source), open_trace(out), written


def test_slices_steps_and_links_are_as_many_times_there(tmp_path):
    builder = TraceBuilder().step(3, 0, 1000).op("aten::a", 0, 100).launch("k", at=10, call=5, start=50, dur=100)
    builder.step(4, 1000, 1000).op("aten::b", 1100, 100).launch("k", at=1110, call=5, start=1150, dur=400)
    one, many, _ = _write(builder, tmp_path, 3)
    assert len(many.slices) == 3 * len(one.slices)
    assert many.steps.number.tolist() == [3, 4, 8, 9, 13, 14]
    assert sorted(many.slices.dur_ns.tolist()) == sorted(3 * one.slices.dur_ns.tolist())
    work = many.device_ids
    launch = many.links.launch_of[work]
    assert (launch >= 0).all()
    assert len(set(launch.tolist())) == len(work) == 6
    assert (many.slices.start_ns[work] - many.slices.start_ns[launch] < 200_000).all()
    assert len(many.tracks) == len(one.tracks)
    assert many.report.repaired == one.report.repaired
    assert many.span_ns[1] > 3 * one.span_ns[1]
    assert (np.diff(many.steps.start_ns) > 0).all()


def test_the_same_trace_gives_the_same_bytes_whatever_form_it_has(tmp_path):
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": "10.250", "dur": 1},
        {"ph": "s", "id": 5, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": 10},
    ]
    (tmp_path / "list.json").write_bytes(orjson.dumps(events))
    (tmp_path / "object.json.gz").write_bytes(gzip.compress(orjson.dumps({"traceEvents": events})))
    texts = []
    for name in ("list.json", "object.json.gz"):
        with (tmp_path / "out.json").open("wb") as file:
            assert write_repeated(tmp_path / name, file, 2) == 5
        texts.append((tmp_path / "out.json").read_bytes())
    assert texts[0] == texts[1]
    assert [(e.get("ts"), e.get("id")) for e in orjson.loads(texts[0])["traceEvents"]] == [
        (None, None), ("10.250", None), (10, 5), ("1011.250", None), (1011, 11),
    ]  # fmt: skip


def test_what_holds_no_events_is_refused(tmp_path):
    (tmp_path / "none.json").write_bytes(b"{}")
    with (tmp_path / "out.json").open("wb") as file, pytest.raises(ValueError, match="no events"):
        write_repeated(tmp_path / "none.json", file, 2)
