"""Where the code makes what it uses elsewhere: the calls that make modules, in constructors and builders."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from core.source_syntax import FunctionNode, find_function, walk_own

Wanted = Callable[[ast.Call], bool]


def made_in_constructor(tree: ast.Module, name: str, line: int, wanted: Wanted) -> tuple[int, ...]:
    """Return the lines of such calls in the ``__init__`` of the class whose method (see `find_function`) this is."""
    method = find_function(tree, name, line)
    owner = next((c for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and method in c.body), None)
    return tuple(sorted({call.lineno for init in _constructors(owner) for call in _calls(init, wanted)}))


def made_elsewhere(tree: ast.Module, wanted: Wanted) -> tuple[tuple[int, str], ...]:
    """Return line and function of such calls in the whole file, by line.

    Constructors of classes that have a ``forward`` of their own are left out: what they make runs in that.
    """
    found: dict[int, str] = {}
    for owner, function in _functions(tree):
        methods = [n for n in owner.body if isinstance(n, ast.FunctionDef)] if owner is not None else []
        if function in methods and function.name == "__init__" and any(m.name == "forward" for m in methods):
            continue
        for call in _calls(function, wanted):
            found.setdefault(call.lineno, getattr(function, "name", "<module>"))
    return tuple(sorted(found.items()))


def built_at(tree: ast.Module, line: int) -> str:
    """Name, as written, of the one class that a line makes an object of; "" where there is none, or several."""
    names = {
        ast.unparse(call.func)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and call.lineno == line and isinstance(call.func, (ast.Name, ast.Attribute))
    }
    made = [name for name in names if name.rsplit(".", 1)[-1][:1].isupper()]
    return made[0] if len(made) == 1 else ""


def class_of_method(tree: ast.Module, name: str, line: int) -> str:
    """Name of the class whose method this is; "" for a function of none."""
    method = find_function(tree, name, line)
    return next((c.name for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and method in c.body), "")


def _constructors(owner: ast.ClassDef | None) -> list[ast.FunctionDef]:
    body = owner.body if owner is not None else []
    return [init for init in body if isinstance(init, ast.FunctionDef) and init.name == "__init__"]


def _calls(function: FunctionNode, wanted: Wanted) -> Iterator[ast.Call]:
    return (call for call in walk_own(function) if isinstance(call, ast.Call) and wanted(call))


def _functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, FunctionNode]]:
    """Every function of a file with the class that it is a method of, and the file's own code."""
    yield None, tree
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield (node if isinstance(node, ast.ClassDef) else None), child
