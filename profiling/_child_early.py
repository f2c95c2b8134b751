"""The early recording: the first steps, kept only where the script ends before its window is full.

Runs in the user's interpreter: standard library and torch only, Python 3.8.

A loop whose source says that it is too short for the window is recorded whole, with everything that was asked for. Any
other loop will most likely reach its window; it shall not pay much for the case that it does not (it crashes, it is
stopped, it is left in the middle), so shapes and memory, which cost the most, are left out and few steps are recorded.
"""

import sys
import time

MOST_STEPS = 16  # a short loop's recording ends after this many steps ...
MOST_SECONDS = 2.0  # ... or, once skip and warm-up are over, after this long and a few steps ...
FEW_STEPS = 8
MOST_COMPILING = 1  # step after the skipped ones that is not recorded because the compiler works in it
SLOW_SECONDS = 10.0  # ... which are not waited for where they are slow
LIGHT_SECONDS = 0.25  # any other loop's recording ends after a few steps, or skip and warm-up and this long
MOST_PASSED, PASSED_UNFORESEEN = 16, 4  # steps before the timing, for the batches that workers have prepared
LEFT_OUT = ("shapes", "memory", "flops", "modules")


class Early:
    """Decides what the early recording holds and when it is over.

    Parameters
    ----------
    recorder
        The ``Recorder``, whose session this starts.
    loops
        The module that reads the user's loops.
    needed
        Steps that a script makes at least until its first window is full.
    """

    def __init__(self, recorder, loops, needed):
        self._recorder, self._loops, self._needed = recorder, loops, needed
        self._since = 0.0
        self._short = False
        self.compiled_in = None  # step in which, or before whose first sign, the compiler worked
        self.foreseen = None  # steps that the loop will make, as far as its source tells

    def begin(self):
        """Start to record, unless the compiler has just worked in this step: it goes on, in ``backward``."""
        recorder = self._recorder
        if self.compiled_in == recorder.number:
            return
        recorder.to("early")
        self._since = time.perf_counter()
        self._short = self._is_short()
        changes = {} if self._short else dict.fromkeys(LEFT_OUT, False)
        if recorder.tools["session"].mixes_up_stacks(recorder.torch):
            changes["stacks"] = False  # a recording of the script's own may follow at once, and would be lost
        recorder.session = recorder.new_session(**changes)
        recorder.open_session()

    def _is_short(self):
        torch, recorder = self._recorder.torch, self._recorder
        try:
            loader_class = torch.utils.data.DataLoader
            frame, limits = sys._getframe(2), recorder.tools["limits"]
            self.foreseen = self._loops.steps_foreseen(frame, recorder.config["is_users"], loader_class, limits)
        except Exception:  # a guess must not cost anybody the recording
            return False
        return self.foreseen is not None and self.foreseen < self._needed

    def over(self):
        """Whether enough was recorded; asked whenever a step has ended."""
        recorder, now = self._recorder, time.perf_counter()
        if recorder.number <= 1:
            self._since = now  # the first step waits for workers to start: it does not count
        steps, seconds = recorder.number, now - self._since
        if not self._short:
            enough = steps >= FEW_STEPS or seconds > LIGHT_SECONDS or self._window_needs_the_rest()
            return steps >= recorder.lead and enough
        long = seconds > (MOST_SECONDS if steps >= FEW_STEPS else SLOW_SECONDS)
        return steps >= MOST_STEPS or (steps >= recorder.lead and long)

    def _window_needs_the_rest(self):
        """Whether the loop will make no more steps than the timing and the window need."""
        recorder = self._recorder
        return self.foreseen is not None and self.foreseen - recorder.number <= self._needed - recorder.lead

    def passing(self, needed):
        """Steps to let go by before time is taken: a loader's workers went on while a recording was taken down.

        The batches that they prepared meanwhile make so many steps shorter than the loop can hold. ``needed``: steps
        to come that are wanted for something else.
        """
        ahead = min(self._recorder.ahead, MOST_PASSED)
        if self.foreseen is None:
            return min(ahead, PASSED_UNFORESEEN)
        return max(0, min(ahead, self.foreseen - self._recorder.number - needed))


def better(one, other):
    """The one of two recordings that tells more; either may be None. Two steps with everything beat many without."""
    if one is None or other is None:
        return one or other
    if bool(one.left_out) != bool(other.left_out):
        full, light = (other, one) if one.left_out else (one, other)
        return full if len(full.steps) >= min(2, len(light.steps)) else light
    return one if len(one.steps) >= len(other.steps) else other


def leave_out(recorder):
    """What comes now is no step's work: the early recording is cut, and begins anew where it holds no step.

    A program that compiles in step after step is recorded as it is: else it would never be. Within a backward pass
    nothing may be cut: when it is over, torch puts the profiler that was on when it began in its place again.
    """
    in_backward = getattr(recorder.torch._C, "_current_graph_task_id", lambda: -1)() != -1
    if recorder.number > recorder.lead + MOST_COMPILING or in_backward:
        return
    with recorder.lock:
        session = recorder.session
        if recorder.phase in ("idle", "whole"):
            recorder._early.compiled_in = recorder.number
        if recorder.phase == "early" and session is not None and session.may_stop_here():
            recorder.cut()
            recorder._left = max(1, recorder.lead - recorder.number)
