"""A tensor is grown by ``torch.cat``: all that it held is copied again for each new piece.

What it finds
-------------
Calls of ``aten::cat`` on two tensors, the first at least eight times as long as the second, where the lengths of the
first form a series: what one call made is what the next one makes longer. So grow caches of keys and values, by one
token at a time, and results that are collected in a loop.

Why it costs time
-----------------
Each call copies everything once more to add a little: n pieces cost about n * n / 2 copies of a piece. Besides, each
call needs memory for a whole copy, of a size that was never asked for before.

Blind spots
-----------
Needs shapes, and looks at the first calls only. The first tensor of a layer that adds features to its input (DenseNet)
grows as well: other dimensions than the first are counted where at most four elements are added. That the pieces are
needed in one tensor all along, is assumed only for caches.

How to fix
----------
Allocate once for the greatest length and write each piece in its place (``cache[:, :, t] = k``); transformers does that
with ``cache_implementation="static"``. Results that are needed only at the end: collect them in a list and join them
once.

Sources
-------
PyTorch performance tuning guide 'Preallocate memory in case of variable input length'; gpt-fast and the documentation
of transformers on static caches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, group_by_frame, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="tensor-grown-by-cat",
    title="A tensor is grown by torch.cat",
    needs=Needs.OPS | Needs.SHAPES,
    params=(
        Param("min_rounds", 4, "lengths in a row", "fewer can be layers that happen to fit"),
        Param("min_times", 8, "times the piece", "a shorter tensor is copied in no time"),
        Param("most_added", 4, "elements", "in other dimensions than the first, where features grow by layers"),
        Param("min_share", 0.02, "share of the time", "of these calls; below it there is nothing to gain"),
        Param("least_left", 0.05, "of the time", "writing a piece costs something, however short it is"),
        Param("look_at", 2000, "operators", "arguments are read from the file"),
    ),
)
_CACHE = Fix(
    "Allocate the cache once, for the greatest length, and write each token in its place.",
    "k = torch.cat([cache_k, k], dim=2)\nv = torch.cat([cache_v, v], dim=2)",
    "cache_k[:, :, t:t + 1] = k           # allocated once: torch.empty(batch, heads, longest, size)\n"
    "cache_v[:, :, t:t + 1] = v\nk, v = cache_k[:, :, :t + 1], cache_v[:, :, :t + 1]\n"
    '# transformers: model.generate(..., cache_implementation="static")',
    "https://huggingface.co/docs/transformers/kv_cache",
    "Memory for the greatest length is taken from the beginning.",
)
_COLLECTED = Fix(
    "Collect the pieces in a list and join them once, or write them into a tensor of the final size.",
    "out = torch.cat([out, piece])            # in a loop",
    "pieces.append(piece)                     # in the loop\nout = torch.cat(pieces)                  # once, after it",
    "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    "Only where the whole is not needed in each round.",
)
_Key = tuple[int, int, tuple[int, ...], int]  # rank, dimension that grows, the other sizes, by how much


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    facts.require_compute()
    calls = facts.in_steps(facts.ops("aten::cat"))
    calls = calls[~facts.inside(calls, calls)]
    need(calls, "the trace holds no `aten::cat`.")
    cost = _cost(facts, calls)
    whole = facts.window_ns if facts.on_cpu else facts.kernel_ns
    if cost.sum() < ctx.params["min_share"] * max(whole, 1):
        return []
    calls = calls[: int(ctx.params["look_at"])]
    facts.read_args(calls)
    found = _grown(ctx, facts, calls)
    out = []
    for ids in group_by_frame(ctx, facts, sorted(found)).values():
        if _cost(facts, np.asarray(ids, dtype=np.int32)).sum() >= ctx.params["min_share"] * max(whole, 1):
            out.append(_report(ctx, facts, {op: found[op] for op in ids}, whole))
    return out


def _cost(facts: Facts, ops: I32) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return facts.trace.slices.dur_ns[ops] if facts.on_cpu else facts.device_ns(ops, SliceKind.KERNEL)


def _grown(ctx: RuleContext, facts: Facts, calls: Iterable[int]) -> dict[int, tuple[_Key, int]]:
    """Calls that make a tensor longer which another call has made, with what grows and how long it was."""
    lengths: dict[_Key, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for op in calls:
        pair = _pair(facts, int(op))
        if pair is None:
            continue
        long, short = pair
        axes = [axis for axis in range(len(long)) if long[axis] != short[axis]]
        if len(axes) != 1 or long[axes[0]] < ctx.params["min_times"] * short[axes[0]]:
            continue
        axis, added = axes[0], short[axes[0]]
        if added < 1 or (axis and added > ctx.params["most_added"]):
            continue
        lengths[len(long), axis, (*long[:axis], *long[axis + 1 :]), added][long[axis]].append(int(op))
    found: dict[int, tuple[_Key, int]] = {}
    for key, by_length in lengths.items():
        for run in _runs(sorted(by_length), key[3]):
            if len(run) >= ctx.params["min_rounds"]:
                found |= {op: (key, length) for length in run for op in by_length[length]}
    return found


def _pair(facts: Facts, op: int) -> tuple[list[int], list[int]] | None:
    """Sizes of the two tensors that a call joins; None for any other number of them."""
    raw = facts.args(op).get("Input Dims")
    listed = raw[0] if isinstance(raw, list) and raw else None
    if not isinstance(listed, list) or len(listed) != 2 or not all(isinstance(d, list) and d for d in listed):
        return None
    long, short = ([int(n) for n in d if isinstance(n, int)] for d in listed)
    return (long, short) if len(long) == len(short) else None


def _runs(lengths: list[int], added: int) -> list[list[int]]:
    """Ascending lengths as the runs in which each is longer than the one before by what is added."""
    runs: list[list[int]] = []
    wanted = set(lengths)
    for first in lengths:
        if first - added in wanted:
            continue
        run = [first]
        while run[-1] + added in wanted:
            run.append(run[-1] + added)
        runs.append(run)
    return runs


def _report(ctx: RuleContext, facts: Facts, found: dict[int, tuple[_Key, int]], whole: int) -> Suggestion:
    ops = np.asarray(list(found), dtype=np.int32)
    cost = _cost(facts, ops)
    added = np.asarray([key[3] / (length + key[3]) for key, length in found.values()])
    left = max(float((added * cost).sum() / max(cost.sum(), 1)), ctx.params["least_left"])
    (rank, axis, _, _), _ = found[int(ops[np.argmax(cost)])]
    work = ops if facts.on_cpu else facts.device_below_all(ops)
    kind = EffectKind.SCALE_HOST if facts.on_cpu else EffectKind.SCALE_DEVICE
    lengths = [length for _, length in found.values()]
    return suggestion(
        ctx,
        RULE.id,
        "A cache is copied anew for each token: {share_pct:.0f} % of the time"
        if rank == 4 and axis
        else "A tensor is grown by `torch.cat`: {share_pct:.0f} % of the time",
        "{count} {count|call|calls} of `aten::cat` {count|copies|copy} all that a tensor holds, {shortest} to "
        "{longest} long, to add {added} {added|element|elements} to its dimension {axis}: {took_ms:time} in all. A "
        "tensor allocated once takes the new piece alone. The saving assumes that {left_pct:.0f} % of the time is "
        "left, by the share of what is new.",
        _CACHE if rank == 4 and axis else _COLLECTED,
        [
            evidence(facts, "Calls of aten::cat", len(ops), "", ops),
            evidence(facts, "Their time" if facts.on_cpu else "GPU time", int(cost.sum()) / 1e6, "ms", ops),
        ],
        values={
            "share_pct": 100.0 * float(cost.sum()) / max(whole, 1),
            "count": len(ops),
            "shortest": min(lengths),
            "longest": max(lengths),
            "added": found[int(ops[np.argmax(cost)])][0][3],
            "axis": axis,
            "took_ms": int(cost.sum()) / 1e6,
            "left_pct": 100.0 * left,
        },
        anchors=ops,
        at=int(ops[np.argmax(cost)]),
        effects=[Effect(kind, tuple(work.tolist()), left, assumed=True)] if len(work) else [],
    )
