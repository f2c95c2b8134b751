"""What threads are called: by what they are for, where their name or their operators tell; else by their number."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.kinds import TrackKind
from core.trace import Trace

translate = QCoreApplication.translate

# Kineto writes the number and, in brackets, what the system calls the thread ("thread 42 (pt_autograd_0)").
_LABEL = re.compile(r"thread (-?\d+)(?: \((.*)\))?")
_INTERPRETER = re.compile(r"python[\d.]*")  # a thread that nobody named is called as its program
# Outermost operators of an autograd thread; torch before 1.9 had no "evaluate_function" around its functions.
_BACKWARD = re.compile(r"autograd::engine::evaluate_function.*|torch::autograd::\w+|\w+Backward\d*", re.DOTALL)


_made: WeakKeyDictionary[Trace, tuple[str, ...]] = WeakKeyDictionary()


def thread_titles(trace: Trace) -> tuple[str, ...]:
    """Title of each thread, by its row in ``trace.threads``; those of one process differ."""
    if trace not in _made:
        _made[trace] = _titles(trace)
    return _made[trace]


def _titles(trace: Trace) -> tuple[str, ...]:
    threads = trace.threads
    labels = [trace.strings[int(i)] if i >= 0 else "" for i in threads.name_id]
    backward = _backward_threads(trace)
    wanted = [_telling(label) or (translate("timeline", "Backward thread") if t in backward else "")
              for t, label in enumerate(labels)]  # fmt: skip
    groups = list(zip(threads.process_id.tolist(), wanted, strict=True))
    titles = []
    for t, (label, name) in enumerate(zip(labels, wanted, strict=True)):
        number = translate("timeline", "thread {tid}").format(tid=threads.tid[t])
        found = _LABEL.fullmatch(label)
        plain = label if label and found is None else number
        alone = groups.count(groups[t]) == 1
        if threads.main[t]:
            titles.append(translate("timeline", "Main thread"))
        else:
            titles.append(name if name and alone else plain)
    return tuple(titles)


def _telling(label: str) -> str:
    """What the system calls a thread, where that says more than which program it belongs to."""
    found = _LABEL.fullmatch(label)
    name = (found[2] or "").strip() if found is not None else ""
    return "" if _INTERPRETER.fullmatch(name) else name


def _backward_threads(trace: Trace) -> set[int]:
    """Threads, other than main ones, that spend most of their operators' time in the backward pass."""
    tracks, slices = trace.tracks, trace.slices
    names = [i for i, name in enumerate(trace.strings.values) if _BACKWARD.fullmatch(name)]
    found: set[int] = set()
    if not names:
        return found
    is_mark = np.zeros(len(trace.strings) + 1, np.bool_)
    is_mark[names] = True
    for track in np.flatnonzero((tracks.kind == TrackKind.CPU_OPS) & (tracks.thread_id >= 0)).tolist():
        thread = int(tracks.thread_id[track])
        part = slice(int(tracks.first_id[track]), int(tracks.end_id[track]))
        dur_ns = np.where(slices.depth[part] == 0, slices.dur_ns[part], 0)
        if not trace.threads.main[thread] and 2 * dur_ns[is_mark[slices.name_id[part]]].sum() > dur_ns.sum():
            found.add(thread)
    return found


def track_words(trace: Trace, track: int) -> tuple[str, str]:
    """Name of a track and what it holds, as the timeline's headings say it; a thread's number goes with its name."""
    kind, thread = int(trace.tracks.kind[track]), int(trace.tracks.thread_id[track])
    holds = {
        TrackKind.CPU_RANGES: translate("timeline", "ranges"),
        TrackKind.CPU_OPS: translate("timeline", "operators"),
        TrackKind.CPU_PYTHON: translate("timeline", "Python stack"),
        TrackKind.DEVICE_STREAM: translate("timeline", "device work"),
        TrackKind.DEVICE_RANGES: translate("timeline", "ranges"),
        TrackKind.DEVICE_SYNCS: translate("timeline", "sync records"),
    }.get(TrackKind(kind), translate("timeline", "other"))
    if thread < 0:
        return trace.strings[int(trace.tracks.name_id[track])] or holds, holds
    title, number = thread_titles(trace)[thread], str(trace.threads.tid[thread])
    return (title if number in title else f"{title} · {number}"), holds
