"""Source is parsed by one thread at a time."""

from __future__ import annotations

import ast
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import syntax


def test_two_threads_never_parse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    real, inside, most, both = ast.parse, [0], [0], threading.Barrier(2)

    def counted(text: str, mode: str) -> ast.AST:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        try:
            return real(text, mode=mode)
        finally:
            inside[0] -= 1

    def many(_: int) -> None:
        both.wait(60)
        for number in range(200):
            assert len(syntax.module(f"a = {number}\nb = [a, {{'c': (1, 2)}}]\n" * 5).body) == 10

    monkeypatch.setattr(syntax.ast, "parse", counted)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(many, range(2)))
    assert most == [1]


def test_what_does_not_parse_is_said_as_python_says_it() -> None:
    with pytest.raises(SyntaxError):
        syntax.module("def f(:\n")
    assert isinstance(syntax.expression("f(1)"), ast.Call)
