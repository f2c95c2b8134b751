"""Where the code makes what a loop goes over: followed through names, parameters and functions of one file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from core.source_syntax import FunctionNode, find_function, walk_own
from core.suggestions import SourceRef

_Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


def made_for_loop(tree: ast.Module, loop: SourceRef, wanted: Callable[[ast.Call], bool]) -> tuple[tuple[int, str], ...]:
    """Return line and function of the calls that make what the loop at a place goes over, by line.

    All loops of the place's function are meant where its line is not exact. The one such call of the file where no loop
    says it; empty where what they go over was imported, or where any of several could be meant.
    """
    search = _Search(tree, wanted)
    function = find_function(tree, loop.function, loop.line)
    for head, scope in search.scopes.items():
        if isinstance(head, (ast.For, ast.AsyncFor, ast.comprehension)):
            here = head.target.lineno <= loop.line <= (head.iter.end_lineno or head.iter.lineno)
            if here if loop.exact else scope is function:
                search.look(head.iter, scope)
    every = {c.lineno: _name(f) for c, f in search.scopes.items() if isinstance(c, ast.Call) and wanted(c)}
    if search.found:
        return tuple((at, every[at]) for at in sorted(search.found))
    return tuple(every.items()) if len(every) == 1 and not search.imported else ()


def _name(function: FunctionNode) -> str:
    return getattr(function, "name", "<module>")


class _Search:
    """Follows expressions of a file to the wanted calls behind them."""

    def __init__(self, tree: ast.Module, wanted: Callable[[ast.Call], bool]) -> None:
        self._tree, self._wanted = tree, wanted
        self._functions = [n for n in ast.walk(tree) if isinstance(n, _Functions)]
        self._seen: set[tuple[str, FunctionNode]] = set()
        self.scopes: dict[ast.AST, FunctionNode] = {n: f for f in (tree, *self._functions) for n in walk_own(f)}
        self.found: set[int] = set()
        self.imported = False

    def look(self, node: ast.AST, scope: FunctionNode) -> None:
        """Look for wanted calls in an expression, and behind the names and calls in it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and self._wanted(part):
                self.found.add(part.lineno)
                return
        for part in ast.walk(node):
            if isinstance(part, (ast.Name, ast.Attribute)):
                self._follow(ast.unparse(part), scope)
            elif isinstance(part, ast.Call):
                self._follow(f"{ast.unparse(part.func)}()", scope)

    def _follow(self, name: str, scope: FunctionNode) -> None:
        if (name, scope) in self._seen:
            return
        self._seen.add((name, scope))
        if name.endswith("()"):
            for function in self._called(name[:-2]):
                for node in walk_own(function):
                    if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
                        self.look(node.value, function)
            return
        own = [(value, scope) for value in self._values(name, scope)]
        if not own and (given := list(self._given(name, scope))):
            own = given
        elif not own:
            around = [self._tree] if "." not in name else self._functions
            own = [(value, function) for function in around for value in self._values(name, function)]
        for value, where in own:
            self.look(value, where)
        names = {a.asname or a.name for n in ast.walk(self._tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        self.imported |= not own and name in names

    def _values(self, name: str, scope: FunctionNode) -> Iterator[ast.expr]:
        """What a function assigns to a name."""
        for node in walk_own(scope):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            value = getattr(node, "value", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and value is not None:
                parts = [p for t in targets if t is not None for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
                if any(ast.unparse(part) == name for part in parts):
                    yield value

    def _called(self, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [f for f in self._functions if f.name == name.rpartition(".")[2]]

    def _given(self, name: str, scope: FunctionNode) -> Iterator[tuple[ast.expr, FunctionNode]]:
        """What the file's calls of a function pass as this parameter."""
        if not isinstance(scope, _Functions):
            return
        names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args)]
        if name not in names and all(a.arg != name for a in scope.args.kwonlyargs):
            return
        for call, where in self.scopes.items():
            if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] != scope.name:
                continue
            yield from ((k.value, where) for k in call.keywords if k.arg == name)
            at = names.index(name) - (names[0] in ("self", "cls")) if name in names else -1
            if 0 <= at < len(call.args):
                yield call.args[at], where
