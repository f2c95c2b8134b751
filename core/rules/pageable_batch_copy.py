"""The batch is copied to the GPU from pageable memory.

What it finds
-------------
A copy to the device whose host side is pageable memory, made by ``aten::to`` or ``aten::copy_`` inside the step, that
is no small constant.

Why it costs time
-----------------
The driver can only copy from pinned memory. From pageable memory it first copies the data to a pinned buffer of its
own, piece by piece, while the CPU waits in ``cudaMemcpyAsync`` itself: a sum over the calls named 'Synchronize'
misses nearly all of it.

Blind spots
-----------
The copy itself is faster from pinned memory, by a factor that depends on the machine; the saving does not count it.
On ROCm the name of a copy does not say whether the memory was pinned, so nothing is reported there. For very small
batches pinning can cost more than it saves; on some laptops and under WSL pinned memory is scarce.

How to fix
----------
``pin_memory=True`` in the DataLoader, and ``non_blocking=True`` in the copy. A few numbers are better kept on the GPU,
or passed as Python numbers: then nothing is copied.

Sources
-------
PyTorch tutorial on pinned memory; NVIDIA Nsight Systems expert rule 'CUDA Async Memcpy with Pageable Memory'; CUDA's
page on synchronisation behaviour; measured on recorded traces (copy calls 2288 ms, the synchronise calls after them
378 ms).
"""

from __future__ import annotations

from core.rule_tools.report import Group, SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="pageable-batch-copy",
    title="The batch is copied from pageable memory",
    needs=Needs.WAITS,
    params=(Param("few_bytes", 64, "bytes", "less than the labels of any batch: pinning such memory gains nothing"),),
)

TEXTS = SyncTexts(
    title="The CPU waits while data is copied from pageable memory",
    why=(
        "Ordinary (pageable) memory "
        "cannot be copied to the GPU directly: the driver stages it, and the CPU has to wait. With pinned memory "
        "the call returns at once and the copy runs beside the computation. On average {each_bytes:size} were "
        "copied each time. From pinned memory the copy itself is mostly faster as well; by how much the trace does not "
        "tell, so the saving leaves that out."
    ),
    fix=Fix(
        summary="Let the DataLoader pin its batches, and copy them without waiting.",
        before=(
            "loader = DataLoader(data, batch_size=32, num_workers=4)\n"
            "for x, y in loader:\n"
            "    x, y = x.to(device), y.to(device)"
        ),
        after=(
            "loader = DataLoader(data, batch_size=32, num_workers=4, pin_memory=True)\n"
            "for x, y in loader:\n"
            "    x = x.to(device, non_blocking=True)\n"
            "    y = y.to(device, non_blocking=True)"
        ),
        url="https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        risk=(
            "Pinned memory cannot be swapped out: keep an eye on the machine's memory. Batches of a "
            "type of your own need a pin_memory() method."
        ),
    ),
    effect=EffectKind.MAKE_ASYNC,
    hint="batch",
    on_op=False,
)

FEW_BYTES = SyncTexts(
    title="The CPU waits while a few numbers are copied to the GPU",
    why=(
        "The driver takes the {each_bytes:size} copied each time from ordinary (pageable) memory, and the CPU waits "
        "for that. Pinning so little gains nothing: what helps is not to copy it."
    ),
    fix=Fix(
        summary="Keep the numbers on the GPU, make them there, or pass them as Python numbers.",
        before=(
            "for x, y in loader:\n"
            "    limits = torch.tensor([low, high]).to(device)\n"
            "    x = x.clamp(limits[0], limits[1])"
        ),
        after=(
            "for x, y in loader:\n"
            "    x = x.clamp(low, high)     # Python numbers travel with the launch\n"
            "# or, once before the loop: limits = torch.tensor([low, high], device=device)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="Numbers that change in each step have to be sent: send all of them in one tensor.",
    ),
    effect=EffectKind.MAKE_ASYNC,
    hint="batch",
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""

    def retell(group: Group) -> SyncTexts | None:
        few = all(0 <= one.bytes <= ctx.params["few_bytes"] for one in group.occurrences)
        return FEW_BYTES if few else None

    return sync_suggestions(ctx, RULE.id, TEXTS, retell=retell)
