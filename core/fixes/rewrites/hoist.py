"""Constants and modules built in the step: built once instead, in ``__init__`` or before the loop."""

from __future__ import annotations

import ast
import contextlib

from core.fixes.naming import attributes_of, free_name, is_module_class, local_names, torch_name
from core.fixes.source_text import (
    FunctionNode,
    Loop,
    NotApplicable,
    Place,
    SourceText,
    calls,
    dotted,
    names_read,
    names_written,
)

CREATORS = {
    "tensor",
    "Tensor",
    "FloatTensor",
    "LongTensor",
    "as_tensor",
    "full",
    "zeros",
    "ones",
    "arange",
    "eye",
    "linspace",
    "from_numpy",
}
ON_DEVICE = {"full", "zeros", "ones", "arange", "eye", "linspace"}  # filled by a kernel: no copy from the host
MOVES = {"to", "cuda"}
NO_MODULES = {"Tensor", "FloatTensor", "LongTensor", "Size", "Generator", "Stream", "Event", "Parameter"}


def constants_once(source: SourceText, place: Place) -> tuple[str, str]:
    """Build a constant tensor once: as a buffer of its module, before the loop, or on the device itself."""
    scope = source.scope(place)
    found = [c for c in calls(scope) if _is_constant(source, c, scope)]
    call = _chosen(source, found, place)
    function = source.function_of(call)
    owner = source.class_of(call)
    if owner is not None and function is not None and is_module_class(owner) and function.name != "__init__":
        with contextlib.suppress(NotApplicable):
            return _to_buffer(source, call, owner)
    loop = source.loop_of(call)
    if loop is not None:
        return _before_loop(source, call, loop, "constant")
    return _on_device(source, call)


def objects_once(source: SourceText, place: Place) -> tuple[str, str]:
    """Build a module, loss or transform once: in ``__init__`` or before the loop."""
    scope = source.scope(place)
    found = [c for c in calls(scope) if _is_construction(source, c, scope)]
    call = _chosen(source, found, place)
    function, owner = source.function_of(call), source.class_of(call)
    risk = "An object with parameters or state of its own is now kept from step to step, and belongs to its owner."
    if owner is None or function is None or not is_module_class(owner) or function.name == "__init__":
        loop = source.loop_of(call)
        if loop is None:
            raise NotApplicable("the object is built outside a loop and outside a module")
        return _before_loop(source, call, loop, "module")[0], risk
    statement = source.statement(call)
    name = _assigned_name(statement, call)
    attribute = free_name(name or _snake(dotted(call.func).rpartition(".")[2]), attributes_of(owner))
    built = source.of(call)
    if name is None:
        source.replace(call, f"self.{attribute}")
    else:
        _rename_reads(source, function, name, f"self.{attribute}", statement)
    _add_to_init(source, owner, f"self.{attribute} = {built}")
    return f"Build {dotted(call.func)} once, in __init__, and call it in {function.name}.", risk


# Which calls --------------------------------------------------------------------------------------------------


def _is_constant(source: SourceText, call: ast.Call, scope: ast.AST) -> bool:
    """A tensor made of constants and moved to a device, the whole chain."""
    inner = _creation(call)
    if inner is None or inner is call:
        return False
    parent = source.parent(call)
    if isinstance(parent, ast.Attribute) and parent.attr in MOVES:  # the chain goes on: its end counts
        return False
    local = local_names(scope)
    return not any(names_read(a) & local for a in _arguments(inner))


def _creation(call: ast.Call) -> ast.Call | None:
    """``torch.tensor(...)`` under ``.to(...)`` or ``.cuda()``."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
        node = node.func.value
    if isinstance(node, ast.Call):
        base, _, last = dotted(node.func).rpartition(".")
        if last in CREATORS and base:
            return node
    return None


def _is_construction(source: SourceText, call: ast.Call, scope: ast.AST) -> bool:
    """An object of a class built from constants, globals and attributes of self."""
    base, _, last = dotted(call.func).rpartition(".")
    if not last or not last[0].isupper() or last.isupper() or last in NO_MODULES:
        return False
    if not base and last not in _known_classes(source):
        return False
    inside = any(isinstance(n, ast.Call) and _is_construction(source, n, scope) for n in source.parents(call))
    return not inside and not any(names_read(a) & (local_names(scope) - {"self"}) for a in _arguments(call))


def _known_classes(source: SourceText) -> set[str]:
    """Classes of this file, and names imported at its head."""
    names = {n.name for n in source.tree.body if isinstance(n, ast.ClassDef)}
    return names | {a.asname or a.name for n in source.tree.body if isinstance(n, ast.ImportFrom) for a in n.names}


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _chosen(source: SourceText, found: list[ast.Call], place: Place) -> ast.Call:
    """The call at the place; the only one of the function where the line is not exact."""
    near = [c for c in found if place.touches(source.statement(c))]
    found = near or ([] if place.exact else found)
    if len(found) != 1:
        raise NotApplicable("nothing of this form" if not found else "several places could be meant")
    return found[0]


# Where to -----------------------------------------------------------------------------------------------------


def _to_buffer(source: SourceText, call: ast.Call, owner: ast.ClassDef) -> tuple[str, str]:
    function = source.function_of(call)
    assert function is not None
    creation = _creation(call)
    assert creation is not None
    statement = source.statement(call)
    wanted = _assigned_name(statement, call) or _parameter_name(source, call) or "constant"
    name = free_name(wanted, attributes_of(owner))
    if _moved_as_a_whole(source, owner):
        value = source.of(creation)
        if any(k.arg == "device" for k in creation.keywords):
            raise NotApplicable("the constant names its device already")
    elif not names_read(call) & (local_names(function) - {"self"}):
        value = source.of(call)
    else:
        raise NotApplicable("the module is not moved to the device as a whole")
    source.replace(call, f"self.{name}")
    _add_to_init(source, owner, f'self.register_buffer("{name}", {value}, persistent=False)')
    return (
        f"Keep the constant as a buffer of {owner.name}: it moves to the device once, with the module.",
        "The module must be moved with .to(device) before its first use. The buffer is not saved with the model "
        "(persistent=False), so old checkpoints still load.",
    )


def _moved_as_a_whole(source: SourceText, owner: ast.ClassDef) -> bool:
    """Whether an instance of the class, or of something that may hold it, is moved to a device in this file."""
    names = {owner.name}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and any(dotted(c.func) == owner.name for c in calls(node.value)):
            names |= {dotted(t) for t in node.targets}
    for call in calls(source.tree):
        if isinstance(call.func, ast.Attribute) and call.func.attr in MOVES:
            base = call.func.value
            if dotted(base) in names or (isinstance(base, ast.Call) and dotted(base.func) in names):
                return True
    return False


def _before_loop(source: SourceText, call: ast.Call, loop: Loop, wanted: str) -> tuple[str, str]:
    changed = names_written(loop)
    if names_read(call) & changed:
        raise NotApplicable("it depends on something that changes in the loop")
    statement = source.statement(call)
    name = _assigned_name(statement, call)
    built = source.of(call)
    if name is not None:
        others = [
            n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        if len(others) != 1 or _changed_in_place(loop, name):
            raise NotApplicable("it is changed in the loop")
        source.delete(statement)
    else:
        name = free_name(_parameter_name(source, call) or wanted, _all_names(source))
        source.replace(call, name)
    source.insert_line_before(loop, f"{name} = {built}")
    return (
        "Build it once, before the loop.",
        "The same object is used in every step: code that changes it in place would now see the change again.",
    )


def _on_device(source: SourceText, call: ast.Call) -> tuple[str, str]:
    creation = _creation(call)
    assert creation is not None
    move = call.func
    assert isinstance(move, ast.Attribute)
    if move.value is not creation:
        raise NotApplicable("the tensor is moved more than once")
    if move.attr == "cuda":
        device = source.of(call.args[0]) if call.args else '"cuda"'
    elif len(call.args) == 1 and not call.keywords:
        device = source.of(call.args[0])
        if dotted(call.args[0]).startswith(f"{torch_name(source)}."):
            raise NotApplicable("the move changes the type")
    else:
        device = next((source.of(k.value) for k in call.keywords if k.arg == "device"), "")
        if not device:
            raise NotApplicable("the move names no device")
    last = dotted(creation.func).rpartition(".")[2]
    if any(k.arg == "device" for k in creation.keywords):
        raise NotApplicable("the constant names its device already")
    if last in ON_DEVICE:
        text = source.of(creation)
        source.replace(call, f"{text[: text.rindex(')')].rstrip().rstrip(',')}, device={device})")
    else:
        count, value = _repeated(source, creation)
        value = f"float({value})" if value.lstrip("-").isdigit() and last != "tensor" else value
        source.replace(call, f"{torch_name(source)}.full(({count},), {value}, device={device})")
    return (
        "Create the constant on the device, where a kernel fills it, instead of copying it there.",
        "One small kernel per step stays; keeping the tensor from step to step would save that too.",
    )


def _repeated(source: SourceText, creation: ast.Call) -> tuple[str, str]:
    """``[value] * count`` as the only argument: count and value."""
    only = creation.args[0] if len(creation.args) == 1 and not creation.keywords else None
    if (
        isinstance(only, ast.BinOp)
        and isinstance(only.op, ast.Mult)
        and isinstance(only.left, ast.List)
        and len(only.left.elts) == 1
    ):
        return source.of(only.right), source.of(only.left.elts[0])
    raise NotApplicable("the constant is a list of values: it must be kept, which only a module or a loop can do")


def _add_to_init(source: SourceText, owner: ast.ClassDef, line: str) -> None:
    """Add a statement at the end of ``__init__``, which is written where there is none."""
    for node in owner.body:
        if isinstance(node, FunctionNode) and node.name == "__init__":
            last = node.body[-1]
            if isinstance(last, ast.Return):
                source.insert_line_before(last, line)
            else:
                source.insert_line_after(last, line)
            return
    first = next((n for n in owner.body if isinstance(n, FunctionNode)), None)
    if first is None:
        raise NotApplicable("the class has no methods")
    source.insert_line_before(first, "def __init__(self):", "    super().__init__()", f"    {line}", "")


# Names --------------------------------------------------------------------------------------------------------


def _assigned_name(statement: ast.stmt, call: ast.Call) -> str | None:
    """``x`` of ``x = call``."""
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _parameter_name(source: SourceText, call: ast.Call) -> str | None:
    """Name of the parameter that the call is passed as, where the called function is in this file."""
    outer = source.parent(call)
    if isinstance(outer, ast.keyword):
        return outer.arg
    if not isinstance(outer, ast.Call) or call not in outer.args:
        return None
    for node in ast.walk(source.tree):
        if isinstance(node, FunctionNode) and node.name == dotted(outer.func).rpartition(".")[2]:
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"]
            at = outer.args.index(call)
            return names[at] if at < len(names) else None
    return None


def _rename_reads(source: SourceText, function: FunctionNode, name: str, new: str, assigned: ast.stmt) -> None:
    """Take an assignment away and put another expression where its name was read."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name:
            if isinstance(node.ctx, ast.Load):
                source.replace(node, new)
            elif source.statement(node) is not assigned:
                raise NotApplicable("the name is bound more than once")
    source.delete(assigned)


def _changed_in_place(loop: Loop, name: str) -> bool:
    """Whether something in the loop calls an in-place method of the name, or assigns to its items."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and dotted(node.value) == name and node.attr.endswith("_"):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted(node.value) == name:
            return True
        if isinstance(node, ast.AugAssign) and dotted(node.target) == name:
            return True
    return False


def _all_names(source: SourceText) -> set[str]:
    return {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}


def _snake(name: str) -> str:
    out = "".join(
        f"_{c.lower()}" if c.isupper() and i and not name[i - 1].isupper() else c.lower() for i, c in enumerate(name)
    )
    return out.strip("_") or "module"
