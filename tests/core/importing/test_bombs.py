"""Files made to be slow or large cost what their bytes cost: work is counted, not timed."""

from __future__ import annotations

import itertools
import json
import threading
import tracemalloc

import numpy as np
import pytest

from core.errors import Cancelled, TraceError
from core.importing import aside, decode, decoders, open_trace, repair, scan, tracks
from core.importing.links import _op_above
from core.importing.pieces import decode_piece, walk_piece
from core.importing.stack import MAX_LANES, climb, nest
from core.kinds import SliceKind
from tests.core.importing.roads import same_columns

ONE = b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}'


class _Counted:
    """A pattern that adds up how many bytes it has gone over."""

    def __init__(self, pattern):
        self._pattern, self.bytes = pattern, 0

    def search(self, text, at=0):
        found = self._pattern.search(text, at)
        self.bytes += (found.end() if found else len(text)) - at
        return found

    def match(self, text, at=0):
        found = self._pattern.match(text, at)
        self.bytes += found.end() - at if found else 1
        return found

    def finditer(self, text, at=0, end=None):
        end = len(text) if end is None else end
        for found in self._pattern.finditer(text, at, end):
            self.bytes += found.end() - at
            at = found.end()
            yield found
        self.bytes += end - at


@pytest.fixture
def looked_at(monkeypatch):
    """All bytes that reading entry by entry has gone over so far."""
    counted = [_Counted(getattr(scan, name)) for name in ("BORDER", "_BRACKETS", "FILLER")]
    for name, pattern in zip(("BORDER", "_BRACKETS", "FILLER"), counted, strict=True):
        monkeypatch.setattr(scan, name, pattern)
    return lambda: sum(pattern.bytes for pattern in counted)


def _open(tmp_path, data):
    path = tmp_path / "t.json"
    path.write_bytes(data)
    return open_trace(path)


UNITS = [b"{},\n", b"{ },", b"[],", b'"",', b"null,", b"1,", b"1.5,", b"[[]],", b"[{}],", b'{"a":1},', b"{x},\n"]
UNITS += [
    b'{"name":"a"b"},\n',
    b'{"ph":"X","ts":nan},\n',
    b'{"ph":"X"},',
    b'{"ph":"Q"},',
    b"{",
    b"[",
    b'{"a":',
    b"}  x",
]


@pytest.mark.parametrize("text", [b"", b"1, 1, 1", b'1, "a", 1', b'1, "a', b"\\", b'"a\\'])
def test_the_end_of_a_text_without_brackets_is_found_from_where_the_look_begins(text):
    assert scan._BRACKETS.match(text), "a search would begin anew at every byte of it"
    assert scan.value_end(b"[" + text, 0) == -1


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("last", [b"", ONE])
def test_no_entry_is_looked_behind_again_and_again(looked_at, unit, last):
    text = unit * (20_000 // len(unit)) + last
    walk_piece(text, 0)
    assert looked_at() < 60 * len(text)


@pytest.mark.parametrize("unit", [b"{},", b"[],", b'"",', b"null,", b"1,", b"1.5,", b"true,", b"[] , ", b"{}\n"])
def test_entries_that_hold_nothing_are_taken_in_one_go(unit, monkeypatch):
    looks = []
    monkeypatch.setattr(scan.Walk, "_container", lambda self, at: looks.append(at))
    result = decode_piece(unit * 10_000, 0)
    assert result.columns.events == result.columns.problems["not-an-event"] == 10_000
    assert result.wasted == 0
    assert not looks


def test_many_empty_entries_are_counted_and_the_event_among_them_is_kept(tmp_path):
    trace = _open(tmp_path, b'{"traceEvents": [' + b"{},\n" * 400_000 + ONE + b"]}")
    assert len(trace.slices) == 1
    assert trace.report.dropped == {"not-an-event": 400_000}
    assert trace.report.events_read == 400_001
    assert trace.event(0)["name"] == "a"


def test_they_are_cut_into_pieces_without_any_event_in_sight():
    for unit in (b"{},\n", b"null,", b'"",', b"[],", b'{"a":1},', b"[[]],", b"{}\n", b"{}\r\n"):
        text = unit * 5_000 + unit[:1]
        cut = scan.last_border(text)
        assert len(text) - 20 < cut < len(text)
        assert cut % len(unit) == 0


def test_where_nothing_but_filler_ends_a_piece_no_event_is_looked_for_far_behind(looked_at):
    text = b'{"a":1,"b":2},' * 3 + b"{}," * 400_000
    assert scan.last_border(text) == len(text) - 3
    assert looked_at() < 100_000


@pytest.mark.parametrize("unit", [b"{x},\n", b'{"name":"a"b"},\n', b"[[]],"])
def test_a_file_of_nothing_but_damage_is_refused(tmp_path, monkeypatch, unit):
    monkeypatch.setattr(decode, "WASTE_LIMIT", 5_000)
    with pytest.raises(TraceError, match="more than 5\u202f000 entries that are no events"):
        _open(tmp_path, b'{"traceEvents": [' + ONE + b"," + unit * 20_000 + b"1]}")
    path = tmp_path / "half.json"
    path.write_bytes(b'{"traceEvents": [' + (ONE + b"," + unit) * 5_500 + b"1]}")
    assert len(open_trace(path).slices) == 5_500  # where there is something to see, it is shown


def test_lines_of_events_are_decoded_piece_by_piece(tmp_path, monkeypatch):
    sizes = []
    real = decoders.decode_piece
    monkeypatch.setattr(decoders, "decode_piece", lambda text, *rest: (sizes.append(len(text)), real(text, *rest))[1])
    line = ONE.replace(b"}", b', "args": {"x": "' + b"y" * 500 + b'"}}\n')
    trace = _open(tmp_path, line * 12_000)
    assert len(trace.slices) == 12_000
    assert max(sizes) <= 2 * decoders.PIECE_BYTES
    assert trace.event(11_999)["name"] == "a"


def test_calling_off_works_within_a_damaged_piece():
    ticks = itertools.count()

    def tick():
        if next(ticks) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        walk_piece(b'{"name":"a"b"},\n' * 20_000, 0, tick=tick)


def test_calling_off_does_not_wait_for_a_long_step():
    gate, ended = threading.Event(), threading.Event()

    def work(tick):
        gate.wait(60)
        try:
            tick()
        finally:
            ended.set()

    def tick():
        raise Cancelled

    with pytest.raises(Cancelled):
        aside.aside(work, tick)
    assert not ended.is_set()
    gate.set()
    assert ended.wait(60)  # and the work ends at its next step
    assert aside.aside(lambda tick: 5, lambda: None) == 5
    with pytest.raises(ZeroDivisionError):
        aside.aside(lambda tick: 1 // 0, lambda: None)


def test_more_threads_than_any_program_has_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks, "MAX_TRACKS", 50)
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": i, "ts": i, "dur": 1} for i in range(51)]
    with pytest.raises(TraceError, match="51 threads and streams"):
        _open(tmp_path, json.dumps(events).encode())
    assert len(_open(tmp_path, json.dumps(events[1:]).encode()).tracks) == 50


def test_counters_are_told_apart_without_a_pass_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr("core.importing.assemble.MAX_COUNTERS", 20)
    events = [{"ph": "C", "name": f"c{i % 30}", "pid": 1, "ts": 90 - i, "args": {"v": i}} for i in range(90)]
    trace = _open(tmp_path, json.dumps(events).encode())
    assert [c.name for c in trace.counters] == [f"c{i}: v" for i in range(20)]
    assert trace.counters[3].value.tolist() == [63, 33, 3]
    assert trace.report.repaired["counter-left-out"] == 10


def test_a_large_header_costs_little_memory(tmp_path, monkeypatch):
    for module in (repair, scan):
        monkeypatch.setattr(module, "MAX_VALUE_BYTES", 1 << 18)
    filler = b'"z":[' + b'{"a":[]},' * 60_000 + b"1]"
    for data in (
        b"{" + filler + b',"displayTimeUnit":"ms","traceEvents":[' + ONE + b"]}",
        b'{"traceEvents":[' + ONE + b"]," + filler + b',"displayTimeUnit":"ms"}',
    ):
        tracemalloc.start()
        trace = _open(tmp_path, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * len(data)
        assert len(trace.slices) == 1
        assert trace.meta.display_unit == "ms"


def test_the_list_of_events_is_not_looked_for_for_ever(monkeypatch):
    parsed = []
    real = scan.parse_object
    monkeypatch.setattr(scan, "parse_object", lambda text: (parsed.append(len(text)), real(text))[1])
    scan.find_events(b'{"a":[' + b'{"traceEvents":[1],"x":2},' * 20_000, True)
    assert sum(parsed) < 8 << 20


# ------------------------------------------------------------------------------------------ nesting


def _brute_lanes(start, end, parent, depth, crossing):
    """First lane below all that a crossing slice meets, one by one."""
    lanes = depth.copy()
    placed = []
    for i in np.flatnonzero(crossing):
        met = [depth[j] for j in np.flatnonzero(~crossing) if start[j] < end[i] and end[j] > start[i]]
        lane = max(met, default=-1) + 1
        taken = {lanes[j] for j in placed if end[j] > start[i]}
        while lane in taken:
            lane += 1
        lanes[i] = lane
        placed.append(i)
    return lanes


@pytest.mark.parametrize("seed", range(12))
def test_crossing_slices_get_the_first_free_lane(seed):
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 400, 80)) * 5_000
    dur = rng.integers(1, 40 + 20 * seed, 80) * 5_000
    order = np.lexsort((-dur, start))
    start, dur = start[order], dur[order]
    found = nest(start, dur, False)
    assert found.crossing.any()
    wanted = _brute_lanes(start, start + dur, found.parent, found.depth, found.crossing)
    assert found.depth.tolist() == wanted.tolist()


def test_lanes_of_crossing_slices_are_bounded():
    n = MAX_LANES + 500
    start = np.arange(n, dtype=np.int64) * 10_000
    found = nest(start, np.full(n, 10**12) + start, False)
    assert int(found.depth.max()) == MAX_LANES


def test_a_deep_nest_is_climbed_once():
    n = 20_000
    parent = np.arange(-1, n - 1, dtype=np.int32)
    end = 10**9 - 10 * np.arange(n, dtype=np.int64)  # the deepest ends first
    times = np.sort(np.random.default_rng(0).integers(10**9 - 10 * n, 10**9, 3_000))
    steps = []

    class Counting(np.ndarray):
        def __getitem__(self, at):
            if isinstance(at, int):
                steps.append(at)
            return super().__getitem__(at)

    rows = climb(np.full(3_000, n - 1), parent.view(Counting), end, times)
    assert len(steps) < 3 * n
    assert all(end[r] > t and (r == n - 1 or end[r + 1] <= t) for r, t in zip(rows, times, strict=True))


def test_the_op_above_a_deep_nest_is_found():
    n = 5_000

    class Slices:
        kind = np.full(n, SliceKind.RUNTIME, np.uint8)
        parent_id = np.arange(-1, n - 1, dtype=np.int32)

        def __len__(self):
            return n

    slices = Slices()
    slices.kind[7] = SliceKind.CPU_OP
    above = _op_above(slices, np.array([n - 1, 100, 7, 6, -1], np.int32))
    assert above.tolist() == [7, 7, 7, -1, -1]


def test_a_deep_exact_nest_is_placed_without_a_pass_for_each_level():
    n = 3_000
    start = np.arange(n, dtype=np.int64)
    found = nest(start, 10**7 - 2 * start, False)
    assert found.depth.tolist() == list(range(n))
    assert found.parent.tolist() == list(range(-1, n - 1))


@pytest.mark.parametrize("order", [1, -1])
def test_begins_and_ends_in_any_order_of_names(tmp_path, order):
    n = 400
    events = [{"ph": "B", "name": f"a{i}", "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    events += [{"ph": "E", "name": f"a{i}", "pid": 1, "tid": 1, "ts": n + k} for k, i in enumerate(range(n)[::order])]
    events += [{"ph": "B", "name": "x", "pid": 1, "tid": 1, "ts": 3 * n}, {"ph": "E", "pid": 1, "tid": 1, "ts": 4 * n}]
    events += [{"ph": "E", "name": "x", "pid": 1, "tid": 1, "ts": 5 * n}]
    trace = _open(tmp_path, json.dumps({"traceEvents": events}).encode())
    dur = {trace.name(i): int(d) // 1000 for i, d in enumerate(trace.slices.dur_ns)}
    assert dur["a0"] == (n if order == 1 else 2 * n - 1)
    assert dur[f"a{n - 1}"] == (n if order == 1 else 1)
    assert dur["x"] == n
    assert trace.report.dropped == {"unmatched-end": 1}


# ------------------------------------------------------------------------------------------ both roads


ODD = [
    {"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 1.5, "args": {"External id": 3}},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 2.5},
    {"ph": "b", "cat": "c", "id": "0x1f", "name": "r", "pid": 1, "tid": 1, "ts": 3},
    {"ph": "e", "cat": "c", "id": 31, "name": "r", "pid": 1, "tid": 1, "ts": 4},
    {"ph": "b", "cat": "c", "id2": "text", "name": "r", "pid": 1, "tid": 1, "ts": 5},
    {"ph": "e", "cat": "c", "name": "r", "pid": 1, "tid": 1, "ts": 6},
    {"ph": "s", "cat": "f", "id": "7", "name": "f", "pid": 1, "tid": 1, "ts": 6},
    {"ph": "f", "cat": "f", "name": "f", "pid": 1, "tid": 1, "ts": 6},
    {"name": "no phase"},
    {"ph": "", "name": "empty phase"},
    {"ph": "Q", "name": "unknown"},
    {"ph": "N", "name": "made", "pid": 1, "tid": 1, "ts": 8},
    {"ph": "n", "name": "mark", "pid": 1, "tid": 1, "ts": 9},
    {},
    {"ph": "X", "name": "plain", "pid": 1, "tid": 1, "ts": 10, "dur": 2},
    {"ph": "X", "name": "no time", "pid": 1, "tid": 1},
    {"ph": "X", "cat": "Trace", "name": "span", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
]


def test_odd_events_come_out_the_same_by_both_roads(monkeypatch):
    text = b",\n".join(json.dumps(event).encode() for event in ODD)
    slow = walk_piece(text, 50, final=True).columns
    monkeypatch.setattr("core.importing.pieces.walk_piece", None)  # the fast road must do
    same_columns(decode_piece(text, 50).columns, slow)


INSTANTS = [
    {"ph": "i", "cat": 7, "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": {"Device Type": 1, "Bytes": -512}},
    {"ph": "i", "name": "[memory]", "pid": "a", "tid": 1, "ts": 2, "args": {"Addr": 1 << 62, "Total Allocated": 3}},
    {"ph": "I", "cat": None, "name": "mark", "pid": 1, "tid": 1, "ts": 3, "dur": "x", "id": {}, "args": {"bytes": "x"}},
    {"ph": "R", "name": "mark without a time", "pid": 1, "tid": 1},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
    {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 4, "dur": 2, "args": {"External id": 5}},
    {"ph": "X", "cat": "cpu_op", "name": "op without a time", "pid": 1, "tid": 1, "dur": 2},
]


@pytest.mark.parametrize("events", [INSTANTS, INSTANTS[:3], INSTANTS[3:], INSTANTS[4:]])
def test_instants_come_out_the_same_by_both_roads_whatever_else_they_hold(monkeypatch, events):
    text = b",\n".join(json.dumps(event).encode() for event in events)
    slow = walk_piece(text, 50, final=True).columns
    monkeypatch.setattr("core.importing.pieces.walk_piece", None)  # the fast road must do
    same_columns(decode_piece(text, 50).columns, slow)


def test_times_as_text_and_lines_come_out_the_same_by_both_roads(monkeypatch):
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"n{i}", "pid": 1, "tid": "x", "ts": f"1778630400123456.{i:03d}", "dur": d}
        for i, d in enumerate(["1.5", 2, "", "-3", 0.25])
    ]
    texts = [b",\n".join(json.dumps(e).encode() for e in events)]
    texts += [sep.join(json.dumps(e).encode() for e in ODD) for sep in (b"\n", b"\r\n")]
    slow = [walk_piece(text, 50, final=True).columns for text in texts]
    monkeypatch.setattr("core.importing.pieces.walk_piece", None)
    for text, wanted in zip(texts, slow, strict=True):
        same_columns(decode_piece(text, 50).columns, wanted)
