"""A loss, activation or norm is written out by hand instead of using the built-in.

What it finds
-------------
Known chains of small operators at the same place: log-softmax (``exp``, ``sum``, ``log``, ``sub``; ``log`` of a
softmax), negative log-likelihood (``index`` or ``gather`` of log-probabilities, ``neg``, ``mean``; weighted, smoothed,
or with one-hot targets), softmax, GELU, layer norm; and no built-in of that name there.

Why it costs time
-----------------
Each operator of the chain is a launch of its own, and reads and writes memory again. The built-in does it in one or
two kernels, and is more careful with large numbers.

Blind spots
-----------
The operators' part of the backward pass is counted where the recording links the two; elsewhere the saving is too
small. Only known chains are matched, and the text says 'looks like': a wrong match would be worse than none. Where the
GPU is the limit a few launches save nothing: the replay says so.

How to fix
----------
Use the built-in of ``torch.nn.functional``.

Sources
-------
the reference article on a loss function with seven faults (#4); PyTorch performance tuning guide, 'Fuse operations'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.rule_tools.backward import nodes_of_runs, sums_of_gradients
from core.rule_tools.chains import CHAINS, Chain, find_chains
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="hand-written-composite-op", title="A built-in is written out by hand", needs=Needs.OPS)
_ON_GPU = (
    "{count} {count|time|times}, {per_time} small operators one after the other take {took_ms:time} of CPU time to "
    "launch "
    "{kernels} {kernels|kernel|kernels}, which run for {device_ms:time}. The built-in needs one or two launches."
)
_ON_CPU = (
    "{count} {count|time|times}, {per_time} small operators run one after the other, {took_ms:time} "
    "altogether; each reads and writes "
    "memory by itself. The built-in goes over the data once or twice."
)

_BACKWARD = "Their part of the backward pass takes {back_ms:time} of CPU time more, which goes with them."
_BACKWARD_PER_STEP = (
    "Their part of the backward pass takes {back_ms:time} of CPU time per step more, which goes with them."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each kind of chain at each place."""
    facts = facts_of(ctx)
    out: list[Suggestion] = []
    taken: set[int] = set()
    for chain in CHAINS:
        found = [ops for ops in find_chains(facts, chain) if taken.isdisjoint(ops)]
        taken.update(op for ops in found for op in ops)
        if ctx.trace.has_device_work:  # beside a GPU, chains on the CPU are small change
            found = [ops for ops in found if any(len(facts.device_below(op)) for op in ops)]
        places: dict[str, list[list[int]]] = {}
        for ops in found:
            frame = ctx.source.user_frame(ops[0])
            places.setdefault(ctx.trace.name(frame) if frame >= 0 else "", []).append(ops)
        out.extend(_report(ctx, facts, chain, members) for members in places.values())
    return out


def _report(ctx: RuleContext, facts: Facts, chain: Chain, members: list[list[int]]) -> Suggestion:
    ops = [op for one in members for op in one]
    kernels = facts.device_below_all(ops)
    host = total_ns(facts, ops)
    device = total_ns(facts, kernels) if len(kernels) else 0
    saved = [op for one in members for op in (*one[: chain.drops], *one[chain.keeps :])]
    nodes = nodes_of_runs(facts, (one[chain.keeps :] for one in members))
    if nodes:  # an input that is used twice has its gradients added up: with one operator in its place it is used once
        nodes += sums_of_gradients(facts, nodes_of_runs(facts, (one[: chain.keeps] for one in members)))
    made = suggestion(
        ctx,
        RULE.id,
        "Looks hand-written: {what}",
        _ON_GPU if len(kernels) else _ON_CPU,
        Fix(
            chain.summary,
            chain.before,
            chain.after,
            chain.url,
            chain.risk,
        ),
        [
            evidence(facts, "Operators of the chain", len(ops), "", ops),
            evidence(facts, "Their CPU time", host / 1e6, "ms", ops),
            *([evidence(facts, "Kernels", len(kernels), "", kernels)] if len(kernels) else []),
            *([evidence(facts, "Their part of the backward pass", len(nodes), "", nodes)] if nodes else []),
        ],
        values={
            "what": chain.what,
            "count": len(members),
            "per_time": len(members[0]),
            "took_ms": host / 1e6,
            "kernels": len(kernels),
            "device_ms": device / 1e6,
            "op_path": chain.what,
        },
        anchors=[one[0] for one in members],
        occurrences=len(members),
        effects=[Effect(EffectKind.REMOVE_WORK, (*saved, *nodes))],
        hint=chain.hint,
    )
    if not nodes:
        return made
    by_step = facts.n_steps > 1 and len(facts.in_steps(np.asarray(nodes, np.int32))) == len(nodes)
    back_ns = total_ns(facts, nodes)
    values = {**made.values, "back_ms": (facts.per_step(back_ns) if by_step else back_ns) / 1e6}
    return replace(made, values=values, more=(*made.more, _BACKWARD_PER_STEP if by_step else _BACKWARD))
