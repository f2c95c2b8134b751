"""Python source as a syntax tree, from any thread."""

from __future__ import annotations

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(text: str, mode: str = "exec") -> ast.AST:
    """Parse source text as `ast.parse` does; never in two threads at once.

    CPython counts the depth of the tree that it makes in one place for all threads. Where another thread parses
    meanwhile, it finds the wrong depth and raises SystemError (python/cpython#106905).

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `ast.parse`.
    """
    with _one_at_a_time:
        return ast.parse(text, mode=mode)


def module(text: str) -> ast.Module:
    """Parse the text of a file."""
    tree = parse(text)
    assert isinstance(tree, ast.Module)
    return tree


def expression(text: str) -> ast.expr:
    """Parse one expression."""
    tree = parse(text, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body
