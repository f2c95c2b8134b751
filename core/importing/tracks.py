"""Kinds, processes, threads and tracks of the slices of one file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.device_words import word_in
from core.errors import TraceError
from core.importing.columns import EventColumns, Interner, SliceColumns
from core.importing.kineto import (
    CATEGORIES,
    DEVICE_TRACKS,
    GC_NAME,
    LINE_NAME,
    STEP_NAME,
    TRACK_OF_KIND,
    kind_of,
)
from core.kinds import SliceKind, TrackKind
from core.tables import I32, I64, U8
from core.words import grouped

_DIGITS = re.compile(r"(\d+)\D*\Z")
MAX_TRACKS = 20_000
_CPU_TRACKS = (TrackKind.CPU_RANGES, TrackKind.CPU_OPS, TrackKind.CPU_PYTHON, TrackKind.OTHER)


def kinds_of(columns: EventColumns, slices: SliceColumns) -> U8:
    """uint8[n]: `SliceKind` of each slice."""
    strings = columns.strings
    by_category = np.full(len(strings) + 1, -1, np.int16)
    for category in np.flatnonzero(np.bincount(slices.category, minlength=1)).tolist():
        known = CATEGORIES.get(strings[category].lower())
        if known is not None and strings[category].lower() != "operator":
            by_category[category] = known
    kinds = by_category[slices.category]
    _mark_special_names(strings, slices.name, kinds)
    rest = np.flatnonzero(kinds < 0)
    if len(rest):
        keys = (slices.category[rest].astype(np.int64) << 32) | slices.name[rest]
        pairs, inverse = np.unique(keys, return_inverse=True)
        plain = np.array(
            [kind_of(strings[int(k) >> 32], strings[int(k) & 0xFFFFFFFF], "") for k in pairs], dtype=np.int16
        )
        kinds[rest] = plain[inverse]
        _kinds_without_category(columns, slices, rest, kinds)
    return kinds.astype(np.uint8)


def _mark_special_names(strings: list[str], names: I32, kinds: np.ndarray) -> None:
    """Steps and collector pauses are told by their names (changes ``kinds`` in place)."""
    for wanted, pattern, kind in (
        ((SliceKind.CPU_OP, SliceKind.RANGE), STEP_NAME, SliceKind.STEP),
        ((SliceKind.CPU_OP, SliceKind.RANGE), LINE_NAME, SliceKind.OTHER),
        ((SliceKind.PYTHON,), GC_NAME, SliceKind.GC),
    ):
        hits = [i for i, text in enumerate(strings) if pattern.match(text)]
        if hits:
            special = np.zeros(len(strings) + 1, np.bool_)
            special[hits] = True
            rows = np.flatnonzero(special[names])
            kinds[rows[np.isin(kinds[rows], wanted)]] = kind


def _kinds_without_category(
    columns: EventColumns, slices: SliceColumns, rest: NDArray[np.intp], kinds: np.ndarray
) -> None:
    """Where no category says what a slice is, the name of its process may (changes ``kinds`` in place)."""
    strings = columns.strings
    bare = rest[np.array([strings[c] == "" for c in slices.category[rest].tolist()], dtype=np.bool_)]
    named = {pid: value for (pid, _, what), value in columns.metadata.items() if what == "process_name"}
    for pid in np.unique(slices.pid[bare]).tolist():
        process = str(named.get(strings[pid]) or strings[pid])
        if kind_of("", "x", process) == SliceKind.OTHER:
            continue
        rows = bare[slices.pid[bare] == pid]
        kinds[rows] = [kind_of("", strings[name], process) for name in slices.name[rows].tolist()]


@dataclass
class Places:
    """Processes, threads and tracks, in drawing order, as lists; ``track_of`` int32[n] gives each slice's track."""

    strings: Interner = field(default_factory=Interner)
    process_pid: list[str] = field(default_factory=list)
    process_name: list[int] = field(default_factory=list)
    process_device: list[int] = field(default_factory=list)
    thread_process: list[int] = field(default_factory=list)
    thread_tid: list[str] = field(default_factory=list)
    thread_name: list[int] = field(default_factory=list)
    thread_main: list[bool] = field(default_factory=list)
    track_kind: list[int] = field(default_factory=list)
    track_name: list[int] = field(default_factory=list)
    track_process: list[int] = field(default_factory=list)
    track_thread: list[int] = field(default_factory=list)
    track_device: list[int] = field(default_factory=list)
    track_stream: list[int] = field(default_factory=list)
    track_of: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    track_keys: list[tuple[int, int, int]] = field(default_factory=list)  # (pid, tid string ids, kind of track)
    thread_of: dict[tuple[int, int], int] = field(default_factory=dict)  # (pid, tid string ids) -> thread
    process_of: dict[tuple[int, bool], int] = field(default_factory=dict)  # (pid string id, device) -> process


@dataclass
class _Group:
    """Slices that share pid, tid and kind of track."""

    pid: int
    tid: int
    kind: int
    number: int
    count: int
    first_ns: int
    steps: int
    device: int
    stream: int


def place(
    columns: EventColumns, slices: SliceColumns, kinds: U8, by_time: I64, tick: Callable[[], None] = lambda: None
) -> Places:
    """Sort the slices of one file into tracks; ``by_time`` are their row numbers by start."""
    places = Places()
    keys, code = _codes(slices, kinds)
    if len(keys) > MAX_TRACKS:
        raise TraceError(
            f"The trace names {grouped(len(keys))} threads and streams; no program has that many.",
            f"Up to {grouped(MAX_TRACKS)} can be shown, each in rows of its own.",
            "Their ids are probably damaged, or the tool that wrote the trace gives every event an id of its own.",
        )
    tick()
    groups = _groups(columns, slices, kinds, keys, code, by_time)
    tick()
    names = _Names(columns)
    order: list[_Group] = []
    by_process: dict[tuple[int, bool], list[_Group]] = {}
    for group in groups:
        by_process.setdefault((group.pid, group.kind in DEVICE_TRACKS), []).append(group)
    for pid, is_device in _process_order(names, groups):
        _add_process(places, names, by_process[pid, is_device], pid, is_device, order)
    position = np.empty(len(groups), np.int32)
    position[[g.number for g in order]] = np.arange(len(order), dtype=np.int32)
    places.track_of = position[code] if len(groups) else np.empty(0, np.int32)
    return places


def _codes(slices: SliceColumns, kinds: U8) -> tuple[list[tuple[int, int, int]], I32]:
    """Distinct (pid, tid, kind of track) in order, and int32[n]: number of that of each slice."""
    pids, pid_rank = _ranks(slices.pid)
    tids, tid_rank = _ranks(slices.tid)
    kind = np.array(TRACK_OF_KIND, np.int32)[kinds]
    if len(pids) * len(tids) * 16 > max(4 * len(kinds), 1 << 16):  # a table of all that could be is too large
        wide, code = np.unique(
            (pid_rank[slices.pid].astype(np.int64) * len(tids) + tid_rank[slices.tid]) * 16 + kind, return_inverse=True
        )
        found, code = wide.tolist(), code.astype(np.int32)
    else:
        code = (pid_rank * (16 * len(tids)))[slices.pid]
        code += (tid_rank * 16)[slices.tid]
        code += kind
        held = np.bincount(code, minlength=1) > 0
        found = np.flatnonzero(held).tolist()
        code = (np.cumsum(held, dtype=np.int32) - 1)[code]
    return [(pids[key // 16 // len(tids)], tids[key // 16 % len(tids)], key % 16) for key in found], code


def _ranks(ids: I32) -> tuple[list[int], I32]:
    """Distinct ids in order, and for each id its rank among them."""
    held = np.zeros(int(ids.max(initial=0)) + 1, np.bool_)
    held[ids] = True
    return np.flatnonzero(held).tolist(), np.cumsum(held, dtype=np.int32) - 1


def _groups(
    columns: EventColumns,
    slices: SliceColumns,
    kinds: U8,
    keys: list[tuple[int, int, int]],
    code: I32,
    by_time: I64,
) -> list[_Group]:
    first, earliest = _first_of_each(code, len(keys)), by_time[_first_of_each(code[by_time], len(keys))]
    first_ns, counts = slices.time_ns[earliest].tolist(), np.bincount(code, minlength=len(keys)).tolist()
    steps = np.bincount(code[kinds == SliceKind.STEP], minlength=len(keys)).tolist()
    groups = []
    for number, (pid, tid, kind) in enumerate(keys):
        device = stream = -1
        if kind in DEVICE_TRACKS:
            row = int(first[number])
            device = _device(columns.strings[pid], int(slices.device[row]))
            stream = _stream(columns.strings[tid], int(slices.stream[row]), kind)
        held = counts[number], first_ns[number], steps[number]
        groups.append(_Group(pid, tid, kind, number, *held, device, stream))
    return groups


def _first_of_each(code: I32, size: int) -> I64:
    """int64[size]: the first row of each code."""
    first = np.empty(size, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # of several, what is written last stays
    return first


def _device(pid: str, argument: int) -> int:
    if argument >= 0:
        return argument
    found = _DIGITS.search(pid)
    return int(found.group(1)) if found and len(found.group(1)) < 5 else 0


def _stream(tid: str, argument: int, kind: int) -> int:
    if 0 <= argument < 1 << 31 and kind != TrackKind.DEVICE_SYNCS:
        return argument
    found = _DIGITS.search(tid)
    return int(found.group(1)) if found and len(found.group(1)) < 19 else -1


class _Names:
    """Labels and sort orders of the metadata events, looked up by string id."""

    def __init__(self, columns: EventColumns) -> None:
        self.strings = columns.strings
        self._by_process: dict[tuple[str, str], object] = {}
        self._by_thread = columns.metadata
        for (pid, _, what), value in columns.metadata.items():
            if what.startswith("process"):
                self._by_process[pid, what] = value

    def process(self, pid: int, is_device: bool, device: int) -> str:
        text = self.strings[pid]
        name = _label(self._by_process.get((text, "process_name")))
        labels = _label(self._by_process.get((text, "process_labels")))
        if is_device:
            if labels and labels.upper() != "CPU":
                return labels
            named = word_in(name) or (name and not name.startswith("python") and not text.isdigit())
            return name if named else (f"GPU {device}" if not text or text.isdigit() else text)
        if text == "-1" and not name:
            return "Profiler overhead"
        return name or (f"process {text}" if text.lstrip("-").isdigit() else text)

    def process_order(self, pid: int) -> int:
        return _order(self._by_process.get((self.strings[pid], "process_sort_index")))

    def thread(self, pid: int, tid: int, kind: int, stream: int) -> str:
        text = self.strings[tid]
        held = _label(self._by_thread.get((self.strings[pid], text, "thread_name")))
        if kind in DEVICE_TRACKS:
            if held and not held.startswith("thread"):
                return held
            return f"stream {stream}" if stream >= 0 else text
        return held or (f"thread {text}" if text.lstrip("-").isdigit() else text)

    def thread_order(self, pid: int, tid: int) -> int:
        return _order(self._by_thread.get((self.strings[pid], self.strings[tid], "thread_sort_index")))


def _label(value: object) -> str:
    return str(value).strip()[:500] if value is not None else ""


def _order(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e15 else 0


def _process_order(names: _Names, groups: list[_Group]) -> list[tuple[int, bool]]:
    """Processes: those of the CPU first (with the most steps, then by sort order and time), then devices."""
    seen: dict[tuple[int, bool], list[int]] = {}
    for g in groups:
        is_device = g.kind in DEVICE_TRACKS
        entry = seen.setdefault((g.pid, is_device), [0, names.process_order(g.pid), g.device, g.first_ns, 0])
        entry[0] += g.steps
        entry[3] = min(entry[3], g.first_ns)
        entry[4] |= g.kind == TrackKind.OVERHEAD

    def rank(item: tuple[tuple[int, bool], list[int]]) -> tuple[int, ...]:
        (_, is_device), (steps, order, device, first_ns, overhead) = item
        if is_device:
            return (1, device, order, first_ns)
        return (2 if overhead else 0, -steps, order, first_ns)

    return [key for key, _ in sorted(seen.items(), key=rank)]


def _add_process(
    places: Places, names: _Names, mine: list[_Group], pid: int, is_device: bool, order: list[_Group]
) -> None:
    """Append one process with its threads and tracks."""
    process = len(places.process_pid)
    places.process_of[pid, is_device] = process
    device = min((g.device for g in mine), default=-1) if is_device else -1
    places.process_pid.append(names.strings[pid])
    places.process_name.append(places.strings(names.process(pid, is_device, device)))
    places.process_device.append(device)
    if is_device:
        for g in sorted(mine, key=lambda g: (g.device, g.kind == TrackKind.DEVICE_SYNCS, g.stream, g.kind, g.first_ns)):
            _add_track(places, names, g, process, -1, order)
        return
    main = _main_thread(names, mine, pid)
    by_tid: dict[int, list[_Group]] = {}
    for g in mine:
        by_tid.setdefault(g.tid, []).append(g)
    first = {tid: min(g.first_ns for g in held) for tid, held in by_tid.items()}
    for tid in sorted(by_tid, key=lambda t: (t != main, names.thread_order(pid, t), first[t])):
        held = sorted(by_tid[tid], key=lambda g: g.kind)
        thread = -1
        if any(g.kind in _CPU_TRACKS for g in held):
            thread = len(places.thread_tid)
            places.thread_of[pid, tid] = thread
            places.thread_process.append(process)
            places.thread_tid.append(names.strings[tid])
            places.thread_name.append(places.strings(names.thread(pid, tid, TrackKind.CPU_OPS, -1)))
            places.thread_main.append(tid == main)
        for g in held:
            _add_track(places, names, g, process, thread if g.kind in _CPU_TRACKS else -1, order)


def _main_thread(names: _Names, groups: list[_Group], pid: int) -> int:
    """Thread that runs the steps; else the one named like its process; else the busiest."""
    totals: dict[int, list[int]] = {}
    for g in groups:
        if g.kind in _CPU_TRACKS:
            entry = totals.setdefault(g.tid, [0, 0])
            entry[0] += g.steps
            entry[1] += g.count
    if not totals:
        return -1
    own = names.strings[pid]
    return max(totals, key=lambda t: (totals[t][0], names.strings[t] == own, totals[t][1]))


def _add_track(places: Places, names: _Names, g: _Group, process: int, thread: int, order: list[_Group]) -> None:
    order.append(g)
    places.track_kind.append(g.kind)
    places.track_keys.append((g.pid, g.tid, g.kind))
    places.track_name.append(places.strings(names.thread(g.pid, g.tid, g.kind, g.stream)))
    places.track_process.append(process)
    places.track_thread.append(thread)
    places.track_device.append(g.device)
    places.track_stream.append(g.stream)
