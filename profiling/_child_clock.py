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
# Slow steps that scatter: more of them, as long as that may last.
SCATTER_STEPS, SCATTER_SECONDS = 10, 2.0
STEADY = 0.02  # standard error of their median, of it: below, more of them tell little more


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

    def reset(self, passing=0):
        """A new stretch: nothing is timed yet, and the first ``passing`` steps are not."""
        self._passing = passing
        self.steps, self.us, self._began, self._each, self._last = 0, 0.0, None, [], None
        self.pace.reset()

    @property
    def runs(self):
        """Whether time is being taken right now."""
        return self._began is not None

    def start(self):
        """Take time from here on, unless this step is to go by."""
        if self._passing > 0:
            self._passing -= 1
            return
        self._synchronize()
        self.pace.start()
        self._began = self._last = time.perf_counter()

    def stop(self):
        """Take no time for a while."""
        self._synchronize()
        self.us += (time.perf_counter() - self._began) * 1e6
        self._began = self._last = None
        self.pace.stop()

    def ended(self, left):
        """A step has ended; returns whether the stretch is over.

        ``left``: steps to come beside those that the window needs, None where that is not known.
        """
        if not self.runs:
            return False
        now = time.perf_counter()
        self.steps += 1
        self._each.append(now - self._last)
        self._last = now
        if self.steps < LEAST_STEPS:
            return False
        seconds = self.us * 1e-6 + now - self._began
        if left is not None and left <= 0 or self.steps >= MOST_STEPS:
            return True
        if self.steps >= ENOUGH_STEPS:
            return seconds >= ENOUGH_SECONDS
        if seconds < SECONDS:
            return False
        return self.steps >= SCATTER_STEPS or seconds >= SCATTER_SECONDS or self._is_steady()

    def _is_steady(self):
        """Whether the median of the steps so far is known well: from half of them, one odd step does not count."""
        each = sorted(self._each)
        count = len(each)
        middle, half = each[count // 2], each[3 * count // 4] - each[count // 4]
        return 1.25 * half / 1.35 <= STEADY * middle * count**0.5
