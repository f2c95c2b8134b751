"""Constants and modules built in the step: built once instead, in ``__init__`` or before the loop."""

from __future__ import annotations

import ast
import contextlib

from core.fixes.naming import attributes_of, free_name, is_module_class, local_names
from core.fixes.rewrites.on_device import (
    MOVES,
    copied_from_host,
    is_filled,
    made_on_device,
    types_of_moves,
    without_device,
)
from core.fixes.rewrites.owner import add_to_init, check_stateless, method_of
from core.fixes.rewrites.sharing import check_module_stays, check_same_in_loop, check_tensor_stays
from core.fixes.source_text import (
    FunctionNode,
    Loop,
    NotApplicable,
    Place,
    SourceText,
    calls,
    dotted,
    names_read,
    shared_names,
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
SHAPES = {"view", "reshape", "unsqueeze", "float", "double", "long", "t", "expand", "repeat"}
PURE = {"range", "list", "tuple", "float", "int", "len", "min", "max", "abs", "sum", "sqrt", "log", "exp", "device"}
MODES = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d")
NO_MODULES = {"Tensor", "FloatTensor", "LongTensor", "Size", "Generator", "Stream", "Event", "Parameter"}


def constants_once(source: SourceText, place: Place) -> tuple[str, str]:
    """Build a constant tensor once: as a buffer of its module, before the loop, or on the device itself."""
    scope = source.scope(place)
    found = [c for c in calls(scope) if _is_constant(source, c, scope)]
    if not any(place.touches(source.statement(c)) for c in found):
        fills = [c for c in calls(scope) if _is_moved_fill(source, c) and place.touches(source.statement(c))]
        if len(fills) == 1:  # of any size: it need not be the same each time
            return made_on_device(source, fills[0], _creation(fills[0]))
    call = _chosen(source, found, place)
    owner = source.class_of(call)
    reason: NotApplicable | None = None
    if owner is not None and is_module_class(source, owner):
        try:
            return _to_buffer(source, call, owner)
        except NotApplicable as error:
            reason = error
    loop = source.loop_of(call)
    if loop is not None:
        return _before_loop(source, call, loop, "constant")
    try:
        return made_on_device(source, call, _creation(call))
    except NotApplicable as error:
        raise reason or error from error


def objects_once(source: SourceText, place: Place) -> tuple[str, str]:
    """Build a module, loss or transform once: in ``__init__`` or before the loop."""
    scope = source.scope(place)
    found = [c for c in calls(scope) if _is_construction(source, c, scope)]
    call = _chosen(source, found, place)
    check_stateless(source, call)
    owner = source.class_of(call)
    if owner is None or not is_module_class(source, owner):
        loop = source.loop_of(call)
        if loop is None:
            raise NotApplicable("the object is built outside a loop and outside a module")
        kind = dotted(call.func).rpartition(".")[2]
        wanted = "criterion" if kind.endswith(("Loss", "Criterion")) else _snake(kind)
        summary, _ = _before_loop(source, call, loop, wanted)
        return summary, "The same object is used in every step: what it keeps from one call to the next stays."
    function = method_of(source, call, owner)
    if dotted(call.func).rpartition(".")[2].endswith(MODES):
        raise NotApplicable("built in the step it is always in training mode, and kept it would follow eval()")
    statement = source.statement(call)
    name = _assigned_name(statement, call)
    attribute = free_name(name or _snake(dotted(call.func).rpartition(".")[2]), attributes_of(owner))
    built = source.of(call)
    if name is not None:
        check_module_stays(function, name)
    if name is None or len(source.block_of(statement)) == 1:
        source.replace(call, f"self.{attribute}")
    else:
        _rename_reads(source, function, name, f"self.{attribute}", statement)
        built += source.comment_behind(statement)
    add_to_init(source, owner, function, call, f"self.{attribute} = {built}")
    return (
        f"Build {dotted(call.func)} once, in __init__, and call it in {function.name}.",
        "The object now belongs to its module: a weight that it is given moves and is saved with the module, under a "
        "name of its own in checkpoints." + _read_once(call),
    )


def _read_once(call: ast.Call) -> str:
    """What a value that is taken from ``self`` means for whoever sets it later."""
    read = {dotted(n) for n in ast.walk(call) if isinstance(n, ast.Attribute) and dotted(n.value) == "self"}
    return f" Setting {' or '.join(sorted(read))} later has no effect on it any more." if read else ""


# Which calls --------------------------------------------------------------------------------------------------


def _is_constant(source: SourceText, call: ast.Call, scope: ast.AST) -> bool:
    """A tensor made of constants and moved to a device, the whole chain."""
    inner = _creation(call)
    if inner is None or any(k.arg == "requires_grad" for k in inner.keywords):
        return False
    itself = copied_from_host(inner)
    if inner is call and not itself:
        return False
    parent = source.parent(call)
    ends = MOVES | SHAPES if itself else MOVES
    if isinstance(parent, ast.Attribute) and parent.attr in ends:  # the chain goes on: its end counts
        return False
    changing = local_names(scope) | _globals(source)
    device = [k.value for k in inner.keywords if k.arg == "device"] if itself else []
    given = [a for c in _chain(call) for a in _arguments(c) if a not in device]
    return not any(names_read(a) & changing or not _is_pure(a, classes=False) for a in given)


def _is_moved_fill(source: SourceText, call: ast.Call) -> bool:
    """``torch.arange(n).to(device)``, the end of the chain."""
    creation, parent = _creation(call), source.parent(call)
    goes_on = isinstance(parent, ast.Attribute) and parent.attr in MOVES
    return creation is not None and is_filled(creation) and _below_moves(call) is not call and not goes_on


def _creation(call: ast.Call) -> ast.Call | None:
    """``torch.tensor(...)`` under ``.to(...)`` or ``.cuda()``, and what gives it its shape before."""
    chain = _chain(call)
    base, _, made = dotted(chain[-1].func if chain else None).rpartition(".")
    return chain[-1] if made in CREATORS and base else None


def _below_moves(call: ast.Call) -> ast.expr:
    """What is moved to a device."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
        node = node.func.value
    return node


def _chain(call: ast.Call) -> list[ast.Call]:
    """The calls below the moves, down to what makes the tensor."""
    found: list[ast.Call] = []
    node: ast.expr | None = _below_moves(call)
    while isinstance(node, ast.Call):
        found.append(node)
        node = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in SHAPES else None
    return found


def _is_construction(source: SourceText, call: ast.Call, scope: ast.AST) -> bool:
    """An object of a class built from constants, globals and attributes of self."""
    base, _, last = dotted(call.func).rpartition(".")
    if not _is_class(last):
        return False
    if not base and last not in _known_classes(source):
        return False
    inside = any(isinstance(n, ast.Call) and _is_class(dotted(n.func)) for n in source.parents(call))
    changing = (local_names(scope) - {"self"}) | _globals(source)
    return not inside and not any(names_read(a) & changing or not _is_pure(a) for a in _arguments(call))


def _is_class(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last[:1].isupper() and not last.isupper() and last not in NO_MODULES


def _globals(source: SourceText) -> set[str]:
    """Names of the module that some function says it sets."""
    return {name for node in ast.walk(source.tree) if isinstance(node, ast.Global) for name in node.names}


def _is_pure(node: ast.expr, *, classes: bool = True) -> bool:
    """Whether an expression has the same value each time: it calls nothing that may draw numbers, read or count."""
    for call in calls(node):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
        is_class = classes and last[:1].isupper()
        if last not in PURE and last not in CREATORS and last not in MOVES and not is_class:
            return False
    return not any(isinstance(n, ast.Await | ast.Yield | ast.NamedExpr) for n in ast.walk(node))


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
        raise NotApplicable(
            "nothing there is built from constants alone" if not found else "several places could be meant"
        )
    return found[0]


# Where to -----------------------------------------------------------------------------------------------------


def _to_buffer(source: SourceText, call: ast.Call, owner: ast.ClassDef) -> tuple[str, str]:
    function = method_of(source, call, owner)
    creation = _creation(call)
    assert creation is not None
    statement = source.statement(call)
    wanted = _assigned_name(statement, call) or _parameter_name(source, call) or "constant"
    name = free_name(wanted, attributes_of(owner))
    if _moved_as_a_whole(source, owner):
        kept = _below_moves(call)
        value = source.of(kept)
        if copied_from_host(creation):
            value = without_device(source, creation) + value.removeprefix(source.of(creation))
            kept = ast.parse(value, mode="eval").body
        elif any(k.arg == "device" for k in creation.keywords):
            raise NotApplicable("the constant names its device already")
        value += types_of_moves(source, call, _below_moves(call))
    elif not names_read(call) & (local_names(function) - {"self"}):
        value, kept = source.of(call), call
    else:
        raise NotApplicable("the module is not moved to the device as a whole")
    check_tensor_stays(source, call)
    add_to_init(source, owner, function, kept, f'self.register_buffer("{name}", {value}, persistent=False)')
    source.replace(call, f"self.{name}")
    return (
        f"Keep the constant as a buffer of {owner.name}: it moves to the device once, with the module.",
        "The module must be moved with .to(device) before its first use, and .half() changes the buffer too. It is not "
        "saved with the model (persistent=False), so old checkpoints still load.",
    )


def _moved_as_a_whole(source: SourceText, owner: ast.ClassDef) -> bool:
    """Whether an instance of the class, or of something that may hold it, is moved to a device in this file."""
    names = {owner.name}
    if any(dotted(base).endswith("LightningModule") for base in owner.bases):
        return True  # its trainer does
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
    changed = shared_names(loop)
    read = {dotted(n) for n in ast.walk(call) if isinstance(n, ast.Name | ast.Attribute)}
    if read & changed:
        raise NotApplicable("it depends on something that changes in the loop")
    check_same_in_loop(source, call, loop)
    statement = source.statement(call)
    name = _assigned_name(statement, call)
    built = source.of(call)
    if name is not None:
        _check_bound_once(source, statement, loop, name)
    if _creation(call) is not None:
        check_tensor_stays(source, call)
    elif name is not None:
        check_module_stays(loop, name)
    if name is not None:
        built += source.comment_behind(statement)
        source.delete(statement)
    else:
        name = free_name(_parameter_name(source, call) or wanted, _all_names(source))
        source.replace(call, name)
        loop = _outermost(source, call, loop)
    source.insert_line_before(loop, f"{name} = {built}")
    return (
        "Build it once, before the loop.",
        "The same object is used in every step: code that changes it in place would now see the change again.",
    )


def _outermost(source: SourceText, value: ast.expr, loop: Loop) -> Loop:
    """The outermost loop of the function that a value may be built before."""
    read = {dotted(n) for n in ast.walk(value) if isinstance(n, ast.Name | ast.Attribute)}
    with contextlib.suppress(NotApplicable):
        while (outer := source.loop_of(loop)) is not None and not read & shared_names(outer):
            check_same_in_loop(source, value, outer)
            loop = outer
    return loop


def _check_bound_once(source: SourceText, statement: ast.stmt, loop: Loop, name: str) -> None:
    """A name can be bound before the loop if its function binds it here alone, always, and first."""
    scope = source.function_of(loop) or source.tree
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name]
    above = source.parent(statement)
    within = above if isinstance(above, ast.With) else None
    if statement not in loop.body and (within is None or source.parent(within) is not loop):
        raise NotApplicable("it is built under a condition")
    if any(loop.lineno <= n.lineno < statement.lineno for n in uses):
        raise NotApplicable("its name holds something else before it is built")
    if sum(not isinstance(n.ctx, ast.Load) for n in uses) != 1:
        raise NotApplicable(f"{name} holds other things too")
    if name in {n for g in ast.walk(scope) if isinstance(g, ast.Global | ast.Nonlocal) for n in g.names}:
        raise NotApplicable(f"{name} belongs to another function or the module")
    if isinstance(scope, FunctionNode) and any(isinstance(a, ast.arg) and a.arg == name for a in ast.walk(scope.args)):
        raise NotApplicable(f"{name} is a parameter as well")
    if within is not None and len(within.body) == 1:
        raise NotApplicable("it is all that its with block holds")
    if within is not None and not all(_is_harmless(item.context_expr) for item in within.items):
        raise NotApplicable("it is built in a with block, which may change what is built")


def _is_harmless(context: ast.expr) -> bool:
    """A context that says nothing of what is built in it."""
    name = dotted(context.func if isinstance(context, ast.Call) else context).rpartition(".")[2]
    return name in ("autocast", "no_grad", "enable_grad", "record_function", "set_grad_enabled", "no_sync")


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
    if any(isinstance(a, ast.arg) and a.arg == name for a in ast.walk(function)):
        raise NotApplicable("the name is also a parameter")
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name:
            if isinstance(node.ctx, ast.Load):
                source.replace(node, new)
            elif source.statement(node) is not assigned:
                raise NotApplicable("the name is bound more than once")
    source.delete(assigned)


def _all_names(source: SourceText) -> set[str]:
    return {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}


def _snake(name: str) -> str:
    out = "".join(
        f"_{c.lower()}" if c.isupper() and i and not name[i - 1].isupper() else c.lower() for i, c in enumerate(name)
    )
    return out.strip("_") or "module"
