"""A system that gives no more threads: nothing waits for one that never began."""

from __future__ import annotations

import threading

import pytest

from gui import helpers


def test_a_helper_whose_start_got_no_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(helpers, "_held", helpers._Held())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    helpers.start()

    def progress(_fraction: float, _what: str) -> None:
        pytest.fail("it waits for a start that is not under way")

    assert helpers.take(progress, start_one=False) is None
