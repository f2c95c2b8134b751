"""Long computations in a fork of this process, so that two run at the same time on two cores.

Only where the process may be forked (`pool.forks`: made for opening and diagnosing, on Linux) and there is a core to
spare: a window needs one meanwhile, and with two in all a fork gains next to nothing, for 20 MB. Elsewhere, and where
a fork ends before it has answered (for want of memory), nothing comes of it, and whoever asked does the work itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from core.importing import pool

_T = TypeVar("_T")
_POLL_S = 0.02
Tell = Callable[[Any], None]


class Forked(Generic[_T]):
    """Some work in a fork while this process goes on. What it needs is there, and stays as it is at this moment.

    Parameters
    ----------
    work
        Called in the fork, with a function that sends news of it; what it returns is pickled. It must not use a pipe or
        an open file of this process: both would move its place.
    worthwhile
        Whether it takes longer than forking does (some ms).
    """

    def __init__(self, work: Callable[[Tell], _T], *, worthwhile: bool = True) -> None:
        self._process: Any = None
        self._connection: Connection | None = None
        needed = 2 if multiprocessing.parent_process() is None else 3  # a helper's parent is a window
        if not worthwhile or (os.cpu_count() or 1) < needed or not pool.forks():
            return
        context: Any = multiprocessing.get_context("fork")
        with suppress(OSError, RuntimeError, ValueError):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (work, theirs, os.getpid(), (*pool.inherited(), ours))
            self._process = context.Process(target=_run, args=arguments, daemon=True, name="beside")
            try:
                self._process.start()
                self._connection = ours
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()

    @property
    def started(self) -> bool:
        """Whether it is being worked on."""
        return self._connection is not None

    def result(self, hear: Callable[[Any], None]) -> _T | None:
        """Wait for it; None where nothing comes of it.

        Parameters
        ----------
        hear
            Called with each piece of news, and with None many times a second; whatever it raises (`Cancelled`) ends the
            fork.
        """
        connection, self._connection = self._connection, None
        if connection is None:
            return None
        try:
            while True:
                while not connection.poll(_POLL_S):
                    hear(None)
                last, held = pickle.loads(connection.recv_bytes())
                if last:
                    return held  # type: ignore[no-any-return]
                hear(held)
        except (EOFError, OSError, pickle.UnpicklingError):
            return None
        finally:
            connection.close()
            with suppress(OSError, ValueError):
                self._process.kill()
                self._process.join()
                self._process.close()


def _run(work: Callable[[Tell], Any], connection: Connection, parent: int, unwanted: tuple[Connection, ...]) -> None:
    """Run in the fork; whatever goes wrong there shows where the work is done again."""
    if not pool.end_with_parent(parent, unwanted):
        return
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for this ends it
    gc.freeze()  # looking through what is shared would make copies of it
    with suppress(Exception):
        answer = work(lambda news: connection.send_bytes(pickle.dumps((False, news))))
        connection.send_bytes(pickle.dumps((True, answer), protocol=5))
