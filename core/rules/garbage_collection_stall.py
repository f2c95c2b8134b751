"""Python's garbage collector stops the training thread.

What it finds
-------------
Slices of the garbage collector (``Python GC``) inside counted steps that take at least the given time; with stacks,
calls of ``gc.collect()`` in the step as well.

Why it costs time
-----------------
While the collector runs, no work is launched.

Blind spots
-----------
Pauses that come of themselves are only recorded with stacks and the option ``record_python_gc_info``. The
profiler's own objects make the collector run more often.

How to fix
----------
``gc.freeze()`` after warm-up; or collect by hand every N steps.

Sources
-------
MindStudio's garbage collector advice (1 ms); practice of large training code bases.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="garbage-collection-stall",
    title="The garbage collector stops the step",
    params=(Param("min_ms", 1, "ms", "a shorter pause is not felt"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all pauses together."""
    facts = facts_of(ctx)
    dur = ctx.trace.slices.dur_ns
    every = facts.of_kind(SliceKind.GC)
    called = facts.in_steps(facts.named(("<built-in function collect>",), SliceKind.PYTHON))
    called = called[dur[called] >= ctx.params["min_ms"] * 1e6]
    pauses = facts.in_steps(every)
    pauses = pauses[dur[pauses] >= ctx.params["min_ms"] * 1e6]
    if len(called):
        return [_called(ctx, called), *([_paused(ctx, own)] if len(own := _of_itself(facts, pauses, called)) else [])]
    if not len(every):
        raise NotChecked(
            "No pauses of the garbage collector were recorded. Record with with_stack=True and "
            "experimental_config=torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)."
        )
    return [_paused(ctx, pauses)] if len(pauses) else []


def _of_itself(facts: Facts, pauses: I32, called: I32) -> I32:
    """Pauses that no call of ``gc.collect()`` asked for."""
    return pauses[~facts.within_ranges(pauses, called)]


def _called(ctx: RuleContext, calls: I32) -> Suggestion:
    facts = facts_of(ctx)
    took = total_ns(facts, calls)
    return suggestion(
        ctx,
        RULE.id,
        "gc.collect() stops each step for {step_ms:time}"
        if facts.n_steps
        else "gc.collect() stops the program for {step_ms:time}",
        "The program has the garbage collector go through all its objects in the step: {count} {count|call|calls} in "
        "{steps} {steps|step|steps}, {took_ms:time}. Nothing is launched meanwhile. It frees no memory that is still "
        "in use, and tensors without cycles are freed without it. The saving assumes that it stays in one step of 100.",
        Fix(
            "Collect rarely.",
            "for batch in loader:\n    train(batch)\n    gc.collect()",
            "for step, batch in enumerate(loader):\n    train(batch)\n    if step % 100 == 0:\n        gc.collect()",
            "https://docs.python.org/3/library/gc.html",
            "Cycles of objects that hold tensors keep their memory until the next collection.",
        ),
        [
            evidence(facts, "Calls of gc.collect()", len(calls), "", calls),
            evidence(facts, "Their time", took / 1e6, "ms", calls),
        ],
        values={
            "took_ms": took / 1e6,
            "step_ms": facts.per_step(took) / 1e6,
            "count": len(calls),
            "steps": max(len(facts.rows_of(calls)), 1),
        },
        anchors=calls,
        effects=[Effect(EffectKind.SCALE_HOST, tuple(calls.tolist()), 0.01)],
        hint="call:collect",
    )


def _paused(ctx: RuleContext, pauses: I32) -> Suggestion:
    facts = facts_of(ctx)
    took = total_ns(facts, pauses)
    return suggestion(
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
