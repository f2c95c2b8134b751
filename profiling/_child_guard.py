"""Ends a recording that no step ends any more: what comes after the loop must not fill the memory. And writes what is
there where the script was asked to stop and goes on: it will be killed.

A recording may only be stopped by the thread that started it, so a watching thread asks the interpreter to call back in
the main one, between two of its instructions. Runs in the user's interpreter: standard library only, Python 3.8.
"""

import collections
import ctypes
import os
import threading
import time

LOOK_SECONDS = 0.5
FIRST_SECONDS = 30.0  # for the first step: compilers and loaders start there
LEAST_SECONDS = 2.0  # for others: a busy loop without steps gives a hundred megabytes a second
TIMES_A_STEP = 3.0
STOP_SECONDS = 1.0  # for a script that was asked to stop to do so


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
        self._seen = self._asked = 0.0
        self._steps = collections.deque(maxlen=15)  # seconds that the last ones took
        self._cut_after, self._times = 0.0, 0  # seconds, until steps go on; how often that was so
        made = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        self._calls = {end: made(lambda unused, end=end: self._end(end) or 0) for end in (self._cut, self._save)}

    def on_boundary(self, now, ended):
        """A step began or ended. Where one goes on after a cut, why it was cut is told: it is recorded anew."""
        if self._cut_after:
            self._times += 1
            self._recorder.report.send("anew", seconds="%.3g" % self._cut_after, times=self._times)
            self._cut_after = 0.0
        if self._seen and ended:
            self._steps.append(now - self._seen)
        self._seen = now

    def watch(self):
        """A recording begins."""
        self._seen = time.perf_counter()
        if not self._alive:
            self._alive = True
            threading.Thread(target=self._loop, name="steplens-guard", daemon=True).start()

    def _limit(self):
        usual = sorted(self._steps)[len(self._steps) // 2] if self._steps else 0.0
        return max(LEAST_SECONDS, TIMES_A_STEP * usual) if usual else FIRST_SECONDS

    def _overdue(self):
        return time.perf_counter() - self._seen > self._limit()

    def _unwilling(self):
        """Whether the script was asked to stop, a while ago."""
        if not os.path.exists(self._recorder.report.in_folder("stop")):
            return False
        self._asked = self._asked or time.perf_counter()
        return time.perf_counter() - self._asked > STOP_SECONDS

    def _loop(self):
        while True:
            time.sleep(LOOK_SECONDS)
            session = self._recorder.session
            running = session is not None and session.running
            if not running and self._recorder.phase == "done":
                self._alive = False
                return
            due = self._save if self._unwilling() else self._cut if running and self._overdue() else None
            if due is None:
                continue
            if running and session.all_threads:
                self._end(due)
            elif not running or not session.off_main:
                ctypes.pythonapi.Py_AddPendingCall(self._calls[due], None)

    def _cut(self):
        if self._overdue() and self._recorder.session is not None:  # several calls may have been asked for meanwhile
            self._cut_after = self._limit()
            self._recorder.cut()

    def _save(self):
        self._recorder.finish()
        self._recorder.kept = None
        self._recorder.to("done")

    def _end(self, how):
        recorder = self._recorder
        try:
            if recorder.lock._is_owned() or not recorder.lock.acquire(False):
                return  # in the middle of something: the next look comes soon
            try:
                how()
            finally:
                recorder.lock.release()
        except Exception as error:
            recorder.fail(error)
