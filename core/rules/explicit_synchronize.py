"""The program waits for the whole GPU on purpose: ``torch.cuda.synchronize()``.

What it finds
-------------
``cudaDeviceSynchronize``, ``cudaStreamSynchronize`` or the HIP forms without any operator above them, inside a step
(or inside the window, without steps).

Why it costs time
-----------------
The CPU waits until the queue is empty; then the GPU waits until the CPU has queued new work.

Blind spots
-----------
The profiler synchronises by itself when its window begins and ends; those calls lie outside the steps, or before the
first or after the last launch, and are left out. Synchronising around a measurement is right, but events measure
without stopping.

How to fix
----------
Remove it. To measure time, use CUDA events and read them later.

Sources
-------
NVIDIA Nsight Systems expert rule 'CUDA Synchronization APIs'; PyTorch performance tuning guide.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="explicit-synchronize",
    title="The program synchronises with the GPU explicitly",
    needs=Needs.DEVICE | Needs.CALLS,
)

TEXTS = SyncTexts(
    title="The program waits for the GPU: `{call}`",
    why=(
        "`{call}` stops the CPU until the GPU is done. During that time it queues nothing, and afterwards the GPU "
        "starts with an empty queue. Results do not need this: work on one stream is in order anyhow."
    ),
    fix=Fix(
        summary="Remove the synchronisation from the step; measure with CUDA events.",
        before=(
            "torch.cuda.synchronize()\n"
            "t0 = time.time()\n"
            "out = model(x)\n"
            "torch.cuda.synchronize()\n"
            "print(time.time() - t0)"
        ),
        after=(
            "start = torch.cuda.Event(enable_timing=True)\n"
            "end = torch.cuda.Event(enable_timing=True)\n"
            "start.record()\n"
            "out = model(x)\n"
            "end.record()\n"
            "# read it later, for example once every 50 steps\n"
            "# end.synchronize(); print(start.elapsed_time(end))"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="Code that hands GPU memory to another library or process may rely on it.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="call:synchronize",
    on_op=False,
    once_is_note=True,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
