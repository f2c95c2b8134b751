"""Records from the import of torch on: the script may have no steps at all. Bounded in seconds.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import os
import threading


class Whole:
    """The recording of a run whose steps are not known (yet).

    Parameters
    ----------
    recorder
        The ``Recorder``, whose session this starts and ends.
    """

    def __init__(self, recorder):
        self._recorder = recorder
        self._timer = None  # ends the recording

    def start(self, phase):
        """Record from here on, whatever comes."""
        recorder = self._recorder
        forced = recorder.config["step_source"] == "whole"
        bounded = recorder.tools["session"].can_record_all_threads()  # only that can be stopped from outside
        if not forced and not bounded:
            return
        recorder.to(phase)
        if forced:
            recorder.session = recorder.new_session(all_threads=True)
        else:  # nobody knows yet what comes: operators alone are cheap enough
            recorder.session = recorder.new_session(all_threads=True, stacks=False, memory=False, shapes=False)
        recorder.session.start()
        if bounded:
            self._timer = threading.Timer(recorder.config["whole_seconds"], self._end)
            self._timer.daemon = True
            self._timer.start()
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(before=self.stop_timer)  # a fork shall find the threads it would find alone

    def _end(self):
        recorder = self._recorder
        with recorder.lock:
            if recorder.phase == "whole" and recorder.session is not None and recorder.session.running:
                recorder.session.stop()
                recorder.report.notice("whole", seconds="%g" % recorder.config["whole_seconds"])

    def stop_timer(self):
        """The recording ends in another way."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            if timer is not threading.current_thread():
                timer.join(1.0)
