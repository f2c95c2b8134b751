"""Lines from the marks of a run that was asked to find the line: ranges named ``line: FILE:LINE (FUNCTION)``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from core.kinds import SliceKind, TrackKind
from core.source_frames import Frame
from core.suggestions import SourceRef
from core.trace import Trace

# Written by the run itself (docs/capture.md, "Find the line"); the importer keeps such slices apart from the user's.
_NAME = re.compile(r"line: (?P<file>.+):(?P<line>\d+) \((?P<function>[^()]+)\)\Z")
_INSIDE = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))  # frames that belong to their statement
REASON = "the line was marked while the script ran"


class LineRanges:
    """The marked statements of a trace.

    Parameters
    ----------
    trace
        Any trace; one without marks costs a look at its names.
    files
        Base names of the marked files and their paths, as the run's manifest has them.
    """

    def __init__(self, trace: Trace, files: Mapping[str, str] | None = None) -> None:
        self._trace = trace
        self._files = files or {}
        self._places: dict[int, SourceRef] = {}  # of names
        for name_id in np.unique(trace.slices.name_id[trace.slices.kind == int(SliceKind.OTHER)]).tolist():
            found = _NAME.match(trace.strings[name_id])
            if found:
                file = self._files.get(found["file"], found["file"])
                self._places[name_id] = SourceRef(file, int(found["line"]), found["function"], True, REASON)

    def __bool__(self) -> bool:
        return bool(self._places)

    def of_slice(self, slice_id: int, frame_id: int, frame: Frame | None) -> SourceRef | None:
        """Statement that a CPU slice (the launch, for device work) ran in.

        Parameters
        ----------
        slice_id
            Any slice.
        frame_id, frame
            The nearest Python slice of the user's code around it and what it says; -1 and None without stacks.

        Returns
        -------
        SourceRef or None
            None where it ran in no marked statement, or in a function that was called from one and is not marked.
        """
        trace = self._trace
        if not self._places:
            return None
        if trace.device_work_mask[slice_id]:
            slice_id = int(trace.links.launch_of[slice_id])
        at = self._innermost(slice_id) if slice_id >= 0 else -1
        if at < 0:
            return None
        place = self._places[int(trace.slices.name_id[at])]
        if frame is None:
            return place
        inside = int(trace.slices.start_ns[at]) >= int(trace.slices.start_ns[frame_id])
        if not inside and frame.function not in _INSIDE:
            return None
        if _base(frame.file) != _base(place.file):
            return None
        return SourceRef(frame.file, place.line, frame.function if inside else place.function, True, REASON)

    def _innermost(self, slice_id: int) -> int:
        """Innermost marked slice around the start of a slice, on its thread; -1 where there is none."""
        trace = self._trace
        thread = int(trace.tracks.thread_id[trace.slices.track_id[slice_id]])
        track = trace.track_of_thread(thread, TrackKind.OTHER) if thread >= 0 else -1
        if track < 0:
            return -1
        first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        start, stop = int(trace.slices.start_ns[slice_id]), int(trace.end_ns[slice_id])
        at = first + int(np.searchsorted(trace.slices.start_ns[first:end], start, side="right")) - 1
        while at >= first:
            if int(trace.end_ns[at]) >= stop and int(trace.slices.name_id[at]) in self._places:
                return at
            at = int(trace.slices.parent_id[at])
        return -1


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
