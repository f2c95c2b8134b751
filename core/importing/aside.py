"""Long computations in threads: so that whoever waits can be called off at any time, and two at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from core.errors import Cancelled

Tick = Callable[[], None]
_T = TypeVar("_T")
_POLL_S = 0.02


def aside(work: Callable[[Tick], _T], tick: Tick) -> _T:
    """Do some work while ``tick`` goes on being called, however long a single step of the work takes.

    Parameters
    ----------
    work
        Called in another thread with a function that it calls between its steps: that raises `Cancelled` once the
        work has been called off, so that it ends at its next step. Nobody waits for it then.
    tick
        Called in this thread many times a second; whatever it raises (`Cancelled`) calls the work off.
    """
    outcome: list[tuple[_T | None, BaseException | None]] = []
    called_off = threading.Event()

    def checked() -> None:
        if called_off.is_set():
            raise Cancelled

    def run() -> None:
        try:
            outcome.append((work(checked), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.append((None, error))

    thread = threading.Thread(target=run, name="trace-import", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread to be had
        return work(tick)
    try:
        while not outcome:
            thread.join(_POLL_S)
            tick()
    except BaseException:
        called_off.set()
        raise
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


class Alongside(Generic[_T]):
    """Some work in a thread while this one goes on; for numpy, which lets others work during long operations.

    Parameters
    ----------
    work
        Called in the other thread, or in this one when its result is asked for and there was no thread to be had.
    worthwhile
        Whether it takes longer than starting a thread does.
    """

    def __init__(self, work: Callable[[], _T], *, worthwhile: bool = True) -> None:
        self._work = work
        self._outcome: list[tuple[_T | None, BaseException | None]] = []
        self._thread: threading.Thread | None = None
        if worthwhile:
            thread = threading.Thread(target=self._run, name="trace-import-2", daemon=True)
            with suppress(RuntimeError):  # no thread to be had
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        try:
            self._outcome.append((self._work(), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._outcome.append((None, error))

    def result(self) -> _T:
        """Wait for it; raises what it has raised."""
        if self._thread is None:
            return self._work()
        self._thread.join()
        result, error = self._outcome[0]
        if error is not None:
            raise error
        return result  # type: ignore[return-value]
