"""Which threads run loops: one per process, more where several run steps of their own at the same time."""

from __future__ import annotations

import numpy as np

from core.figures.lookup import View
from core.figures.model import Figures
from core.intervals import intersect, union
from core.kinds import SliceKind
from core.tables import StepTable

MIN_STEPS = 2  # one step says nothing about how steps overlap


def main_threads(view: View, figures: Figures) -> list[int]:
    """One thread per process, more where several run steps at once; without steps that which launches most."""
    if len(figures.steps):
        threads, counts = np.unique(figures.steps.thread_id, return_counts=True)
        process = view.trace.threads.process_id[threads]
        found: list[int] = []
        for one in np.unique(process[threads >= 0]):
            own, number = threads[process == one], counts[process == one]
            main = int(own[np.argmax(number)])
            beside = own[(own != main) & (number >= MIN_STEPS)].tolist()
            found += [main, *(t for t in beside if _run_beside(figures.steps, main, t))]
        return found
    owners = view.thread[view.trace.links.launched_by]
    if not len(owners):
        owners = view.thread[view.host_calls]
    if not len(owners):
        owners = view.thread[view.by_kind(SliceKind.CPU_OP)]
    owners = owners[owners >= 0]
    return [int(np.bincount(owners).argmax())] if len(owners) else []


def _run_beside(steps: StepTable, main: int, other: int) -> bool:
    """Whether a thread runs steps while another one does: two loops at once, and not one that changes its thread."""
    rows = [steps.thread_id == thread for thread in (main, other)]
    of_main, of_other = (union(steps.start_ns[own], steps.end_ns[own]) for own in rows)
    return 2 * intersect(of_main, of_other).total_ns >= of_other.total_ns
