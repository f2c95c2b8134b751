"""A GPU tensor is indexed with a Python list or ``range``.

What it finds
-------------
A copy to the device below ``aten::index`` (or index_put), with ``aten::lift_fresh`` right before it: the index was
just made from Python numbers.

Why it costs time
-----------------
The list becomes a CPU tensor, number by number, and is copied to the GPU from pageable memory while the CPU waits.

Blind spots
-----------
The same picture comes from ``torch.tensor([...])`` written into the index; the cure is the same. Slices (``x[:n]``)
do not copy and are never reported.

How to fix
----------
Make the index on the GPU: ``torch.arange(n, device=...)``, or use ``gather``.

Sources
-------
the reference article on a loss function with seven faults (#3); sequence of operators checked on torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.rule_tools.facts import Facts
from core.rule_tools.host_index import index_copies
from core.rule_tools.report import SyncTexts, sync_suggestions
from core.rule_tools.sync_classes import Occurrence, made_from
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="host-list-index",
    title="A GPU tensor is indexed with a Python list",
    needs=Needs.WAITS,
)

TEXTS = SyncTexts(
    title="A GPU tensor is indexed with a Python list or range",
    why=(
        "Each time, Python's numbers are first made into a CPU tensor of {each_bytes:size} and then copied to the GPU, "
        "and the CPU waits for that copy."
    ),
    fix=Fix(
        summary="Make the index on the GPU.",
        before="nll = -pred[range(target.shape[0]), target]",
        after=(
            "rows = torch.arange(target.shape[0], device=target.device)\n"
            "nll = -pred[rows, target]\n"
            "# or\n"
            "nll = -pred.gather(1, target[:, None]).squeeze(1)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="None known: the values are the same.",
    ),
    effect=EffectKind.REMOVE_WORK,
    hint="host-index",
    on_op=False,
)


def _makers(facts: Facts, occurrence: Occurrence) -> Iterable[int]:
    """Ops that turn the list into a tensor go with the copy."""
    index = next((i for i in facts.path_ids(occurrence.calls[0]) if "index" in facts.trace.name(i)), occurrence.anchor)
    return made_from(facts, index)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS, extra_removed=_makers, target=index_copies)
