"""Losses and activations written by hand that are recognisably those of ``torch.nn.functional``.

A function's straight-line body is folded into one expression by putting each name's value in its place; the
expression is then compared with known forms. What does not fit exactly is left alone.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from core import syntax
from core.fixes.naming import functional_name, functional_word, torch_word
from core.fixes.rewrites.evaluation import keeps_evaluations, places_of_effects, torch_words
from core.fixes.rewrites.numbers import is_number
from core.fixes.source_text import FunctionNode, NotApplicable, Place, SourceText, calls, dotted, names_read, same


@dataclass(frozen=True)
class Form:
    """A known form: capital letters of the pattern stand for any expression, the same one each time."""

    pattern: str
    result: str


GELU_BY_TANH = 'F.gelu(X, approximate="tanh")'
# Written with methods; torch.exp(x), torch.sum(x, 1) and x.sum(dim=1) are brought to the same form first.
FORMS = (
    Form("X - X.exp().sum(D).log().unsqueeze(D)", "F.log_softmax(X, D)"),
    Form("X - X.exp().sum(D, keepdim=True).log()", "F.log_softmax(X, D)"),
    Form("X - X.logsumexp(D, keepdim=True)", "F.log_softmax(X, D)"),
    Form("X - X.logsumexp(D).unsqueeze(D)", "F.log_softmax(X, D)"),
    Form("X.softmax(D).log()", "F.log_softmax(X, D)"),
    Form("(X.exp() / X.exp().sum(D, keepdim=True)).log()", "F.log_softmax(X, D)"),
    Form("X.exp() / X.exp().sum(D, keepdim=True)", "F.softmax(X, D)"),
    Form("X.exp() / X.exp().sum(D).unsqueeze(D)", "F.softmax(X, D)"),
    Form("(-P[INDEX, T] * W[T] / W[T].sum()).sum()", "F.nll_loss(P, T, weight=W)"),
    Form("(-P[INDEX, T] * W[T]).sum() / W[T].sum()", "F.nll_loss(P, T, weight=W)"),
    Form("(-P[INDEX, T]).mean()", "F.nll_loss(P, T)"),
    Form("-P[INDEX, T].mean()", "F.nll_loss(P, T)"),
    Form("-P.gather(1, T.unsqueeze(1)).mean()", "F.nll_loss(P, T)"),
    Form("(-P.gather(1, T.unsqueeze(1))).mean()", "F.nll_loss(P, T)"),
    Form("-P.gather(1, T.unsqueeze(1)).squeeze(1).mean()", "F.nll_loss(P, T)"),
    Form("((A - B) ** 2).mean()", "F.mse_loss(A, B)"),
    Form("(A - B).pow(2).mean()", "F.mse_loss(A, B)"),
    Form("(A - B).square().mean()", "F.mse_loss(A, B)"),
    Form("(A - B).abs().mean()", "F.l1_loss(A, B)"),
    Form("X * X.sigmoid()", "F.silu(X)"),
    Form("0.5 * X * (1 + (X / math.sqrt(2)).erf())", "F.gelu(X)"),
    Form("X * 0.5 * (1.0 + (X / math.sqrt(2.0)).erf())", "F.gelu(X)"),
    Form("0.5 * X * (1 + (X / 1.4142135623730951).erf())", "F.gelu(X)"),
    Form("X * 0.5 * (1 + (X / 1.4142135623730951).erf())", "F.gelu(X)"),
    Form("X * F.softplus(X).tanh()", "F.mish(X)"),
    *(
        Form(f"{half} * (1 + (math.sqrt(2 / math.pi) * (X + 0.044715 * {cube})).tanh())", GELU_BY_TANH)
        for half in ("0.5 * X", "X * 0.5")
        for cube in ("X.pow(3)", "X ** 3")
    ),
)
# What is taken away from all of a row changes no softmax: it goes with the form.
LARGEST = ("X.max(D, keepdim=True)[0]", "X.max(D, keepdim=True).values", "X.amax(D, keepdim=True)")
FORMS = (
    *(
        Form(re.sub(r"\bX\b", f"(X - {largest})", form.pattern), form.result)
        for form in FORMS
        if "softmax" in form.result
        for largest in LARGEST
    ),
    *FORMS,
)
FUNCTIONS = {"exp", "log", "sum", "mean", "logsumexp", "softmax", "sigmoid", "erf", "abs", "pow", "square", "tanh",
             "unsqueeze", "squeeze", "gather", "neg", "max", "amax"}  # fmt: skip
_LETTERS = re.compile(r"\b([A-Z]+)\b")  # of a form's result


def known_function(source: SourceText, place: Place) -> tuple[str, str]:
    """Replace the last expression of a function by the built-in that works out the same."""
    scope = source.scope(place)
    if not isinstance(scope, FunctionNode):
        raise NotApplicable("not a function")
    if not (done := _rewrite_line(source, scope, place)):  # what the place itself names goes before what it calls
        candidates = [scope, *_called_here(source, scope)]
        done = [text for function in candidates if (text := _rewrite(source, function))]
    if not done:
        raise NotApplicable("no known form fits its code")
    return (
        f"Use {' and '.join(dict.fromkeys(done))}: the same values in one or two kernels.",
        "The built-in rounds differently, and stays finite where the hand-written form overflows."
        + (" It wants both tensors to be of one floating type." if any("_loss" in d for d in done) else ""),
    )


def _called_here(source: SourceText, function: FunctionNode) -> list[FunctionNode]:
    """Functions of this file that a function calls, and that are not handed arrays of numpy."""
    names = {dotted(c.func) for c in calls(function)}
    for call in calls(source.tree):
        given = [n for a in (*call.args, *(k.value for k in call.keywords)) for n in ast.walk(a)]
        if any(
            isinstance(n, ast.Attribute) and (n.attr == "numpy" or dotted(n.value) in ("np", "numpy")) for n in given
        ):
            names.discard(dotted(call.func))
    return [n for n in source.tree.body if isinstance(n, FunctionNode) and n.name in names and n is not function]


def _rewrite(source: SourceText, function: FunctionNode) -> str:
    """Rewrite one function's straight-line end; return the built-in's name, "" where no form fits."""
    body = [s for s in function.body if not _is_text(s)]
    last = body[-1] if body else None
    if not isinstance(last, ast.Return) or last.value is None:
        return ""
    steps: list[tuple[ast.stmt, str, ast.expr]] = []
    for statement in reversed(body[:-1]):
        if (bound := _bound_name(statement)) is None:
            break
        steps.insert(0, (statement, *bound))
    for first in range(len(steps) + 1):  # the longest tail that fits a form
        tail = steps[first:]
        values: dict[str, ast.expr] = {}
        for _, name, value in tail:
            values[name] = _put(value, values)
        before = [*(value for _, _, value in tail), last.value]
        if values and (_binds_names(last.value) or _seen_elsewhere(function, set(values), [s for s, _, _ in tail])):
            continue
        result = match(source, _put(last.value, values), before)
        if result is None:
            continue
        source.replace(last.value, result)
        for statement, _, _ in tail:
            source.delete(statement)
        return result.partition("(")[0]
    return ""


def _rewrite_line(source: SourceText, function: FunctionNode, place: Place) -> list[str]:
    """Rewrite the one assignment at the place in the middle of a function, if all of its value is a known form."""
    there = [bound[1] for s in function.body if place.touches(s) and (bound := _bound_name(s)) is not None]
    result = match(source, there[0], there) if len(there) == 1 else None
    if result is None:
        return []
    source.replace(there[0], result)
    return [result.partition("(")[0]]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound_name(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Name and value of an assignment of one name, where names in the value mean what they do beside it."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target, value = statement.target, statement.value
    else:
        return None
    return (target.id, value) if isinstance(target, ast.Name) and not _binds_names(value) else None


def _binds_names(value: ast.expr) -> bool:
    """Whether an expression has names of its own, or binds one: what is put in place of a name could be another's."""
    own = ast.Lambda | ast.NamedExpr | ast.comprehension | ast.Yield | ast.YieldFrom | ast.Await
    return any(isinstance(node, own) for node in ast.walk(value))


def _seen_elsewhere(function: FunctionNode, names: set[str], steps: list[ast.stmt]) -> bool:
    """Whether somebody else sees names that a function's last statements bind: the module, or a function inside."""
    inside = {node for step in steps for node in ast.walk(step)}
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal) and names & set(node.names):
            return True
        nested = isinstance(node, FunctionNode | ast.Lambda | ast.ClassDef) and node is not function
        if nested and node not in inside and names & names_read(node):
            return True
    return False


def _put(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with each known name's value in its place."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:  # noqa: N802
            return copy.deepcopy(values[name.id]) if name.id in values else name

    put = Put().visit(copy.deepcopy(node))
    assert isinstance(put, ast.expr)
    return put


# Forms --------------------------------------------------------------------------------------------------------


def match(source: SourceText, expression: ast.expr, before: Sequence[ast.expr]) -> str | None:
    """Text of the built-in that an expression is a form of; None when it is none of the known ones.

    Parameters
    ----------
    source, expression
        The module; and the expression, which may be folded from several.
    before
        The expressions of the source that it stands for, in the order in which they are evaluated.

    Returns
    -------
    str | None
        A call that evaluates what has an effect as often as the source does, and in its order.
    """
    words = torch_words(source) | {"F"}
    for text, evaluated in _readings(source, expression, before[-1], words):
        if keeps_evaluations(before, evaluated, words):
            return text
    return None


def _readings(
    source: SourceText, expression: ast.expr, beside: ast.expr, words: frozenset[str]
) -> Iterator[tuple[str, list[ast.expr]]]:
    """Built-ins that an expression could be a form of, with what each evaluates, in order.

    What a built-in is given may be a known form too (the log-softmax of a loss): that reading comes first.
    """
    normal = _Normal(torch_word(source), functional_word(source))
    given = normal.of(expression)
    for form in FORMS:
        bound: dict[str, ast.expr] = {}
        if not _fits(_pattern(form.pattern), given, bound, words) or not _allowed(bound):
            continue
        if any(is_number(source, bound.get(k), source.function_of(beside)) for k in "AB"):
            continue
        written = {name: normal.as_written(node) for name, node in bound.items()}
        names = [name for name in _LETTERS.findall(form.result) if name in written]
        plain = {name: (_text(source, written[name]), [written[name]]) for name in names}
        inner = {name: next(_readings(source, written[name], beside, words), plain[name]) for name in names}
        for parts in (inner, plain):
            texts = {name: text for name, (text, _) in parts.items()}
            texts["F"] = functional_name(source, beside)
            evaluated = [node for name in names for node in parts[name][1]]
            yield "".join(texts.get(part, part) for part in _LETTERS.split(form.result)), evaluated


@cache
def _pattern(text: str) -> ast.expr:
    """The normal form of a pattern; not to be changed."""
    return _Normal("torch", "F").of(syntax.expression(text))


def _text(source: SourceText, node: ast.expr) -> str:
    """An expression as the source has it, where it stands there as a whole."""
    text = source.of(node)
    try:
        return text if same(syntax.expression(f"({text})"), node) else ast.unparse(node)
    except SyntaxError:
        return ast.unparse(node)


def _allowed(bound: Mapping[str, ast.expr]) -> bool:
    """The sum runs over one dimension, and the index counts the rows."""
    index = bound.get("INDEX")
    if index is not None:
        if not isinstance(index, ast.Call) or dotted(index.func).rpartition(".")[2] not in ("range", "arange"):
            return False
        if len(index.args) != 1 or not _is_batch_size(index.args[0], bound):
            return False
    if "D" in bound:
        try:
            return isinstance(ast.literal_eval(bound["D"]), int)
        except ValueError:
            return isinstance(bound["D"], ast.Name)
    return True


def _is_batch_size(node: ast.expr, bound: Mapping[str, ast.expr]) -> bool:
    """``t.shape[0]``, ``len(t)`` or ``t.size(0)`` of one of the tensors."""
    text = ast.unparse(node)
    tensors = [ast.unparse(bound[k]) for k in ("T", "P") if k in bound]
    return any(text in (f"{t}.shape[0]", f"len({t})", f"{t}.size(0)", f"{t}.numel()") for t in tensors)


class _Normal(ast.NodeTransformer):
    """One form for what can be written in several: functions as methods, ``dim=`` by position."""

    def __init__(self, torch: str, functional: str) -> None:
        self._torch, self._functional = torch, functional
        self._written: dict[ast.AST, ast.expr] = {}  # what stood there, by what it became

    def of(self, node: ast.expr) -> ast.expr:
        """The normal form of an expression."""
        out = self.visit(copy.deepcopy(node))
        assert isinstance(out, ast.expr)
        return out

    def as_written(self, node: ast.expr) -> ast.expr:
        """A part of a normal form as it was before."""
        before = self._written

        class Back(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                found = before.get(node)
                return self.generic_visit(node) if found is None else found

        out = Back().visit(node)
        assert isinstance(out, ast.expr)
        return out

    def visit_Call(self, call: ast.Call) -> ast.expr:  # noqa: N802
        written = copy.deepcopy(call)
        self.generic_visit(call)
        out = ast.copy_location(self._method(call), written)
        self._written[out] = written
        return out

    def _method(self, call: ast.Call) -> ast.expr:
        base, _, last = dotted(call.func).rpartition(".")
        if base in (self._torch, self._functional) and last in FUNCTIONS and call.args:
            call = ast.Call(ast.Attribute(call.args[0], last, ast.Load()), call.args[1:], call.keywords)
        elif base == self._functional:
            call.func = ast.Attribute(ast.Name("F", ast.Load()), last, ast.Load())
        if isinstance(call.func, ast.Attribute) and call.func.attr in FUNCTIONS and not call.args:
            for keyword in call.keywords:
                if keyword.arg in ("dim", "axis", "exponent"):
                    call.args, call.keywords = [keyword.value], [k for k in call.keywords if k is not keyword]
                    break
        if isinstance(call.func, ast.Attribute) and call.func.attr == "neg" and not call.args:
            return ast.UnaryOp(ast.USub(), call.func.value)
        return call

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        written = copy.deepcopy(node)
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if [ast.unparse(part) for part in parts] != [":", "None"]:
            return node
        out = ast.Call(ast.Attribute(node.value, "unsqueeze", ast.Load()), [ast.Constant(1)], [])
        self._written[ast.copy_location(out, written)] = written
        return out


def _fits(pattern: ast.AST, given: ast.AST, bound: dict[str, ast.expr], words: frozenset[str]) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.isupper() and pattern.id != "F" and isinstance(given, ast.expr):
        if pattern.id in bound:
            known = bound[pattern.id]
            return same(known, given) and places_of_effects(known, words) == places_of_effects(given, words)
        bound[pattern.id] = given
        return True
    if type(pattern) is not type(given):
        return False
    if isinstance(pattern, ast.Constant) and isinstance(given, ast.Constant):
        return bool(pattern.value == given.value)
    for name in pattern._fields:
        if name in ("ctx", "kind"):
            continue
        left, right = getattr(pattern, name, None), getattr(given, name, None)
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right) or not all(
                _fits_value(a, b, bound, words) for a, b in zip(left, right, strict=True)
            ):
                return False
        elif not _fits_value(left, right, bound, words):
            return False
    return True


def _fits_value(left: object, right: object, bound: dict[str, ast.expr], words: frozenset[str]) -> bool:
    if isinstance(left, ast.AST) and isinstance(right, ast.AST):
        return _fits(left, right, bound, words)
    return left == right
