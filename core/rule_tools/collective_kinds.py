"""What collectives are for: the kind of each, and whether it carries gradients, so that advice fits the program."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.sets import distinct
from core.tables import I32, I64, Bool

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
ALL_TO_ALL, POINT_TO_POINT, BROADCAST, OTHER = "all-to-all", "send and receive", "broadcast", "other"

DDP = r"^DistributedDataParallel\.forward|torch\.distributed\.ddp\.reducer|torch::distributed::reducer"
FSDP = r"FullyShardedDataParallel|^FSDP::|^fsdp::|FSDPState|FSDPParamGroup"
_BACKWARD = r"^autograd::engine::evaluate_function"
_IN_FORWARD = 0.1  # share of the calls: tensor parallelism has a third or half of them there, a metric one or two
_MOST_READ = 64  # ambiguous kernels whose arguments and surroundings are looked at
_NAMES = (
    (REDUCE_SCATTER, re.compile(r"reduce_?scatter")),
    (ALL_GATHER, re.compile(r"all_?gather")),
    (ALL_REDUCE, re.compile(r"all_?reduce|cross_device_reduce")),
    (ALL_TO_ALL, re.compile(r"all_?to_?all")),
    (BROADCAST, re.compile(r"broadcast")),
)
_BARRIER = r"^(c10d|nccl|mpi|ucc)::?(monitored_)?barrier\b|distributed_c10d\.py\(\d+\): (monitored_)?barrier$"
_BETWEEN_TWO = re.compile(r"(^|[:_])(i?send|i?recv|batch_isend_irecv)([ _]|$)")

Kinds = npt.NDArray[np.str_]


def kinds_of(facts: Facts, comm: I32) -> Kinds:
    """str[k]: the kind of each collective; the kernel that both all-to-all and send use is told by what called it.

    Kernels whose name leaves the kind open are taken for one kind within a program: the one that takes most of the
    time of a sample of them.
    """
    names = facts.trace.slices.name_id[comm]
    out = np.full(len(comm), OTHER, dtype="<U16")
    for name_id in distinct(names):
        kind = _kind_of_name(facts.trace.strings[int(name_id)])
        if kind is not None:
            out[names == name_id] = kind
    open_ids = comm[out == OTHER]
    if len(open_ids):
        out[out == OTHER] = _most(facts, open_ids[:: max(len(open_ids) // _MOST_READ, 1)][:_MOST_READ])
    return out


def barriers(facts: Facts, comm: I32) -> Bool:
    """bool[k]: which collectives only let ranks wait for one another, by what called them."""
    calls = facts.matching(_BARRIER, SliceKind.RANGE, SliceKind.CPU_OP, SliceKind.PYTHON)
    launch = facts.trace.links.launch_of[comm]
    found: Bool = launch >= 0
    if not len(calls):
        return found & False
    at = np.maximum(launch, 0)
    return found & (facts.inside(at, calls) | facts.within_ranges(at, calls))


def main_kind(kinds: Kinds, took_ns: I64) -> str:
    """Return the kind that takes most of this time."""
    return str(max(sorted(set(kinds.tolist())), key=lambda kind: int(took_ns[kinds == kind].sum())))


def marked(facts: Facts, pattern: str) -> bool:
    """Whether the steps hold a range or operator of `DDP` or `FSDP`."""
    return bool(len(facts.matching(pattern, SliceKind.RANGE, SliceKind.CPU_OP, SliceKind.PYTHON)))


def with_gradients(facts: Facts, comm: I32, kinds: Kinds) -> Bool:
    """bool[k]: reductions that are queued when the backward pass of their step has begun, so may carry gradients.

    All of one kind are the model's own (tensor parallelism) where a good part of them belongs to the forward pass and
    the program does not mark its data parallelism.
    """
    late = _late(facts, comm)
    reduces = (kinds == ALL_REDUCE) | (kinds == REDUCE_SCATTER)
    if not marked(facts, DDP) and not marked(facts, FSDP):
        for kind in (ALL_REDUCE, REDUCE_SCATTER):
            of_kind = kinds == kind
            if (of_kind & ~late).sum() > _IN_FORWARD * of_kind.sum():
                reduces &= ~of_kind
    found: Bool = late & reduces
    return found


def shards_weights(facts: Facts, comm: I32, kinds: Kinds) -> bool:
    """Whether each layer's weights are gathered before they are used: FSDP, or another program of that shape.

    Such a one gathers in the forward pass, and scatters its reduced gradients in the backward pass alone; tensor
    parallelism scatters in both, and a sharded optimizer gathers after it.
    """
    if marked(facts, FSDP):
        return True
    late = _late(facts, comm)
    gathers, scatters = kinds == ALL_GATHER, kinds == REDUCE_SCATTER
    if not scatters.any() or (gathers & ~late).sum() <= _IN_FORWARD * gathers.sum():
        return False
    return bool((scatters & ~late).sum() <= _IN_FORWARD * scatters.sum())


def _late(facts: Facts, comm: I32) -> Bool:
    """bool[k]: collectives that are queued when the backward pass of their step has begun; none without one."""
    nodes = facts.matching(_BACKWARD, SliceKind.CPU_OP)
    trace, step_of = facts.trace, facts.figures.step_of
    launch = trace.links.launch_of[comm]
    queued = trace.slices.start_ns[np.where(launch >= 0, launch, comm)]
    begun = np.full(len(facts.figures.steps) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begun, step_of[nodes], trace.slices.start_ns[nodes])  # the last entry is for what is in no step
    late: Bool = queued >= begun[step_of[comm]]
    return late


def _kind_of_name(name: str) -> str | None:
    lower = name.lower()
    return next((kind for kind, pattern in _NAMES if pattern.search(lower)), None)


def _most(facts: Facts, sample: I32) -> str:
    kinds = np.asarray([_told(facts, int(kernel)) for kernel in sample])
    return main_kind(kinds, facts.trace.slices.dur_ns[sample])


def _told(facts: Facts, kernel: int) -> str:
    """Kind of one kernel by its arguments, else by the innermost range or operator around its launch that says it."""
    names = [str(facts.args(kernel).get("Collective name", ""))]
    launch = int(facts.trace.links.launch_of[kernel])
    if launch >= 0:
        around = [*facts.ranges_around(launch), *facts.ancestors(launch)]
        names += [facts.trace.name(i) for i in around]
    for name in names:
        kind = _kind_of_name(name)
        if kind is None and _BETWEEN_TWO.search(name.lower()):
            kind = POINT_TO_POINT
        if kind is not None:
            return kind
    return OTHER
