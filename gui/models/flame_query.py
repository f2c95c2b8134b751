"""What a flame graph is asked to show, and the words on its boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.figures.call_paths import Layers, python_names
from core.figures.flame import ROOT_KIND, THREAD_KIND, FlameGraph, flame_graph
from core.figures.model import SyncTable
from core.kernel_names import short_kernel_name, short_op_name
from core.kinds import DEVICE_WORK, TrackKind
from core.search import spellings
from core.source_frames import is_user_frame
from core.tables import Bool
from core.trace import Trace
from gui import text
from gui.models.thread_titles import thread_titles

translate = QCoreApplication.translate


@dataclass(frozen=True)
class FlameQuery:
    """Threads, layers, what widths mean, the stretch of time (None: the whole trace), and the waits, once known."""

    threads: tuple[int, ...]
    layers: Layers = Layers.ALL
    device: bool = False
    stretch: tuple[int, int] | None = None
    syncs: SyncTable | None = None

    def run(self, trace: Trace, progress: Callable[[float, str], None]) -> FlameGraph:
        """Work the graph out, in a worker thread."""
        start, end = self.stretch or (None, None)
        waits = None
        if self.syncs is not None and not self.device:
            waits = np.zeros(len(trace.slices), np.int64)
            np.add.at(waits, self.syncs.slice_id, self.syncs.wait_ns)
        return flame_graph(
            trace,
            self.threads,
            layers=self.layers,
            device=self.device,
            start_ns=start,
            end_ns=end,
            waits_ns=waits,
            progress=progress,
        )


def threads_of(trace: Trace) -> tuple[int, ...]:
    """Threads with anything on them: the main ones first, then by how many slices they have."""
    counts: dict[int, int] = {}
    for kind in (TrackKind.CPU_RANGES, TrackKind.CPU_OPS, TrackKind.CPU_PYTHON):
        for track in np.flatnonzero((trace.tracks.kind == kind) & (trace.tracks.thread_id >= 0)).tolist():
            thread = int(trace.tracks.thread_id[track])
            counts[thread] = counts.get(thread, 0) + int(trace.tracks.end_id[track] - trace.tracks.first_id[track])
    return tuple(sorted(counts, key=lambda t: (not trace.threads.main[t], -counts[t], t)))


def thread_name(trace: Trace, thread: int) -> str:
    """Name of a thread as the timeline writes it."""
    return thread_titles(trace)[thread]


def first_layers(trace: Trace) -> Layers:
    """Own code where the trace has some: library frames hide it; else all there is."""
    own = any(is_user_frame(trace.strings[i]) for i in python_names(trace))
    return Layers.OWN if own else Layers.ALL


class FlameWords:
    """Texts about the nodes of one graph."""

    def __init__(self, trace: Trace, graph: FlameGraph, whole: str, *, device: bool) -> None:
        self._trace, self._graph, self._whole, self._device = trace, graph, whole, device

    def short(self, node: int) -> str:
        """Name on a box."""
        kind = int(self._graph.kind[node])
        name = self.full(node)
        if kind in (ROOT_KIND, THREAD_KIND):
            return name
        return short_kernel_name(name) if kind in DEVICE_WORK else short_op_name(name)

    def full(self, node: int) -> str:
        """Name as the trace writes it."""
        graph, name_id = self._graph, int(self._graph.name_id[node])
        if int(graph.kind[node]) == ROOT_KIND:
            return self._whole
        if int(graph.kind[node]) == THREAD_KIND:
            named = np.flatnonzero(self._trace.threads.name_id == name_id)
            if len(named) == 1:
                return thread_name(self._trace, int(named[0]))
        return self._trace.strings[name_id] if name_id >= 0 else translate("flame", "(no name)")

    def about(self, node: int) -> str:
        """All about a node: name, times, calls, and its share."""
        graph = self._graph
        whole = max(int(graph.total_ns[0]), 1)
        times = text.counted(
            translate("flame", "{total} of device time in {count} {count|call|calls} · {share} of all")
            if self._device
            else translate("flame", "{total} total · {own} self · {count} {count|call|calls} · {share} of all"),
            int(graph.calls[node]),
            total=text.duration(int(graph.total_ns[node])),
            own=text.duration(int(graph.self_ns[node])),
            share=text.percent(100.0 * int(graph.total_ns[node]) / whole),
        )
        if int(graph.wait_ns[node]) > 0:
            wait = translate("flame", "{times} · {wait} waiting for the device")
            times = wait.format(times=times, wait=text.duration(int(graph.wait_ns[node])))
        kind = int(graph.kind[node])
        head = text.elided(self.full(node), 300)
        if kind in (ROOT_KIND, THREAD_KIND):
            times = text.duration(int(graph.total_ns[node]))
            return f"{head} · {times}"
        return f"{head} · {text.kind_name(kind)}\n{times}"


def find(words: FlameWords, graph: FlameGraph, needle: str) -> tuple[Bool, float]:
    """Nodes whose name holds all words of a text (case does not matter), and their share of the whole in percent.

    What lies below a node that was found counts once.
    """
    parts = [spellings(word) for word in needle.casefold().split()]
    key = graph.name_id.astype(np.int64) * 256 + graph.kind
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    names = [words.full(k).casefold() if graph.kind[k] < THREAD_KIND else "" for k in first.tolist()]
    hits = [bool(name) and all(any(p in name for p in each) for each in parts) for name in names]
    found: Bool = np.asarray(hits, bool)[inverse]
    under = np.zeros(len(graph), bool)
    for level in range(1, graph.levels):
        a, b = int(graph.level_first[level]), int(graph.level_first[level + 1])
        above = graph.parent[a:b]
        under[a:b] = under[above] | found[above]
    share = 100.0 * float(graph.total_ns[found & ~under].sum()) / max(int(graph.total_ns[0]), 1)
    return found, share
