"""The window's side of one helper process (the other side is `core.helper`)."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication

from core import helper as protocol
from core import parcels
from core.errors import TraceError
from gui.errors import ChanceError

if TYPE_CHECKING:
    from core.analysis import Analysis
    from core.trace import Trace

    Progress = Callable[[float, str], None]

POLL_S = 0.03  # how long a cancel waits at most until it is seen
READY_S = 60.0  # a start that takes longer never comes
CLOSE_S = 3.0  # for what a helper is writing when the program ends
LINGER_S = 60.0  # for what it is writing after `close`; longer than that hangs in something that cannot be called off


class Helper:
    """One process, for one trace. Its methods are called from worker threads, one at a time; `kill` from any.

    Parameters
    ----------
    on_end
        Called with the helper when it has ended.

    Raises
    ------
    OSError, RuntimeError, ValueError
        When no process can be started.
    """

    def __init__(self, on_end: Callable[[Helper], None]) -> None:
        self._on_end = on_end
        _need_no_tracker()
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        their_life, self._lifeline = context.Pipe(duplex=False)
        self._process = context.Process(
            target=protocol.serve, args=(theirs, their_life), name="trace-helper", daemon=False
        )
        try:
            with _uninterrupted():
                self._process.start()
        except BaseException:
            self._connection.close()
            self._lifeline.close()
            raise
        finally:
            theirs.close()
            their_life.close()
        self._ready = False
        self._ended = threading.Event()
        self._known: Any = None  # the figures sent last
        self._lingering: threading.Thread | None = None  # collects it after `close`

    @property
    def process_id(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """The process has not ended."""
        return not self._ended.is_set() and self._process.is_alive()

    @property
    def ready(self) -> bool:
        """It has said that it can work."""
        return self._ready

    def wait_ready(self, progress: Progress) -> bool:
        """Wait until it can work; False when it never will."""
        end = time.monotonic() + READY_S
        try:
            while not self._ready and time.monotonic() < end:
                progress(0.0, "")
                self._ready = self._connection.poll(POLL_S) and self._connection.recv() == (protocol.READY,)
        except (EOFError, OSError):
            return False
        return self._ready

    def open(self, paths: Path | Sequence[Path], cache_dir: Path | None, progress: Progress) -> Trace:
        """Read a trace, a folder of ranks, or several files of them.

        Raises
        ------
        TraceError
            When it cannot be used, or the process died over it.
        Cancelled
            When ``progress`` raised it; the process is gone then.
        """
        try:
            trace: Trace = self._call((protocol.OPEN, paths, cache_dir), progress)
        except TraceError:
            raise
        except BaseException:
            self.kill()
            raise
        return trace

    def adopt(self, trace: Trace) -> None:
        """Take over a trace that was read elsewhere, to diagnose it.

        Raises
        ------
        TraceError
            When the process has died.
        """
        try:
            self._connection.send((protocol.ADOPT,))
            parcels.send(self._connection, trace)
        except OSError as error:
            self.kill()
            raise _lost(self._process.exitcode) from error

    def analyze(
        self,
        on_partial: Callable[[Analysis], None],
        progress: Progress,
        rule_folders: tuple[Path, ...] = (),
        source_folders: tuple[Path, ...] = (),
    ) -> Analysis:
        """Diagnose the trace that was opened, with rules and sources in these folders that the user has allowed.

        Raises
        ------
        TraceError
            When the process died over it.
        Cancelled
            When ``progress`` raised it; the process ends as after `close`.
        """
        try:
            found: Analysis = self._call((protocol.ANALYZE, rule_folders, source_folders), progress, on_partial)
        finally:
            self._known = None  # the process may be remembered for long after its trace is closed
            self.close()
        return found

    def _call(self, request: Any, progress: Progress, on_partial: Any = None) -> Any:
        try:
            self._connection.send(request)
            return self._answer(progress, on_partial)
        except (EOFError, OSError) as error:
            self._process.join(CLOSE_S)
            status = self._process.exitcode
            self.kill()
            progress(0.0, "")  # raises where it was called off: then this is why the pipe is closed
            raise _lost(status) from error

    def _answer(self, progress: Progress, on_partial: Any) -> Any:
        fraction, what = 0.0, ""
        while True:
            while not self._connection.poll(POLL_S):
                progress(fraction, what)
            kind, *held = self._connection.recv()
            if kind == protocol.PROGRESS:
                fraction, what = held
                progress(fraction, what)
            elif kind == protocol.FAILED:
                error = protocol.restored(held[0])
                if isinstance(error, (EOFError, OSError)):  # not the pipe's
                    error = _as_trace_error(error)
                raise error
            elif kind == protocol.TRACE:
                return parcels.receive(self._connection)
            else:
                analysis = protocol.joined(parcels.receive(self._connection), self._known)
                self._known = analysis.figures
                if kind == protocol.DONE:
                    return analysis
                on_partial(analysis)

    def kill(self) -> None:
        """End it at once, with all it has begun."""
        if self._ended.is_set():
            return
        self._ended.set()
        with suppress(OSError, ValueError):
            self._process.kill()
            self._process.join(CLOSE_S)
        self._let_go()

    def close(self) -> None:
        """Let it end by itself: it finishes what it is writing to the cache, and nothing else.

        One that has not ended after `LINGER_S` (a rule of the user's that hangs without letting others work) is killed.
        """
        with suppress(OSError):
            self._lifeline.close()
        if self._lingering is None and not self._ended.is_set():
            self._lingering = threading.Thread(target=self._collect, name="helper-end", daemon=True)
            with suppress(RuntimeError):  # no thread to be had
                self._lingering.start()

    def _collect(self) -> None:
        with suppress(OSError, ValueError):
            multiprocessing.connection.wait([self._process.sentinel], LINGER_S)
        self.kill()  # what has ended by then is only forgotten

    def wait_closed(self) -> None:
        """Wait for the end after `close`, and make an end where it does not come."""
        with suppress(OSError, ValueError, AssertionError):
            self._process.join(CLOSE_S)
        self.kill()

    def _let_go(self) -> None:
        self._on_end(self)
        with suppress(OSError):
            self._lifeline.close()
            self._connection.close()


def _need_no_tracker() -> None:
    """Have no third interpreter (10 MB) started that clears up named semaphores: a helper has none.

    `multiprocessing` takes any open pipe for the way to one that runs already.
    """
    tracker = getattr(resource_tracker, "_resource_tracker", None)
    if os.name == "posix" and getattr(tracker, "_fd", 0) is None:
        vars(tracker)["_fd"] = os.open(os.devnull, os.O_WRONLY)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """What is started here hears no Ctrl+C while it loads its modules; then it says itself what it does with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_trace_error(error: BaseException) -> TraceError:
    """What the helper could not read or write, as an error of its own kind."""
    shown = getattr(error, "strerror", None) or str(error)
    made = TraceError(shown, str(getattr(error, "filename", "") or ""))
    made.__cause__ = error
    return made


def _lost(status: int | None) -> TraceError:
    tr = QCoreApplication.translate
    return ChanceError(
        tr("Opener", "The process that reads and diagnoses the trace has ended unexpectedly."),
        tr("Opener", "Its exit status is {status}.").format(status="?" if status is None else status),
        tr("Opener", "Try again. If it happens again, close other programs: the memory may not suffice."),
    )
