"""Decoding pieces in worker processes.

Processes are spawned, never forked: a window's threads do not survive a fork. Each worker is fed through its own pipe
by its own thread here, so that sending, decoding and receiving overlap. Where no process can be started (a sandbox, a
frozen build without support), decoding goes on in this process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from core.importing.decode import Future, InlineDecoder
from core.importing.pieces import PieceResult, decode_piece

MIN_BYTES = 128 << 20  # text below this is decoded before a worker has even started
_STOP = b""


def worker_count(text_bytes: int, wanted: int | None) -> int:
    """Number of workers for a text of about this size.

    One per core, as the opening process itself mostly waits; none for small texts, and none inside a worker of
    somebody's own (a spawned process must not spawn on).
    """
    if multiprocessing.parent_process() is not None:
        return 0
    if wanted is not None:
        return max(wanted, 0)
    return min(os.cpu_count() or 1, 8) if text_bytes >= MIN_BYTES else 0


def _serve(connection: Connection) -> None:
    """Run in the worker: decode what comes until told to stop or the other side is gone."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            head = connection.recv_bytes()
            if head == _STOP:
                return
            base, raw_backslashes = pickle.loads(head)
            text = connection.recv_bytes()
            try:
                answer: Any = decode_piece(text, base, raw_backslashes)
            except Exception as error:  # noqa: BLE001 - whatever it is, the opening process must hear of it
                answer = error
            connection.send_bytes(pickle.dumps(answer, protocol=5))


class _Task:
    """A piece on its way."""

    def __init__(self, text: bytes, base: int, raw_backslashes: bool) -> None:
        self.text, self.base, self.raw_backslashes = text, base, raw_backslashes
        self._ready = threading.Event()
        self._answer: Any = None

    def finish(self, answer: Any) -> None:
        self._answer = answer
        self._ready.set()

    def done(self) -> bool:
        return self._ready.wait(0.02)

    def result(self) -> PieceResult:
        self._ready.wait()
        if not isinstance(self._answer, PieceResult):  # the worker died or failed: decode here, where it can be seen
            return decode_piece(self.text, self.base, self.raw_backslashes)
        return self._answer


class Pool:
    """Decoder over worker processes; a context manager that ends them.

    Parameters
    ----------
    workers
        How many processes.
    """

    piece_bytes = 2 << 20

    def __init__(self, workers: int) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._processes: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._inline = InlineDecoder()
        context = multiprocessing.get_context("spawn")
        with suppress(OSError, RuntimeError, ValueError):
            for number in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True, name=f"decoder-{number}")
                process.start()
                theirs.close()
                self._processes.append(process)
                thread = threading.Thread(target=self._feed, args=(ours,), daemon=True, name=f"feeder-{number}")
                thread.start()
                self._threads.append(thread)
        self.depth = 3 * len(self._threads) if self._threads else 1

    def __enter__(self) -> Pool:
        """Return the pool itself."""
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        """End the workers: at once when something went wrong or was called off."""
        if kind is not None:
            for process in self._processes:
                process.terminate()
        for _feeder in self._threads:
            self._tasks.put(None)
        for feeder in self._threads:
            feeder.join(5)
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join(5)
            process.close()

    def submit(self, text: bytes, base: int, raw_backslashes: bool) -> Future:
        """Queue a piece."""
        if not self._threads:
            return self._inline.submit(text, base, raw_backslashes)
        task = _Task(text, base, raw_backslashes)
        self._tasks.put(task)
        return task

    def _feed(self, connection: Connection) -> None:
        """Run in a thread per worker: hand it piece after piece."""
        alive = True
        while True:
            task = self._tasks.get()
            if task is None:
                with suppress(OSError):
                    connection.send_bytes(_STOP or b"")
                connection.close()
                return
            answer: Any = None
            if alive:
                try:
                    connection.send_bytes(pickle.dumps((task.base, task.raw_backslashes)))
                    connection.send_bytes(task.text)
                    answer = pickle.loads(connection.recv_bytes())
                except (OSError, EOFError, pickle.UnpicklingError):
                    alive = False
            task.finish(answer)
