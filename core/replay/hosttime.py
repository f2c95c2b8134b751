"""Host time of a lane: the time that passes on it while nothing is waited for, before and after a change.

Host time is a piecewise linear function of trace time: it stands still inside waits (which the replay works out
anew) and inside work that a fix removes, and runs slower inside work that a fix speeds up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.intervals import Spans, ascending, contains
from core.tables import F64, I64


@dataclass(frozen=True, eq=False)
class HostTime:
    """The function: linear between the points, at full speed outside."""

    at_ns: I64
    host_ns: F64

    def __call__(self, time_ns: I64) -> F64:
        """Host time at each instant, ns; only differences mean something."""
        if not len(self.at_ns):
            return time_ns.astype(np.float64)
        value = np.interp(time_ns, self.at_ns, self.host_ns)
        value += np.maximum(time_ns - self.at_ns[-1], 0)
        value -= np.maximum(self.at_ns[0] - time_ns, 0)
        return value


def host_time(changes: Iterable[tuple[Spans, float]]) -> HostTime:
    """Build the function.

    Parameters
    ----------
    changes
        Sets of instants with the speed of host time in them (0: not counted). Where several hold, the slowest counts:
        two fixes that both take the same work away do not take it twice.
    """
    changes = [(spans, speed) for spans, speed in changes if len(spans)]
    if not changes:
        return HostTime(np.zeros(0, dtype=np.int64), np.zeros(0))
    edges = ascending(np.concatenate([a for spans, _ in changes for a in (spans.start, spans.end)]))
    speed = np.ones(len(edges) - 1)
    for spans, factor in changes:
        np.minimum(speed, factor, out=speed, where=contains(spans, edges[:-1]))
    host = np.zeros(len(edges))
    (speed * (edges[1:] - edges[:-1])).cumsum(out=host[1:])
    host += edges[0]
    return HostTime(edges, host)
