"""Losses and activations written by hand that are recognisably those of ``torch.nn.functional``.

A function's straight-line body is folded into one expression by putting each name's value in its place; the
expression is then compared with known forms. What does not fit exactly is left alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

from core import syntax
from core.fixes.naming import functional_name, functional_word, torch_word
from core.fixes.source_text import FunctionNode, NotApplicable, Place, SourceText, calls, dotted, same


@dataclass(frozen=True)
class Form:
    """A known form: capital letters of the pattern stand for any expression, the same one each time."""

    pattern: str
    result: str


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
)
FUNCTIONS = {"exp", "log", "sum", "mean", "logsumexp", "softmax", "sigmoid", "erf", "abs", "pow", "square", "tanh",
             "unsqueeze", "squeeze", "gather", "neg"}  # fmt: skip


def known_function(source: SourceText, place: Place) -> tuple[str, str]:
    """Replace the last expression of a function by the built-in that works out the same."""
    scope = source.scope(place)
    if not isinstance(scope, FunctionNode):
        raise NotApplicable("not a function")
    candidates = [scope, *_called_here(source, scope)]
    done = [text for function in candidates if (text := _rewrite(source, function))]
    done = done or _rewrite_line(source, scope, place)
    if not done:
        raise NotApplicable("no known form fits its code")
    return (
        f"Use {' and '.join(dict.fromkeys(done))}: the same values in one or two kernels.",
        "The built-in rounds differently, and stays finite where the hand-written form overflows."
        + (" It wants both tensors to be of one floating type." if any("_loss" in d for d in done) else ""),
    )


def _called_here(source: SourceText, function: FunctionNode) -> list[FunctionNode]:
    """Functions of this file that a function calls."""
    names = {dotted(c.func) for c in calls(function)}
    return [n for n in source.tree.body if isinstance(n, FunctionNode) and n.name in names and n is not function]


def _rewrite(source: SourceText, function: FunctionNode) -> str:
    """Rewrite one function's straight-line end; return the built-in's name, "" where no form fits."""
    body = [s for s in function.body if not _is_text(s)]
    start = len(body)
    while start and isinstance(body[start - 1], ast.Assign | ast.Return) and _foldable(body[start - 1]):
        start -= 1
    steps = body[start:]
    if not steps or not isinstance(steps[-1], ast.Return) or steps[-1].value is None:
        return ""
    for first in range(len(steps)):  # the longest tail that fits a form
        values: dict[str, ast.expr] = {}
        for statement in steps[first:-1]:
            assert isinstance(statement, ast.Assign)
            values[dotted(statement.targets[0])] = _put(statement.value, values)
        whole = _put(steps[-1].value, values)
        result = match(source, whole)
        if result is None:
            continue
        source.replace(steps[-1].value, result)
        for statement in steps[first:-1]:
            source.delete(statement)
        return result.partition("(")[0]
    return ""


def _rewrite_line(source: SourceText, function: FunctionNode, place: Place) -> list[str]:
    """Rewrite the one assignment at the place in the middle of a function, if all of its value is a known form."""
    there = [s for s in function.body if isinstance(s, ast.Assign) and _foldable(s) and place.touches(s)]
    result = match(source, there[0].value) if len(there) == 1 and isinstance(there[0], ast.Assign) else None
    if result is None:
        return []
    source.replace(there[0].value, result)
    return [result.partition("(")[0]]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _foldable(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    return True


def _put(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with each known name's value in its place."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:  # noqa: N802
            return copy.deepcopy(values[name.id]) if name.id in values else name

    put = Put().visit(copy.deepcopy(node))
    assert isinstance(put, ast.expr)
    return put


# Forms --------------------------------------------------------------------------------------------------------


def match(source: SourceText, expression: ast.expr) -> str | None:
    """Text of the built-in that an expression is a form of; None when it is none of the known ones."""
    given = normal(expression, torch_word(source), functional_word(source))
    for form in FORMS:
        bound: dict[str, ast.expr] = {}
        pattern = normal(syntax.expression(form.pattern), "torch", "F")
        if _fits(pattern, given, bound) and _allowed(bound) and not any(_is_number(source, bound.get(k)) for k in "AB"):
            result = syntax.expression(form.result)
            return ast.unparse(_put(result, {**bound, "F": syntax.expression(functional_name(source))}))
    return None


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


def _is_number(source: SourceText, node: ast.expr | None) -> bool:
    """Whether a value is a plain number, as far as the file tells: the built-in losses want two tensors."""
    if node is None:
        return False
    try:
        return isinstance(ast.literal_eval(node), int | float)
    except (ValueError, TypeError):
        name = dotted(node)
    for above in ast.walk(source.tree):
        if isinstance(above, ast.Assign) and any(name and dotted(t) == name for t in above.targets):
            if isinstance(above.value, ast.Constant):
                return True
        elif isinstance(above, ast.arguments):
            every = [*above.posonlyargs, *above.args]
            defaults = dict(zip([a.arg for a in reversed(every)], reversed(above.defaults), strict=False))
            defaults |= {a.arg: d for a, d in zip(above.kwonlyargs, above.kw_defaults, strict=True) if d is not None}
            typed = any(a.arg == name and dotted(a.annotation) in ("float", "int") for a in (*every, *above.kwonlyargs))
            if typed or isinstance(defaults.get(name), ast.Constant):
                return True
    return False


def _is_batch_size(node: ast.expr, bound: Mapping[str, ast.expr]) -> bool:
    """``t.shape[0]``, ``len(t)`` or ``t.size(0)`` of one of the tensors."""
    text = ast.unparse(node)
    tensors = [ast.unparse(bound[k]) for k in ("T", "P") if k in bound]
    return any(text in (f"{t}.shape[0]", f"len({t})", f"{t}.size(0)", f"{t}.numel()") for t in tensors)


def normal(node: ast.expr, torch: str, functional: str) -> ast.expr:
    """One form for what can be written in several: functions as methods, ``dim=`` by position."""

    class Normal(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.expr:  # noqa: N802
            self.generic_visit(call)
            base, _, last = dotted(call.func).rpartition(".")
            if base in (torch, functional) and last in FUNCTIONS and call.args:
                call = ast.Call(ast.Attribute(call.args[0], last, ast.Load()), call.args[1:], call.keywords)
            elif base == functional:
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
            self.generic_visit(node)
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            if [ast.unparse(part) for part in parts] == [":", "None"]:
                return ast.Call(ast.Attribute(node.value, "unsqueeze", ast.Load()), [ast.Constant(1)], [])
            return node

    out = Normal().visit(copy.deepcopy(node))
    assert isinstance(out, ast.expr)
    return out


def _fits(pattern: ast.AST, given: ast.AST, bound: dict[str, ast.expr]) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.isupper() and pattern.id != "F" and isinstance(given, ast.expr):
        if pattern.id in bound:
            return same(bound[pattern.id], given)
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
            if len(left) != len(right) or not all(_fits_value(a, b, bound) for a, b in zip(left, right, strict=True)):
                return False
        elif not _fits_value(left, right, bound):
            return False
    return True


def _fits_value(left: object, right: object, bound: dict[str, ast.expr]) -> bool:
    if isinstance(left, ast.AST) and isinstance(right, ast.AST):
        return _fits(left, right, bound)
    return left == right
