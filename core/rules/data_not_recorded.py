"""Some things were not recorded, so some faults cannot be looked for.

What it finds
-------------
A recording without stacks, shapes or memory events.

Why it costs time
-----------------
It costs nothing; rules that need the missing data are shown as not checked, never as clean.

Blind spots
-----------
Recording everything slows the program: do it for the lines, not for the pace.

How to fix
----------
Record again with the options named.

Sources
-------
PyTorch profiler documentation.
"""

from __future__ import annotations

from core.call_stacks import has_call_stacks
from core.kinds import SliceKind
from core.own_run import lacking
from core.recorded import has_shapes
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, NotChecked, Rule, RuleContext, Suggestion

RULE = Rule(id="data-not-recorded", title="Not everything was recorded", needs=Needs.OPS, params=())
_WORDS = {"with_stack=True": "stacks", "record_shapes=True": "shapes", "profile_memory=True": "memory"}


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    missing = []
    if not len(facts.of_kind(SliceKind.PYTHON)) and not has_call_stacks(trace):
        missing.append("with_stack=True")
    lacks = lacking(trace)  # it was asked for: only a run that gets further helps
    if not has_shapes(trace) and "shapes" not in lacks:
        missing.append("record_shapes=True")
    if not len(trace.memory) and "memory" not in lacks:
        missing.append("profile_memory=True")
    ops = facts.of_kind(SliceKind.CPU_OP)
    if not missing and lacks:
        raise NotChecked(f"Chosen, but the script ended before it was recorded: {', '.join(lacks)}.")
    if not missing:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Not recorded: {what}",
            "Recorded without {missing}: some faults cannot be looked for. "
            "Rules that need the missing data say so and are not counted as clean. Without stacks, no suggestion "
            "can name a line of code."
            if "with_stack=True" in missing
            else "Recorded without {missing}: some faults cannot be looked for. "
            "Rules that need the missing data say so and are not counted as clean.",
            Fix(
                "Record again with these options.",
                "with profile() as prof:",
                "with profile(" + ", ".join(missing) + ") as prof:",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
                "Recording more slows the CPU: use it to find lines, not to measure the pace.",
            ),
            [evidence(facts, "Operators recorded", len(ops), "", ops[:1])],
            values={"what": ", ".join(_WORDS[option] for option in missing), "missing": ", ".join(missing)},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
