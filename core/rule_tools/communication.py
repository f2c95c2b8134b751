"""Collectives on the device."""

from __future__ import annotations

import re

import numpy as np

from core.figures.lookup import view_of
from core.intervals import coverage, subtract
from core.intervals import union as span_union
from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.rule_tools.intervals import outside_ns, union
from core.sets import among, distinct
from core.tables import FLAG_COMMUNICATION, I32, I64, Bool

# Searched in lower-case names.
_NAME = re.compile(r"^nccl|rccl|allreduce_|reducescatter_|allgather_|multimem_all_reduce|cross_device_reduce")
_BYTES = {"Float": 4, "float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Long": 8, "Int": 4, "Byte": 1, "Char": 1}
_LARGEST = 1 << 60  # bytes of a message: more is no size


def _is_collective(name: str) -> bool:
    lower = name.lower()
    # Every name that the pattern knows holds one of these, and looking for them takes a tenth of its time.
    return ("ccl" in lower or "reduce" in lower or "gather" in lower) and bool(_NAME.search(lower))


def collectives(facts: Facts) -> I32:
    """int32[k]: kernels of collectives among the work that counts."""
    held = facts.memo.get("collectives")
    if held is None:
        kernels = facts.kernels
        flagged = (facts.trace.slices.flags[kernels] & FLAG_COMMUNICATION) != 0
        named = among(kernels, facts.where(_is_collective, SliceKind.KERNEL))
        held = facts.memo["collectives"] = kernels[flagged | named]
    return held  # type: ignore[no-any-return]


def exposed_ns(facts: Facts, comm: I32, once: bool = True) -> I64:
    """int64[k], ns: of each collective, the time in which its device computes nothing; what two share counts once.

    With ``once`` False, it counts for each of the two.
    """
    sl, trace, device = facts.trace.slices, facts.trace, view_of(facts.trace).device
    out = np.zeros(len(comm), dtype=np.int64)
    for one in distinct(device[comm]):
        rows = (device[comm] == one).nonzero()[0]
        rows = rows[sl.start_ns[comm[rows]].argsort(kind="stable")]
        end = trace.end_ns[comm[rows]]
        start = sl.start_ns[comm[rows]].copy()
        if once:
            start[1:] = np.minimum(np.maximum(start[1:], np.maximum.accumulate(end)[:-1]), end[1:])
        out[rows] = outside_ns(_beside(facts, one), start, end)
    return out


def _beside(facts: Facts, device: int) -> tuple[I64, I64]:
    """When a device computes anything but collectives: starts and ends, ns."""
    held = facts.memo.get(key := f"beside collectives {device}")
    if held is None:
        trace = facts.trace
        other = trace.device_ids[view_of(trace).device[trace.device_ids] == device]
        other = other[~among(other, collectives(facts))]
        held = facts.memo[key] = union(trace.slices.start_ns[other], trace.end_ns[other])
    return held  # type: ignore[no-any-return]


def hidden_share(facts: Facts, comm: I32, alone_ns: I64, early: Bool) -> float:
    """Share of the exposed time of collectives that the computation between them, in a step, could hide.

    What can be asked for early (weights) hides behind the computation since the one before it, what is needed late
    (gradients) behind that up to the one after it, as far as no collective runs beside that; all of a device together
    hide no more than there is.

    Parameters
    ----------
    alone_ns
        int64[k], `exposed_ns` of each.
    early
        bool[k], which of them can be asked for early.
    """
    sl, trace, device = facts.trace.slices, facts.trace, view_of(facts.trace).device
    every, step_of = collectives(facts), facts.figures.step_of
    other = trace.device_ids[~among(trace.device_ids, every)]
    hidden = 0
    for one in distinct(device[comm]):
        beside, sent = other[device[other] == one], every[device[every] == one]
        computes = span_union(sl.start_ns[beside], trace.end_ns[beside])
        free = subtract(computes, span_union(sl.start_ns[sent], trace.end_ns[sent]))
        found = 0
        for which in (early, ~early):
            rows = ((device[comm] == one) & which).nonzero()[0]
            rows = rows[sl.start_ns[comm[rows]].argsort(kind="stable")]
            start, end, step = sl.start_ns[comm[rows]], trace.end_ns[comm[rows]], step_of[comm[rows]]
            room = coverage(free, end[:-1], start[1:]) * (step[1:] == step[:-1])
            took = alone_ns[rows][1:] if which is early else alone_ns[rows][:-1]
            found += int(np.minimum(room, took).sum())
        hidden += min(found, free.total_ns)
    return hidden / max(int(alone_ns.sum()), 1)


def exposed_of_step_ns(facts: Facts, comm: I32, alone_ns: I64) -> tuple[float, float]:
    """Time per step in which a device only communicates, and the step that it is a share of, ns.

    As the budget and the verdict count it (mean over the steps with a period, and over devices); where collectives are
    known by their names alone, which those do not count, from each one's exposed time.

    Parameters
    ----------
    comm, alone_ns
        `collectives`, and the `exposed_ns` of each.
    """
    budget, known = facts.figures.budget, facts.figures.extra.get("exposed_communication_ns")
    flagged = bool(((facts.trace.slices.flags[comm] & FLAG_COMMUNICATION) != 0).all())
    if flagged and budget.period_ns and budget.basis != "window" and known is not None and len(known):
        return float(known[0]), float(budget.period_ns)
    whole = step_time_ns(facts) / max(facts.n_steps, 1)
    return facts.per_step(int(alone_ns.sum())), whole


def step_time_ns(facts: Facts) -> float:
    """All counted steps at their sustained pace, once for each device of a process, ns: the whole of a device share."""
    view = view_of(facts.trace)
    devices = max(len(view.devices) / max(len(facts.trace.sources), 1), 1.0)
    return facts.sustained_ns * max(facts.n_steps, 1) * devices


def collectives_by_rank(facts: Facts) -> dict[int, I32]:
    """Collectives of each rank in time order."""
    trace = facts.trace
    comm = collectives(facts)
    source = trace.processes.source_id[trace.tracks.process_id[trace.slices.track_id[comm]]]
    rank_of: dict[int, int] = {}
    for process, rank in enumerate(trace.processes.rank):
        if rank >= 0:
            rank_of[int(trace.processes.source_id[process])] = int(rank)
    out: dict[int, I32] = {}
    for source_id, rank in rank_of.items():
        mine = comm[source == source_id]
        out[rank] = mine[trace.slices.start_ns[mine].argsort(kind="stable")]
    return out


def message_bytes(facts: Facts, kernel: int) -> int | None:
    """Size of a collective's message, None where the trace does not say."""
    args = facts.args(kernel)
    count, kind = args.get("In msg nelems"), args.get("dtype")
    size = count * _BYTES.get(kind, 4) if isinstance(count, int) and isinstance(kind, str) else args.get("bytes")
    return size if isinstance(size, int) and 0 <= size <= _LARGEST else None


def sent_bytes(facts: Facts, kernels: I32) -> I64:
    """int64[k]: size of each collective's message; a large one where the trace does not say."""
    sizes = [message_bytes(facts, kernel) for kernel in kernels.tolist()]
    unknown = np.iinfo(np.int64).max
    return np.array([unknown if size is None else size for size in sizes], dtype=np.int64)
