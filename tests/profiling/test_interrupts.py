"""Ctrl+C and the request to end reach a script whenever they come."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiling import run
from profiling.interrupts import HandedOn
from profiling.spec import RunSpec

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """As from a terminal: the tests may run where Ctrl+C is ignored."""
    before = {number: signal.getsignal(number) for number in BOTH}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
def test_a_script_that_is_being_started_is_stopped_once_it_is(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = []
    script = tmp_path / "a.py"
    script.touch()

    class Started(run.Run):
        def start(self) -> None:
            signal.raise_signal(number)
            done.append("started")

        def stop(self, *, now: bool = False) -> None:
            done.append("stopped")

        def wait(self, timeout: float | None = None) -> None:
            if "waited" not in done:
                done.append("waited")
                signal.raise_signal(number)
                return
            raise LookupError

    monkeypatch.setattr(run, "Run", Started)
    with pytest.raises(LookupError):
        run.run_blocking(RunSpec(sys.executable, script=str(script)))
    assert done == ["started", "stopped", "waited", "stopped"]


def test_what_is_ignored_stays_so_and_all_is_given_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    called = []
    with HandedOn(lambda: called.append(1)) as signals:
        signals.begin()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
    assert called == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
