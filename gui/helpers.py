"""Processes that read and diagnose traces for the window, so that its own interpreter stays free for the eye and hand.

One helper serves one trace: it reads it, hands its columns over in shared memory, diagnoses it, and ends. A spare one
is started ahead of time (`start`), so that nobody waits for its imports. Where no process can be started, `take`
returns None, and the same work is done in a thread of the window.
"""

from __future__ import annotations

import atexit
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.helper_process import Helper, Progress

log = logging.getLogger(__name__)

WAIT_S = 0.03
START_S = 5.0  # more than any start takes
MOST = 4  # helpers at a time: each holds a trace until it is diagnosed


class _Held:
    """All helpers there are, and the spare one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.all: set[Helper] = set()
        self.spare: Helper | None = None
        self.wanted = False
        self.settled = threading.Event()  # no start is under way
        self.settled.set()


_held = _Held()


def wanted() -> bool:
    """Whether traces are read by helpers."""
    return _held.wanted


def start() -> None:
    """Have a spare helper from now on; it is started in a thread of its own."""
    _held.wanted = True
    renew()


def renew() -> None:
    """Start the next spare helper where there is none, and helpers are wanted."""
    if _held.wanted and _held.spare is None:
        _held.settled.clear()
        try:
            threading.Thread(target=_prepare, name="helper-start", daemon=True).start()
        except RuntimeError:  # no thread to be had: the next opening starts one itself, or does without
            _held.settled.set()


def wait_started() -> None:
    """Wait while a helper process is being started; it need not be ready yet (called from a worker thread)."""
    _held.settled.wait(START_S)


def _prepare() -> None:
    try:
        with _held.lock:
            if _held.wanted and _held.spare is None:
                _held.spare = _started()
    finally:
        _held.settled.set()


def _started() -> Helper | None:
    for other in [o for o in tuple(_held.all) if not o.alive]:
        other.kill()  # forgets it
    if len(_held.all) >= MOST:
        return None
    try:
        from gui.helper_process import Helper  # late: the start page needs no process

        atexit.unregister(close_all)
        atexit.register(close_all)  # runs before multiprocessing's own, which would wait for them for ever
        made = Helper(_held.all.discard)
    except (OSError, RuntimeError, ValueError, AssertionError):
        _held.wanted = False  # nor will the next one start
        log.warning("no helper process could be started; traces are read in threads", exc_info=True)
        return None
    _held.all.add(made)
    return made


def take(progress: Progress, *, start_one: bool = True) -> Helper | None:
    """Return a helper that is ready, None where there is none (called from a worker thread).

    Parameters
    ----------
    progress
        Called while waiting; may raise `Cancelled`.
    start_one
        Start one where no spare one is there.
    """
    while not _held.settled.wait(WAIT_S):
        progress(0.0, "")
    with _held.lock:
        made, _held.spare = _held.spare, None
        if made is None and _held.wanted and start_one:
            made = _started()
    if made is None:
        return None
    try:
        if made.wait_ready(progress):
            return made
    except BaseException:
        give_back(made)
        raise
    made.kill()
    return None


def give_back(made: Helper) -> None:
    """Keep a helper that has not opened anything for the next trace; another one is started for one not yet ready.

    That one may have been stopped, or hang: whoever gets it would wait for it until `READY_S` are over.
    """
    if not made.ready:
        made.kill()
        renew()
        return
    with _held.lock:
        if _held.wanted and _held.spare is None and made.alive:
            _held.spare = made
            return
    made.close()


def close_all() -> None:
    """End every helper, when the program ends."""
    _held.wanted = False
    with _held.lock:
        _held.spare = None
    ending = tuple(_held.all)
    for one in ending:
        one.close()
    for one in ending:
        one.wait_closed()
