"""From slices to places in the user's code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from core.call_stacks import has_call_stacks
from core.errors import TraceError
from core.kinds import SliceKind, TrackKind
from core.sets import among, distinct
from core.source_files import SourceFiles
from core.source_frames import Frame, is_library, is_other_library, is_user_frame, parse_frame, parse_old_stack
from core.source_lines import LineRecord, read_line_record
from core.source_making import built_at, class_of_method, made_elsewhere, made_in_constructor
from core.source_order import CallOrder, Placed
from core.source_ranges import LineRanges
from core.source_syntax import find_function, loop_heads, match
from core.source_walked import made_for_loop
from core.source_words import BY_ORDER, MADE, MADE_ELSEWHERE, ROUNDS, lines_in_words, made_for, unread
from core.suggestions import SourceRef
from core.tables import I32, I64
from core.trace import Trace

__all__ = ["WAIT_HINTS", "SourceFinder", "lines_in_words"]
WAIT_HINTS = frozenset(("item", "control-flow", "host-index", "mask", "constant", "batch", "read-back", "print"))


class SourceFinder:
    """Finds the file, line and function behind a slice, and never opens a path without consent.

    Parameters
    ----------
    trace
        The trace whose Python frames are used.
    roots
        Folders whose files may be read (the run's own copy of the sources, or folders the user has allowed). A path in
        the trace only ever selects a file *below* one of these.
    lines
        What a run recorded about exact lines, when it did (see `core.source_lines.read_line_record`).
    """

    def __init__(self, trace: Trace, roots: Iterable[Path] = (), lines: LineRecord | None = None) -> None:
        self._trace = trace
        self._files = SourceFiles(roots)
        self._lines = lines
        self._ranges = LineRanges(trace)
        self._order = CallOrder(trace, self._innermost_all)
        self._tracks: dict[tuple[int, int], int] = {}
        self._old_stacks: bool | None = None
        self._is_users: dict[int, bool] = {}  # name id of a Python slice -> whether it is the user's own code

    @classmethod
    def of_run(cls, trace: Trace, folder: Path, roots: Iterable[Path] = ()) -> SourceFinder:
        """Finder for a trace of a run of the app's own.

        The run's copy of the sources and its record of exact lines are used.

        Parameters
        ----------
        trace
            A trace that lies in ``folder``.
        folder
            The run's folder: it was written by this app on this machine, so reading its copy needs no further consent.
        roots
            More folders that the user has allowed.
        """
        stem = trace.path.name.split(".", 1)[0]
        return cls(trace, (folder / "sources", *roots), read_line_record(folder, stem))

    # ------------------------------------------------------------------ frames

    def frame_around(self, slice_id: int) -> int:
        """Innermost Python slice around a CPU slice (around the launch, for device work), -1 when there is none."""
        trace = self._trace
        if trace.device_work_mask[slice_id]:
            slice_id = int(trace.links.launch_of[slice_id])
            if slice_id < 0:
                return -1
        if trace.slices.kind[slice_id] == int(SliceKind.PYTHON):
            return slice_id
        thread = int(trace.tracks.thread_id[trace.slices.track_id[slice_id]])
        return self._innermost(thread, TrackKind.CPU_PYTHON, int(trace.slices.start_ns[slice_id]))

    def user_frame(self, slice_id: int) -> int:
        """Nearest Python slice of the user's own code around a slice, -1 when unknown.

        On the thread of the backward pass, where no Python runs, the forward op that recorded it is asked.
        """
        at = self._climb(self.frame_around(slice_id))
        forward = self._forward_of(slice_id) if at < 0 else -1
        return self._climb(self.frame_around(forward)) if forward >= 0 else at

    def frames_around(self, slice_ids: I32) -> I32:
        """int32[len(slice_ids)]: as `frame_around` for many slices at once."""
        trace, sl = self._trace, self._trace.slices
        ids = np.asarray(slice_ids, dtype=np.int32)
        host = np.where(trace.device_work_mask[ids], trace.links.launch_of[ids], ids)
        thread = np.where(host >= 0, trace.tracks.thread_id[sl.track_id[np.maximum(host, 0)]], -1)
        at = np.full(len(ids), -1, dtype=np.int32)
        for one in distinct(thread[thread >= 0]).tolist():
            mine = (thread == one).nonzero()[0]
            at[mine] = self._innermost_all(one, TrackKind.CPU_PYTHON, sl.start_ns[host[mine]])
        is_python = (host >= 0) & (sl.kind[np.maximum(host, 0)] == int(SliceKind.PYTHON))
        at[is_python] = host[is_python]
        return at

    def user_frames(self, slice_ids: I32) -> I32:
        """int32[len(slice_ids)]: as `user_frame` for many slices at once."""
        ids = np.asarray(slice_ids, dtype=np.int32)
        found = self.frames_around(ids)
        todo = (found >= 0).nonzero()[0]
        while len(todo):
            names = self._trace.slices.name_id[found[todo]]
            todo = todo[~among(names, [name for name in distinct(names).tolist() if self._is_user(name)])]
            found[todo] = self._trace.slices.parent_id[found[todo]]
            todo = todo[found[todo] >= 0]
        for row in (found < 0).nonzero()[0].tolist() if len(self._trace.links.backward) else ():
            found[row] = self.user_frame(int(ids[row]))
        return found

    def stack(self, slice_id: int) -> tuple[str, ...]:
        """Names of the Python slices around a slice, innermost first."""
        out: list[str] = []
        at = self.frame_around(slice_id)
        while at >= 0 and len(out) < 4000:
            out.append(self._trace.name(at))
            at = int(self._trace.slices.parent_id[at])
        return tuple(out)

    def _climb(self, at: int) -> int:
        names, parents = self._trace.slices.name_id, self._trace.slices.parent_id
        while at >= 0 and not self._is_user(int(names[at])):
            at = int(parents[at])
        return at

    def _is_user(self, name_id: int) -> bool:
        known = self._is_users.get(name_id)
        if known is None:
            known = self._is_users[name_id] = is_user_frame(self._trace.strings[name_id])
        return known

    def _innermost(self, thread_id: int, kind: int, time_ns: int) -> int:
        trace = self._trace
        if thread_id < 0:
            return -1
        key = (thread_id, kind)
        if key not in self._tracks:
            self._tracks[key] = trace.track_of_thread(thread_id, kind)
        track = self._tracks[key]
        if track < 0:
            return -1
        first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        at = first + int(trace.slices.start_ns[first:end].searchsorted(time_ns, side="right")) - 1
        while at >= first and int(trace.end_ns[at]) <= time_ns:
            at = int(trace.slices.parent_id[at])
        return at if at >= first else -1

    def _innermost_all(self, thread_id: int, kind: int, times_ns: I64) -> I32:
        """int32[len(times_ns)]: as `_innermost` for many instants."""
        trace = self._trace
        key = (thread_id, kind)
        if key not in self._tracks:
            self._tracks[key] = trace.track_of_thread(thread_id, kind)
        track = self._tracks[key]
        if track < 0:
            return np.full(len(times_ns), -1, dtype=np.int32)
        first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        at = trace.slices.start_ns[first:end].searchsorted(times_ns, side="right").astype(np.int32) + (first - 1)
        while True:
            over = ((at >= first) & (trace.end_ns[np.maximum(at, 0)] <= times_ns)).nonzero()[0]
            if not len(over):
                return np.where(at >= first, at, -1).astype(np.int32)
            at[over] = trace.slices.parent_id[at[over]]

    def _forward_of(self, slice_id: int) -> int:
        """Forward op whose backward a slice belongs to, -1 unknown."""
        trace, links = self._trace, self._trace.links
        if not len(links.backward):
            return -1
        if trace.device_work_mask[slice_id]:
            slice_id = int(links.launch_of[slice_id])
        ordered = links.backward[links.backward_order]
        while slice_id >= 0:
            at = int(ordered.searchsorted(slice_id))
            if at < len(ordered) and int(ordered[at]) == slice_id:
                return int(links.forward[links.backward_order[at]])
            slice_id = int(trace.slices.parent_id[slice_id])
        return -1

    # ------------------------------------------------------------------- places

    def of_slice(self, slice_id: int, hint: str = "", is_call: bool = False) -> SourceRef | None:
        """Place in the user's code of a CPU slice (of its launch, for device work); None without stacks.

        Parameters
        ----------
        slice_id
            Any slice.
        hint
            What was seen there (`core.source_syntax.match`); with the source at hand it selects the line.
        is_call
            The slice is a Python frame, and the place at which it was called is wanted.
        """
        frame = self._climb(int(self._trace.slices.parent_id[slice_id])) if is_call else self.user_frame(slice_id)
        found = self._recorded(slice_id, frame, hint) if self._lines is not None else None
        if self._ranges and (found is None or not found.exact):
            known = parse_frame(self._trace.name(frame)) if frame >= 0 else None
            found = self._ranges.of_slice(slice_id, frame, known) or found
        if found is not None:
            return found
        if frame >= 0:
            place = self._in_frame(slice_id, frame, hint)
            through = self._library_between(slice_id, frame)
            if place is not None and through:
                return replace(place, reason=f"{place.reason}; it happened inside {through}")
            return place
        return self._of_old_stack(slice_id)

    def of_slices(self, slice_ids: Sequence[int], hint: str = "", is_call: bool = False) -> SourceRef | None:
        """Place of several slices that are one fault: that of the first, with the lines of the others in its function.

        Where the lines are exact; with lines in doubt there is nothing to add to the first one's candidates.
        """
        first = self.of_slice(slice_ids[0], hint, is_call)
        if first is None or not first.exact:
            return first
        others = [self.of_slice(one, hint, is_call) for one in slice_ids[1:]]
        lines = {
            o.line for o in others if o is not None and o.exact and (o.file, o.function) == (first.file, first.function)
        }
        also = tuple(sorted(lines - {first.line}))
        if not also:
            return first
        return replace(first, also=also, reason=f"{first.reason}, and at {lines_in_words(also)}")

    def of_loop(self, first: int, last: int) -> SourceRef | None:
        """Head of the loop that runs operators again and again, from the ``first`` to the ``last`` of them.

        It stands in the innermost of the user's functions that ran them all, which may call others in each round.
        """
        frame, below = self.user_frame(first), -1
        until = int(self._trace.slices.start_ns[last])
        while frame >= 0 and int(self._trace.end_ns[frame]) <= until:
            below, frame = frame, self._climb(int(self._trace.slices.parent_id[frame]))
        if frame < 0:
            return self.of_slice(first, "loop")
        place = self.of_slice(first, "loop") if below < 0 else self.of_slice(below, "loop", is_call=True)
        known = parse_frame(self._trace.name(frame))
        tree = self._files.tree(known.file) if known is not None else None
        function = find_function(tree, known.function, known.line) if known is not None and tree is not None else None
        if place is None or function is None or not place.exact:
            return place
        heads = loop_heads(function, (place.line,))
        return replace(place, line=heads[0], reason=ROUNDS, also=()) if heads and heads[0] != place.line else place

    def of_constructor(self, slice_id: int, wanted: Callable[[ast.Call], bool], most: int) -> SourceRef | None:
        """Lines that make what was seen around a slice: in the ``__init__`` beside its method, or else in its file.

        ``wanted`` tells the calls that make such things; of more lines than the ``most`` that were seen, each is a
        candidate only. None without such lines, or without the source.
        """
        frame = parse_frame(self._trace.name(at)) if (at := self.user_frame(slice_id)) >= 0 else None
        tree = self._files.tree(frame.file) if frame is not None else None
        if frame is None or tree is None:
            return None
        own = made_in_constructor(tree, frame.function, frame.line, wanted)
        places = [(line, "__init__") for line in own] or made_elsewhere(tree, wanted)
        if not places:
            return None
        (first, function), *others = places
        sure, rest = len(others) < most, tuple(line for line, _ in others)
        reason = MADE if own else MADE_ELSEWHERE
        return SourceRef(frame.file, first, function, sure, reason, () if sure else rest, rest if sure else ())

    def of_walked(self, loop: SourceRef, wanted: Callable[[ast.Call], bool]) -> SourceRef | None:
        """Line that makes what a loop goes over, in the same file; None where it is the loop's own, or not clear."""
        tree = self._files.tree(loop.file)
        places = made_for_loop(tree, loop, wanted) if tree is not None else ()
        if len(places) != 1 or places[0][0] == loop.line:
            return None
        return SourceRef(loop.file, *places[0], True, made_for(loop))

    def built_class(self, init: int) -> str:
        """Name of the class whose ``__init__`` a Python slice is, as the user's code writes it; "" where unknown."""
        frame = parse_frame(self._trace.name(init))
        if frame is None:
            return ""
        tree = self._files.tree(frame.file)
        if tree is not None and (name := class_of_method(tree, frame.function, frame.line)):
            return name
        place = self.of_slice(init, "construct", is_call=True)
        tree = self._files.tree(place.file) if place is not None and place.exact else None
        return built_at(tree, place.line) if tree is not None and place is not None else ""

    def _library_between(self, slice_id: int, user_frame: int) -> str:
        """Innermost frame of a library other than torch between a slice and the user's frame, as written."""
        at = self.frame_around(slice_id)
        while at >= 0 and at != user_frame:
            name = self._trace.name(at)
            if is_other_library(name):
                return name
            at = int(self._trace.slices.parent_id[at])
        return ""

    def _recorded(self, slice_id: int, frame: int, hint: str) -> SourceRef | None:
        """What the run recorded: the line of the call, or the line at which torch warned of a wait."""
        assert self._lines is not None
        known = parse_frame(self._trace.name(frame)) if frame >= 0 else None
        called = self._lines.of_slice(self._trace, slice_id, frame)
        # `assert t` and `p[mask]` are no calls: then the call found belongs to a function further out
        if called is not None and (known is None or called.function.rsplit(".", 1)[-1] == known.function):
            return called
        if known is None:
            return called
        waited = self._lines.of_wait(known) if hint in WAIT_HINTS else None
        if waited is None or waited.exact or (tree := self._files.tree(known.file)) is None:
            return waited
        read = self._narrow(known, tree, hint, slice_id, frame)
        if read.line in (waited.line, *waited.candidates) and read.exact:
            return replace(read, reason=f"{waited.reason}; {read.reason}")
        return waited

    def of_frame(self, name: str, hint: str = "") -> SourceRef | None:
        """Place of a Python frame by its slice's name, its line narrowed by ``hint`` where the source is at hand."""
        frame = parse_frame(name)
        if frame is None:
            return None
        tree = self._files.tree(frame.file)
        if tree is None or not hint:
            return SourceRef(frame.file, frame.line, frame.function, reason=unread(frame))
        return self._narrow(frame, tree, hint)

    def _in_frame(self, slice_id: int, frame_id: int, hint: str) -> SourceRef | None:
        """Place of a slice in the user's frame around it, from the source where it is at hand."""
        frame = parse_frame(self._trace.name(frame_id))
        if frame is None:
            return None
        tree = self._files.tree(frame.file)
        if tree is None:
            return SourceRef(frame.file, frame.line, frame.function, reason=unread(frame))
        return self._narrow(frame, tree, hint, slice_id, frame_id)

    def _narrow(self, frame: Frame, tree: ast.Module, hint: str, slice_id: int = -1, frame_id: int = -1) -> SourceRef:
        """Use the syntax tree: what was seen there, and what ran before and after it. One line, or the candidates."""
        function = find_function(tree, frame.function, frame.line)
        if function is None:
            reason = "the source at hand does not hold this function at this line: it may have changed"
            return SourceRef(frame.file, frame.line, frame.function, reason=reason)
        ordered = self._order.place(slice_id, frame_id, function) if frame_id >= 0 else Placed((), False)
        if hint == "loop":
            ordered = replace(ordered, lines=loop_heads(function, ordered.lines))
        found = match(function, hint, ordered.in_loop)
        lines = found.lines if found is not None else ()
        both = tuple(line for line in ordered.lines if line in lines)
        best = both or lines or ordered.lines
        if not best:
            return SourceRef(frame.file, frame.line, frame.function, reason=unread(frame, read=True))
        reason = found.reason if found is not None else BY_ORDER
        if len(best) > 1:
            reason += f"; {lines_in_words(best[1:])} would fit as well"
        return SourceRef(frame.file, best[0], frame.function, len(best) == 1, reason, best[1:])

    def _of_old_stack(self, slice_id: int) -> SourceRef | None:
        """Torch 1.8 to 1.11 wrote a ``Call stack`` on ops; its lines are those of the calls."""
        if self._old_stacks is None:
            self._old_stacks = self._has_old_stacks()
        if not self._old_stacks:
            return None
        at = slice_id
        if self._trace.device_work_mask[at] or self._trace.slices.kind[at] in (SliceKind.RUNTIME, SliceKind.DRIVER):
            at = int(self._trace.links.op_of[at])
        for _ in range(64):
            if at < 0:
                return None
            for frame in parse_old_stack(self._call_stack(at)):
                if not is_library(frame.file):
                    return SourceRef(frame.file, frame.line, frame.function, True, "the exact line was recorded")
            at = int(self._trace.slices.parent_id[at])
        return None

    def _has_old_stacks(self) -> bool:
        if bool((self._trace.slices.kind == int(SliceKind.PYTHON)).any()):
            return False
        return has_call_stacks(self._trace)

    def _call_stack(self, slice_id: int) -> str:
        try:
            return str(self._trace.args(slice_id).get("Call stack") or "")
        except (TraceError, OSError):
            return ""

    def resolve(self, file: str) -> Path | None:
        """Find a trace's file below an allowed folder; None when no folder is allowed or holds it."""
        return self._files.resolve(file)
