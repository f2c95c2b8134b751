"""Times steps without the profiler: the true step time, the device synchronised at both ends.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import time

LEAST_STEPS = 3  # are timed: at least so many ...
SECONDS = 0.3  # ... and as many as fit in here ...
MOST_STEPS = 25  # ... but no more than that
# So many in so long a time are enough: a loop may be left long before its loader ends, and then there is no window.
# More would tell little more: what the machine does drifts over seconds, so 34 steps scatter nearly as much as 12.
ENOUGH_STEPS, ENOUGH_SECONDS = 12, 0.03


class Clock:
    """Counts and times the steps of one stretch.

    Parameters
    ----------
    synchronize
        Function that waits for every device in use.
    pace
        `_child_pace.Pace`: told when time is taken.
    """

    def __init__(self, synchronize, pace):
        self._synchronize, self.pace = synchronize, pace
        self.reset()

    def reset(self):
        """A new stretch: nothing is timed yet."""
        self.steps, self.us, self._began = 0, 0.0, None
        self.pace.reset()

    @property
    def runs(self):
        """Whether time is being taken right now."""
        return self._began is not None

    def start(self):
        """Take time from here on."""
        self._synchronize()
        self.pace.start()
        self._began = time.perf_counter()

    def stop(self):
        """Take no time for a while."""
        self._synchronize()
        self.us += (time.perf_counter() - self._began) * 1e6
        self._began = None
        self.pace.stop()

    def ended(self, left):
        """A step has ended; returns whether the stretch is over.

        ``left``: steps to come beside those that the window needs, None where that is not known.
        """
        self.steps += self.runs
        if not self.runs or self.steps < LEAST_STEPS:
            return False
        seconds = self.us * 1e-6 + time.perf_counter() - self._began
        if self.steps >= ENOUGH_STEPS and seconds >= ENOUGH_SECONDS:
            return True
        return seconds >= SECONDS or self.steps >= MOST_STEPS or (left is not None and left <= 0)
