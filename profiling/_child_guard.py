"""Ends a recording that no step ends any more: what comes after the loop must not fill the memory.

A recording may only be stopped by the thread that started it, so a watching thread asks the interpreter to call back in
the main one, between two of its instructions. Runs in the user's interpreter: standard library only, Python 3.8.
"""

import collections
import ctypes
import threading
import time

LOOK_SECONDS = 0.5
FIRST_SECONDS = 30.0  # for the first step: compilers and loaders start there
LEAST_SECONDS = 2.0  # for others: a busy loop without steps gives a hundred megabytes a second
TIMES_A_STEP = 3.0


class Guard:
    """Watches a recorder from the first recording on.

    Parameters
    ----------
    recorder
        The ``Recorder``; its ``cut`` is called in the main thread (in the watching one, where the recording allows it).
    """

    def __init__(self, recorder):
        self._recorder = recorder
        self._alive = False  # of the watching thread
        self._seen = 0.0
        self._steps = collections.deque(maxlen=15)  # seconds that the last ones took
        self._call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._on_main)

    def on_boundary(self, now, ended):
        """A step began or ended."""
        if self._seen and ended:
            self._steps.append(now - self._seen)
        self._seen = now

    def watch(self):
        """A recording begins."""
        self._seen = time.perf_counter()
        if not self._alive:
            self._alive = True
            threading.Thread(target=self._loop, name="steplens-guard", daemon=True).start()

    def _overdue(self):
        usual = sorted(self._steps)[len(self._steps) // 2] if self._steps else 0.0
        limit = max(LEAST_SECONDS, TIMES_A_STEP * usual) if usual else FIRST_SECONDS
        return time.perf_counter() - self._seen > limit

    def _loop(self):
        while True:
            time.sleep(LOOK_SECONDS)
            session = self._recorder.session
            if session is None or not session.running:
                self._alive = False
                return
            if self._overdue():
                if session.all_threads:
                    self._cut()
                elif not session.off_main:
                    ctypes.pythonapi.Py_AddPendingCall(self._call, None)

    def _on_main(self, unused):
        self._cut()
        return 0

    def _cut(self):
        recorder = self._recorder
        try:
            if recorder.lock._is_owned() or not recorder.lock.acquire(False):
                return  # in the middle of something: the next look comes soon
            try:
                if self._overdue():
                    recorder.cut()
            finally:
                recorder.lock.release()
        except Exception as error:
            recorder.fail(error)
