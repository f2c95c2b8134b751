"""How undisturbed the machine was while steps were timed: what other programs took, and how fast the processor was.

Runs in the user's interpreter: standard library only, Python 3.8. Two runs of one script can differ by a factor because
of what else the machine did; this is kept beside the time, so that no change of the code is blamed for it.
"""

import os
import threading
import time

LOOPS, ROUNDS = 4000, 10  # of the yardstick: under a millisecond in all
APART_ROUNDS = 50  # where there is time: before the loop and at the script's end
MOST_PROCESSES = 256
TICKS = 100  # a second, of the times in /proc; the kernel says it in user space as this on every common platform


def yardstick(rounds=ROUNDS):
    """Microseconds of a fixed piece of work, undisturbed: the shortest of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        began, total = time.perf_counter(), 0
        for i in range(LOOPS):
            total += i & 3
        best = min(best, time.perf_counter() - began)
    return best * 1e6


def _read(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _waited():
    """Seconds that this process's threads were ready to run and had no core, as Linux counts them."""
    total = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            total += int(_read("/proc/self/task/" + thread + "/schedstat").split()[1])
        except OSError:  # it has just ended
            pass
    return total * 1e-9


def _used_by_all():
    """Seconds that all cores have worked, and that a host took from them where this is a virtual machine."""
    row = _read("/proc/stat").split(None, 9)
    user, nice, system, _idle, _waiting, irq, soft, stolen = map(int, row[1:9])
    return (user + nice + system + irq + soft) / TICKS, stolen / TICKS


def _children():
    """What the kernel tells of each process below this one, as of a loader's workers: state, parent, ..., times."""
    seen, left = set(), [str(os.getpid())]
    while left and len(seen) < MOST_PROCESSES:
        pid = left.pop()
        seen.add(pid)
        try:
            if pid != str(os.getpid()):
                yield _fields("/proc/" + pid)
            for thread in os.listdir("/proc/" + pid + "/task"):
                left += _read("/proc/" + pid + "/task/" + thread + "/children").split()
        except OSError:  # it has just ended, or this kernel does not tell
            pass


def _fields(folder):
    return _read(folder + "/stat").rpartition(")")[2].split()


def _used_by_children():
    """Seconds that the processes below this one have worked."""
    return sum(int(fields[11]) + int(fields[12]) for fields in _children()) / TICKS


def is_alone():
    """Whether no other thread of this process and no process below it works right now; None where that is not told."""
    try:
        threads = set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}
        for thread in threads:
            try:
                if _fields("/proc/self/task/" + thread)[0] == "R":
                    return False
            except OSError:  # it has just ended
                pass
        return all(fields[0] != "R" for fields in _children())
    except (OSError, IndexError):
        return None


class Pace:
    """Counts over one stretch of timing, which may be interrupted.

    A core, its caches and its clock are shared: the script's own workers make the yardstick longer, as they do the
    step. That is the script's doing and no pace of the machine's. So a yardstick counts only where nothing of the
    script's ran beside it; for where that is never so, others are taken before its loop and at its end.
    """

    def __init__(self):
        self._apart = []
        self._measure(self._apart, APART_ROUNDS)
        self.reset()

    def reset(self):
        """A new stretch."""
        self._began, self._lost, self._crowded, self._known, self._loops = None, 0.0, 0.0, True, []

    def start(self):
        """Time is taken from here on."""
        self._measure(self._loops)
        self._began = self._now()

    def stop(self):
        """No time is taken for a while."""
        now, began = self._now(), self._began
        if now is None or began is None:
            self._known = False
        else:
            waited, used, stolen, own = (new - old for new, old in zip(now, began))
            # What waits for a core because of the script's own threads and workers is part of the script.
            others = max(0.0, min(waited, used - own))
            self._lost += others + stolen
            self._crowded += waited - others
        self._measure(self._loops)

    def found(self):
        """``waited_us``: for a core that others had, summed over the threads, None where the system does not tell;
        ``crowded_us``: the same for one that the script itself had; ``loop_us``: the yardstick, the mean of both ends,
        None where the script's own workers ran beside both.
        """
        return {
            "waited_us": self._lost * 1e6 if self._known else None,
            "crowded_us": self._crowded * 1e6 if self._known else None,
            "loop_us": _mean(self._loops),
        }

    def apart(self):
        """The yardstick apart from the loop: before it and now, where the script has ended; None as in `found`."""
        self._measure(self._apart, APART_ROUNDS)
        return _mean(self._apart)

    @staticmethod
    def _measure(into, rounds=ROUNDS):
        if is_alone() is not False:
            took = yardstick(rounds)
            if is_alone() is not False:
                into.append(took)

    def _now(self):
        try:
            return (_waited(), *_used_by_all(), time.process_time() + _used_by_children())
        except (OSError, ValueError, IndexError):
            return None


def _mean(values):
    return sum(values) / len(values) if values else None
