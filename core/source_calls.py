"""The calls and operators that a function's code makes, in the order in which Python evaluates them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from core.source_syntax import FunctionNode

MODULE_CALL = "()"  # label of a call of something that is itself called: a module, a loss
TESTED = "?"  # label of a test or a number cast, which reads a tensor's value
_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
_UNARY: dict[type[ast.AST], str] = {ast.USub: "neg", ast.Invert: "bitwise_not"}
_COMPARE: dict[type[ast.AST], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_INDEXED = ("index", "select", "slice", "unsqueeze", "masked_select")
_STORED = ("index_put", "copy", "fill", "select", "slice")
_CASTS = frozenset(("float", "int", "bool"))
# what a method does under another operator's name
_ALSO: dict[str, tuple[str, ...]] = {
    "cuda": ("to", "_to_copy"),
    "cpu": ("to", "_to_copy"),
    "half": ("to", "_to_copy"),
    "float": ("to", "_to_copy"),
    "double": ("to", "_to_copy"),
    "long": ("to", "_to_copy"),
    "int": ("to", "_to_copy"),
    "bfloat16": ("to", "_to_copy"),
    "type": ("to", "_to_copy"),
    "to": ("_to_copy",),
    "tolist": ("item",),
    "Tensor": ("empty", "tensor"),
    "absolute": ("abs",),
    "concat": ("cat",),
}


@dataclass(frozen=True)
class Call:
    """One thing that is evaluated: its line, what it can show as, and where it stands.

    ``loops`` are the numbers of the loops around it, outermost first. ``sure``: it runs whenever its surroundings do.
    """

    line: int
    labels: frozenset[str]
    loops: tuple[int, ...]
    sure: bool
    node: ast.AST


def calls_of(function: FunctionNode) -> tuple[Call, ...]:
    """All that a function evaluates, inner functions and classes left out."""
    reader = _Reader()
    for node in function.body if isinstance(function.body, list) else [function.body]:
        reader.read(node)
    return tuple(reader.found)


class _Reader:
    """Walks statements and expressions in the order of their evaluation."""

    def __init__(self) -> None:
        self.found: list[Call] = []
        self._loops: tuple[int, ...] = ()
        self._number = 0
        self._unsure = 0

    def read(self, node: ast.AST | None) -> None:
        """Add what one node evaluates."""
        if node is None or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        special = getattr(self, f"_{type(node).__name__.lower()}", None)
        if special is not None:
            special(node)
            return
        for child in ast.iter_child_nodes(node):
            self.read(child)
        self._add(node)

    def _add(self, node: ast.AST, labels: tuple[str, ...] | None = None) -> None:
        names = _labels(node) if labels is None else labels
        line = int(getattr(node, "lineno", 0))
        if names and line:
            self.found.append(Call(line, frozenset(names), self._loops, not self._unsure, node))

    def _all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.read(node)

    def _maybe(self, *groups: list[ast.stmt]) -> None:
        self._unsure += 1
        for group in groups:
            self._all(group)
        self._unsure -= 1

    def _inside(self, body: list[ast.stmt], test: ast.expr | None = None) -> None:
        self._number += 1
        self._loops = (*self._loops, self._number)
        if test is not None:
            self.read(test)
            self._add(test, (TESTED,))
        self._all(body)
        self._loops = self._loops[:-1]

    def _for(self, node: ast.For) -> None:
        self.read(node.iter)
        self._inside(node.body)
        self._maybe(node.orelse)

    _asyncfor = _for

    def _while(self, node: ast.While) -> None:
        self._inside(node.body, node.test)
        self._maybe(node.orelse)

    def _if(self, node: ast.If) -> None:
        self.read(node.test)
        self._add(node.test, (TESTED,))
        self._maybe(node.body, node.orelse)

    def _ifexp(self, node: ast.IfExp) -> None:
        self.read(node.test)
        self._add(node.test, (TESTED,))
        self._unsure += 1
        self.read(node.body)
        self.read(node.orelse)
        self._unsure -= 1

    def _assert(self, node: ast.Assert) -> None:
        self.read(node.test)
        self._add(node, (TESTED,))

    def _try(self, node: ast.Try) -> None:
        self._all(node.body)
        self._maybe(*(h.body for h in node.handlers), node.orelse)
        self._all(node.finalbody)

    def _assign(self, node: ast.Assign) -> None:
        self.read(node.value)
        self._all(node.targets)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self.read(node.generators[0].iter)
        self._number += 1
        self._loops = (*self._loops, self._number)
        for at, generator in enumerate(node.generators):
            if at:
                self.read(generator.iter)
            self._all(generator.ifs)
        for part in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self.read(part)
        self._loops = self._loops[:-1]

    _listcomp = _setcomp = _generatorexp = _dictcomp = _comprehension


def _labels(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        name = _BINARY.get(type(node.op), "")
        return (name, f"r{name}") if name else ()
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            return (TESTED,)
        return (_UNARY[type(node.op)],) if type(node.op) in _UNARY else ()
    if isinstance(node, ast.Compare):
        return tuple(_COMPARE[type(op)] for op in node.ops if type(op) in _COMPARE)
    if isinstance(node, ast.Subscript):
        return _INDEXED if isinstance(node.ctx, ast.Load) else _STORED
    return ()


def _of_call(node: ast.Call) -> tuple[str, ...]:
    func = node.func
    if not isinstance(func, (ast.Attribute, ast.Name)):
        return (MODULE_CALL,)
    name = func.attr if isinstance(func, ast.Attribute) else func.id
    plain = name.rstrip("_") or name
    if isinstance(func, ast.Name) and name in _CASTS:
        return (TESTED, "item")
    return (plain, *_ALSO.get(plain, ()), MODULE_CALL)
