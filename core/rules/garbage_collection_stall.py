"""Python's garbage collector stops the training thread.

What it finds
-------------
Slices of the garbage collector (``Python GC``) inside counted steps that take at least the given time.

Why it costs time
-----------------
While the collector runs, no work is launched.

Blind spots
-----------
They are only recorded with stacks and the option ``record_python_gc_info``. The profiler's own objects make the
collector run more often.

How to fix
----------
``gc.freeze()`` after warm-up; or collect by hand every N steps.

Sources
-------
MindStudio's garbage collector advice (1 ms); practice of large training code bases.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="garbage-collection-stall",
    title="The garbage collector stops the step",
    params=(Param("min_ms", 1, "ms", "a shorter pause is not felt"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all pauses together."""
    facts = facts_of(ctx)
    every = facts.of_kind(SliceKind.GC)
    if not len(every):
        raise NotChecked(
            "No pauses of the garbage collector were recorded. Record with with_stack=True and "
            "experimental_config=torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)."
        )
    pauses = facts.in_steps(every)
    pauses = pauses[ctx.trace.slices.dur_ns[pauses] >= ctx.params["min_ms"] * 1e6]
    if not len(pauses):
        return []
    took = total_ns(facts, pauses)
    return [
        suggestion(
            ctx,
            RULE.id,
            "The garbage collector stops the step for {took_ms:time}",
            "{count} {count|time|times} the collector went through all objects of the program, and nothing was "
            "launched meanwhile.",
            Fix(
                "Let it run when it does not hurt.",
                "for step, batch in enumerate(loader):\n    train(batch)",
                "gc.collect(); gc.freeze(); gc.disable()      # after warm-up\n"
                "for step, batch in enumerate(loader):\n"
                "    train(batch)\n"
                "    if step % 500 == 0:\n"
                "        gc.collect()",
                "https://docs.python.org/3/library/gc.html",
                "Cycles of objects that hold tensors keep their memory until the next collection.",
            ),
            [
                evidence(facts, "Pauses", len(pauses), "", pauses),
                evidence(facts, "Their time", took / 1e6, "ms", pauses),
            ],
            values={"took_ms": took / 1e6, "count": len(pauses)},
            anchors=pauses,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(int(p) for p in pauses))],
        )
    ]
