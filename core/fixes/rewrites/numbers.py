"""Whether a value is a plain number, as far as the text of a file tells: the built-in losses want tensors."""

from __future__ import annotations

import ast

from core.fixes.source_text import FunctionNode, SourceText, calls, dotted

SETTINGS = {"args", "cfg", "conf", "config", "hparams", "hp", "opt", "opts", "params", "settings", "flags"}
OF_A_TENSOR = {"item", "size", "dim", "numel", "ndimension"}
FUNCTIONS = {"float", "int", "len", "round"}


def is_number(
    source: SourceText, node: ast.expr | None, around: FunctionNode | None, seen: tuple[str, ...] = ()
) -> bool:
    """Whether a value is a plain number.

    Parameters
    ----------
    source, node
        The module, and the value in it.
    around
        The function whose names the value is made of.
    seen
        Names that are being followed already.

    Returns
    -------
    bool
        False also where nothing is known.
    """
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp():
            return is_number(source, node.operand, around, seen)
        case ast.BinOp():
            return is_number(source, node.left, around, seen) and is_number(source, node.right, around, seen)
        case ast.Call(func=ast.Attribute(attr=name)) if name in OF_A_TENSOR:
            return True
        case ast.Call():
            return dotted(node.func) in FUNCTIONS or dotted(node.func).startswith("math.")
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    name = dotted(node)
    if not name or name in seen:
        return False
    return (
        _is_setting(source, name)
        or any(is_number(source, value, around, (*seen, name)) for value in _values(source, name, around))
        or ("." not in name and _given_as_number(source, name, around))
    )


def _is_setting(source: SourceText, name: str) -> bool:
    """``args.margin``, or a field of a class of this file that is declared as a number."""
    *before, last = name.split(".")
    if before and before[-1].lower() in SETTINGS:
        return True
    fields = (n for c in ast.walk(source.tree) if isinstance(c, ast.ClassDef) for n in c.body)
    return bool(before) and any(
        isinstance(f, ast.AnnAssign) and dotted(f.target) == last and dotted(f.annotation) in ("float", "int")
        for f in fields
    )


def _values(source: SourceText, name: str, around: FunctionNode | None) -> list[ast.expr]:
    """What a name or attribute is set to, or has by default, where a function can see it."""
    found: list[ast.expr] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and any(dotted(t) == name for t in node.targets):
            if "." in name or source.function_of(node) in (around, None):
                found.append(node.value)
        elif isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args]
            defaults = dict(zip([a.arg for a in reversed(every)], reversed(node.defaults), strict=False))
            defaults |= {a.arg: d for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d is not None}
            if name in defaults:
                found.append(defaults[name])
            if any(a.arg == name and dotted(a.annotation) in ("float", "int") for a in (*every, *node.kwonlyargs)):
                found.append(ast.Constant(0))
    return found


def _given_as_number(source: SourceText, name: str, around: FunctionNode | None) -> bool:
    """Whether some call of this file hands a written number to a parameter of a function."""
    if around is None:
        return False
    names = [a.arg for a in (*around.args.posonlyargs, *around.args.args)]
    if name not in names:
        return False
    at = names.index(name)
    for call in calls(source.tree):
        if dotted(call.func) != around.name:
            continue
        given = [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == name)]
        if any(isinstance(g, ast.Constant) and type(g.value) in (int, float) for g in given):
            return True
    return False
