"""Two profilers ran at once.

What it finds
-------------
With stacks: frames that start a second profiler inside the recording.

Why it costs time
-----------------
The inner one takes the session over, and the outer recording ends early or empty.

Blind spots
-----------
Without stacks it cannot be seen; the messages of the program would tell.

How to fix
----------
Only one profiler: switch off the one of Lightning or of your own code.

Sources
-------
Lightning#20779; pytorch/pytorch#152617.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="two-profilers", title="Two profilers at once", needs=Needs.STACKS, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    starts = facts.matching(r"torch/profiler/profiler\.py\(\d+\): (__enter__|start)$", SliceKind.PYTHON)
    begin, end = trace.span_ns
    late = starts[trace.slices.start_ns[starts] > begin + (end - begin) // 20]
    late = late[~facts.inside(late, facts.matching(r"torch/profiler/profiler\.py\(\d+\): step$", SliceKind.PYTHON))]
    if not len(late):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "A second profiler is started inside this recording",
            "It takes over the recording: what follows may be missing here.",
            Fix(
                "Use one profiler at a time.",
                'trainer = Trainer(profiler="pytorch")',
                "trainer = Trainer(profiler=None)",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Starts of another profiler", len(late), "", late)],
            values={},
            anchors=late,
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
