"""Work of the user's that must end: it runs on a thread of its own, and is left behind when its time is up."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_LOOK_S = 0.05  # how often is looked whether it has ended, or been called off
_GRACE_S = 1.0  # for what is told to stop


class TookTooLong(Exception):
    """The time of some work is up."""


class _Stop(BaseException):
    """Raised in the thread whose time is up; what catches only `Exception` lets it pass."""


def within(seconds: float, work: Callable[[], T], meanwhile: Callable[[], object] | None = None) -> T:
    """Return what ``work`` returns, or raise what it raises.

    Parameters
    ----------
    seconds
        How long it may take.
    work
        Runs on another thread.
    meanwhile
        Called again and again while it runs; may raise, which stops the work as well.

    Raises
    ------
    TookTooLong
        When it takes as long or longer, also where it happens to end while its time runs out. Python code is stopped
        then; what waits in a call outside Python is left to itself, on a thread that does not keep the program from
        ending.
    """
    returned: list[Any] = []
    raised: list[BaseException] = []
    ended: list[float] = []

    def run() -> None:
        try:
            returned.append(work())
        except BaseException as error:  # handed on to the caller's thread
            raised.append(error)
        ended.append(time.monotonic())

    thread = threading.Thread(target=run, daemon=True, name="time limit")
    end = time.monotonic() + seconds
    thread.start()
    try:
        while thread.is_alive() and time.monotonic() < end:
            thread.join(_LOOK_S)
            if meanwhile is not None:
                meanwhile()
    except BaseException:
        _stop(thread)
        raise
    if ended and ended[0] < end:
        if raised:
            raise raised[0]
        result: T = returned[0]
        return result
    _stop(thread)
    raise TookTooLong(f"took longer than {seconds:g} s")


def _stop(thread: threading.Thread) -> None:
    """Raise `_Stop` in a thread: in its next step of Python code."""
    if thread.is_alive() and thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stop))
        thread.join(_GRACE_S)
