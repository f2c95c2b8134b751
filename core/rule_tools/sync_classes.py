"""Charges every sync point to exactly one rule, so that no wait is reported twice.

The most specific reading wins: who called (mixed-precision scaler, gradient clipping, optimizer, printing), then what
kind of call it is (allocation, explicit synchronisation), then what stands above it in the operator stack.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from core.kinds import CopyDirection, HostMemory, SliceKind, SyncKind
from core.rule_tools.facts import Facts
from core.rule_tools.loader import loader_calls
from core.suggestions import RuleContext

_DEVICE, _ALLOC = int(SyncKind.DEVICE), int(SyncKind.ALLOC)
_NO_WAY, _HTOD, _DTOH = int(CopyDirection.NONE), int(CopyDirection.HTOD), int(CopyDirection.DTOH)
SMALL_BYTES = 65536  # more than any table of constants in a loss, less than any batch worth pinning
MODULE_BYTES = 1 << 20  # a module keeps larger tables too, but no batch is moved inside a module

CREATORS = frozenset(
    """aten::lift_fresh aten::detach_ aten::full aten::zeros aten::ones aten::arange aten::tensor aten::scalar_tensor
    aten::rand aten::randn aten::eye aten::linspace aten::fill_ aten::zero_ aten::normal_ aten::uniform_ aten::full_like
    aten::zeros_like aten::ones_like""".split()  # noqa: SIM905
)
# Functions by which libraries and people move a whole batch: HF pipelines and Trainer, accelerate, Lightning, fastai.
_BATCH_MOVERS = re.compile(
    r": (_?ensure_tensor_on_device|_prepare_inputs?|_?(send|move|transfer|copy|put)_\w*to_(the_)?(gpu|cuda|device)|"
    r"batch_to_\w+|(transfer|move)_batch\w*|recursively_apply|to_device)$"
)
_COMPREHENSION = re.compile(r": <(dict|list|set)comp>$|: <genexpr>$")
_WRAPPERS = frozenset(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"))
_MOVES = frozenset(("aten::to", "aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::contiguous", "aten::clone"))
_INDEXING = frozenset(
    ("aten::index", "aten::_index_put_impl_", "aten::index_put_", "aten::index_put", "aten::_unsafe_index")
)
_SIZED = frozenset(("aten::nonzero", "aten::masked_select", "aten::argwhere", "aten::_masked_select"))
_NORMS = frozenset(("aten::_foreach_norm", "aten::linalg_vector_norm", "aten::norm", "aten::frobenius_norm"))
_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"


@dataclass(frozen=True)
class Occurrence:
    """One operation that blocks: its calls (a copy and the synchronisation after it), and how long."""

    rule_id: str
    rows: tuple[int, ...]  # rows of Figures.syncs
    calls: tuple[int, ...]  # slice ids of the blocking calls
    anchor: int  # outermost op around them, or the first call itself
    path: tuple[str, ...]  # op names, outermost first
    wait_ns: int
    start_ns: int
    copies: tuple[int, ...]  # their own copies on the device
    bytes: int  # of those copies, -1 unknown
    waited: tuple[int, ...]  # device work they waited for


def classify(ctx: RuleContext, facts: Facts) -> dict[str, list[Occurrence]]:
    """Map rule id -> its occurrences in time order; computed once per run of the rules."""
    held = facts.memo.get("sync classes")
    if held is None:
        held = facts.memo["sync classes"] = _classify(ctx, facts)
    return held  # type: ignore[no-any-return]


def _classify(ctx: RuleContext, facts: Facts) -> dict[str, list[Occurrence]]:
    syncs, trace = ctx.figures.syncs, ctx.trace
    by_place: dict[int, list[int]] = defaultdict(list)
    has_steps = bool(len(ctx.figures.steps))
    for row in range(len(syncs)):
        call = int(syncs.slice_id[row])
        step = int(syncs.step_id[row])
        if has_steps and (step < 0 or not facts.use_steps[step]):
            continue
        if _is_profilers_own(facts, row):
            continue
        op = int(syncs.op_id[row])
        # a copy and the synchronisation after it are one event when they share their innermost op
        inner = int(trace.links.op_of[call])
        key = inner if inner >= 0 else op if op >= 0 else -1 - call
        by_place[key].append(row)
    out: dict[str, list[Occurrence]] = defaultdict(list)
    for rows in by_place.values():
        found = _occurrence(ctx, facts, rows)
        if found is not None:
            out[found.rule_id].append(found)
    _settle_constants(facts, out)
    for items in out.values():
        items.sort(key=lambda o: o.start_ns)
    return dict(out)


def operators_of(facts: Facts, slice_id: int) -> list[int]:
    """Operators around a call, outermost first, without what only wraps them: autograd nodes, scripted functions."""
    ids = facts.path_ids(slice_id)
    for at, op in enumerate(ids):
        name = facts.trace.name(op)
        if "::" in name and not name.startswith(("autograd::", "torch::", "c10d::Reducer")):
            return ids[at:]
    return ids[-1:]


def _is_profilers_own(facts: Facts, row: int) -> bool:
    """A device synchronisation at the very end or start of a window is the profiler's."""
    syncs = facts.figures.syncs
    if syncs.kind[row] != _DEVICE or syncs.op_id[row] >= 0:
        return False
    call, step = int(syncs.slice_id[row]), int(syncs.step_id[row])
    steps = facts.figures.steps
    inside = step >= 0 and not steps.inferred[step] and facts.trace.end_ns[call] <= steps.end_ns[step]
    if inside and facts.n_steps > 1:
        return False  # inside one of several marked steps: they end before the profiler stops
    start = int(facts.trace.slices.start_ns[call])
    by = facts.trace.links.launched_by
    first = int(facts.trace.slices.start_ns[by].min()) if len(by) else -1
    return start >= facts.last_launch_ns or start <= first


def _occurrence(ctx: RuleContext, facts: Facts, rows: list[int]) -> Occurrence | None:
    syncs, trace = ctx.figures.syncs, ctx.trace
    calls = tuple(int(syncs.slice_id[r]) for r in rows)
    op = int(syncs.op_id[rows[0]])
    deepest = calls[0] if len(calls) == 1 else max(calls, key=lambda c: int(trace.slices.depth[c]))
    chain = operators_of(facts, deepest) or ([op] if op >= 0 else [])
    path = tuple(trace.name(i) for i in chain)
    copies = tuple(int(syncs.copy_id[r]) for r in rows if syncs.copy_id[r] >= 0)
    if not copies:
        copies = _own_copies(facts, rows, deepest)
    size = int(trace.slices.copy_bytes[copies[0]]) if copies else -1
    rule = _rule_of(ctx, facts, rows, calls, path, copies)
    if rule is None:
        return None
    return Occurrence(
        rule_id=rule,
        rows=tuple(rows),
        calls=calls,
        anchor=chain[0] if chain else calls[0],
        path=path,
        wait_ns=int(syncs.wait_ns[rows].sum()),
        start_ns=int(trace.slices.start_ns[calls[0]]),
        copies=copies,
        bytes=size,
        waited=tuple(int(syncs.waited_id[r]) for r in rows if syncs.waited_id[r] >= 0),
    )


def _own_copies(facts: Facts, rows: list[int], call: int) -> tuple[int, ...]:
    """Copies that a synchronisation waits for and that the same operator started (pinned ones do not block)."""
    trace, syncs = facts.trace, facts.figures.syncs
    waited = [int(syncs.waited_id[r]) for r in rows if syncs.waited_id[r] >= 0]
    own = int(trace.links.op_of[call])
    return tuple(
        w for w in waited if trace.slices.kind[w] == int(SliceKind.MEMCPY) and own >= 0 and trace.links.op_of[w] == own
    )


def _rule_of(
    ctx: RuleContext,
    facts: Facts,
    rows: list[int],
    calls: tuple[int, ...],
    path: tuple[str, ...],
    copies: tuple[int, ...],
) -> str | None:
    syncs, trace = ctx.figures.syncs, ctx.trace
    kinds = {int(syncs.kind[r]) for r in rows}
    names = [trace.name(c) for c in calls]
    if any("aten::pin_memory" in n or "aten::_pin_memory" in n for n in path):
        return "pinning-in-step"
    if kinds == {_ALLOC}:
        return "allocation-in-step"
    directions = {int(syncs.direction[r]) for r in rows} | {int(trace.slices.direction[c]) for c in copies}
    directions -= {_NO_WAY}
    to_host, to_device = _DTOH in directions, _HTOD in directions
    if not path and facts.launching_threads and facts.thread_of(calls[0]) not in facts.launching_threads:
        return None  # a watchdog or another thread that launches nothing: it holds nobody up
    if not path:
        return _without_op(names, to_host, to_device, copies, trace)
    caller = _caller(ctx, facts, rows[0], calls[0], path)
    if caller is not None:
        return caller
    above = set(path)
    if above & _SIZED:
        return "data-dependent-shape"
    if path[0] == "aten::is_nonzero":
        return "control-flow-on-device-tensor"
    if path[0] in _WRAPPERS:
        return "scalar-read-back"
    if any(n.endswith(("Memcpy", "Memcpy2D", "MemcpyToSymbol")) for n in names):
        return "synchronous-memcpy"
    if any(n.endswith("Memset") for n in names):
        return "synchronous-memset"
    if to_device and above & _INDEXING:
        return "host-list-index" if _has_fresh_list(facts, path, calls[0]) else "host-index-tensor"
    if path[0] in _MOVES and above <= _MOVES | {"aten::empty_strided", "aten::empty"}:
        return _move(facts, calls, to_host, to_device, copies, ctx.source.stack(calls[0]))
    return "op-reads-back"


def _without_op(names: list[str], to_host: bool, to_device: bool, copies: tuple[int, ...], trace: object) -> str | None:
    """Calls that stand under no operator: made by the program itself, or by a library outside torch."""
    text = names[0]
    if "EventSynchronize" in text:
        return "event-wait"
    if any("Memcpy" in n for n in names):
        return "synchronous-memcpy" if not any("Async" in n for n in names) else "op-reads-back"
    if "Memset" in text:
        return "synchronous-memset"
    return "explicit-synchronize"


def _caller(ctx: RuleContext, facts: Facts, row: int, call: int, path: tuple[str, ...]) -> str | None:
    """Who reads back: the scaler, gradient clipping, the optimizer, or a print. None for anybody else."""
    reads = path[0] in _WRAPPERS or "aten::_local_scalar_dense" in path
    if not (reads or _prints(facts)):
        return None
    stack = " ".join(ctx.source.stack(call)) if ctx.figures.syncs.frame_id[row] >= 0 else ""
    if "_tensor_str.py" in stack:
        return "tensor-read-back"  # all that printing does: it picks elements out and compares them as well
    if not reads:
        return None
    if _looks_for_anomalies(facts, call):
        return "debug-mode-left-on"
    if "amp/grad_scaler.py" in stack:
        return "grad-scaler-read-back"
    if "utils/clip_grad.py" in stack or "get_total_norm" in stack:
        return "grad-norm-read-back"
    ranges = [facts.trace.name(r) for r in facts.ranges_around(call)]
    if any(name.startswith("Optimizer.step#") for name in ranges):
        return "optimizer-read-back"
    if stack:
        return None
    before = _names_before(facts, call)
    if _UNSCALE in before:
        return "grad-scaler-read-back"
    norms = [n for n in before[:10] if n in _NORMS]
    if "aten::_foreach_norm" in norms or len(norms) >= 2:  # one norm alone can belong to anything
        return "grad-norm-read-back"
    return None


def _prints(facts: Facts) -> bool:
    """Whether a tensor is printed anywhere in the trace."""
    held = facts.memo.get("prints tensors")
    if held is None:
        held = facts.memo["prints tensors"] = any("_tensor_str.py" in n for n in facts.names_of(SliceKind.PYTHON))
    return bool(held)


def _looks_for_anomalies(facts: Facts, call: int) -> bool:
    """Autograd's anomaly detection: isnan, any and the read of it, right below a node of the backward pass."""
    read = next(iter(operators_of(facts, call)), -1)  # none where it stands outside its operator
    node = int(facts.trace.slices.parent_id[read]) if read >= 0 else -1
    if node < 0 or not facts.trace.name(node).startswith("autograd::engine::"):
        return False
    return any(facts.trace.name(i) == "aten::isnan" for i in facts.siblings_before(read, 3))


def _names_before(facts: Facts, call: int, limit: int = 24) -> list[str]:
    """Names of the outermost ops before a call on its thread, nearest first."""
    around = operators_of(facts, call)
    return [facts.trace.name(i) for i in facts.siblings_before(around[0], limit)] if around else []


def _has_fresh_list(facts: Facts, path: tuple[str, ...], call: int) -> bool:
    """Was a tensor made from Python data right before the indexing op?"""
    ids = operators_of(facts, call)
    if not ids:
        return False
    index = next((i for i in ids if facts.trace.name(i) in _INDEXING), ids[0])
    return any(facts.trace.name(i) in ("aten::lift_fresh", "aten::detach_") for i in facts.siblings_before(index, 6))


def _move(
    facts: Facts,
    calls: tuple[int, ...],
    to_host: bool,
    to_device: bool,
    copies: tuple[int, ...],
    stack: tuple[str, ...],
) -> str | None:
    """A tensor moved as such, not inside another op."""
    trace = facts.trace
    if to_host:
        return "tensor-read-back"
    if not to_device:
        return "op-reads-back"
    memory = {int(trace.slices.host_memory[c]) for c in copies}
    if int(HostMemory.PINNED) in memory:
        return "blocking-pinned-copy"
    size = int(trace.slices.copy_bytes[copies[0]]) if copies else -1
    around = operators_of(facts, calls[0])  # none where it stands outside its operator
    near = _frames_within_module(stack)  # by whom it is moved
    is_batch = any(_BATCH_MOVERS.search(name) for name in near)
    if 0 <= size <= SMALL_BYTES and around and not is_batch and made_from(facts, around[0]):
        return "constant-copied-each-step"
    in_module = len(near) < len(stack) and not is_batch and not any(_COMPREHENSION.search(name) for name in near)
    if 0 <= size <= MODULE_BYTES and in_module:
        return "constant-copied-each-step"  # moved inside a module's forward: perhaps something that it keeps
    if int(HostMemory.PAGEABLE) in memory:
        return "pageable-batch-copy"
    return "blocking-pinned-copy"  # ROCm does not say whether the memory was pinned, only that the call waited


def _frames_within_module(stack: tuple[str, ...]) -> tuple[str, ...]:
    """Frames of a stack, innermost first, up to the first module's; all of them where there is none."""
    at = next((at for at, name in enumerate(stack) if name.startswith("nn.Module: ")), len(stack))
    return stack[:at]


def made_from(facts: Facts, move: int) -> list[int]:
    """Ops right before a move that made its tensor on the CPU (empty when it came from elsewhere, as from a loader)."""
    kept: dict[int, list[int]] = facts.memo.setdefault("made from", {})
    if move not in kept:
        kept[move] = _made_from(facts, move)
    return kept[move]


def _made_from(facts: Facts, move: int) -> list[int]:
    out: list[int] = []
    own = _loader_call(facts, move)
    fresh = False
    for at in facts.siblings_before(move, 5):
        name = facts.trace.name(at)
        if _loader_call(facts, at) != own:
            break  # what a loader makes is its batch
        if name in CREATORS or _fills(facts, at):
            if len(facts.device_below(at)):
                break  # made on the device: it is not what was moved
            out.append(at)
            fresh = True
        elif name in ("aten::empty", "aten::to", "detach_") and not len(facts.device_below(at)):
            out.append(at)
        else:
            break
    return out if fresh or _is_legacy_constructor(facts, out) else []


def _loader_call(facts: Facts, slice_id: int) -> int:
    """The call of a data loader on the thread of a slice in which that starts, -1 outside."""
    held = facts.memo.get("has loader calls")
    if held is None:
        held = facts.memo["has loader calls"] = frozenset(loader_calls(facts).tolist())
    if not held:
        return -1
    return next((one for one in facts.ranges_around(slice_id) if one in held), -1)  # type: ignore[attr-defined]


def _is_legacy_constructor(facts: Facts, ids: list[int]) -> bool:
    """``torch.Tensor([...])`` of old torch: only ``aten::empty`` (and ``aten::to``) right before the move."""
    names = [facts.trace.name(i) for i in ids]
    return bool(names) and names[0] == "aten::to" and "aten::empty" in names


def _fills(facts: Facts, slice_id: int) -> bool:
    return any(facts.trace.name(int(c)) in CREATORS for c in facts.children(slice_id)[:4])


def _settle_constants(facts: Facts, out: dict[str, list[Occurrence]]) -> None:
    """A constant is copied again and again with the same size; what is copied once belongs to nobody."""
    items = out.pop("constant-copied-each-step", [])
    groups: dict[tuple[tuple[str, ...], int], list[Occurrence]] = defaultdict(list)
    for item in items:
        groups[(item.path, item.bytes)].append(item)
    kept: list[Occurrence] = []
    lost: list[Occurrence] = []
    for members in groups.values():
        steps = {int(s) for m in members for s in facts.figures.syncs.step_id[list(m.rows)]}
        again = len(steps) >= 2 or (facts.n_steps < 2 and len(members) >= 2)
        if again:
            kept.extend(members)
        else:
            lost.extend(members)
    if kept:
        out["constant-copied-each-step"] = kept
    for item in lost:  # copied, but not again and again: an ordinary copy, unless it is only a constant once made
        if item.bytes > SMALL_BYTES:
            out["blocking-pinned-copy" if facts.is_rocm else "pageable-batch-copy"].append(item)


def host_time_ns(facts: Facts, occurrence: Occurrence) -> int:
    """Time of the CPU inside the blocking calls of an occurrence, ns."""
    took = facts.trace.slices.dur_ns
    return sum(int(took[call]) for call in occurrence.calls)  # one or two: an array of them takes longer


def is_last_of_all(facts: Facts, occurrence: Occurrence) -> bool:
    """Nothing is launched after it: there is no later work that could start sooner."""
    last = facts.last_launch_ns
    start = facts.trace.slices.start_ns
    return last >= 0 and any(int(start[call]) >= last for call in occurrence.calls)


def runtime_calls(facts: Facts, *endings: str) -> np.ndarray:
    """int32[k]: host calls whose name ends with one of these."""
    return facts.where(lambda n: n.endswith(endings), SliceKind.RUNTIME, SliceKind.DRIVER)
