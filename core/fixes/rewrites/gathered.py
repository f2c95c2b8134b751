"""Values that the step reads back to sum, list or show them: kept on the device, or shown seldom."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from core.fixes.naming import local_names
from core.fixes.rewrites.evaluation import effects, torch_words
from core.fixes.rewrites.sharing import VIEWS
from core.fixes.source_text import (
    FunctionNode,
    Loop,
    NotApplicable,
    Place,
    SourceText,
    bracketed,
    calls,
    dotted,
    shared_names,
)

EVERY = 50
SHOWS = {"print", "info", "debug", "log", "write", "set_postfix", "set_description", "add_scalar"}
TELLING = {"time", "datetime", "np", "numpy", "math", "textwrap"}
ASKING = {"max", "min", "sum", "sorted", "list", "dict", "repr", "time", "perf_counter", "now", "total_seconds",
          "items", "isoformat", "strftime", "ljust", "rjust", "join", "keys", "values", "current_device"}  # fmt: skip
HALF_WORDS = ("half", "autocast", "float16", "fp16", "bf16")


@dataclass(frozen=True)
class _Gathered:
    """A statement that adds up or lists what it reads back."""

    statement: ast.AugAssign | ast.Expr
    kept: str  # where to: a name, or self.name
    reads: tuple[tuple[ast.Call, ast.expr], ...]  # what reads back, and the tensor that it reads

    @property
    def is_list(self) -> bool:
        return isinstance(self.statement, ast.Expr)

    @property
    def counts(self) -> bool:
        """Whether whole numbers are gathered: how many of something are equal."""
        return all(any(isinstance(n, ast.Compare) for n in ast.walk(t)) and _name(t) == "sum" for _, t in self.reads)


def sum_on_device(source: SourceText, place: Place) -> tuple[str, str]:
    """``total += loss.item()`` and ``losses.append(float(loss))``: kept on the device, read once after the loop."""
    scope = source.scope(place)
    found = [g for s in ast.walk(scope) if (g := _gathers(source, s)) is not None]
    near = [g for g in found if place.touches(g.statement)]
    chosen = near or ([] if place.exact else found)
    if len(chosen) != 1:
        raise NotApplicable("no sum or list of values read back" if not chosen else "several could be meant")
    gathered = chosen[0]
    loop = source.loop_of(gathered.statement)
    if loop is None:
        raise NotApplicable("it is not in a loop of its function")
    line = _line_after(source, gathered, loop)
    _check_reads(source, gathered, loop)
    for call, tensor in gathered.reads:
        source.replace(call, _on_device(source, gathered, tensor, loop))
    source.insert_line_after(loop, line)
    return "Keep the values on the device and read them once, after the loop.", (
        f"Whoever looks at {gathered.kept} before the loop has ended finds tensors in it."
        if gathered.is_list
        else f"Inside the loop {gathered.kept} is now a tensor: printed as it is, it looks like tensor(...)."
        + (
            ""
            if line.endswith(f" int({gathered.kept})")
            else " A sum in float32 rounds where Python's float64 did not."
        )
    )


def _gathers(source: SourceText, statement: ast.AST) -> _Gathered | None:
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
    reads = [(call, tensor) for call in calls(value) if (tensor := _read(call)) is not None]
    plain = all(_is_sum_up_to(source, call, value) for call, _ in reads)
    return _Gathered(statement, kept, tuple(reads)) if kept and reads and plain else None


def _is_sum_up_to(source: SourceText, call: ast.expr, value: ast.expr) -> bool:
    """Whether nothing but arithmetic stands between a call and the whole: no tuple, no rounding."""
    node: ast.AST | None = call
    while node is not value:
        node = source.parent(node) if node is not None else None
        if not isinstance(node, ast.BinOp | ast.UnaryOp):
            return False
    return True


def _read(call: ast.Call) -> ast.expr | None:
    """The tensor of ``t.item()`` or ``float(t)``, without what would copy it to the host first."""
    tensor: ast.expr | None = None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args:
        tensor = call.func.value
    elif isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1:
        tensor = call.args[0] if isinstance(call.args[0], ast.Name | ast.Attribute) else None
    while (
        isinstance(tensor, ast.Call)
        and isinstance(tensor.func, ast.Attribute)
        and tensor.func.attr in ("cpu", "detach")
        and not tensor.args
    ):
        tensor = tensor.func.value
    return tensor


def _line_after(source: SourceText, gathered: _Gathered, loop: Loop) -> str:
    """The line that reads what was gathered, after the loop."""
    kept, scope = gathered.kept, source.function_of(loop)
    parameters = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)} if scope is not None else set()
    local = _bindings(scope, kept) if scope is not None and "." not in kept else []
    starts = local or ([] if kept in parameters else _bindings(source.tree, kept))
    if gathered.is_list:
        if not starts or not all(isinstance(s, ast.List) and not s.elts or _is_list_call(s) for s in starts):
            raise NotApplicable(f"it is not clear from this file that {kept} is a list of such values alone")
        alone = (bool(local) or (scope is None and "." not in kept)) and not _is_held_elsewhere(source, kept, loop)
        target = kept if alone else f"{kept}[:]"  # others may hold the list
        return f"{target} = [{_read_back(source, gathered)} for value in {kept}]"
    values = [s.value for s in starts if isinstance(s, ast.Constant) and type(s.value) in (int, float)]
    if not starts or len(values) != len(starts):
        raise NotApplicable(f"it is not clear from this file that {kept} starts as a number")
    if gathered.counts and all(type(v) is int for v in values):
        return f"{kept} = int({kept})"
    if all(type(v) is int for v in values) and not any("loss" in source.of(t).lower() for _, t in gathered.reads):
        return f'{kept} = {kept}.item() if hasattr({kept}, "item") else {kept}'
    return f"{kept} = float({kept})"


def _read_back(source: SourceText, gathered: _Gathered) -> str:
    """How one value of a list is read back: as the number that it was."""
    if gathered.counts:
        return "int(value)"
    floats = all(isinstance(call.func, ast.Name) for call, _ in gathered.reads)  # float(t)
    if floats or any("loss" in source.of(n).lower() for n in (gathered.statement, *(t for _, t in gathered.reads))):
        return "float(value)"
    return 'value.item() if hasattr(value, "item") else value'


def _is_held_elsewhere(source: SourceText, kept: str, loop: Loop) -> bool:
    """Whether something else may hold the list by the end of a loop: it has two names, or was handed to somebody."""
    for node in ast.walk(source.function_of(loop) or source.tree):
        if not isinstance(node, ast.Name) or node.id != kept or node.lineno > (loop.end_lineno or 0):
            continue
        above = source.parent(node)
        if isinstance(node.ctx, ast.Store):
            if isinstance(above, ast.Assign) and len(above.targets) > 1:
                return True
        elif not isinstance(above, ast.Attribute | ast.Subscript):
            return True
    return False


def _is_list_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "list" and not node.args


def _bindings(scope: ast.AST, kept: str) -> list[ast.expr]:
    """What a name or attribute is set to in a scope; itself where that cannot be said."""
    found: list[ast.expr] = []
    for node in ast.walk(scope):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            targets, value = [node.target], None
        for target in targets:
            several = isinstance(target, ast.Tuple | ast.List)
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for at, part in enumerate(parts):
                if dotted(part) != kept or (value is None and isinstance(node, ast.AnnAssign)):
                    continue
                given = value
                if several:
                    fits = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts)
                    given = value.elts[at] if fits and isinstance(value, ast.Tuple | ast.List) else None
                found.append(given if given is not None else part)
    return found


def _check_reads(source: SourceText, gathered: _Gathered, loop: Loop) -> None:
    """What is gathered may be shown in the loop now and then; anything else there would wait, or get a tensor."""
    if loop.orelse:
        raise NotApplicable("the loop has an else")
    scope = source.function_of(loop)
    local = scope is not None and "." not in gathered.kept and bool(_bindings(scope, gathered.kept))
    _check_unseen(source, gathered, loop)
    inside = set(ast.walk(gathered.statement))
    for node in ast.walk(loop):
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and not local:
            raise NotApplicable(f"the function can be left in the loop, before {gathered.kept} is read")
        if not isinstance(node, ast.Name | ast.Attribute) or node in inside or dotted(node) != gathered.kept:
            continue
        statement = source.statement(node)
        added = isinstance(statement, ast.AugAssign) and statement.target is node
        other = _gathers(source, statement) if added else None
        if (not added and isinstance(node.ctx, ast.Store)) or (other is not None and other.counts == gathered.counts):
            continue
        seldom = any(isinstance(n, ast.If) and n in set(ast.walk(loop)) for n in source.parents(statement))
        if gathered.is_list or not seldom or not _only_shown(source, node, statement):
            line = source.lines[statement.lineno - 1].strip()
            raise NotApplicable(f"{gathered.kept} is used inside the loop as well: {line}")
        if not _is_formatted(source, node):
            source.replace(node, f"float({gathered.kept})")


def _check_unseen(source: SourceText, gathered: _Gathered, loop: Loop) -> None:
    """No other function reads what is gathered while the loop runs, and nothing does once an exception has ended it."""
    kept, scope = gathered.kept, source.function_of(loop)
    for above in source.parents(loop):
        if above is scope:
            break
        if isinstance(above, ast.Try) and (above.handlers or above.finalbody):
            after = [scope or source.tree] if above.handlers else above.finalbody
            tried = {n for statement in above.body for n in ast.walk(statement)}
            if any(_reads(n, kept) and n not in tried for part in after for n in ast.walk(part)):
                raise NotApplicable(f"an exception may end the loop before {kept} is read back")
    called = {dotted(call.func).rpartition(".")[2] for call in calls(loop)}
    for function in ast.walk(source.tree):
        if not isinstance(function, FunctionNode) or function is scope or function.name not in called:
            continue
        if kept not in local_names(function) and any(_reads(n, kept) for n in ast.walk(function)):
            raise NotApplicable(f"{function.name}, which the loop may call, reads {kept}")


def _reads(node: ast.AST, kept: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and dotted(node) == kept


def _is_formatted(source: SourceText, node: ast.AST) -> bool:
    """Whether a value goes through a format, which takes a tensor of one number as it takes the number."""
    for above in source.parents(node):
        if isinstance(above, ast.JoinedStr) or (isinstance(above, ast.Call) and _name(above) == "format"):
            return True
        if isinstance(above, ast.BinOp) and isinstance(above.left, ast.Constant) and isinstance(above.left.value, str):
            return True
        if isinstance(above, ast.stmt):
            break
    return False


def _only_shown(source: SourceText, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a value goes nowhere but into a text that is shown."""
    for above in source.parents(node):
        if above is statement:
            return isinstance(statement, ast.Expr)
        if isinstance(above, ast.Call):
            if not _shows(above) and _name(above) != "format":
                return False
        elif not isinstance(above, ast.BinOp | ast.FormattedValue | ast.JoinedStr | ast.Tuple | ast.keyword):
            return False
    return False


def _on_device(source: SourceText, gathered: _Gathered, tensor: ast.expr, loop: Loop) -> str:
    text = f"{bracketed(source, tensor)}.detach()"
    if not gathered.is_list and any(word in source.text for word in HALF_WORDS):
        return f"{text}.float()"  # a sum in half precision would stop growing
    if gathered.is_list and not _is_made_anew(tensor, loop):
        return f"{text}.clone()"
    return text


def _is_made_anew(tensor: ast.expr, loop: Loop) -> bool:
    """Whether each turn of a loop makes another tensor, which nothing in it writes into."""
    if not isinstance(tensor, ast.Name):
        return _is_new(tensor)
    made = _bindings(loop, tensor.id)
    return bool(made) and all(map(_is_new, made)) and not _changed_in_place(loop, tensor.id)


def _is_new(value: ast.expr) -> bool:
    """Whether a value is a new one, and no view of a tensor that was there; also what is taken apart or gone over."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VIEWS:
        value = value.func.value
    bound = isinstance(value, ast.Name) and isinstance(value.ctx, ast.Store)
    return bound or isinstance(value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare)


def _changed_in_place(loop: Loop, name: str) -> bool:
    """Whether ``loss /= 4`` or ``loss.mul_(4)`` changes the very values that are kept."""
    return any(
        (isinstance(n, ast.AugAssign) and name and dotted(n.target) == name)
        or (isinstance(n, ast.Attribute) and n.attr.endswith("_") and name and dotted(n.value) == name)
        for n in ast.walk(loop)
    )


def _name(node: ast.expr) -> str:
    """Last name of what is called: also behind something that has no name, as in ``"{}".format``."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


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
    if loop is None or not counter or statement not in loop.body:
        raise NotApplicable("the loop has no step number, or the line is under a condition already")
    if any(counter in shared_names(s) for s in loop.body):
        raise NotApplicable(f"{counter} is used for something else in the loop")
    if any(
        isinstance(n, Loop) and any(_name(c) == "backward" for c in calls(n)) for n in ast.walk(loop) if n is not loop
    ):
        raise NotApplicable("the loop goes over epochs: the line is not shown in each step")
    if not all(
        _only_tells(node) for node in effects(statement.value, torch_words(source)) if node is not statement.value
    ):
        raise NotApplicable("the line does more than to show a value")
    source.insert_line_before(statement, f"if {counter} % {EVERY} == 0:")
    source.indent_more(statement, statement)
    return (
        f"Show the value every {EVERY} steps instead of every step.",
        "Fewer lines are shown. The steps that show one still wait.",
    )


def _only_tells(node: ast.expr) -> bool:
    """Whether a call only asks for something: the time, a rate of learning, how far a bar is."""
    base, _, name = dotted(node.func).rpartition(".") if isinstance(node, ast.Call) else ("", "", "")
    root = base.partition(".")[0]
    return name.startswith(("get_", "is_")) or root in TELLING or name in ASKING


def _shows(call: ast.Call) -> bool:
    base, _, name = dotted(call.func).rpartition(".")
    if name == "write":  # of a progress bar or the terminal; a file would miss lines
        return base.rpartition(".")[2] in ("tqdm", "pbar", "bar", "progress", "stdout", "stderr")
    return name in SHOWS


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
