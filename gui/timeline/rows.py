"""The default rows of a trace: which groups, which tracks, what is open at first."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.device_words import device_word
from core.kinds import HOST_CALLS, SliceKind, TrackKind
from core.lanes import LaneIndex, launcher_lanes
from core.tables import FLAG_COMMUNICATION
from core.trace import Trace
from gui.models.thread_titles import thread_titles
from gui.timeline.row import COUNTER_PX, Row, RowKind

MAX_LANES = {TrackKind.CPU_OPS: 12, TrackKind.CPU_PYTHON: 14}  # others: MANY
MANY = 8
MINOR_SHARE = 0.02  # a thread with less of its process's slices, and no launches, is a minor one
MANY_THREADS = 3
MANY_PROCESSES, OPEN_PROCESSES = 32, 4  # of more ranks only the first are open: the others, and the devices, stay near


def _tr(text: str) -> str:
    return QCoreApplication.translate("timeline", text)


def build_rows(trace: Trace, index: LaneIndex) -> list[Row]:
    """All rows of a trace in default order."""
    rows = []
    steps = Row("steps", RowKind.STEPS, _tr("Steps"), pinned=True, default_pinned=True)
    steps.empty = not len(trace.steps)
    rows.append(steps)
    if np.isin(trace.slices.kind, HOST_CALLS).any():
        rows.append(Row("syncs", RowKind.SYNCS, _tr("Sync points"), pinned=True, default_pinned=True))
    used: set[int] = set()
    processes = [made for p in _process_order(trace) if (made := _process_rows(trace, p, used))]
    for place, made in enumerate(processes):
        if len(processes) > MANY_PROCESSES and place >= OPEN_PROCESSES:
            made[0].expanded = made[0].default_expanded = False
        rows += made
    devices = sorted({int(d) for d in trace.tracks.device if d >= 0})
    for device in devices:
        rows += _device_rows(trace, device, used)
    rest = [t for t in range(len(trace.tracks)) if t not in used and trace.tracks.end_id[t] > trace.tracks.first_id[t]]
    if rest:
        rows += _group("other", _tr("Other tracks"), "", [_track_row(trace, t, _tr("track")) for t in rest], False)
    rows += _counter_rows(trace, devices)
    return _distinct(rows)


def _distinct(rows: list[Row]) -> list[Row]:
    """Give rows of the same key a number each: a trace may write one thread twice."""
    seen: dict[str, int] = {}
    for row in rows:
        count = seen[row.key] = seen.get(row.key, 0) + 1
        if count > 1:
            row.key = f"{row.key}#{count}"
    members: dict[str, list[str]] = {}
    for row in rows:
        members.setdefault(row.group, []).append(row.key)
    for row in rows:
        row.members = members.get(row.key, []) if row.kind is RowKind.GROUP else []
    return rows


def _group(key: str, title: str, subtitle: str, members: list[Row], expanded: bool = True) -> list[Row]:
    if not members:
        return []
    head = Row(key, RowKind.GROUP, title, subtitle, expanded=expanded, default_expanded=expanded)
    head.members = [row.key for row in members]
    for row in members:
        row.group, row.indent = key, 1
    return [head, *members]


def _process_order(trace: Trace) -> list[int]:
    main = {int(p) for p, m in zip(trace.threads.process_id, trace.threads.main, strict=True) if m}
    return sorted(range(len(trace.processes)), key=lambda p: (int(trace.processes.rank[p]), p not in main, p))


def _process_rows(trace: Trace, process_id: int, used: set[int]) -> list[Row]:
    """Group of one process's CPU threads, and a second one of the threads in which little happens."""
    tracks = trace.tracks
    threads: dict[int, list[int]] = {}
    mine = (tracks.process_id == process_id) & (tracks.device < 0) & (tracks.thread_id >= 0)
    for t in np.flatnonzero(mine & (tracks.end_id > tracks.first_id)).tolist():
        threads.setdefault(int(tracks.thread_id[t]), []).append(t)
    if not threads:
        return []
    counts = {h: sum(int(tracks.end_id[t] - tracks.first_id[t]) for t in ts) for h, ts in threads.items()}
    total = sum(counts.values())
    order = sorted(threads, key=lambda h: (not bool(trace.threads.main[h]), -counts[h]))
    major: list[Row] = []
    minor: list[Row] = []
    for place, thread_id in enumerate(order):
        main = bool(trace.threads.main[thread_id])
        small = len(threads) > MANY_THREADS and not main and counts[thread_id] < MINOR_SHARE * total
        small = small or (not main and place >= 8)
        rows = _thread_rows(trace, thread_id, threads[thread_id], open_ops=not small)
        used.update(threads[thread_id])
        (minor if small else major).extend(rows)
    name, pid = _process_name(trace, process_id)
    rows = _group(f"p/{pid}", name, _rank_text(trace, process_id), major)
    count = len({row.track_id for row in minor})
    title = _tr("Quiet threads of {process}").format(process=name)
    return rows + _group(f"p/{pid}/quiet", title, _tr("tracks: {count}").format(count=count), minor, False)


def _process_name(trace: Trace, process_id: int) -> tuple[str, str]:
    pid = trace.processes.pid[process_id]
    name = trace.strings[int(trace.processes.name_id[process_id])] if trace.processes.name_id[process_id] >= 0 else ""
    name = name or _tr("process")
    source = int(trace.processes.source_id[process_id])
    return (name if pid in name else f"{name} {pid}"), (pid if source == 0 else f"{source}/{pid}")


def _rank_text(trace: Trace, process_id: int) -> str:
    rank = int(trace.processes.rank[process_id])
    return _tr("rank {rank}").format(rank=rank) if rank >= 0 else ""


def _thread_rows(trace: Trace, thread_id: int, track_ids: list[int], open_ops: bool) -> list[Row]:
    title = thread_titles(trace)[thread_id]
    what = {
        TrackKind.CPU_RANGES: _tr("ranges"),
        TrackKind.CPU_OPS: _tr("operators"),
        TrackKind.CPU_PYTHON: _tr("Python stack"),
    }
    rows = []
    kinds = trace.tracks.kind
    for t in sorted(track_ids, key=lambda t: (int(kinds[t]), t)):
        kind = int(kinds[t])
        row = _track_row(trace, t, what.get(TrackKind(kind), _tr("other")))
        row.title, row.subtitle, row.number = title, row.title, str(trace.threads.tid[thread_id])
        if kind == TrackKind.CPU_RANGES:
            _leave_out_steps(trace, row)
        if kind == TrackKind.CPU_PYTHON:
            row.first_lane = launcher_lanes(trace, t)
        if kind == TrackKind.CPU_PYTHON or not open_ops:
            row.expanded = row.default_expanded = False
        rows.append(row)
    return rows


def _leave_out_steps(trace: Trace, row: Row) -> None:
    """Take the outermost lane away where it only repeats the step band."""
    first, end = int(trace.tracks.first_id[row.track_id]), int(trace.tracks.end_id[row.track_id])
    outermost = trace.slices.depth[first:end] == 0
    if not (trace.slices.kind[first:end][outermost] == SliceKind.STEP).all() or not _band_holds_steps(trace, row):
        return
    row.skip_lanes, row.lanes = 1, max(row.lanes - 1, 1)
    row.empty = bool(outermost.all())
    row.max_lanes = row.default_lanes = row.natural_lanes = min(row.max_lanes, row.lanes)


def _band_holds_steps(trace: Trace, row: Row) -> bool:
    """Whether the step band shows all steps of a track: those of several threads of one file would hide each other."""
    file_of_thread = trace.processes.source_id[trace.threads.process_id]
    threads = np.unique(trace.steps.thread_id[trace.steps.thread_id >= 0])
    mine = file_of_thread[trace.tracks.thread_id[row.track_id]]
    return bool(np.count_nonzero(file_of_thread[threads] == mine) == 1)


def _track_row(trace: Trace, track_id: int, title: str) -> Row:
    tracks = trace.tracks
    kind, lanes = int(tracks.kind[track_id]), max(int(tracks.lanes[track_id]), 1)
    shown = min(MAX_LANES.get(TrackKind(kind), MANY), lanes)
    process_id, thread_id = int(tracks.process_id[track_id]), int(tracks.thread_id[track_id])
    place = [trace.processes.pid[process_id] if process_id >= 0 else "", str(trace.processes.source_id[process_id])]
    place.append(trace.threads.tid[thread_id] if thread_id >= 0 else f"{tracks.device[track_id]}")
    key = "/".join(("t", *place, str(tracks.stream[track_id]), str(kind)))
    return Row(
        key,
        RowKind.SLICES,
        title,
        track_id=track_id,
        track_kind=kind,
        device=int(tracks.device[track_id]),
        lanes=lanes,
        max_lanes=shown,
        default_lanes=shown,
        natural_lanes=shown,
    )


def _device_rows(trace: Trace, device: int, used: set[int]) -> list[Row]:
    """Group of one device: its ranges, its streams (communication ones marked), its sync records."""
    tracks = trace.tracks
    ids = np.flatnonzero((tracks.device == device) & (tracks.end_id > tracks.first_id)).tolist()
    used.update(np.flatnonzero(tracks.device == device).tolist())
    rows = []
    for t in sorted(ids, key=lambda t: (int(tracks.stream[t]), -int(tracks.kind[t]), t)):
        kind, stream = int(tracks.kind[t]), int(tracks.stream[t])
        title = _tr("stream {number}").format(number=stream) if stream >= 0 else _tr("device work")
        row = _track_row(trace, t, title)
        if kind == TrackKind.DEVICE_RANGES:
            row.subtitle, row.max_lanes = _tr("ranges"), min(row.max_lanes, 3)
        elif kind == TrackKind.DEVICE_SYNCS:
            row.subtitle, row.expanded = _tr("sync records"), False
        elif kind == TrackKind.DEVICE_STREAM and _is_communication(trace, t):
            row.subtitle, row.communication = _tr("communication"), True
        row.default_expanded = row.expanded
        row.default_lanes = row.natural_lanes = row.max_lanes
        rows.append(row)
    title = f"{device_word(trace, device)} {device}"
    make = next((d.name for d in trace.meta.devices if d.index == device), "")
    return _group(f"gpu/{device}", title, make or _device_process(trace, device, title), rows)


def _device_process(trace: Trace, device: int, title: str) -> str:
    """Name of the process that stands for a device, as written, where it says more than the heading does."""
    names = trace.processes.name_id[trace.processes.device == device]
    written = (trace.strings[int(i)] for i in names if i >= 0)
    return next((name for name in written if name.casefold() != title.casefold()), "")


def _is_communication(trace: Trace, track_id: int) -> bool:
    flags = trace.slices.flags[int(trace.tracks.first_id[track_id]) : int(trace.tracks.end_id[track_id])]
    return bool(np.count_nonzero(flags & FLAG_COMMUNICATION) * 2 > len(flags))


def _counter(key: str, title: str, device: int = -1) -> Row:
    return Row(key, RowKind.COUNTER, title, device=device, height_px=COUNTER_PX, default_height_px=COUNTER_PX, lanes=1)


def _named(trace: Trace, device: int, many: bool) -> str:
    word = device_word(trace, device)
    return f"{word} {device}" if many else word


def _counter_rows(trace: Trace, devices: list[int]) -> list[Row]:
    rows = []
    many = len(devices) > 1
    if trace.has_device_work:
        for device in devices:
            title = _tr("{device} busy").format(device=_named(trace, device, many))
            rows.append(_counter(f"busy/{device}", title, device))
    used = sorted({int(d) for d in np.unique(trace.memory.device)}) if len(trace.memory) else []
    many = many or sum(device >= 0 for device in used) > 1  # one may hold memory without working
    for device in used:
        if device < 0:
            title = _tr("CPU memory")
        else:
            title = _tr("{device} memory").format(device=_named(trace, device, many))
        rows.append(_counter(f"memory/{device}", title, device))
    if trace.has_device_work:
        rows.append(_counter("queue", _tr("Launch queue")))
    for i, counter in enumerate(trace.counters):
        rows.append(_counter(f"counter/{i}/{counter.name}", counter.name))
    return _group("counters", _tr("Counters"), "", rows)
