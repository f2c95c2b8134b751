"""A constant that each step copies to the device: filled there instead."""

from __future__ import annotations

import ast

from core.fixes.naming import torch_name
from core.fixes.source_text import NotApplicable, SourceText, dotted

ON_DEVICE = {"full", "zeros", "ones", "arange", "eye", "linspace"}  # filled by a kernel: no copy from the host


def made_on_device(source: SourceText, call: ast.Call, creation: ast.Call | None) -> tuple[str, str]:
    """``torch.zeros(3).to(device)`` -> ``torch.zeros(3, device=device)``; what makes the tensor is given apart.

    Raises
    ------
    NotApplicable
        When there is no such form of it.
    """
    move = call.func
    assert creation is not None
    assert isinstance(move, ast.Attribute)
    if move.value is not creation:
        raise NotApplicable("the tensor is moved or shaped in several steps")
    keywords = [k for k in call.keywords if k.arg != "non_blocking"]
    given = call.args[0] if call.args else next((k.value for k in keywords if k.arg == "device"), None)
    if len(call.args) + len(keywords) > 1 or (given is None and (keywords or move.attr != "cuda")):
        raise NotApplicable("the move does more than to name a device")
    if given is not None and not _names_device(given):
        raise NotApplicable(f"it is not clear that {source.of(given)} is a device")
    device = source.of(given) if given is not None else '"cuda"'
    if any(k.arg == "device" for k in creation.keywords):
        raise NotApplicable("the constant names its device already")
    if dotted(creation.func).rpartition(".")[2] in ON_DEVICE:
        text = source.of(creation)
        source.replace(call, f"{text[: text.rindex(')')].rstrip().rstrip(',')}, device={device})")
    else:
        source.replace(call, f"{torch_name(source, call)}.full({_filled(source, creation)}, device={device})")
    return (
        "Create the constant on the device, where a kernel fills it, instead of copying it there.",
        "One small kernel per step stays; keeping the tensor from step to step would save that too.",
    )


def _names_device(node: ast.expr) -> bool:
    """Whether what a tensor is moved to is a device by its look, not a type or another tensor."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | int)
    name = dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2].lower()
    return any(word in name for word in ("device", "dev", "gpu", "cuda", "rank"))


def _filled(source: SourceText, creation: ast.Call) -> str:
    """Shape, value and type for ``torch.full``: of ``[value] * count`` or one number as the only argument."""
    only = creation.args[0] if len(creation.args) == 1 and not creation.keywords else None
    last = dotted(creation.func).rpartition(".")[2]
    if isinstance(only, ast.Constant) and type(only.value) in (int, float, bool) and last in ("tensor", "as_tensor"):
        return f"(), {source.of(only)}"
    if (
        not isinstance(only, ast.BinOp)
        or not isinstance(only.op, ast.Mult)
        or not isinstance(only.left, ast.List)
        or len(only.left.elts) != 1
    ):
        raise NotApplicable("the constant is a list of values: it must be kept, which only a module or a loop can do")
    count, value = source.of(only.right), source.of(only.left.elts[0])
    if last == "LongTensor":
        return f"({count},), int({value})"
    if last in ("Tensor", "FloatTensor") and not isinstance(only.left.elts[0], ast.Constant):
        return f"({count},), float({value})"
    if last in ("Tensor", "FloatTensor") and type(ast.literal_eval(only.left.elts[0])) is not float:
        return f"({count},), float({value})"
    return f"({count},), {value}"
