"""Waits inside the step: range as an index, assertions on device tensors, values read back, synchronisation."""

from __future__ import annotations

import ast

from core.fixes.naming import torch_name
from core.fixes.source_text import FunctionNode, Loop, NotApplicable, Place, SourceText, calls, dotted, same

REDUCTIONS = {"max", "min", "amax", "amin", "any", "all", "sum", "mean", "isnan", "isfinite", "isinf", "norm", "item"}
BOOL_FUNCTIONS = {"equal", "allclose", "is_tensor"}
WRAPPERS = {"list", "tensor", "LongTensor"}


def range_to_arange(source: SourceText, place: Place) -> tuple[str, str]:
    """``p[range(n), t]``: an index made on the device instead of a list that is copied to it."""
    scope = source.scope(place)
    found: list[tuple[ast.Call, ast.Subscript]] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                call = _range_behind(source, part, scope)
                if call is not None:
                    found.append((call, node))
    near = [f for f in found if place.touches(source.statement(f[1])) or place.touches(source.statement(f[0]))]
    chosen = near or ([] if place.exact else found)
    if len(chosen) != 1:
        raise NotApplicable("no index made by range" if not chosen else "several indexes are made by range")
    call, subscript = chosen[0]
    device = _device_of(source, call, subscript, scope)
    inner = _as_range(call)
    assert inner is not None
    arguments = ", ".join(source.of(a) for a in inner.args)
    source.replace(call, f"{torch_name(source)}.arange({arguments}, device={device})")
    return (
        "Make the index on the device with torch.arange.",
        "None for values: the same elements are picked. The tensor must be on the device that the index names.",
    )


def _as_range(node: ast.expr) -> ast.Call | None:
    """``range(...)``, also inside ``list(...)`` or ``torch.tensor(...)``."""
    if isinstance(node, ast.Call) and dotted(node.func) == "range" and node.args and not node.keywords:
        return node
    wrapped = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
    if wrapped and isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in WRAPPERS:
        return _as_range(node.args[0])
    return None


def _range_behind(source: SourceText, part: ast.expr, scope: ast.AST) -> ast.Call | None:
    if isinstance(part, ast.Call) and _as_range(part) is not None:
        return part
    if not isinstance(part, ast.Name):
        return None
    stores = [
        n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == part.id and isinstance(n.ctx, ast.Store)
    ]
    if len(stores) != 1:
        return None
    statement = source.statement(stores[0])
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or _as_range(statement.value) is None:
        return None
    for read in ast.walk(scope):  # used as anything but an index, it must stay what it is
        if isinstance(read, ast.Name) and read.id == part.id and isinstance(read.ctx, ast.Load):
            above = source.parent(read)
            above = source.parent(above) if isinstance(above, ast.Tuple) else above
            if not isinstance(above, ast.Subscript):
                return None
    assert isinstance(statement.value, ast.Call)
    return statement.value


def _device_of(source: SourceText, call: ast.Call, subscript: ast.Subscript, scope: ast.AST) -> str:
    """``x.device`` of a tensor of the indexing that exists where the index is made."""
    others = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else []
    for node in (subscript.value, *others):
        name = dotted(node)
        if not name or (isinstance(node, ast.Name) and _bound_to_range(source, node, call)):
            continue
        root = name.partition(".")[0]
        bound = [
            n.lineno
            for n in ast.walk(scope)
            if isinstance(n, ast.Name) and n.id == root and isinstance(n.ctx, ast.Store)
        ]
        if not bound or min(bound) < call.lineno:
            return f"{name}.device"
    raise NotApplicable("it is not clear on which device the tensor is")


def _bound_to_range(source: SourceText, name: ast.Name, call: ast.Call) -> bool:
    statement = source.statement(call)
    return isinstance(statement, ast.Assign) and any(dotted(t) == name.id for t in statement.targets)


def assert_on_device(source: SourceText, place: Place) -> tuple[str, str]:
    """``assert t.max() < n``: checked on the device, without the CPU waiting for the answer."""
    scope = source.scope(place)
    found = [n for n in ast.walk(scope) if isinstance(n, ast.Assert) and any(map(_is_tensor, _parts(n.test)))]
    near = [n for n in found if place.touches(n)]
    chosen = near or ([] if place.exact else found)
    if len(chosen) != 1:
        raise NotApplicable("no assertion on a tensor" if not chosen else "several assertions could be meant")
    statement = chosen[0]
    torch = torch_name(source)
    message = ""
    if isinstance(statement.msg, ast.Constant) and isinstance(statement.msg.value, str):
        message = f", {source.of(statement.msg)}"
    lines = []
    for part in _parts(statement.test):
        text = _text(source, part)
        if _is_tensor(part):
            lines.append(f"{torch}._assert_async({text}{message})")
        else:
            lines.append(f"assert {text}{f', {source.of(statement.msg)}' if statement.msg is not None else ''}")
    indent = source.indent(statement)
    source.replace(statement, f"{source.newline}{indent}".join(lines))
    return (
        "Let the device check it: torch._assert_async does not wait for the answer.",
        "A violation now stops the program a little later, as a device-side assertion instead of an AssertionError. "
        "Where the values come from a data set, checking them there once is cheaper still.",
    )


def _parts(test: ast.expr) -> list[ast.expr]:
    """The conditions that an ``and`` joins."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [p for value in test.values for p in _parts(value)]
    return [test]


def _text(source: SourceText, part: ast.expr) -> str:
    """A condition as a tensor: ``not`` becomes ``~``, a chained comparison one joined by ``&``."""
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and _is_tensor(part.operand):
        return f"~({_text(source, part.operand)})"
    if isinstance(part, ast.Compare) and len(part.ops) > 1 and _is_tensor(part):
        values = [part.left, *part.comparators]
        pieces = []
        for left, right in zip(values, values[1:], strict=False):
            start, end = source.span(left)[0], source.span(right)[1]
            pieces.append(f"({source.text[start:end]})")
        return " & ".join(pieces)
    if isinstance(part, ast.Compare):
        left = part.left
        if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "item":
            return source.of(left.func.value) + source.text[source.span(left)[1] : source.span(part)[1]]
    return source.of(part)


def _is_tensor(part: ast.expr) -> bool:
    """Whether a condition is worked out by reducing a tensor."""
    if isinstance(part, ast.BoolOp):
        return False
    for call in calls(part):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in BOOL_FUNCTIONS or (
            isinstance(call.func, ast.Name) and call.func.id in ("len", "isinstance", "bool")
        ):
            return False
    return any(isinstance(c.func, ast.Attribute) and c.func.attr in REDUCTIONS for c in calls(part))


def sum_on_device(source: SourceText, place: Place) -> tuple[str, str]:
    """``total += loss.item()`` and ``losses.append(float(loss))``: kept on the device, read once after the loop."""
    scope = source.scope(place)
    found = [s for s in ast.walk(scope) if isinstance(s, ast.AugAssign | ast.Expr) and _gathers(source, s) is not None]
    near = [s for s in found if place.touches(s)]
    chosen = near or ([] if place.exact else found)
    if len(chosen) != 1:
        raise NotApplicable("no sum or list of values read back" if not chosen else "several could be meant")
    statement = chosen[0]
    gathered = _gathers(source, statement)
    loop = source.loop_of(statement)
    assert gathered is not None
    if loop is None:
        raise NotApplicable("it is not in a loop of its function")
    kept, read, tensor = gathered
    inner = source.of(tensor)
    source.replace(read, inner if inner.endswith(".detach()") else f"{inner}.detach()")
    if isinstance(statement, ast.AugAssign):
        source.insert_line_after(loop, f"{kept} = float({kept})")
    else:
        source.insert_line_after(loop, f"{kept} = [float(value) for value in {kept}]")
    return (
        "Keep the values on the device and read them once, after the loop.",
        "Inside the loop the name now holds a tensor: code there that needs a plain number waits again, and a value "
        "printed there looks like tensor(...). A sum in float32 rounds where Python's float64 did not.",
    )


def _gathers(source: SourceText, statement: ast.AST) -> tuple[str, ast.expr, ast.expr] | None:
    """The name gathered into, the expression that reads back, and the tensor it reads."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        kept, value = dotted(statement.target), statement.value
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "append"
        and len(statement.value.args) == 1
    ):
        kept, value = dotted(statement.value.func.value), statement.value.args[0]
    else:
        return None
    if not kept or not isinstance(statement, ast.stmt):
        return None
    for call in calls(value):
        tensor = _read(call)
        if tensor is not None:
            return kept, call, tensor
    return None


def _read(call: ast.Call) -> ast.expr | None:
    """The tensor of ``t.item()`` or ``float(t)``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args:
        return call.func.value
    if isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1:
        only = call.args[0]
        return only if isinstance(only, ast.Name | ast.Attribute) else None
    return None


EVERY = 50


def report_seldom(source: SourceText, place: Place) -> tuple[str, str]:
    """A line that only shows a value: every 50 steps instead of every step."""
    scope = source.scope(place)
    found = [
        s
        for s in ast.walk(scope)
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and _shows(s.value) and place.touches(s)
    ]
    if len(found) != 1:
        raise NotApplicable("no line that only shows a value")
    statement = found[0]
    loop = source.loop_of(statement)
    counter = _counter(loop) if loop is not None else ""
    if not counter or statement not in (loop.body if loop is not None else ()):
        raise NotApplicable("the loop has no step number, or the line is under a condition already")
    source.insert_line_before(statement, f"if {counter} % {EVERY} == 0:")
    source.indent_more(statement, statement)
    return (
        f"Show the value every {EVERY} steps instead of every step.",
        "Fewer lines are shown. The steps that show one still wait.",
    )


def _shows(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    return name in ("print", "info", "debug", "log", "write", "set_postfix", "set_description", "add_scalar")


def _counter(loop: Loop) -> str:
    """``i`` of ``for i, batch in enumerate(...)`` or ``for i in range(...)``."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return ""
    function = dotted(loop.iter.func).rpartition(".")[2]
    target = loop.target
    if function == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif function not in ("range", "trange"):
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def no_synchronize(source: SourceText, place: Place) -> tuple[str, str]:
    """``torch.cuda.synchronize()`` in the step: taken away."""
    scope = source.scope(place)
    found = [
        s
        for s in ast.walk(scope)
        if isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and dotted(s.value.func).rpartition(".")[2] == "synchronize"
        and (source.loop_of(s) is not None or isinstance(scope, FunctionNode))
    ]
    near = [s for s in found if place.touches(s)]
    chosen = near or ([] if place.exact else found)
    if not chosen:
        raise NotApplicable("no synchronize() of its own line")
    for statement in chosen:
        source.delete(statement)
    return (
        "Take the synchronisation away: the device keeps its own order.",
        "Times taken with the clock right after it then measure enqueueing only; torch.cuda.Event measures the device.",
    )


def no_anomaly_mode(source: SourceText, place: Place) -> tuple[str, str]:
    """``set_detect_anomaly(True)`` or ``detect_anomaly()``: switched off."""
    found = [c for c in calls(source.tree) if dotted(c.func).rpartition(".")[2] == "set_detect_anomaly"]
    found = [c for c in found if not (c.args and same(c.args[0], ast.Constant(False)))]
    if len(found) != 1 or not found[0].args:
        raise NotApplicable("no call of set_detect_anomaly")
    source.replace(found[0].args[0], "False")
    return (
        "Switch anomaly detection off; it checks every gradient.",
        "NaN gradients are no longer traced to their op.",
    )
