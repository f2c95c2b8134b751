"""Data is copied on the GPU only to change its type or layout.

What it finds
-------------
Copies within the GPU under ``aten::_to_copy``, ``contiguous``, ``clone`` and ``cat`` that take a good part of the
time.

Why it costs time
-----------------
Each reads and writes everything once and computes nothing.

Blind spots
-----------
Which of these copies can go is not in the trace: the saving assumes the stated part of them. Those that autocast makes
and those into a part of a buffer, as a cache has it, are left out: they are there by design.

How to fix
----------
Keep one type through the model; avoid ``permute().contiguous()``; write into a buffer instead of ``cat``.

Sources
-------
TraceLens categories; MindStudio's advice on redundant casts.
"""

from __future__ import annotations

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import counted_kernels, evidence, parts_by_frame, suggestion, total_ns
from core.sets import among, distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32, Bool

RULE = Rule(
    id="dtype-ping-pong",
    title="Copies that only change type or layout",
    needs=Needs.DEVICE | Needs.OPS,
    params=(
        Param("min_share", 0.1, "share of the device work's time", "some such copies are in every program"),
        Param("left", 0.5, "of the time", "which copies can go is unknown; half is assumed"),
    ),
)
# Right before a copy into a part of a tensor, ``cache[:, at] = k``, that part is taken.
_PARTS = ("aten::slice", "aten::select", "aten::narrow")
_COPIES = ("aten::_to_copy", "aten::contiguous", "aten::clone", "aten::cat", "aten::copy_")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the copies at each place."""
    facts, trace = facts_of(ctx), ctx.trace
    ops = facts.in_steps(facts.ops(*_COPIES))
    ops = ops[~facts.inside(ops, ops)]
    ops = ops[~_by_autocast(facts, ops) & ~_into_a_buffer(facts, ops)]
    took_ns = facts.device_ns(ops, SliceKind.KERNEL)
    total = int(took_ns.sum())
    if total < ctx.params["min_share"] * max(total_ns(facts, facts.work), 1):
        return []
    out = []
    for ids in parts_by_frame(ctx, facts, ops[took_ns > 0]).values():
        if int(facts.device_ns(ids, SliceKind.KERNEL).sum()) < 0.2 * total:  # at most that
            continue
        work = counted_kernels(facts, facts.device_below_all(ids))
        took = total_ns(facts, work)
        if took < 0.2 * total:
            continue
        names = sorted(trace.strings[name] for name in distinct(trace.slices.name_id[ids]).tolist())
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "Copies that only change type or layout: {share_pct:.0f} % of GPU time",
                "{count} {count|operator|operators} ({names}) copy data within the GPU and compute nothing: "
                "{took_ms:time}"
                ". Not all of "
                "them can go; the saving assumes half.",
                Fix(
                    "Keep one type and one layout; write results where they are needed.",
                    "x = x.float().permute(0, 2, 1).contiguous().half()",
                    "x = x.transpose(1, 2)          # most operators take it as it is",
                    "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                    "Some operators are slower on data that is not contiguous.",
                ),
                [
                    evidence(facts, "Copying operators", len(ids), "", ids),
                    evidence(facts, "GPU time", took / 1e6, "ms", work),
                ],
                values={
                    "share_pct": 100 * took / max(total_ns(facts, facts.work), 1),
                    "count": len(ids),
                    "names": ", ".join(names),
                    "took_ms": took / 1e6,
                },
                anchors=ids,
                effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), ctx.params["left"])],
                hint="call:to,float,half,contiguous,clone,cat",
            )
        )
    return out


def _by_autocast(facts: Facts, ops: I32) -> Bool:
    """bool[k]: casts of arguments by autocast, which then calls the operator again, and those of their gradients."""
    slices, trace = facts.trace.slices, facts.trace
    every = facts.of_kind(SliceKind.CPU_OP)
    above = slices.parent_id[every]
    again = above.compress((above >= 0) & (slices.name_id[every] == slices.name_id[above]))
    parent = slices.parent_id[ops]
    above = np.where(slices.name_id[parent] == trace.strings.id_of("aten::to"), slices.parent_id[parent], parent)
    found: Bool = (parent >= 0) & (above >= 0) & among(above, again)
    if found.any():
        found |= facts.inside(ops, facts.matching(r"ToCopyBackward\d+$", SliceKind.CPU_OP))
    return found


def _into_a_buffer(facts: Facts, ops: I32) -> Bool:
    """bool[k]: which of these operators write into a part of a tensor that was taken right before."""
    slices, trace = facts.trace.slices, facts.trace
    every = facts.of_kind(SliceKind.CPU_OP)
    parts = facts.name_table(trace.strings.id_of(name) for name in _PARTS if trace.strings.id_of(name) >= 0)
    before = every[np.maximum(every.searchsorted(ops) - 1, 0)]
    for _ in range(2):  # from the last operator within the one before up to that
        inner = (slices.parent_id[before] != slices.parent_id[ops]) & (before >= 0)
        before = np.where(inner, slices.parent_id[before], before)
    found: Bool = (before >= 0) & (slices.name_id[ops] == trace.strings.id_of("aten::copy_"))
    found &= (slices.parent_id[before] == slices.parent_id[ops]) & parts[slices.name_id[before]]
    return found
