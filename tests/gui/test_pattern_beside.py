"""A regular expression that would go on for ever neither stops the window nor stays."""

from __future__ import annotations

import re
import subprocess

import pytest

from core.errors import Cancelled
from core.search import search
from gui.models import pattern_beside
from gui.models.query import Query, find
from tests.trace_builder import TraceBuilder

FOR_EVER = r"(\w+)+$"
NAME = "vectorized_elementwise_kernel_of_many_words_in_a_row<4>"


@pytest.fixture
def ended(monkeypatch):
    """Exit status of each process that was begun."""
    made = []
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: made.append(begin(*a, **k)) or made[-1])
    return lambda: [process.poll() for process in made]


def test_it_is_ended_and_the_search_says_so(monkeypatch, ended):
    monkeypatch.setattr(pattern_beside, "LIMIT_S", 0.1)
    trace = TraceBuilder().op(NAME, 0, 10).build()
    _, fault = find(trace, Query(FOR_EVER, regex=True), lambda *_: None)
    assert "takes too long" in fault.why
    assert fault.short == "not searched"  # it is a pattern
    assert None not in ended()


@pytest.mark.parametrize("program", ["/no/such/interpreter", "/bin/false"])
def test_that_no_process_can_look_is_said(monkeypatch, program):
    monkeypatch.setattr(pattern_beside.sys, "executable", program)
    _, fault = find(TraceBuilder().op(NAME, 0, 10).build(), Query(FOR_EVER, regex=True), lambda *_: None)
    assert fault.short == "not searched"
    assert "process" in fault.why


def test_what_is_no_pattern_is_called_that():
    _, fault = find(TraceBuilder().op(NAME, 0, 10).build(), Query("(a)+(", regex=True), lambda *_: None)
    assert fault.short == "not a pattern"


def test_it_ends_when_the_search_is_called_off(ended):
    def call_off(*_):
        raise Cancelled

    trace = TraceBuilder().op(NAME, 0, 10).build()
    with pytest.raises(Cancelled):
        find(trace, Query(FOR_EVER, regex=True), call_off)
    assert None not in ended()


def test_it_finds_what_is_found_here():
    trace = TraceBuilder().op("aten::Mm", 0, 10).op("é\u202e::mm", 20, 10).op("mm", 40, 10).build()
    for pattern in (r"(\w+::)+mm", r"^(mm|x)*$", r"(no)+"):
        query = Query(pattern, regex=True)
        assert pattern_beside.may_go_on(pattern)
        _, hits = find(trace, query, lambda *_: None)
        assert hits.tolist() == search(trace, pattern, regex=True).tolist()


@pytest.mark.parametrize("pattern", ["gemm", "^aten::(mm|addmm)$", r"kernel<\d+", "a.*b.*c", "[a-z]+_nn", r"\(3\)"])
def test_what_costs_a_look_at_each_name_needs_no_process(pattern, ended):
    find(TraceBuilder().op("aten::mm", 0, 10).build(), Query(pattern, regex=True), lambda *_: None)
    assert ended() == []


def test_names_may_hold_anything():
    assert pattern_beside.fitting("^(.)+$", re.DOTALL, ["\ud800", "", "\0\n", '"\\'], lambda: None) == [0, 2, 3]
