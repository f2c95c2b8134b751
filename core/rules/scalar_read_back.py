"""One number is read back from the GPU: ``.item()``, ``float()``, ``int()``, ``.tolist()``.

What it finds
-------------
``aten::item`` or ``aten::_local_scalar_dense`` as the outermost operator with a blocking call to the GPU's runtime
below it. ``aten::item`` on a CPU tensor has no such call and is never reported.

Why it costs time
-----------------
The number exists only once the GPU has done everything queued before it. The CPU stops until then, the queue runs
empty, and the next kernels come late.

Blind spots
-----------
A read of the loss after ``optimizer.step()`` in a run bound by the GPU costs nothing: the replay says so. The last
read of a recording, after which nothing is launched, is shown as a note only. Reads by the mixed-precision scaler, by
gradient clipping and by the optimizer have rules of their own.

How to fix
----------
Keep the value on the GPU, add it up there, and read it once every N steps.

Sources
-------
PyTorch performance tuning guide, 'Avoid unnecessary CPU-GPU synchronization'; the reference article on a loss with
hidden read-backs; measured on recorded traces: newer torch reads through pinned memory and waits in
``cudaStreamSynchronize``, older torch waits inside ``cudaMemcpyAsync``.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="scalar-read-back", title="A number is read back from the GPU", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="`{op}` reads a number back and waits",
    why=(
        "To read one number, the CPU must wait "
        "until the GPU has finished all the work queued before it. While the CPU waits it cannot queue new work, so "
        "the GPU has nothing to do afterwards."
    ),
    fix=Fix(
        summary="Keep the value on the GPU and read it only every N steps.",
        before="running += loss.item()              # waits for the GPU in every step",
        after=(
            "running += loss.detach()            # stays on the GPU\n"
            "if step % 50 == 0:\n"
            "    print((running / 50).item())    # one wait in 50 steps\n"
            "    running = torch.zeros_like(running)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk=(
            "The printed value is that of up to N steps ago; code that needs the number at once "
            "(early stopping) must keep the read."
        ),
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="item",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
