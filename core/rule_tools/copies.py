"""Copies of models and their weights by ``copy.deepcopy``."""

from __future__ import annotations

import re

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.source_frames import is_user_frame

_COPY = re.compile(r"(^|[/\\])copy\.py\(\d+\): deepcopy$")
_OF_TENSOR = re.compile(r"torch[/\\](nn[/\\]parameter|_tensor)\.py\(\d+\): __deepcopy__$")


def model_copies(facts: Facts, min_tensors: int = 2) -> dict[int, int]:
    """Outermost calls of ``deepcopy`` by the user's code in the counted steps, with how many tensors each copied.

    One tensor is no model: of it ``deepcopy`` makes no more than ``clone`` does.
    """
    key = f"model copies {min_tensors}"
    held = facts.memo.get(key)
    if held is None:
        copies = facts.in_steps(facts.where(_COPY.search, SliceKind.PYTHON))
        copies = copies[~facts.inside(copies, copies)]
        tensors = facts.where(_OF_TENSOR.search, SliceKind.PYTHON)
        count = tensors.searchsorted(facts.trace.slices.subtree_end[copies]) - tensors.searchsorted(copies)
        many = zip(copies.tolist(), count.tolist(), strict=True)
        held = facts.memo[key] = {c: n for c, n in many if n >= min_tensors and _is_called_by_user(facts, c)}
    return held  # type: ignore[no-any-return]


def _is_called_by_user(facts: Facts, copy: int) -> bool:
    parent = facts.trace.slices.parent_id
    at = int(parent[copy])
    while at >= 0 and facts.trace.name(at).startswith("<built-in"):
        at = int(parent[at])
    return at >= 0 and is_user_frame(facts.trace.name(at))
