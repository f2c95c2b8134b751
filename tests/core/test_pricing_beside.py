"""Pricing in a fork beside the rules."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from core import beside, pricing_beside
from core.analysis import analyze
from core.errors import Cancelled
from core.pricing_beside import PricingBeside
from core.rehearsal import rehearsal_trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """This process may be forked, and every trace is large enough."""
    monkeypatch.setattr(beside, "forks", lambda: True)
    monkeypatch.setattr(beside.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(pricing_beside, "MANY", 0)


@pytest.fixture(scope="module")
def trace():
    return rehearsal_trace()


@pytest.fixture(scope="module")
def expected(trace):
    """What comes of it without a fork, as this process is not one that may be forked."""
    return analyze(trace)


def _same(found, expected):
    assert [s.key for s in found.suggestions] == [s.key for s in expected.suggestions]
    assert [s.saving for s in found.suggestions] == [s.saving for s in expected.suggestions]
    assert any(s.saving.ns for s in found.suggestions)
    assert (found.plan, found.notes, found.figures.summary) == (expected.plan, expected.notes, expected.figures.summary)


def test_a_fork_prices_what_this_process_would(expected, trace, monkeypatch):
    monkeypatch.setattr(pricing_beside, "price", _unwanted_in(os.getpid()))
    found = analyze(trace)
    _same(found, expected)
    assert found.figures.steps is not None
    assert [r.rule.id for r in found.rules] == [r.rule.id for r in expected.rules]


def _unwanted_in(process):
    original = pricing_beside.price

    def price(*details, **more):
        assert os.getpid() != process
        return original(*details, **more)

    return price


def test_a_fork_that_dies_or_fails_is_done_without(expected, trace, monkeypatch):
    here = os.getpid()
    for end in (lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 / 0):

        def replay(self, receive, end=end):
            assert os.getpid() != here
            end()

        monkeypatch.setattr(PricingBeside, "_replay_and_price", replay)
        _same(analyze(trace), expected)


def test_a_replay_that_fails_is_told_as_without_a_fork(trace, monkeypatch):
    def fails(trace, figures):
        raise ValueError("no way")

    monkeypatch.setattr(pricing_beside, "Replay", fails)
    found = analyze(trace)
    assert found.notes["replay"] == "ValueError: no way"
    assert found.suggestions
    assert not any(s.saving.ns for s in found.suggestions)


def test_calling_off_ends_the_fork(trace, expected):
    pricing = PricingBeside(trace, expected.figures)
    fork = pricing._fork
    assert fork is not None
    child = fork._process.pid

    def call_off(fraction, what):
        raise Cancelled

    with pytest.raises(Cancelled), pricing:  # nothing was handed to it: it would wait for ever
        pricing.price(call_off)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_without_a_second_core_or_a_right_to_fork_there_is_none(monkeypatch):
    monkeypatch.setattr(beside.os, "cpu_count", lambda: 1)
    assert beside.begin(lambda receive: 1) is None
    monkeypatch.setattr(beside.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(beside, "forks", lambda: False)
    assert beside.begin(lambda receive: 1) is None
