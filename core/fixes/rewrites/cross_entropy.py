"""``nll_loss`` of a ``log_softmax``: two built-ins that are one."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from core.fixes.naming import free_name, functional_name, imported_as, torch_name
from core.fixes.rewrites.evaluation import keeps_evaluations, torch_words
from core.fixes.rewrites.losses import match
from core.fixes.rewrites.sharing import changed_object
from core.fixes.source_text import FunctionNode, NotApplicable, Place, SourceText, calls, dotted


@dataclass(frozen=True)
class Found:
    """A loss whose input is a log_softmax."""

    call: ast.Call  # what works out the loss
    rest: str  # its other arguments, as text
    softmax: ast.Call
    assigned: ast.Assign | None  # statement that holds the log_softmax, to be dropped with it
    built: ast.Call | None = None  # where the NLLLoss object is built, for a loss that is an object
    inner: ast.Call | None = None  # the nll_loss in the function that is called, which does other things too


def cross_entropy(source: SourceText, place: Place) -> tuple[str, str]:
    """``nll_loss(log_softmax(x, 1), t)`` -> ``cross_entropy(x, t)``.

    Also over one name in between, through a function of this file, and for ``NLLLoss`` objects.
    """
    scope = source.scope(place)
    found = [f for call in calls(scope) if (f := _loss(source, scope, call)) is not None]
    for caller in () if found else _callers(source, scope):  # the loss lies in a function that is given log_softmax
        found += [f for call in calls(caller) if (f := _loss(source, caller, call)) is not None]
    if len(found) != 1:
        raise NotApplicable("no nll_loss of a log_softmax" if not found else "several losses could be meant")
    loss = found[0]
    scores = source.of(loss.softmax.args[0])
    if loss.assigned is not None:
        scores = _scores_later(source, scope, loss, loss.assigned)
    if loss.built is not None:
        source.replace(loss.built.func, _cross_entropy_class(source, source.of(loss.built.func)))
        source.replace(loss.call.args[0], scores)
    elif loss.inner is not None:
        _take_scores(source, loss.inner, loss.call, scores)
    else:
        source.replace(loss.call, f"{functional_name(source, loss.call)}.cross_entropy({scores}{loss.rest})")
    return (
        "Use cross-entropy, which is log_softmax and the negative log-likelihood in one.",
        "None for values but rounding; the gain is a few launches per step.",
    )


def _cross_entropy_class(source: SourceText, nll: str) -> str:
    """What to call CrossEntropyLoss by, where NLLLoss has this name."""
    if nll.endswith(".NLLLoss"):
        return nll.removesuffix("NLLLoss") + "CrossEntropyLoss"
    return imported_as(source, "torch.nn.CrossEntropyLoss") or f"{torch_name(source)}.nn.CrossEntropyLoss"


def _scores_later(source: SourceText, scope: ast.AST, loss: Found, assigned: ast.Assign) -> str:
    """What the scores are called where the loss is worked out; the statement that held log_softmax gives them a name.

    Where they are a name already, and still hold the same, the statement goes.
    """
    given = loss.softmax.args[0]
    if source.block_of(assigned) is not source.block_of(source.statement(loss.call)):
        raise NotApplicable("the loss is worked out in another block than log_softmax")
    first, last = assigned.lineno, source.statement(loss.call).lineno
    between = [n for n in ast.walk(scope) if first <= getattr(n, "lineno", 0) < last]
    changed = {dotted(c) for n in between if (c := changed_object(n)) is not None}
    changed |= {n.id for n in between if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(given, ast.Name) and given.id not in changed:
        source.delete(assigned)
        return given.id
    taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    taken |= {a.arg for a in ast.walk(source.tree) if isinstance(a, ast.arg)}
    if dotted(given) in changed:
        raise NotApplicable(f"{dotted(given)} is something else by the time of the loss")
    name = free_name("logits", taken)
    source.replace(assigned.targets[0], name)
    source.replace(assigned.value, source.of(given))
    return name


def _callers(source: SourceText, scope: ast.AST) -> list[FunctionNode]:
    """Functions of this file that call a function of it."""
    if not isinstance(scope, FunctionNode):
        return []
    functions = [n for n in ast.walk(source.tree) if isinstance(n, FunctionNode) and n is not scope]
    return [n for n in functions if any(dotted(c.func) == scope.name for c in calls(n))]


def _loss(source: SourceText, scope: ast.AST, call: ast.Call) -> Found | None:
    if not call.args:
        return None
    built = _nll_object(source, call)
    rest: list[ast.expr | ast.keyword] = [*call.args[1:], *call.keywords]
    text = "".join(f", {source.of(a)}" for a in rest)
    inner = None
    if built is None and dotted(call.func).rpartition(".")[2] != "nll_loss":
        through = _through_function(source, call)
        inner = _inner_loss(source, call) if through is None else None
        if through is None and inner is None:
            return None
        text = through or ""
    behind = _log_softmax_behind(source, scope, call.args[0])
    return Found(call, text, *behind, built, inner) if behind is not None else None


def _own_function(source: SourceText, call: ast.Call) -> FunctionNode | None:
    return next((n for n in source.tree.body if isinstance(n, FunctionNode) and n.name == dotted(call.func)), None)


def _inner_loss(source: SourceText, call: ast.Call) -> ast.Call | None:
    """The nll_loss in the called function, where its first argument goes nowhere else and nothing else calls it."""
    own = _own_function(source, call)
    if own is None or not own.args.args or isinstance(call.args[0], ast.Starred):
        return None
    uses = [n for n in ast.walk(source.tree) if isinstance(n, ast.Name | ast.Attribute) and dotted(n) == own.name]
    given = own.args.args[0].arg
    reads = [n for n in ast.walk(own) if isinstance(n, ast.Name) and n.id == given]
    if len(uses) != 1 or len(reads) != 1:
        return None
    inner = source.parent(reads[0])
    if not isinstance(inner, ast.Call) or not inner.args or inner.args[0] is not reads[0]:
        return None
    return inner if dotted(inner.func).rpartition(".")[2] == "nll_loss" else None


def _take_scores(source: SourceText, inner: ast.Call, call: ast.Call, scores: str) -> None:
    """Hand the scores to the function that has the loss; its parameter is named after what it holds now."""
    own = source.function_of(inner)
    assert own is not None
    first = own.args.args[0]
    names = {n.id for n in ast.walk(own) if isinstance(n, ast.Name)} | {a.arg for a in own.args.args}
    name = free_name(scores if scores.isidentifier() else "scores", names - {first.arg})
    others: list[ast.expr | ast.keyword] = [*inner.args[1:], *inner.keywords]
    rest = "".join(f", {source.of(a)}" for a in others)
    source.replace(inner, f"{functional_name(source, inner)}.cross_entropy({name}{rest})")
    source.rename(first, name)
    source.replace(call.args[0], scores)


def _nll_object(source: SourceText, call: ast.Call) -> ast.Call | None:
    """The construction of the ``NLLLoss`` that a call calls, where the name is assigned just once in the file."""
    if isinstance(call.func, ast.Call):  # nn.NLLLoss()(p, t)
        return call.func if dotted(call.func.func).rpartition(".")[2] == "NLLLoss" else None
    name = dotted(call.func)
    stores = [
        n.value
        for n in ast.walk(source.tree)
        if name and isinstance(n, ast.Assign) and any(dotted(t) == name for t in n.targets)
    ]
    if len(stores) == 1 and isinstance(stores[0], ast.Call):
        return stores[0] if dotted(stores[0].func).rpartition(".")[2] == "NLLLoss" else None
    return None


def _through_function(source: SourceText, call: ast.Call) -> str | None:
    """Other arguments of the nll_loss that a function of this file does nothing but call, as the caller passes them."""
    own = _own_function(source, call)
    if own is None or len(own.body) != 1 or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    only = own.body[0]
    inner = only.value if isinstance(only, ast.Return) else None
    if not isinstance(inner, ast.Call) or dotted(inner.func).rpartition(".")[2] != "nll_loss":
        return None
    names = [a.arg for a in own.args.args]
    given = dict(zip(names, call.args, strict=False))
    if len(given) != len(call.args) or not inner.args or dotted(inner.args[0]) != names[0]:
        return None
    parts, handed = [], [call.args[0]]
    for argument in [*inner.args[1:], *inner.keywords]:
        value = argument.value if isinstance(argument, ast.keyword) else argument
        if dotted(value) not in given:
            return None
        handed.append(given[dotted(value)])
        prefix = f"{argument.arg}=" if isinstance(argument, ast.keyword) else ""
        parts.append(f", {prefix}{source.of(given[dotted(value)])}")
    return "".join(parts) if keeps_evaluations(call.args, handed, torch_words(source)) else None


def _log_softmax_behind(
    source: SourceText, scope: ast.AST, node: ast.expr
) -> tuple[ast.Call, ast.Assign | None] | None:
    """The log_softmax call behind a loss's first argument, and the statement to drop with it."""
    if isinstance(node, ast.Call):
        return (node, None) if _is_log_softmax(source, node) else None
    if not isinstance(node, ast.Name):
        return None
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == node.id]
    stores = [n for n in uses if isinstance(n.ctx, ast.Store)]
    if len(stores) != 1 or len(uses) != 2:
        return None
    statement = source.statement(stores[0])
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    fits = len(statement.targets) == 1 and _is_log_softmax(source, statement.value)
    return (statement.value, statement) if fits else None


def _is_log_softmax(source: SourceText, call: ast.Call) -> bool:
    """A log_softmax over dimension 1 (or the last one), of torch or a hand-written one of this file."""
    base, _, last = dotted(call.func).rpartition(".")
    if not call.args:
        return False
    if base:
        if len(call.args) > 2 or any(k.arg not in ("dim", "_stacklevel") for k in call.keywords):
            return False  # another type
        dim = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "dim"), None)
        return last == "log_softmax" and dim is not None and ast.unparse(dim) in ("1", "-1")
    own = next((n for n in source.tree.body if isinstance(n, FunctionNode) and n.name == last), None)
    if own is None or len(own.args.args) != 1 or len(own.body) != 1:
        return False
    only = own.body[0]
    if not isinstance(only, ast.Return) or only.value is None:
        return False
    text = match(source, only.value, [only.value]) or ast.unparse(only.value)
    name = own.args.args[0].arg
    return any(text.endswith(f"log_softmax({name}, {dim})") for dim in ("-1", "1", "dim=-1", "dim=1"))
