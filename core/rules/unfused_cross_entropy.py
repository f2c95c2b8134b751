"""``log_softmax`` and ``NLLLoss`` instead of ``CrossEntropyLoss``.

What it finds
-------------
``aten::log_softmax`` (or a hand-written log-softmax) followed by ``aten::nll_loss_nd`` with no
``aten::cross_entropy_loss`` around them.

Why it costs time
-----------------
Two calls instead of one; a few microseconds of the CPU.

Blind spots
-----------
The result is the same and the gain small: it is only worth it where the CPU is the limit.

How to fix
----------
``nn.CrossEntropyLoss``.

Sources
-------
the reference article on a loss function with seven faults (#6: 5.2 to 5.0 ms of CPU time).
"""

from __future__ import annotations

from core.rule_tools.backward import nodes_of_runs
from core.rule_tools.chains import CHAINS, find_chains
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="unfused-cross-entropy", title="Cross-entropy in two calls", needs=Needs.OPS)
_NEAR = 12  # operators between the two halves: more, and they do not belong together


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    inside = facts.ops("aten::cross_entropy_loss")
    nll = facts.in_steps(facts.ops("aten::nll_loss_nd", "aten::nll_loss2d"))
    nll = nll[~facts.inside(nll, inside)]
    if not len(nll):
        return []
    chains = [chain for chain in CHAINS if chain.what == "log-softmax"]
    hand = {ops[-1]: ops for chain in chains for ops in find_chains(facts, chain)}
    pairs: dict[int, list[int]] = {}
    for loss in (int(n) for n in nll):
        for before in facts.siblings_before(loss, _NEAR):
            if ctx.trace.name(before) == "aten::log_softmax":
                pairs[loss] = [before]
                break
            if before in hand:
                pairs[loss] = hand[before]
                break
    out = []
    for losses in group_by_frame(ctx, facts, pairs).values():
        ops = [op for loss in losses for op in (*pairs[loss], loss)]
        kernels = facts.device_below_all(ops)
        rest = [pairs[loss][1:] for loss in losses]
        saved = (*(op for ops in rest for op in ops), *nodes_of_runs(facts, rest))
        effect = Effect(EffectKind.REMOVE_WORK, saved) if saved else Effect(EffectKind.FUSE, tuple(losses), 1.0)
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "log_softmax and nll_loss can be one cross_entropy",
                "The two halves of a cross-entropy are called one by one, {count} {count|time|times}. One call does "
                "the same with "
                "fewer launches; expect little: both together take {took_ms:time} of CPU time here.",
                Fix(
                    "Use the combined loss.",
                    "loss = F.nll_loss(F.log_softmax(x, dim=1), target, weight=w)",
                    "loss = F.cross_entropy(x, target, weight=w)",
                    "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
                    "Remove the log_softmax wherever its result was used for something else, too.",
                ),
                [
                    evidence(facts, "Pairs", len(losses), "", losses),
                    evidence(facts, "CPU time of both", total_ns(facts, ops) / 1e6, "ms", ops),
                    *([evidence(facts, "Kernels", len(kernels), "", kernels)] if len(kernels) else []),
                ],
                values={"count": len(losses), "took_ms": total_ns(facts, ops) / 1e6},
                anchors=losses,
                effects=[effect] if saved or len(kernels) else [],
                informational=not saved and not len(kernels),  # on a CPU the built-in runs the same two operators
                hint="call:nll_loss,nll,NLLLoss,criterion",
            )
        )
    return out
