"""Steps of several ranks: which rank a step is of, and which rank's steps are the longest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication

from core.figures.model import Figures
from core.tables import StepTable
from core.trace import Trace

SLOWER = 1.05  # a rank that takes so much longer than the fastest is named


@dataclass(frozen=True)
class Ranks:
    """Ranks whose steps a trace holds, in the order of their files.

    ``of_step``: intp[n_steps], position in ``names``.
    """

    names: tuple[str, ...]
    of_step: NDArray[np.intp]

    @property
    def several(self) -> bool:
        """More than one rank has steps."""
        return len(self.names) > 1

    def counts(self) -> list[int]:
        """Steps of each rank."""
        return [int(count) for count in np.bincount(self.of_step, minlength=len(self.names))]

    def longest(self, figures: Figures, length_ns: NDArray[np.int64]) -> tuple[str, float] | None:
        """Rank whose counted steps take longest in the mean, and that mean in ns; None without a clear one.

        It need not be the one that the others wait for: who waits in a collective has long steps, too.
        """
        means = {}
        for rank, name in enumerate(self.names):
            mine = (self.of_step == rank) & figures.step_figures.counted
            if mine.any():
                means[name] = float(length_ns[mine].mean())
        if len(means) < 2 or max(means.values()) < SLOWER * min(means.values()):
            return None
        name = max(means, key=lambda one: means[one])
        return name, means[name]


def ranks_of(trace: Trace, steps: StepTable) -> Ranks:
    """Find out which ranks the steps are of; a trace of one file has one, without a name that is needed."""
    if len(trace.sources) < 2 or not len(steps):
        return Ranks(("",) if len(steps) else (), np.zeros(len(steps), np.intp))
    process = trace.threads.process_id[np.maximum(steps.thread_id, 0)]
    source = trace.processes.source_id[process]
    present, of_step = np.unique(source, return_inverse=True)
    ranks = np.full(len(trace.sources), -1, np.int64)
    np.maximum.at(ranks, trace.processes.source_id, trace.processes.rank)
    names = []
    for one in present.tolist():
        rank = int(ranks[one])
        if rank >= 0:
            names.append(QCoreApplication.translate("ranks", "rank {rank}").format(rank=rank))
        else:
            names.append(QCoreApplication.translate("ranks", "file {number}").format(number=one + 1))
    return Ranks(tuple(names), of_step.reshape(-1).astype(np.intp))


def steps_text(trace: Trace, steps: StepTable) -> str:
    """How many steps there are on each rank; empty for a trace of one rank."""
    ranks = ranks_of(trace, steps)
    if not ranks.several:
        return ""
    counts = ranks.counts()
    if min(counts) < max(counts):
        words = QCoreApplication.translate("ranks", "{least} to {most} steps on each of {ranks} ranks")
        return words.format(least=min(counts), most=max(counts), ranks=len(counts))
    if counts[0] == 1:
        return QCoreApplication.translate("ranks", "1 step on each of {ranks} ranks").format(ranks=len(counts))
    words = QCoreApplication.translate("ranks", "{count} steps on each of {ranks} ranks")
    return words.format(count=counts[0], ranks=len(counts))
