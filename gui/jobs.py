"""Slow work off the GUI thread: one shape, with progress, cancel, and "latest wins"."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, Signal, Slot
from shiboken6 import isValid

from core.errors import Cancelled

Progress = Callable[[float, str], None]
MIN_THREADS = 6  # a search must not queue behind two traces that are being read
PROGRESS_EVERY_S = 0.04  # the window repaints no faster than this; a loader may report far more often


class Job(QObject):
    """One function at work in another thread; its results arrive in the GUI thread.

    Parameters
    ----------
    owner
        Nothing is called back once this object is gone.
    """

    _progress = Signal(float, str)
    _done = Signal(object)
    _failed = Signal(object)

    def __init__(
        self,
        owner: QObject,
        on_done: Callable[[Any], None],
        on_error: Callable[[BaseException], None],
        on_progress: Callable[[float, str], None] | None,
    ) -> None:
        super().__init__()
        self._owner: QObject | None = owner
        self._callbacks: tuple[Any, Any, Any] | None = (on_done, on_error, on_progress)
        self._cancelled = False
        self._last_report_s = 0.0
        queued = Qt.ConnectionType.QueuedConnection
        self._progress.connect(self._on_progress, queued)
        self._done.connect(self._on_done, queued)
        self._failed.connect(self._on_failed, queued)

    @property
    def cancelled(self) -> bool:
        """Cancel was asked for."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop at the function's next progress report; nothing is called back any more."""
        self._cancelled = True

    def report(self, fraction: float, text: str = "") -> None:
        """Progress as the working function calls it (in its thread).

        Raises
        ------
        Cancelled
            When the user called the job off, or the application has ended.
        """
        if self._cancelled or not isValid(self):
            raise Cancelled
        now = time.monotonic()
        if now - self._last_report_s >= PROGRESS_EVERY_S or fraction >= 1.0:
            self._last_report_s = now
            self._progress.emit(fraction, text)

    def _alive(self) -> tuple[Any, Any, Any] | None:
        return self._callbacks if not self._cancelled and self._owner is not None and isValid(self._owner) else None

    @Slot(float, str)
    def _on_progress(self, fraction: float, text: str) -> None:
        callbacks = self._alive()
        if callbacks and callbacks[2]:
            callbacks[2](fraction, text)

    @Slot(object)
    def _on_done(self, result: object) -> None:
        callbacks = self._alive()
        self._finish()
        if callbacks:
            callbacks[0](result)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        callbacks = self._alive()
        self._finish()
        if callbacks and not isinstance(error, Cancelled):
            callbacks[1](error)

    def _finish(self) -> None:
        self._callbacks = self._owner = None
        _running.discard(self)
        for key in [k for k, job in _by_key.items() if job is self]:
            del _by_key[key]


class _Task(QRunnable):
    def __init__(self, job: Job, fn: Callable[[Progress], Any]) -> None:
        super().__init__()
        self._job, self._fn = job, fn

    def run(self) -> None:
        job, fn = self._job, self._fn
        del self._job, self._fn  # Qt keeps the runnable longer than its work
        try:
            if job.cancelled:
                raise Cancelled
            result = fn(job.report)
        except BaseException as error:  # every failure reaches on_error, which shows it
            _tell(job, "_failed", error)
        else:
            _tell(job, "_done", result)


def _tell(job: Job, signal: str, value: object) -> None:
    try:
        getattr(job, signal).emit(value)
    except RuntimeError:
        if isValid(job):
            raise
        # else the application has ended, and with it whoever waited


_running: set[Job] = set()
_by_key: dict[str, Job] = {}


def run(
    owner: QObject,
    fn: Callable[[Progress], Any],
    on_done: Callable[[Any], None],
    on_error: Callable[[BaseException], None],
    *,
    on_progress: Callable[[float, str], None] | None = None,
    key: str = "",
) -> Job:
    """Run ``fn(progress)`` in another thread.

    Parameters
    ----------
    owner
        A QObject; when it is gone, the result is dropped.
    fn
        Plain function; calls ``progress(fraction, text)`` now and then, which raises `Cancelled` when called off.
    on_done, on_error
        Called in the GUI thread with the result, or with the exception (never for a cancelled job).
    key
        A newer job of the same key cancels the older one, whose result is dropped: latest wins.
    """
    if key and key in _by_key:
        _by_key[key].cancel()
    job = Job(owner, on_done, on_error, on_progress)
    _running.add(job)
    if key:
        _by_key[key] = job
    pool = QThreadPool.globalInstance()
    pool.setMaxThreadCount(max(MIN_THREADS, pool.maxThreadCount()))
    pool.start(_Task(job, fn))
    return job


def cancel_all() -> None:
    """Ask every job to stop (when the window closes)."""
    for job in tuple(_running):
        job.cancel()


def wait_all(timeout_ms: int = 5000) -> bool:
    """Wait for the worker threads; True when all have ended."""
    return QThreadPool.globalInstance().waitForDone(timeout_ms)


def busy() -> bool:
    """Some job has not reported its end."""
    return bool(_running)
