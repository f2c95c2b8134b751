"""The batch is made in the training process itself: ``num_workers=0``.

What it finds
-------------
``enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`` that takes more than the given share of the step while
the GPU has nothing to do.

Why it costs time
-----------------
Reading, decoding and collating run between two steps, on the same CPU thread that launches the GPU's work. The GPU
waits for all of it.

Blind spots
-----------
For tiny data sets that are in memory already, workers cost more than they save. Loader time during which the GPU is
still busy costs nothing and is not counted. How many cores are free is not in the trace: on a machine that computes on
the CPU the saving is an upper bound, and the text says so.

How to fix
----------
``num_workers`` of about the number of free CPU cores, ``persistent_workers=True``, ``pin_memory=True``.

Sources
-------
torch-tb-profiler's data loader advice (5 % of the step); PyTorch performance tuning guide 'Enable asynchronous data
loading'; PyTorch's former pattern matcher (SynchronizedDataLoader).
"""

from __future__ import annotations

import re
from dataclasses import replace

from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.loader import (
    loader_calls,
    loader_finding,
    where_loader_is_made,
    with_idle,
    worker_call,
    workers_factor,
)
from core.rule_tools.machine import CORES, cores_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import LOADER, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="loader-without-workers",
    title="The data loader has no worker processes",
    needs=Needs.STEPS,
    params=(
        Param("min_batch_us", 300, "us per batch", "handing a batch over from a worker takes about as long"),
        Param("min_share", 0.05, "share of the step", "the threshold of torch-tb-profiler, long in use"),
        Param("workers", 4, "processes", "a number that most machines have cores for; the saving is worked out for it"),
    ),
)
_TITLE_ON_GPU = "The data loader has no workers: {share_pct:.0f} % of the CPU's step"  # the device waits in less of it
_ON_GPU = (
    "The data loader works in the training process itself and takes {share_pct:.0f} % of the CPU's step. "
    "Each batch is read and put together by the thread that also starts the GPU's work: {wait_ms:time} per step "
    "({count} {count|batch|batches} in {steps} {steps|step|steps}, {each_ms:time} for each). Worker processes prepare "
    "the next batches while the GPU computes this one. The saving assumes {workers:.0f} {workers|worker|workers} that "
    "do not slow each other down."
)
_ON_CPU = (
    "The data loader works in the training process itself and takes {share_pct:.0f} % of the step. "
    "Each batch is read and put together by the thread that also runs the training: {wait_ms:time} per step ({count} "
    "{count|batch|batches} in {steps} {steps|step|steps}, {each_ms:time} for each). Worker processes prepare the next "
    "batches beside it. The saving is an upper bound: "
    "it assumes "
    "{workers:.0f} {workers|worker|workers} on cores that are free. How many are free is not in the trace; where the "
    "training itself "
    "uses all of them, the workers take time from it."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the loader once."""
    facts = facts_of(ctx)
    with_gpu = facts.trace.has_device_work
    need(loader_calls(facts), LOADER)
    found = loader_finding(facts, "_SingleProcessDataLoaderIter", ctx.params["min_share"])
    if found is None or found.values()["each_ms"] * 1e3 < ctx.params["min_batch_us"]:
        return []
    cores = cores_of(ctx.trace)
    workers = max(min(ctx.params["workers"], cores or ctx.params["workers"]), 1.0)
    factor = workers_factor(found, 1.0 / workers)
    made = suggestion(
        ctx,
        RULE.id,
        _TITLE_ON_GPU if with_gpu else "The data loader has no workers: {share_pct:.0f} % of the step",
        _ON_GPU if with_gpu else _ON_CPU,
        _fix(ctx, facts, found.slices[0], round(workers)),
        [
            evidence(facts, "Batches fetched", len(found.slices), "", found.slices),
            evidence(facts, "Time in the loader per step", found.per_step_ns / 1e6, "ms", found.slices),
        ],
        values=found.values() | {"workers": workers} | ({"cores": cores} if cores else {}),
        anchors=found.slices,
        effects=[Effect(EffectKind.SCALE_HOST, found.effect_slices, factor)],
    )
    made = replace(made, more=(*made.more, CORES)) if cores else made
    return [where_loader_is_made(ctx, with_idle(facts, found, made))]


def _fix(ctx: RuleContext, facts: Facts, call: int, workers: int) -> Fix:
    """The fix for who makes the loader: the program, or a library in its place."""
    stack = "\n".join(ctx.source.stack(call))
    risk = (
        "Each worker holds a copy of the data set object; the script needs an `if __name__ == '__main__':` guard on "
        "Windows and macOS."
    )
    if re.search(r"^transformers[/\\]pipelines[/\\]", stack, re.MULTILINE):
        return Fix(
            "Let worker processes of the pipeline prepare the batches.",
            "for result in pipe(images):",
            f"for result in pipe(images, num_workers={workers}):      # images: a data set or a list",
            "https://huggingface.co/docs/transformers/main_classes/pipelines",
            risk,
        )
    if re.search(r"^transformers[/\\]trainer\.py", stack, re.MULTILINE):
        return Fix(
            "Let worker processes of the Trainer prepare the batches.",
            "args = TrainingArguments(out)",
            f"args = TrainingArguments(out, dataloader_num_workers={workers}, dataloader_persistent_workers=True)",
            "https://huggingface.co/docs/transformers/main_classes/trainer",
            risk,
        )
    return Fix(
        "Let worker processes prepare the batches.",
        "loader = DataLoader(data, batch_size=32)",
        worker_call(workers, pinned=not facts.on_cpu),
        "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk,
    )
