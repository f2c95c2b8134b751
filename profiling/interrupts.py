"""Ctrl+C and the request to end, while a script runs that lives in a session of its own and does not hear them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class HandedOn:
    """Calls ``stop`` for each of them; a context manager. What comes before `begin` waits until then.

    Else a script that is just being started would be left alone, and live on. What is ignored stays ignored, as in a
    shell's background; in other threads than the main one nothing is changed.

    Parameters
    ----------
    stop
        Takes no time: it is called in the midst of anything.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._early = 0
        self._begun = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> HandedOn:
        """Take the signals over."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._take)
        return self

    def _take(self, _number: int, _frame: object) -> None:
        if self._begun:
            self._stop()
        else:
            self._early += 1

    def begin(self) -> None:
        """Hand on what has come so far, and from now on at once."""
        self._begun = True
        for _ in range(self._early):
            self._stop()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
