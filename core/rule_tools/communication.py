"""Collectives on the device."""

from __future__ import annotations

import re

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.rule_tools.intervals import outside_ns, union
from core.tables import FLAG_COMMUNICATION, I32, I64

# Searched in lower-case names.
_NAME = re.compile(r"^nccl|rccl|allreduce_|reducescatter_|allgather_|multimem_all_reduce|cross_device_reduce")
_BYTES = {"Float": 4, "float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Long": 8, "Int": 4, "Byte": 1, "Char": 1}


def collectives(facts: Facts) -> I32:
    """int32[k]: kernels of collectives among the work that counts."""
    sl = facts.trace.slices
    kernels = facts.kernels
    flagged = (sl.flags[kernels] & FLAG_COMMUNICATION) != 0
    named = np.isin(kernels, _by_name(facts))
    found: I32 = kernels[flagged | named]
    return found


def _by_name(facts: Facts) -> I32:
    held = facts.memo.get("collectives by name")
    if held is None:
        held = facts.memo["collectives by name"] = facts.where(lambda n: _NAME.search(n.lower()), SliceKind.KERNEL)
    return held  # type: ignore[no-any-return]


def exposed_ns(facts: Facts, comm: I32) -> I64:
    """int64[k], ns: of each collective, the time in which nothing else runs on the device."""
    sl, trace = facts.trace.slices, facts.trace
    other = np.setdiff1d(trace.device_ids, collectives(facts))
    return outside_ns(union(sl.start_ns[other], trace.end_ns[other]), sl.start_ns[comm], trace.end_ns[comm])


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
        out[rank] = mine[np.argsort(trace.slices.start_ns[mine], kind="stable")]
    return out


def message_bytes(facts: Facts, kernel: int) -> int | None:
    """Size of a collective's message, None where the trace does not say."""
    args = facts.args(kernel)
    count, kind = args.get("In msg nelems"), args.get("dtype")
    if isinstance(count, int) and isinstance(kind, str):
        return count * _BYTES.get(kind, 4)
    size = args.get("bytes")
    return size if isinstance(size, int) else None
