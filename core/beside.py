"""Work done in a fork of this process beside what goes on here: with all that this process has, on another core.

Only in a process that was made to open traces (`core.importing.pool.forks`). Whatever becomes of the fork, nothing is
lost but time: who gets no result does the work himself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from core.importing import pool

_T = TypeVar("_T")
Send = Callable[[Any], None]


class Beside(Generic[_T]):
    """Some work under way in a fork; a context manager that ends it.

    Parameters
    ----------
    work
        Called in the fork with a function that sends a message back; its result must survive pickling.
    on_message
        Called in a thread of this process with each message.

    Raises
    ------
    OSError
        When there can be no fork.
    """

    def __init__(self, work: Callable[[Send], _T], on_message: Send) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        inherited = (*pool.inherited(), self._pipe)
        self._process = context.Process(target=_run, args=(work, theirs, os.getpid(), inherited), daemon=True)
        self._on_message = on_message
        self._found: list[_T] = []
        self._error: BaseException | None = None
        self._listener = threading.Thread(target=self._listen, name="beside", daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()
        self._listener.start()

    def __enter__(self) -> Beside[_T]:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the fork, whatever it does."""
        self._process.kill()
        self._listener.join()
        self._process.join()
        self._process.close()
        self._pipe.close()

    def wait(self) -> tuple[_T] | None:
        """Wait for the result; None when the work failed, or the fork has died.

        Raises
        ------
        BaseException
            What ``on_message`` raised.
        """
        self._listener.join()
        if self._error is not None:
            raise self._error
        return (self._found[0],) if self._found else None

    def _listen(self) -> None:
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                is_result, held = self._pipe.recv()
                if is_result:
                    self._found.append(held)
                    return
                try:
                    self._on_message(held)
                except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                    self._error = error
                    return


def _run(work: Callable[[Send], Any], pipe: Connection, parent: int, inherited: tuple[Connection, ...]) -> None:
    """Run in the fork."""
    if not pool.end_with_parent(parent, inherited):
        return
    gc.freeze()  # no search through what the parent has: that would copy its pages
    with suppress(Exception):  # the parent does the work again, and fails where it is seen
        pipe.send((True, work(lambda message: pipe.send((False, message)))))
