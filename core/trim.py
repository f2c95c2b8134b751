"""A smaller trace from a part of a trace: chosen time and tracks, readable by any viewer of Chrome traces."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from core.errors import TraceError
from core.importing.streams import Text
from core.kinds import DEVICE_WORK
from core.tables import I32, I64
from core.trace import Trace

Progress = Callable[[float, str], None]
BLOCK_BYTES = 1 << 20
SUFFIXES = (".json", ".json.gz")


def trim(
    trace: Trace,
    path: Path,
    start_ns: int,
    end_ns: int,
    *,
    tracks: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the slices that touch ``[start_ns, end_ns)``, with their flows, counters and names, to a new file.

    Events are read again from the trace's own files and keep all their fields; only their times are written anew, from
    the trace's common clock in microseconds after ``baseTimeNanoseconds``, so that several ranks stay aligned. Work
    launched in the range is kept even where it runs after its end, as is the launch of work that is kept.

    Parameters
    ----------
    path
        New file, ``.json`` or ``.json.gz``. An existing one is never overwritten.
    tracks
        Track ids to keep; None keeps all.

    Returns
    -------
    int
        Number of slices written.

    Raises
    ------
    TraceError
        When the file exists or cannot be written, the ending is another one, nothing is in the range, or a source
        changed since it was opened.
    Cancelled
        When ``progress`` raised it; the file is then removed again.
    """
    if not path.name.lower().endswith(SUFFIXES):
        raise TraceError(f"{path.name}: the output must end in .json or .json.gz.")
    ids = chosen_slices(trace, start_ns, end_ns, tracks)
    if not len(ids):
        raise TraceError("There is nothing to save in this range.", hint="Select a stretch of time with slices in it.")
    _check_sources(trace)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError as error:
        raise TraceError(f"{path.name} exists already.", hint="Choose another name.") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be written.", str(error)) from error
    try:
        with os.fdopen(handle, "wb") as raw:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                    _write(trace, packed, ids, start_ns, end_ns, progress)  # type: ignore[arg-type]
            else:
                _write(trace, raw, ids, start_ns, end_ns, progress)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return len(ids)


def chosen_slices(trace: Trace, start_ns: int, end_ns: int, tracks: Iterable[int] | None = None) -> I32:
    """Slices to keep, int32[k] ascending: those in the range, the work they launched, and the launches of the work."""
    slices = trace.slices
    inside = (slices.start_ns < end_ns) & (trace.end_ns > start_ns)
    inside |= (slices.dur_ns == 0) & (slices.start_ns >= start_ns) & (slices.start_ns < end_ns)
    allowed = np.ones(len(trace.tracks), np.bool_)
    if tracks is not None:
        allowed[:] = False
        allowed[list(tracks)] = True
        inside &= allowed[slices.track_id]
    launch = trace.links.launch_of
    work = np.flatnonzero(launch >= 0)
    inside[work] |= inside[launch[work]] & (slices.start_ns[launch[work]] >= start_ns) & allowed[slices.track_id[work]]
    kept = work[inside[work]]
    inside[launch[kept]] |= allowed[slices.track_id[launch[kept]]]
    return np.flatnonzero(inside).astype(np.int32)


def _check_sources(trace: Trace) -> None:
    for source in trace.sources:
        try:
            stat = source.path.stat()
        except OSError as error:
            raise TraceError(f"{source.path.name} cannot be read any more.", str(error)) from error
        if (stat.st_size, stat.st_mtime_ns) != (source.size_bytes, source.mtime_ns):
            raise TraceError(f"{source.path.name} has changed since it was opened.", hint="Open it again first.")


class _Output:
    """The array of events, written one by one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._first = file, True

    def add(self, event: dict[str, Any]) -> None:
        self._file.write(b"\n" if self._first else b",\n")
        self._first = False
        self._file.write(orjson.dumps(event, option=orjson.OPT_NON_STR_KEYS))


def _write(trace: Trace, file: BinaryIO, ids: I32, start_ns: int, end_ns: int, progress: Progress | None) -> None:
    header = _header(trace)
    file.write(orjson.dumps(header)[:-1] + b', "traceEvents": [')
    out = _Output(file)
    pids = _pids(trace)
    for event in _names(trace, pids):
        out.add(event)
    place: dict[int, tuple[Any, Any]] = {}
    wanted = _flow_ends(trace, ids)
    for done, (slice_id, event) in enumerate(_events(trace, ids)):
        event["ts"] = int(trace.slices.start_ns[slice_id]) / 1000
        event["dur"] = int(trace.slices.dur_ns[slice_id]) / 1000
        event["ph"] = "X"
        process = int(trace.tracks.process_id[trace.slices.track_id[slice_id]])
        event["pid"] = pids[process] if process in pids else event.get("pid")
        out.add(event)
        if slice_id in wanted:
            place[slice_id] = (event.get("pid"), event.get("tid"))
        if progress is not None and done % 2000 == 0:
            progress(done / len(ids), "Writing events")
    for event in _flows(trace, place):
        out.add(event)
    for event in _memory(trace, pids, start_ns, end_ns):
        out.add(event)
    file.write(b"\n]}\n")


def _header(trace: Trace) -> dict[str, Any]:
    header = {k: v for k, v in trace.meta.header.items() if k not in ("traceEvents", "traceName")}
    header["deviceProperties"] = [dict(d.properties) or {"id": d.index, "name": d.name} for d in trace.meta.devices]
    header["baseTimeNanoseconds"] = trace.meta.origin_ns
    header["displayTimeUnit"] = trace.meta.display_unit or "ms"
    header["trimmedFrom"] = trace.sources[0].path.name
    return header


def _pids(trace: Trace) -> dict[int, Any]:
    """Process row -> pid to write: as it was, made distinct where several ranks use the same."""
    seen: dict[str, int] = {}
    pids: dict[int, Any] = {}
    for process, pid in enumerate(trace.processes.pid):
        source = int(trace.processes.source_id[process])
        if seen.setdefault(pid, source) != source:
            pids[process] = f"{pid} (rank {int(trace.processes.rank[process])}, file {source})"
        else:
            pids[process] = int(pid) if pid.lstrip("-").isdecimal() else pid
    return pids


def _names(trace: Trace, pids: dict[int, Any]) -> Iterator[dict[str, Any]]:
    for process, pid in pids.items():
        name = int(trace.processes.name_id[process])
        if name >= 0:
            yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0,
                   "args": {"name": trace.strings[name]}}  # fmt: skip
    for thread, tid in enumerate(trace.threads.tid):
        name, process = int(trace.threads.name_id[thread]), int(trace.threads.process_id[thread])
        if name >= 0 and process in pids:
            number = int(tid) if tid.lstrip("-").isdecimal() else tid
            yield {"ph": "M", "name": "thread_name", "pid": pids[process], "tid": number, "ts": 0,
                   "args": {"name": trace.strings[name]}}  # fmt: skip


def _events(trace: Trace, ids: I32) -> Iterator[tuple[int, dict[str, Any]]]:
    """Slices with the event each came from, one source after the other, front to back."""
    slices = trace.slices
    sources = trace.processes.source_id[trace.tracks.process_id[slices.track_id[ids]]]
    for source in np.unique(sources).tolist():
        mine = ids[sources == source]
        mine = mine[np.argsort(slices.event_start[mine], kind="stable")]
        stored = mine[slices.event_start[mine] >= 0]
        texts = _pieces(trace.sources[source].path, slices.event_start[stored], slices.event_bytes[stored])
        for slice_id, piece in zip(stored.tolist(), texts, strict=True):
            yield slice_id, _event(trace, slice_id, source, piece)
        for slice_id in mine[slices.event_start[mine] < 0].tolist():
            yield slice_id, _made(trace, slice_id)


def _event(trace: Trace, slice_id: int, source: int, piece: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(piece)
    except orjson.JSONDecodeError:  # repaired when it was read: let the importer's reader do so again
        slices = trace.slices
        event = trace.reader.read(source, int(slices.event_start[slice_id]), int(slices.event_bytes[slice_id]))
    return event if isinstance(event, dict) and event else _made(trace, slice_id)


def _made(trace: Trace, slice_id: int) -> dict[str, Any]:
    """Event of a slice that has no text of its own."""
    track = int(trace.slices.track_id[slice_id])
    thread = int(trace.tracks.thread_id[track])
    tid: Any = trace.threads.tid[thread] if thread >= 0 else int(trace.tracks.stream[track])
    return {"name": trace.name(slice_id), "tid": tid, "args": {}}


def _pieces(path: Path, starts: I64, sizes: I32) -> Iterator[bytes]:
    """Cut pieces out of a file's uncompressed text; ``starts`` ascending."""
    with Text(path) as text:
        buffer, offset = b"", 0
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            while start + size > offset + len(buffer):
                more = text.read(BLOCK_BYTES)
                if not more:
                    raise TraceError(f"{path.name} has changed since it was opened.", hint="Open it again first.")
                cut = min(max(start - offset, 0), len(buffer))
                buffer, offset = buffer[cut:] + more, offset + cut
            yield buffer[start - offset : start - offset + size]


def _flow_ends(trace: Trace, ids: I32) -> set[int]:
    slices, links = trace.slices, trace.links
    kept = np.zeros(len(slices), np.bool_)
    kept[ids] = True
    work = ids[np.isin(slices.kind[ids], DEVICE_WORK)]
    launch = links.launch_of[work]
    paired = (launch >= 0) & kept[np.maximum(launch, 0)]
    both = kept[links.forward] & kept[links.backward]
    parts = (work[paired], launch[paired], links.forward[both], links.backward[both])
    return set(np.concatenate(parts).tolist())


def _flows(trace: Trace, place: dict[int, tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Arrows between slices that were written: launch to work, forward to backward."""
    links = trace.links
    pairs = [(int(links.launch_of[i]), i, "ac2g") for i in sorted(place) if links.launch_of[i] in place]
    pairs += [
        (f, b, "fwdbwd")
        for f, b in zip(links.forward.tolist(), links.backward.tolist(), strict=True)
        if f in place and b in place
    ]
    single = len(trace.sources) == 1
    begun: set[tuple[str, int]] = set()
    for number, (source, target, category) in enumerate(pairs, 1):
        # Kineto numbers launch arrows by correlation id; several ranks use the same ones, so theirs are counted.
        correlation = int(trace.slices.correlation_id[target])
        flow = correlation if category == "ac2g" and single and correlation >= 0 else number
        for phase, slice_id in (("s", source), ("f", target)):
            if phase == "s" and (category, flow) in begun:
                continue  # one graph launch starts many kernels
            begun.add((category, flow))
            pid, tid = place[slice_id]
            event = {"ph": phase, "id": flow, "pid": pid, "tid": tid, "cat": category, "name": category}
            event["ts"] = int(trace.slices.start_ns[slice_id]) / 1000
            if phase == "f":
                event["bp"] = "e"
            yield event


def _memory(trace: Trace, pids: dict[int, Any], start_ns: int, end_ns: int) -> Iterator[dict[str, Any]]:
    """Memory events and counters in the range."""
    memory = trace.memory
    a, b = np.searchsorted(memory.time_ns, (start_ns, end_ns))
    for i in range(int(a), int(b)):
        thread = int(memory.thread_id[i])
        process = int(trace.threads.process_id[thread]) if thread >= 0 else 0
        args = {"Device Id": int(memory.device[i]), "Device Type": 1 if memory.device[i] >= 0 else 0,
                "Addr": int(memory.address[i]), "Bytes": int(memory.bytes[i])}  # fmt: skip
        for key, column in (("Total Allocated", memory.allocated_bytes), ("Total Reserved", memory.reserved_bytes)):
            if column[i] >= 0:
                args[key] = int(column[i])
        tid = trace.threads.tid[thread] if thread >= 0 else "0"
        yield {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": pids.get(process, 0),
               "tid": int(tid) if tid.lstrip("-").isdecimal() else tid, "ts": int(memory.time_ns[i]) / 1000,
               "args": args}  # fmt: skip
    for counter in trace.counters:
        a, b = np.searchsorted(counter.time_ns, (start_ns, end_ns))
        for i in range(int(a), int(b)):
            yield {"ph": "C", "name": counter.name, "pid": pids.get(counter.process_id, 0), "tid": 0,
                   "ts": int(counter.time_ns[i]) / 1000, "args": {"value": float(counter.value[i])}}  # fmt: skip
