"""Marks that come several times in each iteration: two optimizers of one loop are not two iterations."""

from __future__ import annotations

import numpy as np

from core import sets
from core.figures.lookup import View, distinct
from core.kinds import SliceKind
from core.tables import F64, I32, I64

_MOST_MARKS = 256  # looked at; a rhythm shows in far fewer
_LONGEST = 8  # marks in one iteration that are looked for: five of a critic and one of a generator are usual
_ALIKE, _UNLIKE = 0.9, 0.75  # share of operators in common: of the same part of two iterations, of two parts of one


def marks_per_iteration(view: View, marks: I32, every: I32) -> int:
    """Tell how many marks make one iteration, by the operators between them.

    A loop that trains two models (a generator and a discriminator) marks both steps by the same name when both
    optimizers are of one class. What lies between the marks then repeats every second time, or after some steps of one
    and one of the other, and differs clearly from one model to the other. An iteration that logs or clips now and then
    differs by a few operators only, and one with an evaluation holds all that the others do. Where the other optimizer
    is of another class, its marks tell.

    Parameters
    ----------
    marks
        Slices of one name and thread, in order of start.
    every
        Those of other names as well.

    Returns
    -------
    int
        1 where nothing longer repeats at least twice.
    """
    between = _between_rarer(view, marks, every)
    if between:
        return between
    marks = marks[:_MOST_MARKS]
    counts = _operators_between(view, marks)
    for length in range(2, _LONGEST + 1):
        if len(counts) < 2 * length:
            break
        again, following = _in_common(counts[:-length], counts[length:]), _in_common(counts[:-1], counts[1:])
        part = np.arange(len(counts)) % length
        next_to = np.array([np.median(following[part[:-1] == k]) for k in range(length)])
        if np.median(again) < _ALIKE or not (next_to <= _UNLIKE).any():
            continue
        if (next_to <= _UNLIKE).all():
            return length
        same = [float(np.median(again[part[:-length] == k])) for k in range(length)]
        if min(same) >= _ALIKE and _two_models(counts, part, next_to):
            return length
    return 1


def _between_rarer(view: View, marks: I32, every: I32) -> int:
    """How many of the marks lie between two of the same other name, where it is the same number each time; else 0."""
    start, name = view.trace.slices.start_ns, view.trace.slices.name_id
    for one in distinct(name[every]):
        rarer = np.sort(start[every[name[every] == one]])
        number = np.diff(start[marks].searchsorted(rarer))
        regular = one != name[marks[0]] and len(number) >= 2 and len(set(number.tolist())) == 1
        if regular and 2 <= number[0] <= _LONGEST:
            return int(number[0])
    return 0


def _two_models(counts: F64, part: I64, next_to: F64) -> bool:
    """Whether of the parts of an iteration one run is alike, one after it is too, and neither holds all of the other.

    A part that holds all of its neighbours is an iteration with an evaluation, or one that writes a checkpoint.
    """
    borders = (next_to <= _UNLIKE).nonzero()[0]
    if len(borders) != 2:
        return False
    one, other = (counts[part == k].mean(axis=0) for k in borders)
    common = np.minimum(one, other).sum()
    return bool(common < _ALIKE * min(one.sum(), other.sum()))


def _operators_between(view: View, marks: I32) -> F64:
    """How often each operator begins between each mark and the next, on any thread of the file: [n - 1, names]."""
    start = view.trace.slices.start_ns
    ops = view.by_kind(SliceKind.CPU_OP)
    if len(view.trace.sources) > 1:
        ops = ops[view.source[ops] == view.source[marks[0]]]
    between = start[marks].searchsorted(start[ops], side="right") - 1
    inside = (between >= 0) & (between < len(marks) - 1)
    _, _, name = sets.grouped(view.trace.slices.name_id[ops[inside]])
    counts = np.zeros((len(marks) - 1, int(name.max(initial=-1)) + 1))
    np.add.at(counts, (between[inside], name), 1.0)
    return counts


def _in_common(one: F64, other: F64) -> F64:
    """Share of operators that two stretches have in common: float64[n], 1 where both are empty."""
    every = np.maximum(one, other).sum(axis=1)
    common: F64 = np.where(every > 0, np.minimum(one, other).sum(axis=1) / np.maximum(every, 1.0), 1.0)
    return common
