"""A part of the work done in a fork of this process, while this one goes on with another part.

Only a process that was made to open traces may be forked, and only on Linux (`core.importing.pool.forks`). A fork sees
everything that stood in memory when it began; what it works out comes back through a pipe.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from core.importing.pool import end_with_parent, forks, inherited

_T = TypeVar("_T")
Receive = Callable[[], Any]
_POLL_S = 0.02
_END_S = 5.0


class Lost(Exception):
    """The fork has ended without a result, or its work has failed: do it here."""


class Beside(Generic[_T]):
    """One piece of work in a fork, which ends with it, or with this process.

    Parameters
    ----------
    work
        Called in the fork with a function that waits for what `hand` gives it. What it returns must be picklable.

    Raises
    ------
    OSError
        When there can be no fork.
    """

    def __init__(self, work: Callable[[Receive], _T]) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        unwanted = (*inherited(), self._pipe)
        self._process = context.Process(target=_run, args=(work, theirs, os.getpid(), unwanted), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()

    def hand(self, value: Any) -> None:
        """Give the fork what its work waits for; one that has ended gets nothing."""
        with suppress(OSError):
            self._pipe.send_bytes(pickle.dumps(value, protocol=5))

    def result(self, tick: Callable[[], None] = lambda: None) -> _T:
        """Wait for what the work returns; ``tick`` is called meanwhile, and may raise.

        Raises
        ------
        Lost
            When nothing comes of it.
        """
        try:
            while not self._pipe.poll(_POLL_S):
                tick()
            result: list[_T] = pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError, pickle.PickleError, AttributeError, ImportError) as error:
            raise Lost from error
        finally:
            self.end()
        if not result:
            raise Lost
        return result[0]

    def end(self) -> None:
        """End the fork, whatever it is doing."""
        self._pipe.close()
        with suppress(OSError, ValueError):
            self._process.kill()
            self._process.join(_END_S)
            self._process.close()


def begin(work: Callable[[Receive], _T]) -> Beside[_T] | None:
    """Begin some work in a fork; None where there can be none."""
    if (os.cpu_count() or 1) < 2 or not forks():
        return None
    try:
        return Beside(work)
    except (OSError, RuntimeError, ValueError):
        return None


def _run(work: Callable[[Receive], Any], pipe: Connection, parent: int, unwanted: tuple[Connection, ...]) -> None:
    """Run in the fork."""
    if not end_with_parent(parent, unwanted):
        return
    gc.disable()  # what is shared stays shared
    answer: list[Any] = []
    with suppress(Exception):  # the other side does it then, and tells what is wrong
        answer.append(work(lambda: pickle.loads(pipe.recv_bytes())))
    with suppress(OSError):
        pipe.send_bytes(pickle.dumps(answer, protocol=5))
