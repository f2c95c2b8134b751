"""A constant that each step copies to the device: filled there instead."""

from __future__ import annotations

import ast

from core.fixes.naming import torch_name
from core.fixes.source_text import NotApplicable, SourceText, dotted

MOVES = {"to", "cuda"}
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
    if not isinstance(move, ast.Attribute):
        raise NotApplicable("the constant names its device already")
    filled = dotted(creation.func).rpartition(".")[2] in ON_DEVICE
    made, moved = source.of(creation), source.of(move.value)
    if move.value is not creation and not (filled and _only_shaped(move.value, creation)):
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
    if filled:
        shaped = moved.removeprefix(made)
        source.replace(call, f"{made[: made.rindex(')')].rstrip().rstrip(',')}, device={device}){shaped}")
    else:
        source.replace(call, f"{torch_name(source, call)}.full({_filled(source, creation)}, device={device})")
    return (
        "Create the tensor on the device, where a kernel fills it, instead of copying it there.",
        "One small kernel per step stays; keeping the tensor from step to step would save that too.",
    )


def is_filled(creation: ast.Call) -> bool:
    """Whether a kernel can fill what a call makes, whatever its size, with nothing else that it would change."""
    others = {k.arg for k in creation.keywords} - {"dtype", "size", "start", "end", "step", "steps"}
    return dotted(creation.func).rpartition(".")[2] in ON_DEVICE - {"full"} and not others


def copied_from_host(creation: ast.Call) -> bool:
    """Whether a call makes a list of the host's into a tensor of the device that it names."""
    device = next((k.value for k in creation.keywords if k.arg == "device"), None)
    host = isinstance(device, ast.Constant) and str(device.value).startswith("cpu")
    return dotted(creation.func).rpartition(".")[2] in ("tensor", "as_tensor") and device is not None and not host


def without_device(source: SourceText, creation: ast.Call) -> str:
    """Text of a creation without the device that it names.

    Raises
    ------
    NotApplicable
        Where it stands on several lines.
    """
    if creation.lineno != creation.end_lineno:
        raise NotApplicable("the constant names its device already")
    given = [source.of(a) for a in creation.args]
    given += [f"{k.arg}={source.of(k.value)}" if k.arg else f"**{source.of(k.value)}" for k in creation.keywords
              if k.arg != "device"]  # fmt: skip
    return f"{source.of(creation.func)}({', '.join(given)})"


def types_of_moves(source: SourceText, call: ast.expr, below: ast.expr) -> str:
    """What the moves of a constant do beside naming a device, to be kept: ``.to(torch.float32)``.

    Raises
    ------
    NotApplicable
        Where a move takes the type from something that each step gives, or may do so.
    """
    kept: list[str] = []
    while call is not below:
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Attribute)
        given = [*call.args, *(k.value for k in call.keywords if k.arg not in ("non_blocking", "copy", "device"))]
        for one in given if call.func.attr == "to" else ():
            name = dotted(one)
            if is_type(one):
                kept.append(f".to({source.of(one)})")
            elif name.endswith("dtype"):
                raise NotApplicable(f"its type is that of {name}, which may change")
            elif not (isinstance(one, ast.Constant) and isinstance(one.value, bool)) and not _names_device(one):
                raise NotApplicable(f"it is not clear that {source.of(one)} is a device")
        call = call.func.value
    return "".join(reversed(kept))


def is_type(node: ast.expr) -> bool:
    """Whether an expression is one of torch's types by its name."""
    last = dotted(node).rpartition(".")[2]
    return last.rstrip("0123456789") in ("float", "int", "uint", "bfloat", "half", "double", "long", "bool")


def _only_shaped(node: ast.expr, creation: ast.Call) -> bool:
    """Whether an expression is the creation and calls on it that keep it on its device."""
    while node is not creation:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr in MOVES:
            return False
        node = node.func.value
    return True


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
