"""Work in threads of its own."""

from __future__ import annotations

import threading

import pytest

from core.errors import Cancelled
from core.importing import aside, assemble, open_trace
from core.importing.aside import Alongside
from tests.trace_builder import TraceBuilder


def _where() -> int:
    return threading.get_ident()


def test_it_runs_elsewhere_where_that_is_worthwhile_and_a_thread_is_to_be_had(monkeypatch):
    assert Alongside(_where).result() != _where()
    assert Alongside(_where, worthwhile=False).result() == _where()

    def none(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(aside.threading.Thread, "start", none)
    assert Alongside(_where).result() == _where()


def test_what_it_raises_comes_with_the_result():
    def called_off():
        raise Cancelled

    for worthwhile in (True, False):
        with pytest.raises(Cancelled):
            Alongside(called_off, worthwhile=worthwhile).result()


def test_tables_are_the_same_with_two_threads(tmp_path, monkeypatch):
    trace = TraceBuilder()
    for i in range(50):
        trace.op(f"aten::op{i % 7}", 1000 - 10 * i, 9, Input_Dims=[[1, i]])
    path = tmp_path / "a.json"
    one = trace.build(path)
    monkeypatch.setattr(assemble, "_MANY", 0)
    two = open_trace(path)
    for name in vars(one.slices):
        assert getattr(one.slices, name).tolist() == getattr(two.slices, name).tolist()
