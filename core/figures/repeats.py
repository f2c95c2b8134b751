"""Marks that come several times in each iteration: two optimizers of one loop are not two iterations."""

from __future__ import annotations

import numpy as np

from core.figures.lookup import View
from core.kinds import SliceKind
from core.tables import F64, I32

_MOST_MARKS = 256  # looked at; a rhythm shows in far fewer
_LONGEST = 4  # marks in one iteration that are looked for
_ALIKE, _UNLIKE = 0.9, 0.75  # share of operators in common: of the same part of two iterations, of two parts of one


def marks_per_iteration(view: View, marks: I32) -> int:
    """Tell how many marks make one iteration, by the operators between them.

    A loop that trains two models (a generator and a discriminator) marks both steps by the same name when both
    optimizers are of one class. What lies between the marks then repeats every second time, and differs clearly from
    one mark to the next; an iteration that logs or clips now and then differs by a few operators only.

    Parameters
    ----------
    marks
        Slices of one thread, in order of start.

    Returns
    -------
    int
        1 where nothing longer repeats at least twice.
    """
    marks = marks[:_MOST_MARKS]
    counts = _operators_between(view, marks)
    for length in range(2, _LONGEST + 1):
        if len(counts) < 2 * length:
            break
        again, following = _in_common(counts[:-length], counts[length:]), _in_common(counts[:-1], counts[1:])
        part = np.arange(len(following)) % length
        if np.median(again) >= _ALIKE and all(np.median(following[part == k]) <= _UNLIKE for k in range(length)):
            return length
    return 1


def _operators_between(view: View, marks: I32) -> F64:
    """How often each operator begins between each mark and the next, on any thread of the file: [n - 1, names]."""
    start = view.trace.slices.start_ns
    ops = view.by_kind(SliceKind.CPU_OP)
    if len(view.trace.sources) > 1:
        ops = ops[view.source[ops] == view.source[marks[0]]]
    between = np.searchsorted(start[marks], start[ops], side="right") - 1
    inside = (between >= 0) & (between < len(marks) - 1)
    _, name = np.unique(view.trace.slices.name_id[ops[inside]], return_inverse=True)
    counts = np.zeros((len(marks) - 1, int(name.max(initial=-1)) + 1))
    np.add.at(counts, (between[inside], name), 1.0)
    return counts


def _in_common(one: F64, other: F64) -> F64:
    """Share of operators that two stretches have in common: float64[n], 1 where both are empty."""
    every = np.maximum(one, other).sum(axis=1)
    common: F64 = np.where(every > 0, np.minimum(one, other).sum(axis=1) / np.maximum(every, 1.0), 1.0)
    return common
