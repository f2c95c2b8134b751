# ruff: noqa: SIM905  (word lists read better as text)
"""Finding known chains of small operators among the operators that ran next to each other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from core.kinds import SliceKind, TrackKind
from core.recorded import has_shapes
from core.rule_tools.facts import Facts
from core.rule_tools.known_chains import CHAINS, Chain
from core.sets import changes
from core.source_frames import is_user_frame
from core.tables import I32, I64, Bool

# ops that only look at a tensor in another way, or that autograd puts in between: they do not break a chain
_VIEWS = frozenset(
    (
        "aten::unsqueeze aten::squeeze aten::view aten::reshape aten::expand aten::expand_as aten::transpose aten::t "
        "aten::permute aten::slice aten::select aten::contiguous aten::detach aten::detach_ detach detach_ aten::to "
        "aten::empty aten::as_strided aten::alias aten::result_type aten::lift_fresh aten::arange aten::_to_copy"
    ).split()
)
_FEWEST = 3  # siblings that make a row
_PART = 1 << 18  # groups counted at a time
_NEAR = 6  # siblings before a chain in which `Chain.follows` is looked for
_PICKS = ("aten::index", "aten::gather")
_DIMENSIONS = re.compile(r"\[(-?\d{1,9}(?:, ?-?\d{1,9})*)\]")
_OVER_DIMENSIONS = ("aten::mean", "aten::var_mean", "aten::var", "aten::std")
_MOST_READ = 64  # chains whose arguments are read

__all__ = ["CHAINS", "Chain", "find_chains", "joined_rows", "sibling_rows", "sibling_rows_raw"]


def find_chains(facts: Facts, chain: Chain) -> list[list[int]]:
    """Slices of each occurrence of a chain among sibling ops in counted steps; views between are skipped."""
    key = f"chain {id(chain)}"  # comparing chains takes longer than looking for one; they live as long as the program
    held = facts.memo.get(key)
    if held is None:
        held, fits = [], True
        for ops in _find(facts, chain):
            if chain.in_sight and not _is_of_user(facts, ops[-1]):
                continue
            if not _holds_mask(facts, ops[0]):
                fits = _fits(facts, chain, ops, fits)
                held += [ops] if fits else []
        facts.memo[key] = held
    return held  # type: ignore[no-any-return]


def _fits(facts: Facts, chain: Chain, ops: list[int], before: bool) -> bool:
    """Whether the shapes of a chain are those of its built-in; as ``before`` where no more may be read from the file.

    True of chains that shapes say nothing about.
    """
    picks = facts.trace.name(ops[0]) in _PICKS
    if not picks and not chain.what.endswith(" norm"):
        return True
    read = facts.memo.setdefault("chains read", [0])
    if read[0] >= _MOST_READ or not has_shapes(facts.trace):
        return before
    read[0] += 1
    return _picks_one_each(facts, ops) if picks else _is_over_last(facts, ops)


def _holds_mask(facts: Facts, op: int) -> bool:
    """Whether an operator picks by a mask: rows, or any number of elements."""
    trace = facts.trace
    nonzero = trace.strings.id_of("aten::nonzero")
    below = trace.slices.name_id[op + 1 : int(trace.slices.subtree_end[op])]
    return trace.name(op) in _PICKS and nonzero >= 0 and bool((below == nonzero).any())


def _picks_one_each(facts: Facts, ops: list[int]) -> bool:
    """Whether one element of each row is picked, not the best five of each; True where nothing says."""
    reduced = next((op for op in reversed(ops) if facts.trace.name(op) in ("aten::mean", "aten::sum")), ops[0])
    shape, left = (facts.dims(op)[:1] for op in (ops[0], reduced))
    if reduced == ops[0] or not shape or not left or not shape[0]:
        return True
    return any(math.prod(left[0]) * classes == math.prod(shape[0]) for classes in shape[0])


def _is_over_last(facts: Facts, ops: list[int]) -> bool:
    """Whether a norm goes over the last dimensions, as the built-in does; True where nothing says.

    Over the batch it is a batch norm, whose built-in is another.
    """
    op = next((op for op in ops if facts.trace.name(op) in _OVER_DIMENSIONS), ops[0])
    values, shape = facts.args(op).get("Concrete Inputs"), facts.dims(op)[:1]
    told = str(values[1]) if isinstance(values, list) and len(values) > 1 else ""
    over = _DIMENSIONS.fullmatch(told)
    if over is None or not shape or not shape[0]:
        return True
    rank = len(shape[0])
    found = sorted({int(d) % rank for d in over[1].split(",")})
    return found == list(range(rank - len(found), rank))


def _is_of_user(facts: Facts, op: int) -> bool:
    """Whether stacks show that the user's own code called an operator, not a library's."""
    trace = facts.trace
    at = facts.innermost(facts.thread_of(op), TrackKind.CPU_PYTHON, int(trace.slices.start_ns[op]))
    while at >= 0 and trace.name(at).startswith("<built-in"):
        at = int(trace.slices.parent_id[at])
    return at >= 0 and is_user_frame(trace.name(at))


def _find(facts: Facts, chain: Chain) -> Iterator[list[int]]:
    wanted = [[i for n in part if (i := facts.trace.strings.id_of(n)) >= 0] for part in chain.ops]
    if not all(wanted):
        return
    ops, row = joined_rows(facts)
    names = facts.trace.slices.name_id[ops]
    last = len(ops) - len(wanted)
    starts = facts.name_table(wanted[0])[names].nonzero()[0]
    starts = starts[starts <= last]
    for at, part in enumerate(wanted[1:], 1):
        if not len(starts):
            return
        starts = starts[facts.name_table(part)[names[starts + at]]]
    starts = starts[row[starts] == row[starts + len(wanted) - 1]]
    starts = _in_place(facts, chain, starts, names, row)
    done = -1
    for first in starts.tolist():
        if first > done:
            done = first + len(wanted) - 1
            yield ops[first : done + 1].tolist()


def _in_place(facts: Facts, chain: Chain, starts: I64, names: I32, row: I32) -> I64:
    """Starts at which `Chain.follows` and `Chain.not_before` hold."""
    if chain.not_before:
        strings = facts.trace.strings
        end = starts + len(chain.ops)
        then = np.minimum(end, len(names) - 1)
        bars = facts.name_table([i for n in chain.not_before if (i := strings.id_of(n)) >= 0])[names[then]]
        starts = starts[~(bars & (end < len(names)) & (row[then] == row[starts]))]
    if chain.follows:
        shows = facts.name_table([i for n in chain.follows if (i := facts.trace.strings.id_of(n)) >= 0])
        seen = np.zeros(len(starts), dtype=bool)
        for back in range(1, _NEAR + 1):
            at = np.maximum(starts - back, 0)
            seen |= shows[names[at]] & (row[at] == row[starts]) & (starts >= back)
        starts = starts[seen]
    return starts


def joined_rows(facts: Facts) -> tuple[I32, I32]:
    """int32[n] twice: operators of all `sibling_rows`, row after row, and the number of the row of each."""
    held = facts.memo.get("sibling rows joined")
    if held is None:
        rows = sibling_rows(facts)
        ops = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
        row = np.arange(len(rows), dtype=np.int32).repeat([len(r) for r in rows])
        held = facts.memo["sibling rows joined"] = ops, row
    return held  # type: ignore[no-any-return]


def sibling_rows(facts: Facts) -> list[np.ndarray]:
    """Runs of at least three sibling ops in time order, views left out; ops of one parent on one track."""
    views = [facts.trace.strings.id_of(v) for v in _VIEWS]
    return _rows(facts, "sibling rows", views, _FEWEST)


def sibling_rows_raw(facts: Facts, at_least: int) -> list[np.ndarray]:
    """As `sibling_rows`, with the views, and only runs of ``at_least`` ops."""
    return _rows(facts, f"sibling rows raw {at_least}", [], at_least)


def _in_large(group: I32, at_least: int) -> Bool:
    """bool[n]: whose group, a number from 0 on, has at least so many; groups are counted a part at a time."""
    many = np.zeros(len(group), dtype=bool)
    for first in range(0, int(group.max(initial=-1)) + 1, _PART):
        here = ((group >= first) & (group < first + _PART)).nonzero()[0]
        own = group[here] - np.int32(first)
        many[here] = (np.bincount(own, minlength=1) >= at_least)[own]
    return many


def _siblings(facts: Facts, at_least: int) -> tuple[I32, I32]:
    """int32[n] twice: operators with at least so many siblings, themselves included, by their parents; and the parents.

    In place of the parent of an operator without one is a number of its track.
    """
    held = facts.memo.get(key := f"siblings {at_least}")
    if held is None:
        sl = facts.trace.slices
        ops = facts.in_steps(facts.of_kind(SliceKind.CPU_OP))
        # by (track, parent), each in time order because ids of a track ascend with time
        tracks = len(facts.trace.tracks)
        group = sl.parent_id[ops] + np.int32(tracks)
        group = np.where(group >= tracks, group, np.int32(tracks - 1) - sl.track_id[ops])
        many = _in_large(group, at_least).nonzero()[0]  # most parents have fewer children: they are not sorted
        ops, group = ops[many], group[many]
        order = group.argsort(kind="stable")
        held = facts.memo[key] = ops[order], group[order]
    return held  # type: ignore[no-any-return]


def _rows(facts: Facts, key: str, leave_out: list[int], at_least: int) -> list[np.ndarray]:
    held = facts.memo.get(key)
    if held is not None:
        return held  # type: ignore[no-any-return]
    ops, group = _siblings(facts, min(at_least, _FEWEST))
    if leave_out:
        left = (~facts.name_table(leave_out)[facts.trace.slices.name_id[ops]]).nonzero()[0]
        ops, group = ops[left], group[left]
    edges = np.append(changes(group).nonzero()[0], len(group))
    large = (np.diff(edges) >= at_least).nonzero()[0]
    rows = zip(edges[large].tolist(), edges[large + 1].tolist(), strict=True)
    out = facts.memo[key] = [ops[first:end] for first, end in rows]
    return out
