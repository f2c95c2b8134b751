"""Python code outside any operator: the function of the user's that holds most of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from core.intervals import coverage, union
from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.rule_tools.loader import loader_calls
from core.sets import among, distinct
from core.source_frames import parse_frame
from core.suggestions import RuleContext
from core.tables import I32, I64, Bool
from core.trace import Trace

# What torch, or the launcher of this app, does around its operators, in Python; the collector has a rule of its own.
_OF_TORCH = re.compile(
    r"\btorch[/\\].*\.py\(-?\d+\): |^nn\.Module: |\btorch\._C\b|^<steplens>|^Python GC|^<built-in function collect>"
)
# Functions without a name of their own; Python up to 3.11 has frames for comprehensions.
_INNER = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
_DEEPEST = 8  # of them one in another


@dataclass(frozen=True)
class HeldTime:
    """What one function holds in the counted steps.

    ``calls`` are its outermost calls; ``alone`` the outermost frames in it that run no operator (the calls themselves
    where none does), whose time is ``alone_ns``. ``frames_in`` are the Python calls that the time was spent in, and
    ``chief`` is the name of those that took most, with ``chief_ns``.
    """

    calls: I32
    alone: I32
    held_ns: int
    alone_ns: int
    frames_in: I32
    chief: str
    chief_ns: int


def place_of(trace: Trace, frame: int) -> tuple[str, str]:
    """A frame in words, ``prepare (data.py:30)``, and its function's name, as long as a title can hold."""
    found = parse_frame(trace.name(frame))
    place = f"{found.function} ({PurePath(found.file).name}:{found.line})" if found else trace.name(frame)
    function = found.function if found else place
    return place, "the script itself" if function == "<module>" else function[:32]


def longest_function(ctx: RuleContext, facts: Facts) -> HeldTime | None:
    """The function of the user's with most time outside operators, its libraries' included; None without any.

    Time in torch's own code, in a data loader and on threads without a step is left out.
    """
    sl, tracks = ctx.trace.slices, ctx.trace.tracks
    frames = facts.in_steps(facts.of_kind(SliceKind.PYTHON))
    on = among(tracks.thread_id[sl.track_id[frames]], distinct(ctx.figures.steps.thread_id))
    frames = frames[on]
    if not len(frames):
        return None
    own = _outside_operators(facts, frames)
    holder = _of_functions(ctx, ctx.source.user_frames(frames))
    holder[_through_torch(facts, frames, holder)] = -1
    holder[facts.within_ranges(frames, loader_calls(facts))] = -1
    counts = holder >= 0
    names = sl.name_id[holder[counts]]
    total = np.bincount(names, weights=own[counts]) if counts.any() else np.zeros(0)
    if not len(total) or total.max() <= 0:
        return None
    name = int(total.argmax())
    mine = frames[counts][names == name]
    every = facts.of_kind(SliceKind.PYTHON)
    calls = every[sl.name_id[every] == name]  # that of a whole script began before its steps
    calls = calls[among(calls, distinct(holder[counts][names == name]))]
    calls = calls[~facts.inside(calls, calls)]
    quiet = mine[_runs_no_operator(facts, mine)]
    quiet = quiet[~facts.inside(quiet, quiet)]
    by_name = np.bincount(sl.name_id[mine], weights=own[counts][names == name])
    chief = int(by_name.argmax())
    return HeldTime(
        calls=calls,
        alone=quiet,
        held_ns=int(total[name]),
        alone_ns=int(sl.dur_ns[quiet].sum()),
        frames_in=mine,
        chief=ctx.trace.strings[chief],
        chief_ns=int(by_name[chief]),
    )


def _of_functions(ctx: RuleContext, holder: I32) -> I32:
    """int32[len(holder)]: as the frames given, with the function around it in place of a comprehension or lambda."""
    trace, found = ctx.trace, holder.copy()
    names = distinct(trace.slices.name_id[found[found >= 0]]).tolist()
    inner = [name for name in names if trace.strings[name].endswith(_INNER)]
    for _ in range(_DEEPEST if inner else 0):
        at = np.flatnonzero((found >= 0) & among(trace.slices.name_id[np.maximum(found, 0)], inner))
        parents = trace.slices.parent_id[found[at]]
        at, parents = at[parents >= 0], parents[parents >= 0]
        above = ctx.source.user_frames(parents)
        at, above = at[above >= 0], above[above >= 0]
        if not len(at):
            break
        found[at] = above
        inner = [n for n in distinct(trace.slices.name_id[above]).tolist() if trace.strings[n].endswith(_INNER)]
    return found


def _outside_operators(facts: Facts, frames: I32) -> I64:
    """int64[len(frames)]: time of each frame outside operators and outside the frames that it calls, ns."""
    sl, trace = facts.trace.slices, facts.trace
    ops = facts.of_kind(SliceKind.CPU_OP)
    ops = ops[sl.parent_id[ops] < 0]
    outside = np.zeros(len(sl), dtype=np.int64)
    of_frame, of_op = (trace.tracks.thread_id[sl.track_id[ids]] for ids in (frames, ops))
    for thread in distinct(of_frame).tolist():
        mine, run = frames[of_frame == thread], ops[of_op == thread]
        start, end = _between_steps(facts, thread)
        busy = union(np.concatenate((sl.start_ns[run], start)), np.concatenate((trace.end_ns[run], end)))
        outside[mine] = sl.dur_ns[mine] - coverage(busy, sl.start_ns[mine], trace.end_ns[mine])
    own = outside.copy()
    inner = frames[sl.parent_id[frames] >= 0]
    np.subtract.at(own, sl.parent_id[inner], outside[inner])
    found: I64 = np.maximum(own[frames], 0)
    return found


def _between_steps(facts: Facts, thread: int) -> tuple[I64, I64]:
    """Starts and ends of the times of a thread that lie in none of its counted steps, ns."""
    steps = facts.figures.steps
    mine = facts.use_steps & ((steps.thread_id == thread) | (steps.thread_id < 0))
    inside = union(steps.start_ns[mine], steps.end_ns[mine])
    first, last = facts.trace.span_ns
    return np.append(min(first, 0), inside.end), np.append(inside.start, max(last, inside.end.max(initial=0)))


def _through_torch(facts: Facts, frames: I32, holder: I32) -> Bool:
    """bool[len(frames)]: which frames are torch's, or called by torch below the user's function that holds them."""
    sl, strings = facts.trace.slices, facts.trace.strings
    of_torch = facts.name_table(
        name for name in distinct(sl.name_id[frames]).tolist() if _OF_TORCH.search(strings[name])
    )
    found = np.zeros(len(frames), dtype=bool)
    at, rows = frames.copy(), (frames != holder).nonzero()[0]
    while len(rows):
        found[rows] = of_torch[sl.name_id[at[rows]]]
        at[rows] = sl.parent_id[at[rows]]
        rows = rows[~found[rows] & (at[rows] >= 0) & (at[rows] != holder[rows])]
    return found


def _runs_no_operator(facts: Facts, frames: I32) -> Bool:
    """bool[len(frames)]: during which frames no operator starts on their thread."""
    sl, trace = facts.trace.slices, facts.trace
    ops = facts.of_kind(SliceKind.CPU_OP)
    of_frame, of_op = (trace.tracks.thread_id[sl.track_id[ids]] for ids in (frames, ops))
    quiet = np.zeros(len(frames), dtype=bool)
    for thread in distinct(of_frame).tolist():
        rows = (of_frame == thread).nonzero()[0]
        starts = np.sort(sl.start_ns[ops[of_op == thread]])
        begin, end = (starts.searchsorted(t[frames[rows]]) for t in (sl.start_ns, trace.end_ns))
        quiet[rows] = begin == end
    return quiet
