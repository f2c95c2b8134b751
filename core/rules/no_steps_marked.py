"""The recording marks no steps.

What it finds
-------------
No ``ProfilerStep#n`` slice in a trace that holds work, or a single one around several iterations of the optimizer. An
inference engine marks its own steps (vLLM: ``execute_...``): one alone is told, several stand in for marked ones.

Why it costs time
-----------------
It costs no time, but it hides where time goes: without steps there is no time per step, and start-up, evaluation and
checkpoints cannot be told from training.

Blind spots
-----------
Iterations worked out from optimizer or loader marks may stand in; they are called inferred. For inference or a single
call, steps may make no sense.

How to fix
----------
Call ``prof.step()`` at the end of each iteration and give the profiler a schedule.

Sources
-------
PyTorch profiler recipe; pytorch/kineto#774.
"""

from __future__ import annotations

from core.engine_steps import engine_steps
from core.figures.lookup import view_of
from core.figures.steps import infer_steps
from core.kinds import SliceKind
from core.own_run import no_steps_cure, no_steps_reason
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, NotChecked, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(id="no-steps-marked", title="No steps are marked")
_OTHER_MARKS = (
    "The profiler only knows where an iteration ends when the program calls prof.step(). This trace has "
    "{marked} marked {marked|step|steps}; {inferred} {inferred|iteration|iterations} could be worked out from "
    "other marks."
)
_ALL_IN_ONE = (
    "The profiler only knows where an iteration ends when the program calls prof.step(). The only step that is marked "
    "holds about {inside} iterations: whatever is said of a step here, times and savings, is of all of them together."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    marked = facts.of_kind(SliceKind.STEP)
    optimizer = facts.matching(r"^Optimizer\.step#", SliceKind.RANGE)
    inside = len(infer_steps(view_of(ctx.trace))) if len(marked) == 1 else 0  # as the notes on the recording count
    if len(marked) > 1 or (len(marked) == 1 and inside < 2):
        return []
    work = facts.of_kind(SliceKind.CPU_OP, SliceKind.KERNEL, SliceKind.RUNTIME)
    need(work, "the trace holds no operators, kernels or calls that steps could divide.")
    engine = engine_steps(ctx.trace)
    if len(engine) and not len(marked):
        return [_of_engine(ctx, engine)] if not len(ctx.figures.steps) else []
    if not len(marked) and not len(ctx.figures.steps) and (reason := no_steps_reason(ctx.trace)):
        raise NotChecked(f"{reason} {no_steps_cure(ctx.trace)}")
    shown = (
        optimizer if len(optimizer) else marked if len(marked) else work[(-ctx.trace.slices.dur_ns[work]).argsort()][:1]
    )
    title = "No steps are marked, so there is no time per step"
    steps = ctx.figures.steps
    inferred = int(steps.inferred.sum()) if len(steps) else 0
    if inferred:
        title = "No steps are marked; {inferred} were worked out from other marks"
    if len(marked):
        title = "One marked step holds about {inside} iterations, so there is no time per iteration"
    return [
        suggestion(
            ctx,
            RULE.id,
            title,
            _ALL_IN_ONE if len(marked) else _OTHER_MARKS,
            Fix(
                "Call prof.step() after each iteration.",
                "with torch.profiler.profile() as prof:\n    for batch in loader:\n        train(batch)",
                "schedule = torch.profiler.schedule(wait=1, warmup=2, active=3)\n"
                "with torch.profiler.profile(schedule=schedule) as prof:\n"
                "    for batch in loader:\n        train(batch)\n        prof.step()",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Marks found instead", len(shown), "", shown)],
            values={
                "marked": len(marked),
                "inside": inside,
                "inferred": inferred,
            },
            anchors=shown[:1],
            at=-1,
            informational=True,
        )
    ]


def _of_engine(ctx: RuleContext, engine: I32) -> Suggestion:
    """A server has no loop of the user's to mark: what helps is to record more of its steps."""
    return suggestion(
        ctx,
        RULE.id,
        "The recording holds one step of an inference engine",
        "All that was recorded lies in one step of the engine, {mark}, which took {took_ms:time}: every time and "
        "saving is of this step. Its steps differ (prompts are read in some and tokens made in others), so one of them "
        "does not say what is usual.",
        Fix(
            "Record several steps: profile while the engine works on more requests.",
            "llm.start_profile()\nllm.generate(prompts[:1])\nllm.stop_profile()",
            "llm.generate(prompts)                     # warm up\n"
            "llm.start_profile()\nllm.generate(prompts)\nllm.stop_profile()",
            "https://docs.vllm.ai/en/latest/contributing/profiling/",
        ),
        [evidence(facts_of(ctx), "The engine's step", len(engine), "", engine)],
        values={
            "mark": ctx.trace.name(int(engine[0]))[:60],
            "took_ms": int(ctx.trace.slices.dur_ns[engine[0]]) / 1e6,
        },
        anchors=engine[:1],
        at=-1,
        informational=True,
    )
