"""Environments of reinforcement learning that are stepped in Python, one call at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from core import sets
from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.sets import among
from core.source_frames import parse_frame
from core.tables import I32

MIN_CALLS = 8  # per step: an optimizer, a scheduler or a trainer has its `step` called once or a few times
FAR_APART = 8.0  # times the usual distance of two calls: training lies between them, not the next move
# `step` of what is no environment: optimizers and schedulers, of torch and of other libraries.
_NO_ENVIRONMENT = re.compile(
    r"(^|[/\\])(torch|transformers|accelerate|diffusers|lightning|pytorch_lightning|deepspeed|apex|timm|bitsandbytes"
    r"|fairscale|megatron)[/\\]|optim|sched|profil|scaler",
    re.IGNORECASE,
)
_KEY = "environment steps"


@dataclass(frozen=True)
class Rollout:
    """Calls of an environment's ``step`` in the counted steps, and what else runs between them.

    ``calls`` run no operator; ``between`` are the frames beside them, of the same caller, between two near calls.
    ``loop_ns`` is the time from call to call, all of them, and ``ops`` are the outermost operators in it.
    """

    calls: I32
    between: I32
    ops: I32
    calls_ns: int
    loop_ns: int
    n_steps: int  # in which it is called


def rollout(facts: Facts) -> Rollout | None:
    """The environment that is stepped most, where operators run between its calls; None for none."""
    if _KEY not in facts.memo:
        facts.memo[_KEY] = _find(facts)
    found: Rollout | None = facts.memo[_KEY]
    return found


def is_of_environment(facts: Facts, frames: I32) -> bool:
    """Whether most of the time of these frames is that of an environment."""
    found = rollout(facts)
    if found is None or not len(frames):
        return False
    dur, ordered = facts.trace.slices.dur_ns, np.sort(frames)
    mine = among(ordered, found.calls) | facts.inside(ordered, found.calls)
    if mine.any():
        return bool(2 * dur[ordered[mine]].sum() >= dur[ordered].sum())
    inner = found.calls[facts.inside(found.calls, ordered)]
    return bool(2 * dur[inner].sum() >= dur[ordered].sum())


def _is_step(name: str) -> bool:
    frame = parse_frame(name)
    return frame is not None and frame.function == "step" and not _NO_ENVIRONMENT.search(frame.file)


def _find(facts: Facts) -> Rollout | None:
    trace, sl, step_of = facts.trace, facts.trace.slices, facts.figures.step_of
    calls = facts.in_steps(facts.where(_is_step, SliceKind.PYTHON))
    calls = calls[~facts.inside(calls, calls)]  # wrappers call the step of what they wrap
    if not facts.n_steps or len(calls) < MIN_CALLS:
        return None
    tracks, counts = np.unique(sl.track_id[calls], return_counts=True)
    calls = calls[sl.track_id[calls] == tracks[counts.argmax()]]
    ops = facts.of_kind(SliceKind.CPU_OP)
    thread = facts.thread_of(int(calls[0]))
    ops = ops[(sl.parent_id[ops] < 0) & (trace.tracks.thread_id[sl.track_id[ops]] == thread)]
    starts = sl.start_ns[ops]
    begin, end = (starts.searchsorted(t[calls]) for t in (sl.start_ns, trace.end_ns))
    calls = calls[begin == end]  # what computes with tensors is no such environment, or one of many at once
    rows, per_step = np.unique(step_of[calls], return_counts=True)
    calls = calls[among(step_of[calls], rows[per_step >= MIN_CALLS])]
    if not len(calls):
        return None
    gap_start, gap_end = trace.end_ns[calls[:-1]], sl.start_ns[calls[1:]]
    same = step_of[calls[:-1]] == step_of[calls[1:]]
    usual = sets.median((gap_end - gap_start)[same])
    near = same & (gap_end - gap_start <= FAR_APART * usual)
    between = starts.searchsorted(gap_start[near]), starts.searchsorted(gap_end[near])
    if not len(between[0]) or sets.median(between[1] - between[0]) < 1:
        return None  # nothing is asked of a model between two calls
    return Rollout(
        calls=calls,
        between=_beside(facts, calls, near),
        ops=ops[np.concatenate([np.arange(a, b) for a, b in zip(*between, strict=True)])],
        calls_ns=int(sl.dur_ns[calls].sum()),
        loop_ns=int((gap_end - gap_start)[near].sum() + sl.dur_ns[calls].sum()),
        n_steps=int((per_step >= MIN_CALLS).sum()),
    )


def _beside(facts: Facts, calls: I32, near: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> I32:
    """int32[k]: frames of the calls' own caller that lie between two near calls."""
    sl, trace = facts.trace.slices, facts.trace
    frames = facts.of_kind(SliceKind.PYTHON)
    frames = frames[sl.track_id[frames] == sl.track_id[calls[0]]]
    at = calls.searchsorted(frames, side="right") - 1
    inside = (at >= 0) & (at < len(calls) - 1)
    at = np.clip(at, 0, len(calls) - 2)
    inside &= near[at] & (sl.parent_id[frames] == sl.parent_id[calls[at]])
    inside &= (sl.start_ns[frames] >= trace.end_ns[calls[at]]) & (trace.end_ns[frames] <= sl.start_ns[calls[at + 1]])
    found: I32 = frames[inside]
    return found
