"""Several files as one trace: each rank keeps its processes, all share one clock."""

from __future__ import annotations

import filecmp
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import TraceError
from core.importing.columns import Interner
from core.importing.notes import make_note
from core.importing.reader import FileReader
from core.strings import StringTable
from core.tables import (
    Counter,
    InstantTable,
    LinkTable,
    MemoryTable,
    ProcessTable,
    SliceTable,
    StepTable,
    ThreadTable,
    TrackTable,
)
from core.trace import ImportNote, ImportReport, Trace

TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".json.zip")
_CLOCK_GAP_NS = 3600 * 10**9  # ranks of one job start within minutes; an hour apart means clocks without relation
_NUMBERS = re.compile(r"(\d+)")


def find_traces(paths: Sequence[Path]) -> list[Path]:
    """Return the files that were meant: folders stand for the traces directly in them (or one level below).

    Raises
    ------
    TraceError
        When a folder holds no trace, or nothing was given.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        held = _in_folder(path)
        if not held:
            raise TraceError(
                f"The folder {path.name or path} holds no trace.",
                "Looked for files ending in .json or .json.gz.",
                "Open the folder that torch.profiler wrote its .pt.trace.json files to.",
            )
        found += held
    if not found:
        raise TraceError("No trace was given.", "", "Name a file or a folder.")
    return list(dict.fromkeys(found))


def without_twins(files: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, Path]]]:
    """Tell packed files apart from which the unpacked ones lie beside them: one recording must not count twice.

    Returns
    -------
    tuple
        What is to be opened, and (packed, unpacked) of the others.
    """
    there = set(files)
    twins = [(path, path.with_suffix("")) for path in files if path.with_suffix("") in there]
    packed = {path for path, _ in twins}
    return [path for path in files if path not in packed], twins


def without_copies(files: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, Path]]]:
    """Tell files apart that hold the same bytes as one before them: a copy under another name is no further rank.

    Returns
    -------
    tuple
        What is to be opened, and (copy, original) of the others.
    """
    by_size: dict[int, list[Path]] = {}
    copies = []
    for path in files:
        try:
            alike = by_size.setdefault(path.stat().st_size, [])
            first = next((other for other in alike if filecmp.cmp(path, other, shallow=False)), None)
        except OSError:
            continue  # what is wrong with it is said when it is opened
        if first is None:
            alike.append(path)
        else:
            copies.append((path, first))
    gone = {path for path, _ in copies}
    return [path for path in files if path not in gone], copies


def _in_folder(folder: Path) -> list[Path]:
    if (folder / "run.json").is_file() and (folder / "trace.json").is_file():
        return [folder / "trace.json"]  # a run of this program: what lies beside its trace are notes about the run
    try:
        for pattern in ("*", "*/*"):
            held = [p for p in folder.glob(pattern) if _meant(p.relative_to(folder)) and p.is_file()]
            if (folder / "run.json").is_file():  # of several ranks: notes of the lines lie beside each trace
                held = [p for p in held if not p.name.endswith(".lines.json")]
            named = [p for p in held if "trace" in p.name.lower()]
            if named or held:
                return sorted(named or held, key=_natural)
    except OSError as error:
        raise TraceError(f"The folder {folder.name} cannot be read: {error.strerror or error}.") from error
    return []


def _meant(path: Path) -> bool:
    """Tell whether a file is named like a trace; hidden ones are a tool's own (``._trace.json`` of macOS, caches)."""
    return path.name.lower().endswith(TRACE_SUFFIXES) and not any(part.startswith(".") for part in path.parts)


def _natural(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in _NUMBERS.split(path.name)]


def merge(traces: Sequence[Trace]) -> Trace:
    """Put the traces of several ranks together.

    They are aligned by their absolute clocks; where those have nothing in common (more than an hour apart), each
    starts at its own first event and the report says so.
    """
    if len(traces) == 1:
        return traces[0]
    origins = [trace.meta.origin_ns for trace in traces]
    related = max(origins) - min(origins) <= _CLOCK_GAP_NS
    shifts = [origin - min(origins) if related else 0 for origin in origins]
    interner = Interner()
    names = [np.append(interner.translate(trace.strings.values), np.int32(-1)) for trace in traces]
    base = _Bases(traces)
    process_names = [_process_names(trace, i, interner) for i, trace in enumerate(traces)]
    slices = _slices(traces, shifts, names, base)
    tracks = _join(TrackTable, [t.tracks for t in traces], base, names, {
        "process_id": base.process, "thread_id": base.thread, "first_id": base.slice, "end_id": base.slice,
    })  # fmt: skip
    threads = _join(ThreadTable, [t.threads for t in traces], base, names, {"process_id": base.process})
    processes = _join(ProcessTable, [t.processes for t in traces], base, names, {"source_id": base.source})
    processes = replace(processes, name_id=np.concatenate(process_names))
    return Trace(
        sources=tuple(source for trace in traces for source in trace.sources),
        strings=StringTable(interner.ids),
        slices=slices,
        tracks=tracks,
        threads=threads,
        processes=processes,
        steps=_timed(StepTable, [t.steps for t in traces], "start_ns", ("start_ns", "end_ns"), shifts, base, names,
                     {"slice_id": base.slice, "thread_id": base.thread}),
        links=_links(traces, base),
        memory=_timed(MemoryTable, [t.memory for t in traces], "time_ns", ("time_ns",), shifts, base, names,
                      {"thread_id": base.thread}),
        instants=_timed(InstantTable, [t.instants for t in traces], "time_ns", ("time_ns",), shifts, base, names,
                        {"process_id": base.process, "thread_id": base.thread}),
        counters=_counters(traces, shifts, base),
        meta=_meta(traces, min(origins) if related else origins[0]),
        report=_report(traces, related),
        reader=FileReader.of_all([trace.reader for trace in traces if isinstance(trace.reader, FileReader)]),
    )  # fmt: skip


class _Bases:
    """Row number of the first row of each trace in the merged tables."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        def starts(sizes: list[int]) -> list[int]:
            return [sum(sizes[:i]) for i in range(len(sizes))]

        self.slice = starts([len(t.slices) for t in traces])
        self.track = starts([len(t.tracks) for t in traces])
        self.thread = starts([len(t.threads) for t in traces])
        self.process = starts([len(t.processes) for t in traces])
        self.source = starts([len(t.sources) for t in traces])


def _shifted(column: Any, base: int) -> Any:
    return np.where(column >= 0, column + np.promote_types(column.dtype, np.int32).type(base), column)


def _join(table: Any, parts: Sequence[Any], base: _Bases, names: list[Any], ids: dict[str, list[int]]) -> Any:
    columns: dict[str, Any] = {}
    for f in fields(table):
        held = [getattr(part, f.name) for part in parts]
        if f.name == "name_id":
            held = [ids_of[column] for ids_of, column in zip(names, held, strict=True)]
        elif f.name in ids:
            held = [_shifted(column, start) for start, column in zip(ids[f.name], held, strict=True)]
        columns[f.name] = sum(held, ()) if isinstance(held[0], tuple) else np.concatenate(held)
    return table(**columns)


def _timed(
    table: Any, parts: Sequence[Any], key: str, times: tuple[str, ...], shifts: list[int], base: _Bases,
    names: list[Any], ids: dict[str, list[int]],
) -> Any:  # fmt: skip
    moved = [
        replace(part, **{name: getattr(part, name) + shift for name in times})
        for part, shift in zip(parts, shifts, strict=True)
    ]
    joined = _join(table, moved, base, names, ids)
    order = np.argsort(getattr(joined, key), kind="stable")
    return table(**{f.name: getattr(joined, f.name)[order] for f in fields(table)})


def _slices(traces: Sequence[Trace], shifts: list[int], names: list[Any], base: _Bases) -> SliceTable:
    moved = [
        replace(trace.slices, start_ns=trace.slices.start_ns + shift)
        for trace, shift in zip(traces, shifts, strict=True)
    ]
    table: SliceTable = _join(SliceTable, moved, base, names, {
        "track_id": base.track, "parent_id": base.slice, "subtree_end": base.slice,
    })  # fmt: skip
    return table


def _links(traces: Sequence[Trace], base: _Bases) -> LinkTable:
    def join(name: str) -> Any:
        return np.concatenate(
            [_shifted(getattr(t.links, name), start) for t, start in zip(traces, base.slice, strict=True)]
        )

    backward = join("backward")
    table = LinkTable(
        launch_of=join("launch_of"),
        launched=join("launched"),
        launched_by=join("launched_by"),
        op_of=join("op_of"),
        forward=join("forward"),
        backward=backward,
        backward_order=np.argsort(backward, kind="stable").astype(np.int32),
    )
    for f in fields(table):
        getattr(table, f.name).setflags(write=False)
    return table


def _process_names(trace: Trace, index: int, interner: Interner) -> Any:
    """Names with the rank in front, so that equal processes can be told apart."""
    rank = trace.meta.rank
    label = f"rank {rank}" if rank is not None else f"file {index + 1}"
    names = [f"{label}: {trace.strings[i]}" for i in trace.processes.name_id.tolist()]
    return np.array([interner(name) for name in names], np.int32)


def _counters(traces: Sequence[Trace], shifts: list[int], base: _Bases) -> tuple[Counter, ...]:
    out = []
    for trace, shift, start in zip(traces, shifts, base.process, strict=True):
        for counter in trace.counters:
            process = counter.process_id + start if counter.process_id >= 0 else -1
            out.append(replace(counter, process_id=process, time_ns=counter.time_ns + shift))
    return tuple(out)


def _meta(traces: Sequence[Trace], origin_ns: int) -> Any:
    first = traces[0].meta
    devices: dict[int, Any] = {}
    for trace in traces:
        for device in trace.meta.devices:
            devices.setdefault(device.index, device)
    return replace(
        first,
        origin_ns=origin_ns,
        devices=tuple(devices[i] for i in sorted(devices)),
        rank=None,
        world_size=next((t.meta.world_size for t in traces if t.meta.world_size is not None), None),
    )


def _report(traces: Sequence[Trace], related: bool) -> ImportReport:
    notes: dict[str, ImportNote] = {}
    for trace in traces:
        for note in trace.report.notes:
            held = notes.get(note.code)
            notes[note.code] = note if held is None else replace(held, count=held.count + note.count)
    if not related:
        notes["clocks-not-comparable"] = make_note("clocks-not-comparable", 1, "")
    twice = _held_twice(traces)
    if twice:
        rank, files = next(iter(twice.items()))
        notes["rank-twice"] = make_note("rank-twice", len(twice), f"rank {rank} is in {' and in '.join(files)}")
    return ImportReport(
        sum(t.report.events_read for t in traces), sum(t.report.events_kept for t in traces), tuple(notes.values())
    )


def _held_twice(traces: Sequence[Trace]) -> dict[int, list[str]]:
    """Names of the files that hold the same rank at the same time, by rank; one after another is no contradiction."""
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for trace in traces:
        if trace.meta.rank is not None and len(trace.slices):
            start, end = (trace.meta.origin_ns + time for time in trace.span_ns)
            spans.setdefault(trace.meta.rank, []).append((start, end, trace.path.name))
    found = {}
    for rank, held in spans.items():
        names = [
            name
            for i, (start, end, name) in enumerate(held)
            if any(j != i and start < last and first < end for j, (first, last, _) in enumerate(held))
        ]
        if names:
            found[rank] = names
    return found
