"""Names the line inside a function from what was seen below it, by reading the function's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module

_ITEM = {"item", "tolist"}
_HOST = {"cpu", "numpy"}
_MAKERS = {
    "Tensor",
    "tensor",
    "FloatTensor",
    "LongTensor",
    "as_tensor",
    "from_numpy",
    "full",
    "zeros",
    "ones",
    "arange",
}
_MAKERS |= {"rand", "randn", "eye", "linspace", "empty", "randint", "full_like", "zeros_like", "ones_like"}
_REDUCTIONS = {"max", "min", "any", "all", "sum", "mean", "isnan", "isinf", "isfinite", "eq", "equal", "allclose"}
_LIST_MAKERS = {"range", "list", "sorted", "tuple"}
_SIZES = {"nonzero", "argwhere", "masked_select", "unique", "where"}


@dataclass(frozen=True)
class Match:
    """Lines that fit what was seen, best ones first, with the reason in words."""

    lines: tuple[int, ...]
    reason: str


def find_function(tree: ast.Module, name: str, line: int) -> FunctionNode | None:
    """Return the function whose ``def`` (or first decorator) is at ``line`` and has that name."""
    if name == "<module>":
        return tree
    best: FunctionNode | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == line:
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= node.lineno:
                return node
            if first <= line <= (node.end_lineno or node.lineno):
                best = node
    return best


def match(function: FunctionNode, hint: str, in_loop: bool = False) -> Match | None:
    """Find the lines of a function that can have caused what ``hint`` names.

    Parameters
    ----------
    function
        The function, or the module for code at top level.
    hint
        ``item``, ``control-flow``, ``host-index``, ``mask``, ``constant``, ``batch``, ``read-back``, ``construct``,
        ``print``, ``gather``, ``loop``, or ``call:NAME[,NAME]`` for calls of these names.
    in_loop
        Whether it was seen once in every round of a loop of this function: then nothing outside its loops is meant.

    Returns
    -------
    Match or None
        None where nothing fits.
    """
    if hint.startswith("call:"):
        names = set(hint[5:].split(","))
        return _collect(function, lambda n: _call_name(n) in names, called(names), in_loop)
    if hint == "host-index":
        lists = _names_of_lists(function)
        known = _collect(
            function,
            lambda n: _is_indexed_by(n, lists),
            "a tensor is indexed with a Python list or range here",
            in_loop,
        )
        if known is not None:
            return known
    for test, reason in _TESTS.get(hint, ()):
        found = _collect(function, test, reason, in_loop and hint != "loop")  # a loop's own line is not inside it
        if found is not None:
            return found
    return None


def called(names: Iterable[str]) -> str:
    """Words for a line that calls one of some functions."""
    every = sorted(names)
    if len(every) < 2:
        return f"a call of {every[0]}() is here"
    return f"a call of {', '.join(f'{n}()' for n in every[:-1])} or {every[-1]}() is here"


def _collect(
    function: FunctionNode, test: Callable[[ast.AST], bool], reason: str, in_loop: bool = False
) -> Match | None:
    lines = {int(getattr(n, "lineno", 0)) for n in walk_own(function) if test(n)} - {0}
    if in_loop:
        lines &= lines_in_loops(function)
    return Match(tuple(sorted(lines)), reason) if lines else None


def lines_in_loops(function: FunctionNode) -> frozenset[int]:
    """Lines that run again and again within one call of a function."""
    lines: set[int] = set()
    for node in walk_own(function):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            first = node.lineno if isinstance(node, ast.While) else node.body[0].lineno
            lines.update(range(first, (node.body[-1].end_lineno or node.body[-1].lineno) + 1))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def loop_heads(function: FunctionNode, lines: Iterable[int]) -> tuple[int, ...]:
    """Head of the innermost loop around each of some lines, once; none for a line that no loop runs again."""
    heads: list[int] = []
    for line in lines:
        around = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in walk_own(function)
            if isinstance(
                node, (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
            )
        ]
        inner = [(first, end) for first, end in around if first <= line <= end]
        heads += [max(inner, key=lambda span: (span[0], -span[1]))[0]] if inner else []
    return tuple(dict.fromkeys(heads))


def walk_own(function: FunctionNode) -> tuple[ast.AST, ...]:
    """All nodes of a function's body, inner functions and classes left out; remembered while the function is held."""
    held = _OWN.get(function)
    if held is None:
        held = _OWN[function] = tuple(_walk_own(function))
    return held


_OWN: WeakKeyDictionary[FunctionNode, tuple[ast.AST, ...]] = WeakKeyDictionary()


def _walk_own(function: FunctionNode) -> Iterator[ast.AST]:
    body = function.body if isinstance(function.body, list) else [function.body]
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _call_name(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _inside(node: ast.AST, test: Callable[[ast.AST], bool]) -> bool:
    return any(test(n) for n in ast.walk(node))


def _is_item(node: ast.AST) -> bool:
    return _call_name(node) in _ITEM


def _is_number_cast(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"float", "int", "bool"}
        and bool(node.args)
        and not isinstance(node.args[0], ast.Constant)
    )


def _tests_of(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    return []


def _is_tensor_test(node: ast.AST) -> bool:
    """A test on something reduced (``t.max() < n``), the likeliest to be a tensor."""
    return any(_inside(t, lambda n: _call_name(n) in _REDUCTIONS) for t in _tests_of(node))


def _is_plain_test(node: ast.AST) -> bool:
    """A test that could be on a tensor: a comparison or a name, no ``is None``, ``isinstance``, ``len``."""
    for test in _tests_of(node):
        if isinstance(test, ast.Constant) or (isinstance(test, ast.Name) and test.id == "__debug__"):
            continue
        if isinstance(test, ast.Compare) and any(
            isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in test.ops
        ):
            continue
        if _inside(test, lambda n: _call_name(n) in {"isinstance", "len", "hasattr", "callable", "item"}):
            continue
        if isinstance(test, (ast.Compare, ast.Name, ast.Call, ast.BoolOp, ast.UnaryOp)):
            return True
    return False


def _is_host_index(node: ast.AST) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(_is_list(p) for p in parts)


def _is_list(node: ast.AST) -> bool:
    if isinstance(node, (ast.List, ast.ListComp)):
        return True
    if isinstance(node, ast.Call) and any(k.arg == "device" for k in node.keywords):
        return False  # made where it is used
    return _call_name(node) in _LIST_MAKERS or _call_name(node) in {"tensor", "LongTensor", "arange"}


def _names_of_lists(function: FunctionNode) -> frozenset[str]:
    """Names that the function sets to a list or range: ``rows = range(n)``."""
    names: set[str] = set()
    for node in walk_own(function):
        if isinstance(node, ast.Assign) and _is_list(node.value):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return frozenset(names)


def _is_indexed_by(node: ast.AST, names: frozenset[str]) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(_is_list(p) or (isinstance(p, ast.Name) and p.id in names) for p in parts)


def _is_index(node: ast.AST) -> bool:
    """Indexing by names only: ``pred[r, target]``."""
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, (ast.Constant, ast.Slice)):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(p, (ast.Name, ast.Attribute, ast.Call)) for p in parts)


def _is_mask(node: ast.AST) -> bool:
    if _call_name(node) in _SIZES:
        return True
    return isinstance(node, ast.Subscript) and _inside(node.slice, lambda n: isinstance(n, (ast.Compare, ast.Invert)))


def _is_move(node: ast.AST) -> bool:
    return _call_name(node) in {"cuda", "to"} or any(k.arg == "device" for k in getattr(node, "keywords", []))


def _is_made_and_moved(node: ast.AST) -> bool:
    """``torch.Tensor([...]).cuda()``: a tensor made and moved in one expression."""
    if _call_name(node) not in {"cuda", "to"} or not isinstance(node, ast.Call):
        return False
    return isinstance(node.func, ast.Attribute) and _inside(node.func.value, lambda n: _call_name(n) in _MAKERS)


def _is_construction(node: ast.AST) -> bool:
    """A call of something with a capital first letter: ``nn.NLLLoss(...)``."""
    name = _call_name(node)
    return bool(name) and name[0].isupper() and name not in {"Tensor", "FloatTensor", "LongTensor"}


def _takes_pieces(node: ast.AST) -> bool:
    """A loop over something, or one whose variable is an index: ``for row in x``, ``for i in range(n): x[i]``."""
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        loops = [(g.target, g.iter) for g in node.generators]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        loops = [(node.target, node.iter)]
    else:
        return False
    if any(isinstance(over, ast.Name) for _, over in loops):
        return True
    names = {n.id for target, _ in loops for n in ast.walk(target) if isinstance(n, ast.Name)}
    indices = [n.slice for n in ast.walk(node) if isinstance(n, ast.Subscript)]
    return any(_inside(index, lambda n: isinstance(n, ast.Name) and n.id in names) for index in indices)


_Test = tuple[Callable[[ast.AST], bool], str]
_TESTS: dict[str, tuple[_Test, ...]] = {
    "item": (
        (_is_item, ".item() or .tolist() is called here"),
        (_is_number_cast, "float() or int() of a value is taken here"),
        (_is_plain_test, "a value is tested here"),
    ),
    "control-flow": (
        (_is_tensor_test, "a reduced tensor is tested here"),
        (_is_plain_test, "a value is tested here"),
        (_is_number_cast, "bool() of a value is taken here"),
    ),
    "host-index": (
        (_is_host_index, "a tensor is indexed with a Python list or range here"),
        (_is_index, "a tensor is indexed here"),
    ),
    "gather": (
        (lambda n: _call_name(n) in {"gather", "nll_loss"}, "the scores of the classes are picked out here"),
        (_is_index, "a tensor is indexed here"),
    ),
    "mask": (
        (_is_mask, "a boolean mask or a data-dependent size is used here"),
        (_is_index, "a tensor is indexed here"),
    ),
    "constant": (
        (_is_made_and_moved, "a tensor is made on the CPU and moved here"),
        (lambda n: _call_name(n) in {"cuda", "to"}, "a tensor is moved here"),
    ),
    "batch": ((lambda n: _call_name(n) in {"cuda", "to"}, "a tensor is moved here"),),
    "read-back": (
        (lambda n: _call_name(n) in _HOST, ".cpu() or .numpy() is called here"),
        (lambda n: _call_name(n) == "to", "a tensor is moved here"),
        (lambda n: _call_name(n) == "print", "something is printed here"),
    ),
    "print": ((lambda n: _call_name(n) in {"print", "info", "debug", "format"}, "something is printed here"),),
    "loop": ((_takes_pieces, "a loop takes its pieces one by one here"),),
    "construct": ((_is_construction, "an object is built here"),),
}
