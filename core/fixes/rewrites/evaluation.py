"""What code evaluates, how often and in which order: a rewrite may change that only where nobody could tell.

A call counts as an effect unless it is known to have none: it may draw random numbers, take the next item, write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from core.fixes.naming import functional_word, torch_word
from core.fixes.source_text import SourceText, dotted

Event = tuple[tuple[int, int, int, int], bool]  # where in the source, and whether it is an effect

# Of tensors; all are named like this on numbers and texts too.
METHODS = re.compile(
    r"abs|add|all|a?max|a?min|any|arg(max|min|sort)|b?mm|bfloat16|bool|ceil|chunk|clamp|clone|contiguous|cos|cpu|cuda|cumsum"
    r"|detach|dim|div|dot|double|eq|erf|exp|expand(_as)?|expm1|flatten|float|floor|format|gather|ge|get|gt|half"
    r"|index_select|int|isfinite|isinf|isnan|item|le|log(1p|2|_softmax|sumexp)?|long|lower|lt|masked_(fill|select)"
    r"|matmul|mean|mul|ndimension|ne|neg|norm|numel|numpy|outer|permute|pow|prod|relu|repeat|reshape|round|r?sqrt"
    r"|select|sigmoid|sin|size|softmax|split|square|squeeze|std|strip|sub|sum|t|tanh|to|tolist|topk|transpose|tri[lu]"
    r"|type_as|unbind|unsqueeze|upper|var|view|where"
)
BUILTINS = re.compile(r"abs|bool|float|int|isinstance|len|range|round|str|tuple|type")
NOT_PURE = re.compile(
    r"rand|normal|bernoulli|multinomial|poisson|dropout|gumbel|rrelu|fractional|scaled_dot|batch_norm|instance_norm"
    r"|manual_seed|seed$|_$|^set_|^load|^save|^empty|^compile|^no_grad|^enable"
)


def is_pure(call: ast.Call, torch_words: frozenset[str]) -> bool:
    """Whether a call is known to have the same value each time and to change nothing."""
    if any(k.arg in ("out", "inplace", "generator", None) for k in call.keywords):
        return False
    base, _, last = dotted(call.func).rpartition(".")
    if base in torch_words:
        return bool(last) and last[0].islower() and not NOT_PURE.search(last)
    if base == "math":
        return True
    if isinstance(call.func, ast.Attribute):
        receiver = call.func.value
        own = dotted(receiver) in ("self", "cls") or (
            isinstance(receiver, ast.Call) and dotted(receiver.func) == "super"
        )
        return METHODS.fullmatch(call.func.attr) is not None and not own
    return BUILTINS.fullmatch(dotted(call.func)) is not None


def torch_words(source: SourceText) -> frozenset[str]:
    """What a module calls torch and ``torch.nn.functional``."""
    return frozenset({torch_word(source), functional_word(source), f"{torch_word(source)}.nn.functional"})


def effects(node: ast.AST, words: frozenset[str]) -> list[ast.expr]:
    """Everything below a node that may have an effect or another value each time, in the order of evaluation."""
    return [n for n in _in_order(node) if _is_effect(n, words)]


def _is_effect(node: ast.expr, words: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        return not is_pure(node, words)
    return isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)


def places_of_effects(node: ast.expr, words: frozenset[str]) -> list[tuple[int, int, int, int]]:
    """Where the effects of an expression stand in the source: the same places are the same evaluations."""
    return [_place(n) for n in effects(node, words)]


def keeps_evaluations(before: Iterable[ast.expr], after: Iterable[ast.expr], words: frozenset[str]) -> bool:
    """Whether each effect of some code happens just once in other code made of its parts, and nothing moves over it.

    Parameters
    ----------
    before, after
        Expressions in the order in which they are evaluated; those after hold nodes (or copies) of those before.
    words
        What the module calls torch, see `torch_words`.

    Returns
    -------
    bool
        True also where there is no effect at all.
    """
    first = [event for node in before for event in _events(node, words)]
    then = [event for node in after for event in _events(node, words)]
    kept = {place for place, _ in then}
    if [e for e in first if e[1]] != [e for e in then if e[1]]:
        return False
    return _between_effects([e for e in first if e[0] in kept]) == _between_effects(then)


def _events(node: ast.expr, words: frozenset[str]) -> list[Event]:
    return [(_place(n), _is_effect(n, words)) for n in _in_order(node) if not isinstance(n, ast.Name | ast.Constant)]


def _between_effects(events: list[Event]) -> list[set[tuple[int, int, int, int]]]:
    groups: list[set[tuple[int, int, int, int]]] = [set()]
    for place, is_effect in events:
        if is_effect:
            groups.append(set())
        else:
            groups[-1].add(place)
    return groups


def _place(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _in_order(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions below a node and itself, in the order in which they are evaluated; not what a lambda will do."""
    if isinstance(node, ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)
    if isinstance(node, ast.expr):
        yield node
