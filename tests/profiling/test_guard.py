"""A recording that was cut for want of steps says why it begins again, for as long as that matters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profiling import _child_guard
from profiling.events import Gathered


def test_steps_that_go_on_after_a_cut_tell_why_it_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sent, cuts = [100.0], [], []
    monkeypatch.setattr(_child_guard.time, "perf_counter", lambda: now[0])
    report = SimpleNamespace(send=lambda event, **values: sent.append((event, values)))
    recorder = SimpleNamespace(report=report, session=object())

    def cut() -> None:
        cuts.append(now[0])
        recorder.session = None

    recorder.cut = cut
    guard = _child_guard.Guard(recorder)
    for _ in range(5):
        guard.on_boundary(now[0], True)
        now[0] += 1.5
    guard._cut()
    assert (cuts, sent) == ([], [])  # 1.5 s, as usual
    now[0] += 3.1
    guard._cut()
    guard._cut()  # asked for once more while the interpreter did not answer
    assert (len(cuts), sent) == (1, [])  # nothing goes on: the loop may be over
    guard.on_boundary(now[0], True)
    guard.on_boundary(now[0] + 1.5, True)
    assert sent == [("anew", {"seconds": "4.5", "times": 1})]
    now[0] += 20.0
    guard._cut()  # there is no recording to cut
    guard.on_boundary(now[0], True)
    assert len(sent) == 1


def test_it_is_shown_until_a_recording_is_whole_and_noted_at_the_end() -> None:
    gathered = Gathered()

    def take(**event: Any) -> str:
        gathered.take({"pid": 1, **event})
        return str(gathered.progress.anew or "")

    take(ev="started", python="3.12", spawned=False)
    assert take(ev="phase", phase="window", step=9) == ""
    assert take(ev="phase", phase="skip", step=9) == ""
    assert gathered.take({"ev": "anew", "seconds": "4.5", "times": 1, "pid": 1})  # it is shown at once
    assert "4.5 seconds" in take(ev="step", phase="wall", step=12, done=1, total=5)
    gathered.take({"ev": "anew", "seconds": "9", "times": 2, "pid": 2})  # of another process
    assert "1×" in take(ev="phase", phase="window", step=20)
    assert take(ev="phase", phase="saving", step=25) == take(ev="phase", phase="done", step=25) == ""
    assert "began again" in gathered.notices["anew"]
