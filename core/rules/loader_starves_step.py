"""The worker processes do not keep up with the GPU.

What it finds
-------------
``enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`` that waits long in most steps while the GPU has
nothing to do.

Why it costs time
-----------------
The training process waits for the next batch of its workers, so the GPU runs out of work.

Blind spots
-----------
The first batch of an epoch takes long by nature (the workers start) and a single long wait is not reported, nor is a
step that holds nothing but the loader: it asked for the batch after the last one. Worker
processes are not in the trace: which transform is slow cannot be said from it. Nor is it how many cores are free: where
the CPU does the computing, the saving is an upper bound, and the text says so.

How to fix
----------
More workers or a larger ``prefetch_factor``; lighter transforms, or transforms on the GPU; data prepared beforehand.
Profile one worker by itself.

Sources
-------
torch-tb-profiler; MindStudio's dataloader advice; PyTorch performance tuning guide; measured on recorded traces.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.loader import (
    WITH_WORKERS,
    loader_calls,
    loader_finding,
    where_loader_is_made,
    with_idle,
    worker_call,
    workers_factor,
)
from core.rule_tools.machine import CORES, cores_of, workers_in_sources
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import LOADER, need
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="loader-starves-step",
    title="The data loader's workers do not keep up",
    needs=Needs.STEPS,
    params=(
        Param("min_share", 0.05, "share of the step", "below it, other faults matter more"),
        Param("min_steps", 0.5, "share of the steps", "where fewer wait, workers deliver in bursts or an epoch begins"),
        Param("min_late", 2, "steps", "that wait where most do not; a single one is a hiccup"),
        Param("more_workers", 2, "times as many", "the saving is worked out for twice the workers"),
    ),
)
_ON_GPU = (
    "The worker processes deliver batches more slowly than the GPU uses them up: in each step the training process "
    "waits {wait_ms:time} for them ({count} "
    "{count|batch|batches} in {steps} {steps|step|steps}, {each_ms:time} for each). Worker processes are not in this "
    "trace, so it cannot say which part of the loading is slow. The saving assumes {workers:.3g} times as many "
    "workers, "
    "which do not slow each other down."
)
_ON_CPU = (
    "The worker processes deliver batches more slowly than the training uses them up: in each step it waits "
    "{wait_ms:time} for them ({count} {count|batch|batches} in {steps} {steps|step|steps}, {each_ms:time} for each). "
    "Worker processes are not in this trace, so it cannot say which part of the loading is slow. The saving is an "
    "upper bound: it assumes {workers:.3g} times as many workers on cores that are free. How "
    "many are free is not in the trace; where the training itself uses all of them, more workers make it slower."
)
_FULL = (
    "The worker processes deliver batches more slowly than they are used up: in each step the training process waits "
    "{wait_ms:time} for them ({count} {count|batch|batches} in {steps} {steps|step|steps}, {each_ms:time} for each). "
    "The loader has {now} {now|worker|workers} and the machine of this run {cores} {cores|core|cores}: more workers "
    "would only take time from each other, so what is left to gain is in the loading itself, and unknown."
)
_FULL_FIX = Fix(
    "Give each batch less work: decode and resize once beforehand, or do the transforms on a whole batch.",
    risk="What is random in a transform must stay so for each sample.",
)
_BURSTS = (
    "Only {late} of {of_all} steps wait: the workers deliver several batches at about the same time, or an epoch "
    "begins there, which persistent_workers=True makes quicker."
)
_WORKERS = 2  # of the example in the fix


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the loader once."""
    facts = facts_of(ctx)
    with_gpu, times = facts.trace.has_device_work, ctx.params["more_workers"]
    need(loader_calls(facts), LOADER)
    need(loader_calls(facts, WITH_WORKERS), "the DataLoader has no workers.")
    found = loader_finding(facts, WITH_WORKERS, ctx.params["min_share"])
    if found is None:
        return []
    need(
        len(found.slices) > 1, "the steps hold a single batch, which may be the first of its epoch. Record more steps."
    )
    long = facts.trace.slices.dur_ns[list(found.slices)] >= ctx.params["min_share"] * found.step_ns
    late = len(distinct(facts.figures.step_of[np.asarray(found.slices)][long]))
    few = late < max(ctx.params["min_steps"] * facts.n_steps, 1)
    if few and late < ctx.params["min_late"]:
        return []
    # the workers now need one whole period per batch; with twice as many they need half of it
    cores, now = cores_of(ctx.trace), workers_in_sources(ctx.trace)
    most, full = _WORKERS * times, False
    if cores and now:
        times, most = max(min(times, cores / now), 1.0), min(now * times, cores)
        full = now >= cores
    elif cores:
        most = min(most, cores)
    factor = workers_factor(found, 1.0 / times, of_period=True)
    made = suggestion(
        ctx,
        RULE.id,
        "The step waits for the loader's workers {share_pct:.0f} % of its time",
        _FULL if full else _ON_GPU if with_gpu else _ON_CPU,
        _FULL_FIX
        if full
        else Fix(
            "Give the loader more workers, or each batch less work.",
            f"loader = DataLoader(data, batch_size=32, num_workers={now or max(int(most / times), 1)})",
            worker_call(most, pinned=not facts.on_cpu, more="prefetch_factor=4, "),
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            "More workers than free CPU cores slow each other down; each needs memory.",
        ),
        [
            evidence(facts, "Batches waited for", len(found.slices), "", found.slices),
            evidence(facts, "Wait per step", found.per_step_ns / 1e6, "ms", found.slices),
        ],
        values=found.values() | {"workers": times} | ({"cores": cores} if cores else {}) | {"now": now or 0},
        anchors=found.slices,
        effects=[] if full else [Effect(EffectKind.SCALE_HOST, found.effect_slices, factor)],
    )
    made = replace(made, more=(*made.more, CORES)) if cores and not full else made
    if few:
        shown = {"late": late, "of_all": facts.n_steps}
        made = replace(made, values={**made.values, **shown}, more=(*made.more, _BURSTS))
    made = with_idle(facts, found, made)
    return [made if full else where_loader_is_made(ctx, made)]
