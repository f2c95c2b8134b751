"""A model, or its weights, is copied as a new object in every step.

What it finds
-------------
``copy.deepcopy`` called by the user's code in at least two counted steps, with tensors among what it copies.

Why it costs time
-----------------
Each copy builds every module, hook and dictionary anew in Python, and needs memory for all weights once more; only the
copying of the numbers is of use.

Blind spots
-----------
Without stacks it cannot be seen. Copies without tensors (settings, lists) are left alone. A copy that is kept, one per
step, has to be a new one.

How to fix
----------
Make the copy once, and copy the values into it.

Sources
-------
PyTorch's documentation of ``torch.optim.swa_utils.AveragedModel`` and ``Module.load_state_dict``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.kinds import SliceKind, TrackKind
from core.rule_tools.copies import model_copies
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import MOST_PLACES, evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="model-copied-in-step",
    title="A model is copied in the step",
    needs=Needs.STACKS | Needs.STEPS,
    params=(
        Param("min_steps", 2, "steps", "once is a set-up"),
        Param("min_tensors", 2, "tensors", "one is a tensor's own copy, which clone() does as well"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    per_copy = model_copies(facts, int(ctx.params["min_tensors"]))
    out = []
    for ids in group_by_frame(ctx, facts, sorted(per_copy)).values():
        steps = len(np.unique(facts.figures.step_of[ids]))
        if steps < min(ctx.params["min_steps"], max(facts.n_steps, 1)):
            continue
        took, kept = total_ns(facts, ids), _in_operators_ns(facts, np.asarray(ids, dtype=np.int32))
        made = suggestion(
            ctx,
            RULE.id,
            "A model is copied {count} {count|time|times}, as a new object each time",
            "copy.deepcopy copied {tensors:.0f} tensors each time, in {steps} {steps|step|steps}: {took_ms:time}. "
            "Python builds all modules and dictionaries around them anew; the operators that copy the numbers take "
            "{left_pct:.0f} % of that. The saving assumes that these are left.",
            Fix(
                "Make the copy once, and copy the values into it.",
                "for x, y in loader:\n    ...\n    ema = copy.deepcopy(model)",
                "ema = copy.deepcopy(model)              # once\nfor x, y in loader:\n    ...\n"
                "    ema.load_state_dict(model.state_dict())\n"
                "# an average: torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))",
                "https://pytorch.org/docs/stable/optim.html",
                "The copy made before is overwritten: where several are kept, each needs memory of its own.",
            ),
            [
                evidence(facts, "Copies", len(ids), "", ids),
                evidence(facts, "CPU time in them", took / 1e6, "ms", ids),
            ],
            values={
                "count": len(ids),
                "steps": steps,
                "tensors": sum(per_copy[i] for i in ids) / len(ids),
                "took_ms": took / 1e6,
                "left_pct": 100.0 * kept / max(took, 1),
            },
            anchors=ids,
            at=-1,
            effects=[Effect(EffectKind.SCALE_HOST, tuple(ids), kept / max(took, 1), assumed=True)],
        )
        place = ctx.source.of_slices(ids[:MOST_PLACES], "call:deepcopy", is_call=True)
        out.append(replace(made, source=place))
    return out


def _in_operators_ns(facts: Facts, copies: I32) -> int:
    """Time of the outermost operators that run during some Python slices, ns."""
    trace, sl = facts.trace, facts.trace.slices
    total = 0
    for copy in copies.tolist():
        track = trace.track_of_thread(facts.thread_of(copy), TrackKind.CPU_OPS)
        if track < 0:
            continue
        first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        low, high = sl.start_ns[first:end].searchsorted([sl.start_ns[copy], trace.end_ns[copy]]) + first
        ops = np.arange(low, high)
        ops = ops[(sl.kind[ops] == int(SliceKind.CPU_OP)) & (sl.parent_id[ops] < low)]
        total += int(sl.dur_ns[ops].sum())
    return total
