"""Text is generated without a cache: all tokens so far go through the model again for each new one.

What it finds
-------------
Attention whose queries are as many as its keys, and grow by one from call to call, several times over, with an
``aten::cat`` in between, in a program without a backward pass.

Why it costs time
-----------------
Keys and values of the tokens before do not change. Computed anew for each token, n tokens take about n * n / 2 rounds
of one token instead of n.

Blind spots
-----------
Needs shapes, and looks at the first calls only. Attention that is written out is known by its softmax over a square.
How long a round of one token takes is not in the trace, so no saving is promised.

How to fix
----------
Keep the keys and values, and give the model the new token alone; transformers does so with ``use_cache=True``.

Sources
-------
The documentation of transformers on caches; gpt-fast.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="generation-without-cache",
    title="Text is generated without a cache",
    severity_floor="medium",
    needs=Needs.OPS | Needs.SHAPES,
    params=(
        Param("min_rounds", 4, "lengths in a row", "fewer can be batches that happen to be so long"),
        Param("look_at", 2000, "operators", "arguments are read from the file"),
    ),
)
_FIX = Fix(
    "Keep the keys and values of the tokens before, and give the model the new token alone.",
    "for _ in range(n):\n    logits = model(ids)\n    ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)",
    "out = model(ids, use_cache=True)\nfor _ in range(n):\n    token = out.logits[:, -1:].argmax(-1)\n"
    "    out = model(token, past_key_values=out.past_key_values, use_cache=True)\n"
    "# transformers: model.generate(ids, use_cache=True)",
    "https://huggingface.co/docs/transformers/kv_cache",
    "The cache takes memory, and a model of your own has to accept one.",
)
_QUERIES_AND_KEYS = ("aten::scaled_dot_product_attention", "aten::_native_multi_head_attention")
_SQUARES = ("aten::softmax", "aten::_softmax", "aten::_masked_softmax")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    calls = facts.ops(*_QUERIES_AND_KEYS, *_SQUARES)
    need(calls, "the trace holds no attention.")
    calls = calls[~facts.inside(calls, calls)][: int(ctx.params["look_at"])]
    facts.read_args(calls)
    if len(facts.matching(r"^autograd::engine::evaluate_function", SliceKind.CPU_OP)):
        return []  # training on batches of so many lengths
    found = _grown(facts, calls.tolist(), int(ctx.params["min_rounds"]))
    out = []
    for ids in group_by_frame(ctx, facts, sorted(found)).values():
        lengths = [found[i] for i in ids]
        made = suggestion(
            ctx,
            RULE.id,
            "Tokens computed again for each new one: {shortest} to {longest} long",
            "{count} {count|call|calls} of attention have as many queries as keys, and one more of both from "
            "round to round, from {shortest} to {longest}: all tokens so far go through the model for each new "
            "one. With their keys and values kept, a round takes the new token alone. How long that takes is not in "
            "this trace.",
            _FIX,
            [
                evidence(facts, "Calls of attention that grow", len(ids), "", ids),
                evidence(facts, "Their CPU time", total_ns(facts, ids) / 1e6, "ms", ids),
            ],
            values={"count": len(ids), "shortest": min(lengths), "longest": max(lengths)},
            anchors=ids,
        )
        out.append(replace(made, source=ctx.source.of_loop(ids[0], ids[-1]) or made.source))
    return out


def _grown(facts: Facts, calls: list[int], min_rounds: int) -> dict[int, int]:
    """Calls on squares whose side grows by one, round after round in the order of time, with that side."""
    joins = facts.trace.slices.start_ns[facts.ops("aten::cat")]
    starts = facts.trace.slices.start_ns
    seen: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)  # other sizes -> calls with their sides
    for op in calls:
        side, others = _square(facts, op)
        if side > 1:
            seen[others].append((op, side))
    found: dict[int, int] = {}
    for members in seen.values():
        run: list[tuple[int, int]] = []
        for op, side in [*members, (-1, -1)]:
            grows = bool(run) and side == run[-1][1] + 1
            joined = grows and joins.searchsorted(starts[op]) > joins.searchsorted(starts[run[-1][0]])
            if run and side != run[-1][1] and not joined:
                if run[-1][1] - run[0][1] + 1 >= min_rounds:
                    found |= dict(run)
                run = []
            run.append((op, side))
    return found


def _square(facts: Facts, op: int) -> tuple[int, tuple[int, ...]]:
    """Tokens that attend to as many, and the other sizes; 0 where the numbers of queries and keys differ."""
    dims = facts.dims(op)
    if facts.trace.name(op) in _QUERIES_AND_KEYS:
        if len(dims) < 2 or len(dims[0]) < 3 or len(dims[1]) < 3 or dims[0][-2] != dims[1][-2]:
            return 0, ()
        return dims[0][-2], (*dims[0][:-2], dims[0][-1])
    if not dims or len(dims[0]) < 3 or dims[0][-1] != dims[0][-2]:
        return 0, ()
    return dims[0][-1], tuple(dims[0][:-2])
