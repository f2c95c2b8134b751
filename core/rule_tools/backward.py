"""The backward pass of forward operators, where the recording links the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from core.rule_tools.facts import Facts
from core.sets import distinct
from core.tables import I32, I64

_NODE = "autograd::engine::evaluate_function"


def nodes_of(facts: Facts, ops: Iterable[int]) -> list[int]:
    """Nodes of the backward pass that these operators, or any below them, recorded.

    Parameters
    ----------
    facts
        Look-ups.
    ops
        Forward operators.

    Returns
    -------
    list[int]
        The outermost slice of each node, ascending; empty where the trace holds no links from forward to backward.
    """
    rows = np.asarray(ops if isinstance(ops, np.ndarray) else list(ops), dtype=np.int32)
    return _nodes(facts, rows, facts.trace.slices.subtree_end[rows])


def nodes_of_runs(facts: Facts, runs: Iterable[Sequence[int]]) -> list[int]:
    """As `nodes_of`, for runs of neighbouring operators: what lies between them (views) goes with them."""
    ends = np.asarray([(run[0], run[-1]) for run in runs if len(run)], dtype=np.int32).reshape(-1, 2)
    return _nodes(facts, ends[:, 0], facts.trace.slices.subtree_end[ends[:, 1]])


def sums_of_gradients(facts: Facts, nodes: Iterable[int]) -> list[int]:
    """Of each node the first operator that adds its result to a gradient already there; none where it is the first."""
    out = []
    for node in nodes:
        adds = (int(c) for c in facts.children(node) if facts.trace.name(int(c)) in ("aten::add", "aten::add_"))
        out += [add for add in (next(adds, None),) if add is not None]
    return out


def _nodes(facts: Facts, first: I32, end: I32) -> list[int]:
    links, sl = facts.trace.links, facts.trace.slices
    if not len(links.forward) or not len(first):
        return []
    start = links.forward.searchsorted(first)
    counts: I64 = links.forward.searchsorted(end) - start
    before = np.concatenate([[0], counts.cumsum()[:-1]])
    at = distinct(links.backward[(start - before).repeat(counts) + np.arange(int(counts.sum()))])
    names = facts.memo.get("autograd nodes")
    if names is None:
        strings = facts.trace.strings.values
        names = facts.memo["autograd nodes"] = facts.name_table(
            i for i, name in enumerate(strings) if name.startswith(_NODE)
        )
    parent = sl.parent_id[at]
    outer = np.where((parent >= 0) & names[sl.name_id[np.maximum(parent, 0)]], parent, at)
    found: list[int] = distinct(outer).tolist()
    return found
