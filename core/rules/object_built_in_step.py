"""Modules, losses or transforms are built in the step.

What it finds
-------------
Python frames named ``__init__`` of files under ``torch/nn/modules/`` or ``torchvision/transforms/`` inside at least
two counted steps.

Why it costs time
-----------------
Building a module runs much Python code, creates and initialises its parameters, and may copy them to the GPU.

Blind spots
-----------
Without stacks it cannot be seen. Outputs and data classes (``ModelOutput``) are built in every step by design and are
not counted. It costs time only where the CPU is the limit.

How to fix
----------
Build it once in ``__init__`` and call it in ``forward``.

Sources
-------
the reference article on a loss function with seven faults (#5).
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import MOST_PLACES, evidence, group_by_frame, suggestion, total_ns
from core.source_frames import is_user_frame
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="object-built-in-step",
    title="Objects are built in the step",
    needs=Needs.STACKS | Needs.STEPS,
    params=(Param("min_steps", 2, "steps", "once is lazy initialisation"),),
)
_FILES = re.compile(r"torch[/\\]nn[/\\]modules[/\\]|torchvision[/\\]transforms[/\\]|torch[/\\]optim[/\\]")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    inits = facts.in_steps(facts.where(_is_init, SliceKind.PYTHON))
    inits = inits[~facts.inside(inits, inits)]  # the outermost of a chain of super().__init__
    inits = np.unique([i for i in (_of_users(facts, int(init)) for init in inits) if i >= 0]).astype(np.int32)
    if not len(inits):
        return []
    out = []
    for ids in group_by_frame(ctx, facts, [int(i) for i in inits]).values():
        if len(np.unique(facts.figures.step_of[ids])) < min(ctx.params["min_steps"], max(facts.n_steps, 1)):
            continue
        took = total_ns(facts, ids)
        made = suggestion(
            ctx,
            RULE.id,
            "An object is built anew in every step: {what}",
            "Its constructor ran {count} {count|time|times} in {steps} {steps|step|steps} and took {took_ms:time} "
            "of CPU "
            "time. Built once and "
            "kept, it would cost nothing.",
            Fix(
                "Build it once, in __init__.",
                "def forward(self, input, target):\n    nll = torch.nn.NLLLoss(self.weight)\n"
                "    return nll(log_softmax(input), target)",
                "def __init__(self):\n    super().__init__()\n    self.nll = torch.nn.NLLLoss(weight)\n\n"
                "def forward(self, input, target):\n    return self.nll(log_softmax(input), target)",
                "https://pytorch.org/docs/stable/notes/modules.html",
                "A module kept as an attribute becomes part of the state_dict when it has parameters or buffers.",
            ),
            [
                evidence(facts, "Constructors", len(ids), "", ids),
                evidence(facts, "CPU time in them", took / 1e6, "ms", ids),
            ],
            values={
                "what": _shown(ctx, ids),
                "count": len(ids),
                "steps": len(np.unique(facts.figures.step_of[ids])),
                "took_ms": took / 1e6,
            },
            anchors=ids,
            at=-1,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(ids))],
        )
        # a constructor of the user's own is not the place: its call is
        out.append(replace(made, source=ctx.source.of_slices(ids[:MOST_PLACES], "construct", is_call=True)))
    return out


def _shown(ctx: RuleContext, ids: list[int]) -> str:
    """What was built, each once: ``nn.LayerNorm``, or its constructor's place, ``normalization.py(188)``."""
    first: dict[str, int] = {}
    for one in ids:
        first.setdefault(ctx.trace.name(one), one)
    names = [
        (ctx.source.built_class(one) if at < MOST_PLACES else "") or _place(name)
        for at, (name, one) in enumerate(first.items())
    ]
    short = list(dict.fromkeys(names))
    return ", ".join(short[:2]) + (f" and {len(short) - 2} more" if len(short) > 2 else "")


def _place(name: str) -> str:
    return name.rsplit("/", 1)[-1].replace(": __init__", "")


def _is_init(name: str) -> bool:
    place, _, function = name.rpartition("): ")
    return function == "__init__" and _FILES.search(place) is not None


def _of_users(facts: Facts, init: int) -> int:
    """The constructor as the user's code calls it: of the user's own class where it is made in one, -1 of a library's.

    What a library builds for itself in its own calls is not the user's to move.
    """
    at = init
    while (above := _caller(facts, at)) >= 0 and is_user_frame(facts.trace.name(above)):
        if not facts.trace.name(above).endswith(": __init__"):
            return at
        at = above
    return -1


def _caller(facts: Facts, frame: int) -> int:
    """Python slice that called this one, built-in functions left out; -1 for none."""
    parent = facts.trace.slices.parent_id
    at = int(parent[frame])
    while at >= 0 and facts.trace.name(at).startswith("<built-in"):
        at = int(parent[at])
    return at
