"""The texts of a rule as data: every template that its suggestions can show, for translators."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType

from core import syntax

_CALLS = {"suggestion": (2, 3), "evidence": (1,), "Evidence": (0,), "Fix": (0, 4), "SyncTexts": (0, 1), "Rule": (1,)}
_KEYWORDS = {"title", "why", "summary", "risk", "label"}


def rule_texts(module: ModuleType) -> tuple[str, ...]:
    """Templates of a rule's titles, explanations, fixes and evidence labels, in order of appearance.

    Parameters
    ----------
    module
        A rule's module; its source is read, nothing in it is run.

    Returns
    -------
    tuple[str, ...]
        Distinct texts with their ``{named}`` values. Code before and after a fix is not among them.
    """
    tree = syntax.module(inspect.getsource(module))
    named = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) in _CALLS:
            chosen = [node.args[i] for i in _CALLS[_name(node)] if i < len(node.args)]
            chosen += [k.value for k in node.keywords if k.arg in _KEYWORDS]
            for value in chosen:
                found.update(dict.fromkeys(_strings(value, named)))
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "title" for t in node.targets):
            found.update(dict.fromkeys(_strings(node.value, named)))
    return tuple(text for text in found if text)


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _strings(node: ast.AST, named: dict[str, str]) -> list[str]:
    """Strings that an expression can give: a constant, a named one, or either side of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Name) and node.id in named:
        return [named[node.id]]
    if isinstance(node, ast.IfExp):
        return [*_strings(node.body, named), *_strings(node.orelse, named)]
    return []
