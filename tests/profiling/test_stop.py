"""Stop asks, then ends, then kills: by a clock that the test sets, since a real one tells how busy the machine is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace

import pytest

from profiling import run as launcher
from profiling.events import Progress
from profiling.run import Run
from profiling.spec import RunSpec

Look = Callable[[float], list[str]]


@pytest.fixture
def stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Look]:
    """A run that was asked to stop at second 100, and what is done to its processes by a second of the clock."""
    now, done, here = [100.0], list[str](), get_ident()  # of other tests, scripts run meanwhile in threads of their own
    clock = SimpleNamespace(**{**vars(time), "monotonic": lambda: now[0] if get_ident() == here else time.monotonic()})
    monkeypatch.setattr(launcher, "time", clock)
    run = Run(RunSpec(sys.executable, script=__file__))
    run.folder = tmp_path
    run._process = SimpleNamespace()  # type: ignore[assignment]
    acts = {name: lambda name=name: done.append(name) for name in ("ask", "terminate", "kill")}
    run._tree = SimpleNamespace(look=lambda: None, **acts)  # type: ignore[assignment]
    run.stop()
    asked = [0]

    def look(second: float) -> list[str]:
        now[0] = 100.0 + second
        asked[0] = run._press(asked[0])
        return done

    return run, look


def test_a_script_that_does_not_follow_is_killed_within_five_seconds(stopping: tuple[Run, Look]) -> None:
    run, look = stopping
    assert look(0.05) == ["ask"]
    assert look(2.9) == ["ask"]
    assert look(3.1) == ["ask", "terminate"]
    assert look(3.9) == ["ask", "terminate"]
    latest = 5.0 - launcher.PIPE_SECONDS + launcher.POLL_SECONDS  # then the pipes are waited for
    assert look(latest) == ["ask", "terminate", "kill"]
    assert run._killed
    assert (run.folder / "stop").exists()


def test_a_second_stop_does_not_wait(stopping: tuple[Run, Look]) -> None:
    run, look = stopping
    look(0.05)
    run.stop()
    assert look(0.1) == ["ask", "kill"]


def test_a_trace_that_is_being_saved_is_waited_for(stopping: tuple[Run, Look]) -> None:
    run, look = stopping
    run.gathered.progress = Progress("saving", 9)
    look(0.05)
    assert look(14.0) == ["ask"]
    assert look(16.1) == ["ask", "kill"]
