"""The file was damaged and has been repaired.

What it finds
-------------
Notes of the import about text that is no valid JSON, or about events that had to be left out.

Why it costs time
-----------------
What was left out is missing from every figure.

Blind spots
-----------
Which events matter is not known.

How to fix
----------
Record again with a newer torch, without quotes in ``record_function`` names.

Sources
-------
pytorch/pytorch#60187, #92988, #104841, #130622, #146900; pytorch/kineto#1459.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Rule, RuleContext, Suggestion

# What valid files hold, too: the report on the import tells of it, and no damage is to be repaired.
_SOUND = (
    "no-duration",
    "unfinished",
    "unmatched-end",
    "unnumbered-step",
    "counter-left-out",
    "file-left-out",
    "copy-left-out",
    "second-trace",
    "clocks-not-comparable",
    "rank-twice",
    "no-events",
    "no-usable-events",
)

RULE = Rule(id="invalid-json", title="The file was repaired", needs=Needs.NOTHING, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    notes = [n for n in trace.report.notes if n.severity in ("warning", "error") and n.count and n.code not in _SOUND]
    if not notes or not len(trace.slices):
        return []
    worst = max(notes, key=lambda n: (n.severity == "error", n.count))
    some = np.arange(min(len(trace.slices), 1))
    return [
        suggestion(
            ctx,
            RULE.id,
            "The file ends early: what came after is missing"
            if trace.report.is_cut_off
            else "The damaged file was repaired: {count} {count|event|events} concerned",
            "{title} {advice}",
            Fix("Record again, or live with the loss."),
            [evidence(facts, "What is left begins here", len(trace.slices), "slices", some)],
            values={
                "kinds": len(notes),
                "count": sum(n.count for n in notes),
                "title": worst.headline,
                "advice": worst.advice,
            },
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
