"""A library copies with a call that waits: ``cudaMemcpy``.

What it finds
-------------
``cudaMemcpy``, ``cudaMemcpy2D``, ``cudaMemcpyToSymbol`` (or HIP's) inside a step.

Why it costs time
-----------------
Unlike ``cudaMemcpyAsync`` from pinned memory, these calls return only when the copy is done.

Blind spots
-----------
A copy from device to device does not wait for its end; libraries copy once when they start.

How to fix
----------
Use the asynchronous form in the extension; for an op of a third party, report it there.

Sources
-------
NVIDIA Nsight Systems expert rule 'CUDA Synchronous Memcpy'; CUDA's page on synchronisation behaviour.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="synchronous-memcpy", title="A copy call that waits is used", needs=Needs.DEVICE | Needs.CALLS)

TEXTS = SyncTexts(
    title="`{call}` copies and waits for the end",
    why=(
        "`{call}` copies and waits until the copy is done. This call comes from a library or extension, not from "
        "PyTorch's own copies. Path: {op_path}."
    ),
    fix=Fix(
        summary="Use cudaMemcpyAsync with pinned memory in the extension.",
        before="cudaMemcpy(dst, src, n, cudaMemcpyHostToDevice);",
        after="cudaMemcpyAsync(dst, src, n, cudaMemcpyHostToDevice, at::cuda::getCurrentCUDAStream());",
        url="https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",
        risk="The source must stay unchanged until the copy is over.",
    ),
    effect=EffectKind.MAKE_ASYNC,
    hint="",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
