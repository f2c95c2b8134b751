"""Decoding pieces in worker processes.

Each worker is fed through its own pipe by its own thread here, so that sending, decoding and receiving overlap. Where
no process can be started (a sandbox, a frozen build without support), decoding goes on in this process.

Workers are spawned, as a window's threads do not survive a fork. The process that was made to open traces has no such
threads: on Linux it forks its workers, which then stand ready in milliseconds instead of importing everything anew,
share its memory, and end with it at once, in the midst of a piece.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from core.importing.decoders import Future, InlineDecoder, Read, read_range
from core.importing.pieces import PieceResult, decode_piece
from core.importing.slots import Slots

MIN_BYTES = 128 << 20  # text below this is decoded before a worker has even started
FORKED_MIN_BYTES = 8 << 20  # the same for workers that are forked
_SMALL_PIECE_BYTES = 1 << 19  # a worker needs some seven times as much
_PER_WORKER = 3  # pieces on their way
_AHEAD = 2  # pieces that a worker has at a time: it begins the next one while its answer is being taken
_STOP = b""
_PR_SET_PDEATHSIG = 1
_HARMLESS = frozenset({"MainThread", "lifeline", "trace-cache"})
_openers: dict[int, tuple[Connection, ...]] = {}


def allow_in_child(pipes: Iterable[Connection] = ()) -> None:
    """Let this process have workers though it was spawned, and fork them while it has no thread that forbids it.

    For one that was made to open traces, and is no worker itself.

    Parameters
    ----------
    pipes
        Its pipes, which a forked worker must not keep open.
    """
    _openers[os.getpid()] = tuple(pipes)


def inherited() -> tuple[Connection, ...]:
    """Pipes of this process that a fork of it must not keep open."""
    return _openers.get(os.getpid(), ())


def forks() -> bool:
    """Whether this process may be forked: one made for opening, whose other threads hold nothing that a fork needs.

    These wait for the end of a pipe, or write a file.
    """
    if os.getpid() not in _openers or sys.platform != "linux":
        return False
    return {thread.name for thread in threading.enumerate()} <= _HARMLESS


def end_with_parent(parent: int, unwanted: Iterable[Connection]) -> bool:
    """Run first in a fork: let go of its parent's pipes, and end when that does, however that ended.

    Returns
    -------
    False when the parent has ended already.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return False
    for other in unwanted:
        with suppress(OSError):
            other.close()
    return True


def worker_count(text_bytes: int, wanted: int | None) -> int:
    """Number of workers for a text of about this size.

    One per core, as the opening process itself mostly waits; none for small texts, and none inside a worker of
    somebody's own (a spawned process must not spawn on).
    """
    if multiprocessing.parent_process() is not None and os.getpid() not in _openers:
        return 0
    if wanted is not None:
        return max(wanted, 0)
    cores = os.cpu_count() or 1
    enough = FORKED_MIN_BYTES if cores > 1 and forks() else MIN_BYTES
    return min(cores, 8) if text_bytes >= enough else 0


def _keep_memory() -> None:
    """Ask the C library not to hand freed memory back: fetching it anew for every piece takes a tenth of the time.

    Only for a worker, which ends soon (``mallopt(3)``; elsewhere than with glibc nothing is changed).
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD


def _serve_forked(connection: Connection, parent: int, unwanted: tuple[Connection, ...], slots: Slots | None) -> None:
    """Run in a forked worker."""
    if end_with_parent(parent, unwanted):
        _serve(connection, slots)


def _serve(connection: Connection, slots: Slots | None = None) -> None:
    """Run in the worker: decode what comes until told to stop or the other side is gone."""
    _keep_memory()
    gc.disable()  # nothing here refers in circles
    with suppress(EOFError, OSError, KeyboardInterrupt, MemoryError):
        while True:
            head = connection.recv_bytes()
            if head == _STOP:
                return
            base, raw_backslashes, path, size, slot = pickle.loads(head)
            text = connection.recv_bytes() if path is None else b""
            try:
                answer = decode_piece(text if path is None else read_range(path, base, size), base, raw_backslashes)
                packed = _packed(answer, slots, slot)
            except Exception as error:  # noqa: BLE001 - whatever it is, the opening process must hear of it
                packed = _packed(error, slots, -1)
            connection.send_bytes(packed)


def _packed(answer: Any, slots: Slots | None, slot: int) -> bytes:
    return pickle.dumps(answer, protocol=5) if slots is None else slots.leave(slot, answer)


class _Task:
    """A piece on its way."""

    def __init__(self, read: Read, base: int, raw_backslashes: bool, path: Path | None = None, size: int = 0) -> None:
        self.read, self.base, self.raw_backslashes, self.path, self.size = read, base, raw_backslashes, path, size
        self._slots: Slots | None = None
        self.slot = -1  # where its worker leaves the answer
        self._ready = threading.Event()
        self._answer: Any = None

    def lie_in(self, slots: Slots | None) -> None:
        """Have the answer left in shared memory, where there is room."""
        self._slots, self.slot = slots, -1 if slots is None else slots.take()

    def finish(self, answer: Any) -> None:
        self._answer = answer
        self._ready.set()

    def done(self) -> bool:
        return self._ready.wait(0.02)

    def result(self) -> PieceResult:
        self._ready.wait()
        if not isinstance(self._answer, PieceResult):  # the worker died or failed: decode here, where it can be seen
            return decode_piece(self.read(), self.base, self.raw_backslashes)
        return self._answer

    def release(self) -> None:
        if self._answer is not None and self._slots is not None and self.slot >= 0:  # else a worker may yet write there
            self._slots.give_back(self.slot)
        self._answer, self.slot = None, -1


class Pool:
    """Decoder over worker processes; a context manager that ends them.

    Parameters
    ----------
    workers
        How many processes.
    text_bytes
        How long the text is, about: pieces of a short one are smaller, as what they need is much beside it.
    """

    piece_bytes = 1 << 20  # larger ones leave the caches, smaller ones cost more to hand over

    def __init__(self, workers: int, text_bytes: int = MIN_BYTES) -> None:
        if text_bytes < MIN_BYTES:
            self.piece_bytes = min(self.piece_bytes, _SMALL_PIECE_BYTES)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._processes: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._inline = InlineDecoder()
        self._slots: Slots | None = None
        pipes: list[Connection] = []
        with suppress(OSError, ValueError):
            self._slots = Slots(_PER_WORKER * workers, self.piece_bytes * 3 // 2) if forks() else None
        with suppress(OSError, RuntimeError, ValueError):
            for number in range(workers):
                pipes.append(self._start(number, pipes))
        for number, pipe in enumerate(pipes):  # only now: what is forked has no threads
            thread = threading.Thread(target=self._feed, args=(pipe,), daemon=True, name=f"feeder-{number}")
            try:
                thread.start()
            except RuntimeError:  # no thread to be had: its worker sees the end of the pipe, and ends
                pipe.close()
            else:
                self._threads.append(thread)
        self.depth = _PER_WORKER * len(self._threads) if self._threads else 1
        self.reads_files = bool(self._threads)

    def _start(self, number: int, pipes: list[Connection]) -> Connection:
        """Start a worker beside those at the other ends of ``pipes``; returns our end of its pipe."""
        forked = forks()
        context: Any = multiprocessing.get_context("fork" if forked else "spawn")
        ours, theirs = context.Pipe()
        target: Any = _serve
        arguments: tuple[Any, ...] = (theirs,)
        if forked:
            target = _serve_forked
            arguments = (theirs, os.getpid(), (*inherited(), ours, *pipes), self._slots)
        process = context.Process(target=target, args=arguments, daemon=True, name=f"decoder-{number}")
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._processes.append(process)
        return cast(Connection, ours)

    def __enter__(self) -> Pool:
        """Return the pool itself."""
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        """End the workers: at once when something went wrong or was called off."""
        if kind is not None:
            for process in self._processes:
                process.kill()
        self.close()

    def close(self) -> None:
        """End the workers once they have decoded what they have."""
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
        self._threads, self._processes = [], []

    def submit(self, text: bytes, base: int, raw_backslashes: bool) -> Future:
        """Queue a piece."""
        if not self._threads:
            return self._inline.submit(text, base, raw_backslashes)
        return self._queue(_Task(lambda: text, base, raw_backslashes))

    def submit_range(self, path: Path, base: int, size: int, raw_backslashes: bool, read: Read) -> Future:
        """Queue a piece of a plain file, which the worker reads itself."""
        return self._queue(_Task(read, base, raw_backslashes, path, size))

    def _queue(self, task: _Task) -> Future:
        task.lie_in(self._slots)
        self._tasks.put(task)
        return task

    def _feed(self, connection: Connection) -> None:
        """Run in a thread per worker: hand it piece after piece."""
        sent: deque[_Task] = deque()
        upcoming: _Task | None = None
        alive, ending = True, False
        while not ending or sent:
            if upcoming is None and not ending and len(sent) < _AHEAD:
                with suppress(queue.Empty):
                    upcoming = self._tasks.get(block=not sent)
                    ending = upcoming is None
            if upcoming is not None and (not sent or upcoming.path is not None):  # a text might wait for an answer
                alive = alive and self._sent(connection, upcoming)
                sent.append(upcoming)
                upcoming = None
            elif sent:
                answer = self._answer(connection) if alive else None
                alive = answer is not None
                sent.popleft().finish(answer)
        with suppress(OSError):
            connection.send_bytes(_STOP or b"")
        connection.close()

    @staticmethod
    def _sent(connection: Connection, task: _Task) -> bool:
        """Send a piece; False where the worker died, or memory ran out."""
        try:
            connection.send_bytes(
                pickle.dumps((task.base, task.raw_backslashes, task.path, task.size, task.slot), protocol=5)
            )
            if task.path is None:
                connection.send_bytes(task.read())
        except Exception:  # noqa: BLE001 - whoever waits for the piece decodes it
            return False
        return True

    def _answer(self, connection: Connection) -> Any:
        """Take the answer to the piece that was sent first; None where the worker died, or memory ran out."""
        try:
            held = connection.recv_bytes()
            return pickle.loads(held) if self._slots is None else self._slots.find(held)
        except Exception:  # noqa: BLE001 - whoever waits for the piece decodes it
            return None
