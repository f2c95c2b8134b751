"""Tells the launcher what happens: one JSON object a line, appended to a file in the run folder.

Runs in the user's interpreter: standard library only, Python 3.8. A file and not a pipe, so that nothing is
inherited by the script's children, nothing can block, and what was said survives a process that dies hard.
"""

import errno
import signal
import threading
import time
from json import dumps
from os import (  # noqa: A004 - a script may replace them
    O_APPEND,
    O_CREAT,
    O_WRONLY,
    close,
    getpid,
    makedirs,
    open,
    sep,
    write,
)

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Report:
    """Appends events to a file; never raises, since a full disk must not end the user's training.

    Parameters
    ----------
    path
        The file, in the run folder.
    place
        The run folder as a ``Place``.
    """

    MIN_INTERVAL_S = 0.05  # between two events of progress

    def __init__(self, path, place):
        self._path, self._place = path, place
        self._pid = getpid()
        self._last_progress = 0.0

    def send(self, event, **values):
        """Append one event of this name."""
        values.update(ev=event, t=time.time(), pid=getpid())
        try:
            line = (dumps(values, default=str) + "\n").encode("utf-8", "backslashreplace")
            try:
                handle = open(self._path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
            except OSError:
                makedirs(self._place.now(), exist_ok=True)  # it may have been moved or deleted
                handle = open(self.in_folder(), O_WRONLY | O_APPEND | O_CREAT, 0o600)
            try:
                write(handle, line)
            finally:
                close(handle)
        except Exception:
            pass

    def in_folder(self, name=""):
        """Path of a file in the run folder, wherever that is by now; without a name that of the events."""
        return self._place.now() + self._path[self._path.rfind(sep) :] if not name else self._place.now() + sep + name

    def progress(self, step, phase, done, total):
        """Append a progress event, at most twenty a second."""
        now = time.monotonic()
        if now - self._last_progress >= self.MIN_INTERVAL_S:
            self._last_progress = now
            self.send("step", step=step, phase=phase, done=done, total=total)

    def notice(self, key, **values):
        """Something that the user should know about this run; the launcher has the words (``sentences.py``)."""
        self.send("notice", key=key, values=values)

    def guarding(self, act):
        """The same as ``act``; a fault in it is told, and ends nothing of the user's."""

        def guarded(*args):
            try:
                act(*args)
            except Exception as error:
                import traceback

                self.send("recording_failed", error=repr(error), traceback=traceback.format_exc())

        return guarded

    def saved(self, save, path, key=""):
        """Write a file by ``save(path)``; where that fails, tell why (without a key: of a trace), return False."""
        try:
            save(path)
        except OSError as error:
            ending = "-full" if error.errno in FULL else "-large" if error.errno == errno.EFBIG else ""
            self.notice(key or "unsaved" + ending, error=error.strerror or str(error))
            return False
        return True


class Undisturbed:
    """Puts an interrupt off until a trace is whole; then the script gets it as it would have got it."""

    def __enter__(self):
        self._came = False
        self._handler = None
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._handler = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame):
        self._came = True

    def __exit__(self, *unused):
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._came:
                signal.raise_signal(signal.SIGINT)
