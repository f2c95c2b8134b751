"""Exact lines that a run of the app's own recorded beside its trace (docs/capture.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from core.source_frames import Frame
from core.suggestions import SourceRef
from core.trace import Trace

LINES_FILE = "lines.json"
SYNC_LINES_FILE = "sync_lines.json"
MAX_BYTES = 400_000_000  # a record is a fraction of its trace; anything bigger is something else
_LOOK_BACK = 64  # calls nest: the innermost one around an instant is among the last that began before it


@dataclass(frozen=True, eq=False)
class LineRecord:
    """Calls made from the user's files with their exact lines, and lines at which torch warned of a wait.

    All sequences of ``start_ns`` to ``function`` have one entry per call, ascending by absolute start (ns since the
    epoch, as ``TraceMeta.origin_ns``). ``sync_lines`` holds (file, line, function, times) of waits.
    """

    start_ns: Sequence[int] = ()
    end_ns: Sequence[int] = ()
    file: Sequence[str] = ()
    line: Sequence[int] = ()
    function: Sequence[str] = ()
    sync_lines: tuple[tuple[str, int, str, int], ...] = ()
    _memo: dict[tuple[int, int], SourceRef | None] = field(default_factory=dict)

    def of_slice(self, trace: Trace, slice_id: int, frame: int = -1) -> SourceRef | None:
        """Exact place of a slice (of its launch, for device work), None where nothing was recorded for it.

        ``frame`` is the Python slice of the user's function around it: a call that began before it was made by another
        function, however alike their names (every module has a ``forward``).
        """
        if trace.device_work_mask[slice_id]:
            slice_id = int(trace.links.launch_of[slice_id])
        if slice_id < 0 or not self.start_ns:
            return None
        key = (slice_id, frame)
        if key not in self._memo:
            self._memo[key] = self._find(trace, slice_id, frame)
        return self._memo[key]

    def _find(self, trace: Trace, slice_id: int, frame: int) -> SourceRef | None:
        start = trace.meta.origin_ns + int(trace.slices.start_ns[slice_id])
        end = trace.meta.origin_ns + int(trace.end_ns[slice_id])
        since = trace.meta.origin_ns + int(trace.slices.start_ns[frame]) if frame >= 0 and frame != slice_id else -1
        at = bisect_right(self.start_ns, start) - 1
        for i in range(at, max(at - _LOOK_BACK, -1), -1):
            if self.start_ns[i] <= since:
                return None
            if self.end_ns[i] >= end:
                return SourceRef(self.file[i], self.line[i], self.function[i], True, "the exact line was recorded")
        return None

    def of_wait(self, frame: Frame) -> SourceRef | None:
        """Line inside a frame's function at which torch warned of a wait; several become candidates."""
        short = frame.file.replace("\\", "/").rsplit("/", 1)[-1]
        name = frame.function.rsplit(".", 1)[-1]
        hits = [
            (times, line, file)
            for file, line, function, times in self.sync_lines
            if function.rsplit(".", 1)[-1] == name and file.replace("\\", "/").rsplit("/", 1)[-1] == short
        ]
        if not hits:
            return None
        hits.sort(key=lambda hit: -hit[0])
        others = tuple(sorted({line for _, line, _ in hits[1:]} - {hits[0][1]}))
        reason = "torch warned of a wait at this line while the script ran"
        return SourceRef(frame.file, hits[0][1], frame.function, not others, reason, others)


def read_line_record(folder: Path, stem: str = "trace") -> LineRecord | None:
    """Read what a run recorded beside its trace.

    Parameters
    ----------
    folder
        The run's folder.
    stem
        Name of the trace's file without its ending: other files of a run have line records of their own.

    Returns
    -------
    LineRecord or None
        None when there is none or it cannot be read: lines are then worked out, or named as not exact.
    """
    lines = _load(folder / (LINES_FILE if stem == "trace" else f"{stem}.{LINES_FILE}"), "steplens.lines/1")
    waits = _load(folder / SYNC_LINES_FILE, "steplens.sync-lines/1")
    if lines is None and waits is None:
        return None
    try:
        return _record(lines or {}, waits or {})
    except (KeyError, TypeError, IndexError, ValueError):
        return None


def _load(path: Path, kind: str) -> dict[str, Any] | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        content = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return content if isinstance(content, dict) and content.get("format") == kind else None


def _record(lines: dict[str, Any], waits: dict[str, Any]) -> LineRecord:
    calls = lines.get("calls") or {"start_ns": [], "dur_ns": [], "file": [], "line": [], "function": []}
    files, functions = lines.get("files") or [], lines.get("functions") or []
    sync = []
    for row in waits.get("calls") or []:
        source = row.get("source")
        if source:
            sync.append((str(source["file"]), int(source["line"]), str(source["function"]), int(row.get("times", 1))))
    start = [int(t) for t in calls["start_ns"]]
    return LineRecord(
        start,
        [t + int(d) for t, d in zip(start, calls["dur_ns"], strict=True)],
        [str(files[i]) for i in calls["file"]],
        [int(n) for n in calls["line"]],
        [str(functions[i]) for i in calls["function"]],
        tuple(sync),
    )
