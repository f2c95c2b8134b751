"""Whether one object can stand for those that each step makes anew: equal ones, and nobody changes or keeps them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from core.fixes.naming import local_names, origin_of
from core.fixes.source_text import FunctionNode, Loop, NotApplicable, SourceText, calls, dotted, names_read

MUTATORS = {"add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "pop", "popitem", "remove",
            "reverse", "setdefault", "sort", "update"}  # fmt: skip
KEEPERS = MUTATORS | {"put", "put_nowait", "setattr", "register_buffer", "register_parameter", "send"}
WRITERS = ("reduce", "broadcast", "gather", "scatter")  # of torch.distributed, among others
VIEWS = {"contiguous", "cpu", "cuda", "detach", "double", "expand", "expand_as", "flatten", "float", "half", "long",
         "movedim", "narrow", "permute", "reshape", "select", "squeeze", "swapaxes", "t", "to", "transpose", "type_as",
         "unsqueeze", "view", "view_as"}  # fmt: skip
VIEW_ATTRIBUTES = {"T", "mT", "H", "data", "real", "imag"}
OF_A_MODULE = {"to", "cuda", "cpu", "forward", "float", "half", "double", "bfloat16"}


# What it is made of -------------------------------------------------------------------------------------------


def check_same_in_loop(source: SourceText, value: ast.expr, loop: Loop) -> None:
    """Check that nothing a value is made of is changed in a loop, or in a function of this file that it calls.

    Raises
    ------
    NotApplicable
        When something is.
    """
    _check_unchanged(source, value, [loop, *_reached(source, loop)])


def check_same_after_init(source: SourceText, value: ast.expr, init: FunctionNode | None) -> None:
    """Check that what a value is made of is set once: before, or in ``__init__``.

    Raises
    ------
    NotApplicable
        When it is set again, or may be.
    """
    functions = [n for n in ast.walk(source.tree) if isinstance(n, FunctionNode) and n is not init]
    _check_unchanged(source, value, functions)
    for name in names_read(value):
        bound = [n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name]
        if sum(not isinstance(n.ctx, ast.Load) and source.function_of(n) is None for n in bound) > 1:
            raise NotApplicable(f"{name} is set more than once")


def _reached(source: SourceText, node: ast.AST) -> list[FunctionNode]:
    """Functions of this file that something calls, by their names, over any number of them."""
    named: dict[str, list[FunctionNode]] = {}
    for function in ast.walk(source.tree):
        if isinstance(function, FunctionNode):
            named.setdefault(function.name, []).append(function)
    found: list[FunctionNode] = []
    wanted: list[ast.AST] = [node]
    while wanted:
        for call in calls(wanted.pop()):
            new = named.pop(dotted(call.func).rpartition(".")[2], [])
            found += new
            wanted += new
    return found


def _check_unchanged(source: SourceText, value: ast.expr, code: Iterable[ast.AST]) -> None:
    names = {n for n in names_read(value) if not origin_of(source, n)}
    read = [n for n in ast.walk(value) if isinstance(n, ast.Attribute) and dotted(n).partition(".")[0] in names]
    attributes = {n.attr for n in read}
    for part in code:
        own = local_names(part) if isinstance(part, FunctionNode) else set()
        for node in ast.walk(part):
            changed = changed_object(node)
            if isinstance(changed, ast.Name) and changed.id in names - own:
                raise NotApplicable(f"{changed.id} changes from step to step")
            if isinstance(changed, ast.Attribute) and changed.attr in attributes:
                raise NotApplicable(f"{dotted(changed) or changed.attr} is set again later")


def changed_object(node: ast.AST) -> ast.AST | None:
    """The object that a node changes: of ``a.b = 1``, ``a.b += 1`` and ``del a.b`` it is ``a.b`` itself."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return node
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return node.func.value if name in MUTATORS or _in_place(name) else None
    return None


# What becomes of it -------------------------------------------------------------------------------------------


def check_tensor_stays(source: SourceText, tensor: ast.expr) -> None:
    """Check that nobody who gets a tensor writes into it or keeps it.

    Raises
    ------
    NotApplicable
        When somebody does, or may.
    """
    if not _stays(source, tensor, set()):
        raise NotApplicable("it is changed later, or kept by somebody who may change it")


def check_module_stays(scope: ast.AST, name: str) -> None:
    """Check that an object is called, and not set up further.

    Raises
    ------
    NotApplicable
        When something is set on it, or another method of it is called.
    """
    called = {id(call.func) for call in calls(scope)}
    for node in ast.walk(scope):
        if not isinstance(node, ast.Attribute) or dotted(node.value) != name:
            continue
        if not isinstance(node.ctx, ast.Load) or (id(node) in called and node.attr not in OF_A_MODULE):
            raise NotApplicable(f"{name} is changed after it is built: {dotted(node)}")


def _stays(source: SourceText, node: ast.expr, seen: set[tuple[ast.AST | None, str]]) -> bool:
    above = source.parent(node)
    if isinstance(above, ast.Tuple) and isinstance(source.parent(above), ast.Subscript):
        return True  # one of several indexes
    match above:
        case ast.Attribute():
            outer = source.parent(above)
            if _in_place(above.attr) or not isinstance(above.ctx, ast.Load):
                return False
            if isinstance(outer, ast.Call) and outer.func is above:
                return above.attr not in VIEWS or _stays(source, outer, seen)
            return above.attr not in VIEW_ATTRIBUTES or _stays(source, above, seen)
        case ast.Subscript():
            return above.slice is node or (isinstance(above.ctx, ast.Load) and _stays(source, above, seen))
        case ast.Assign(targets=[ast.Name(id=name)]):
            return _all_stay(source, source.function_of(above), name, above, seen)
        case ast.Call():
            return _given_stays(source, above, node, seen)
        case ast.keyword():
            call = source.parent(above)
            return isinstance(call, ast.Call) and above.arg != "out" and _given_stays(source, call, above, seen)
        case ast.AugAssign():
            return above.value is node
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.FormattedValue() | ast.Expr() | ast.For():
            return True
    return False


def _all_stay(
    source: SourceText, scope: ast.AST | None, name: str, bound: ast.AST | None, seen: set[tuple[ast.AST | None, str]]
) -> bool:
    """Whether the object that a name of a function holds is left as it is wherever the name is read."""
    if (scope, name) in seen:
        return True
    seen.add((scope, name))
    for node in ast.walk(scope or source.tree):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        above = source.parent(node)
        if isinstance(node.ctx, ast.Load) and above is not bound and not _stays(source, node, seen):
            return False
        if isinstance(above, ast.AugAssign) and above.target is node:
            return False
    return True


def _given_stays(
    source: SourceText, call: ast.Call, given: ast.expr | ast.keyword, seen: set[tuple[ast.AST | None, str]]
) -> bool:
    """Whether a function that is called with an object leaves it as it is, as far as its name or its code tells."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    if call.func is given:
        return True
    if name in KEEPERS or _in_place(name) or any(word in name for word in WRITERS):
        return False
    own = next((n for n in source.tree.body if isinstance(n, FunctionNode) and n.name == dotted(call.func)), None)
    if own is None:
        return True
    if isinstance(given, ast.keyword):
        return given.arg is not None and _all_stay(source, own, given.arg, None, seen)
    names = [a.arg for a in (*own.args.posonlyargs, *own.args.args)]
    at = call.args.index(given)
    return at < len(names) and _all_stay(source, own, names[at], None, seen)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")
