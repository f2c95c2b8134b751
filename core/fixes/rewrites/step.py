"""Waits inside the step: range as an index, assertions on device tensors, synchronisation."""

from __future__ import annotations

import ast

from core.fixes.naming import origin_of, torch_name
from core.fixes.rewrites.evaluation import effects, torch_words
from core.fixes.source_text import FunctionNode, NotApplicable, Place, SourceText, bracketed, calls, dotted, same

REDUCTIONS = {"max", "min", "amax", "amin", "any", "all", "sum", "mean", "isnan", "isfinite", "isinf", "norm", "item"}
BOOL_FUNCTIONS = {"equal", "allclose", "is_tensor"}
PYTHON_VALUES = {"float", "int", "max", "min", "any", "all", "round"}
TRUTHS = {"any", "all", "isnan", "isfinite", "isinf"}
WRAPPERS = {"list", "tensor", "LongTensor"}
DEVICE_MODULES = {"accelerator", "cpu", "cuda", "hpu", "mps", "mtia", "npu", "xpu"}


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
    source.replace(call, f"{torch_name(source, call)}.arange({arguments}, device={device})")
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
            if not isinstance(above, ast.Subscript) or above.value is read:
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
    torch = torch_name(source, statement)
    message, left_out = "", statement.msg is not None
    if isinstance(statement.msg, ast.Constant) and isinstance(statement.msg.value, str):
        message, left_out = f", {source.of(statement.msg)}", False
    lines = []
    for part in _parts(statement.test):
        if _is_tensor(part):
            lines.append(f"{torch}._assert_async({_text(source, part)}{message})")
        else:
            lines.append(
                f"assert {source.of(part)}{f', {source.of(statement.msg)}' if statement.msg is not None else ''}"
            )
    indent = source.indent(statement)
    source.replace(statement, f"{source.newline}{indent}".join(lines))
    return (
        "Let the device check it: torch._assert_async does not wait for the answer.",
        "A violation now stops the program a little later, as a device-side assertion instead of an AssertionError. "
        + ("The message is left out: it would be put together in every step. " if left_out else "")
        + "Where the values come from a data set, checking them there once is cheaper still.",
    )


def _parts(test: ast.expr) -> list[ast.expr]:
    """The conditions that an ``and`` joins."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [p for value in test.values for p in _parts(value)]
    return [test]


def _text(source: SourceText, part: ast.expr) -> str:
    """A condition as a tensor: ``not`` becomes ``~``, a chained comparison one joined by ``&``."""
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        inner = _text(source, part.operand)
        return f"~({inner})" if _is_truth(part.operand) else f"{torch_name(source, part)}.logical_not({inner})"
    _check_stays_tensor(part)
    if isinstance(part, ast.Compare) and len(part.ops) > 1:
        values = [part.left, *part.comparators]
        if any(effects(middle, torch_words(source)) for middle in values[1:-1]):
            raise NotApplicable("what stands in the middle of the comparison would be worked out twice")
        pairs = zip(values, values[1:], strict=False)
        return " & ".join(f"({_without_reads(source, part, left, right)})" for left, right in pairs)
    return _without_reads(source, part, part, part)


def _is_truth(part: ast.expr) -> bool:
    """Whether a tensor is of truth values, which ``~`` turns around; of numbers it would turn the bits."""
    called = part.func.attr if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else ""
    return isinstance(part, ast.Compare) or called in TRUTHS


def _check_stays_tensor(part: ast.expr) -> None:
    """What makes a plain truth value of a tensor cannot be checked on the device."""
    for node in ast.walk(part):
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda | ast.NamedExpr | ast.comprehension):
            raise NotApplicable("the condition is more than a comparison")
        if isinstance(node, ast.Compare) and any(
            isinstance(o, ast.In | ast.NotIn | ast.Is | ast.IsNot) for o in node.ops
        ):
            raise NotApplicable("the condition asks whether something is in a list, which the CPU has to do")
        if isinstance(node, ast.Call):
            base, _, name = dotted(node.func).rpartition(".")
            if base in ("math", "np", "numpy") and not (base == "math" and name in TRUTHS and _item(node.args[0])):
                raise NotApplicable(f"{base}.{name} takes no tensor of the device")
            if isinstance(node.func, ast.Name) and node.func.id in (
                "float",
                "int",
                "max",
                "min",
                "any",
                "all",
                "round",
            ):
                raise NotApplicable(f"{node.func.id}() reads the value back")


def _item(node: ast.AST) -> ast.expr | None:
    """``t`` of ``t.item()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return node.func.value
    return None


def _without_reads(source: SourceText, part: ast.expr, first: ast.expr, last: ast.expr) -> str:
    """Text from one expression to another, with tensors in place of what is read back from them."""
    start, end = source.span(first)[0], source.span(last)[1]
    changes: list[tuple[int, int, str]] = []
    for node in ast.walk(part):
        tensor = _item(node)
        if tensor is not None and isinstance(node, ast.Call):
            changes.append((*source.span(node), bracketed(source, tensor)))
        elif isinstance(node, ast.Attribute) and dotted(node.value) == "math":
            changes.append((*source.span(node.value), torch_name(source, part)))
    text = source.text
    out, at = "", start
    for begin, stop, new in sorted(changes):
        if start <= begin and stop <= end and begin >= at:
            out, at = out + text[at:begin] + new, stop
    return out + text[at:end]


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
    in_loops = [s for s in found if source.loop_of(s) is not None]
    chosen = near or ([] if place.exact else in_loops or found)
    if not chosen:
        raise NotApplicable("no synchronize() of its own line")
    for statement in chosen:
        _check_whole_device(source, statement)
    _check_not_needed(source.function_of(chosen[0]) or source.tree)
    for statement in chosen:
        source.delete(_with_its_condition(source, statement))
    return (
        "Take the synchronisation away: the device keeps its own order.",
        "Times taken with the clock right after it then measure enqueueing only; torch.cuda.Event measures the device.",
    )


def _check_whole_device(source: SourceText, statement: ast.stmt) -> None:
    call = next(calls(statement))
    name = origin_of(source, dotted(call.func)) or dotted(call.func)
    if name.rpartition(".")[0].rpartition(".")[2] not in DEVICE_MODULES:
        raise NotApplicable(
            f"{dotted(call.func)}() waits for one event or stream: whether it still must is yours to say"
        )


def _with_its_condition(source: SourceText, statement: ast.stmt) -> ast.stmt:
    """The statement, or the ``if torch.cuda.is_available():`` that holds nothing else."""
    above = source.parent(statement)
    if not isinstance(above, ast.If) or len(above.body) > 1 or above.orelse or effects(above.test, torch_words(source)):
        asks = isinstance(above, ast.If) and dotted(getattr(above.test, "func", None)).endswith("is_available")
        if not asks or not isinstance(above, ast.If) or len(above.body) > 1 or above.orelse:
            return statement
    return statement if source.of(above).startswith("elif") else above


def _check_not_needed(scope: ast.AST) -> None:
    """What reads the outcome of device work without waiting for it needs the synchronisation.

    Raises
    ------
    NotApplicable
        When something of that kind is in the same function.
    """
    for call in calls(scope):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
        if name == "elapsed_time":
            raise NotApplicable("elapsed_time() is asked for here, which needs the events to have happened")
        not_waited_for = any(k.arg == "non_blocking" for k in call.keywords)
        if not_waited_for and (
            name == "copy_" or any(to_host(a) for a in (*call.args, *(k.value for k in call.keywords)))
        ):
            raise NotApplicable("a copy to the CPU is not waited for here (non_blocking), so that this has to")
        if name in ("Stream", "stream", "wait_stream"):
            raise NotApplicable("the function uses streams of its own: whether they still need it is yours to say")


def to_host(node: ast.expr) -> bool:
    """Whether a device is the CPU, as far as its text tells."""
    return any(
        (isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("cpu"))
        or (isinstance(n, ast.Name | ast.Attribute) and "cpu" in dotted(n).lower())
        for n in ast.walk(node)
    )


def no_anomaly_mode(source: SourceText, place: Place) -> tuple[str, str]:
    """``set_detect_anomaly(True)`` or ``detect_anomaly()``: switched off."""
    named = [(c, dotted(c.func).rpartition(".")[2]) for c in calls(source.tree)]
    found = [c for c, name in named if name in ("set_detect_anomaly", "detect_anomaly")]
    found = [c for c in found if not (c.args and same(c.args[0], ast.Constant(False)))]
    near = [c for c in found if place.touches(source.statement(c))]
    found = found if len(found) == 1 else near
    if len(found) != 1:
        raise NotApplicable("no call of set_detect_anomaly")
    _switch_off(source, found[0])
    return (
        "Switch anomaly detection off; it checks every gradient.",
        "NaN gradients are no longer traced to their op.",
    )


def _switch_off(source: SourceText, call: ast.Call) -> None:
    base, _, name = dotted(call.func).rpartition(".")
    if name == "detect_anomaly":
        source.replace(call, f"{base or torch_name(source, call) + '.autograd'}.set_detect_anomaly(False)")
        return
    mode = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "mode"), None)
    if not isinstance(mode, ast.Constant):
        told = f": {source.of(mode)}" if mode is not None else ""
        raise NotApplicable(f"whether anomaly detection is on is decided elsewhere{told}")
    source.replace(mode, "False")
