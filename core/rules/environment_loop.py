"""An environment is stepped in Python, once for each call of the model.

What it finds
-------------
A function ``step`` that runs no operator and is called at least eight times in a step, with operators between its
calls: the model says what to do, the environment (a game, a simulator) does it, and so on, one move at a time.

Why it costs time
-----------------
While the environment computes in Python the model has nothing to do, and each move costs a call of the model for a
batch of one. Several environments side by side need one call of the model for all of them, and worker processes step
them at the same time.

Blind spots
-----------
Environments are known by the name ``step``, so that one of another name is not seen, and Python code of another kind
that is called ``step`` is. Environments that compute with torch, on many worlds at once, are left alone. Recording
takes time for every Python call.

How to fix
----------
Step several environments together: ``gymnasium.vector.AsyncVectorEnv`` or the like, and give the model their
observations as one batch. A simulator that works on tensors needs neither.

Sources
-------
Gymnasium's documentation on vectorized environments; Petrenko et al., 'Sample Factory' (2020); inferred from recorded
programs.
"""

from __future__ import annotations

import numpy as np

from core import sets
from core.rule_tools.environments import rollout
from core.rule_tools.facts import facts_of
from core.rule_tools.host_functions import place_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="environment-loop",
    title="One environment is stepped at a time",
    needs=Needs.STEPS | Needs.OPS | Needs.STACKS,
    params=(
        Param("min_share", 0.1, "share of the step", "of the loop of moves; less is not worth another form of it"),
        Param("envs", 8, "environments", "stepped together; the model is called for all of them at once"),
        Param("workers", 4, "processes", "that step them at the same time"),
        Param("small_us", 300, "us", "a typical operator of more may take longer for a larger batch: it is not priced"),
    ),
)
_WHY = (
    "{place} is called {per_step:.0f} times per step, with {ops:.0f} {ops|operator|operators} between two calls: the "
    "environment waits for the model, and the model for the environment. The moves take {loop_ms:time} per step, "
    "{env_ms:time} of it in the environment. The saving assumes that {workers:.0f} processes step environments at the "
    "same time."
)
_WHY_BOTH = (
    "{place} is called {per_step:.0f} times per step, with {ops:.0f} {ops|operator|operators} between two calls: the "
    "environment waits for the model, and the model for the environment. The moves take {loop_ms:time} per step, "
    "{env_ms:time} of it in the environment. The saving assumes that {workers:.0f} processes step {envs:.0f} "
    "environments, and that the model takes as long for all of them as for one now."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the loop once."""
    facts = facts_of(ctx)
    found = rollout(facts)
    if found is None or found.loop_ns < ctx.params["min_share"] * facts.window_ns:
        return []
    dur = ctx.trace.slices.dur_ns
    small = sets.median(dur[found.ops]) <= 1e3 * ctx.params["small_us"]
    longest = int(found.calls[np.argmax(dur[found.calls])])
    place, _ = place_of(ctx.trace, longest)
    effects = [Effect(EffectKind.SCALE_HOST, tuple(found.calls.tolist()), 1.0 / ctx.params["workers"], assumed=True)]
    if small and len(found.between):
        factor = 1.0 / ctx.params["envs"]
        effects.append(Effect(EffectKind.SCALE_HOST, tuple(found.between.tolist()), factor, assumed=True))
    return [
        suggestion(
            ctx,
            RULE.id,
            "One environment is stepped at a time: {share_pct:.0f} % of the step",
            _WHY_BOTH if effects[1:] else _WHY,
            Fix(
                "Step several environments together, and give the model their observations as one batch.",
                "obs, _ = env.reset()\nfor t in range(steps):\n    action = policy(torch.as_tensor(obs)[None])\n"
                "    obs, reward, *done = env.step(action.item())",
                "envs = gymnasium.vector.AsyncVectorEnv([make_env] * 8)   # a process for each\n"
                "obs, _ = envs.reset()\nfor t in range(steps // 8):\n    action = policy(torch.as_tensor(obs))\n"
                "    obs, reward, *done = envs.step(action.cpu().numpy())",
                "https://gymnasium.farama.org/api/vector/",
                "Each environment needs a core and its own random numbers; episodes end at different times.",
            ),
            [
                evidence(facts, "Calls of the environment", len(found.calls), "", found.calls),
                evidence(facts, "Their time", found.calls_ns / 1e6, "ms", found.calls),
                evidence(facts, "Operators between them", len(found.ops), "", found.ops),
            ],
            values={
                "place": place,
                "per_step": len(found.calls) / max(found.n_steps, 1),
                "ops": max(round(len(found.ops) / len(found.calls)), 1),
                "loop_ms": facts.per_step(found.loop_ns) / 1e6,
                "env_ms": facts.per_step(found.calls_ns) / 1e6,
                "share_pct": 100.0 * found.loop_ns / max(facts.window_ns, 1),
                "envs": ctx.params["envs"],
                "workers": ctx.params["workers"],
            },
            anchors=found.calls,
            at=longest,
            effects=effects,
        )
    ]
