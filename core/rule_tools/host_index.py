"""The copies that indexing with something from the CPU makes."""

from __future__ import annotations

from collections.abc import Iterable

from core.rule_tools.facts import Facts
from core.rule_tools.sync_classes import Occurrence

_MOVES = ("aten::to", "aten::_to_copy", "aten::copy_")


def index_copies(facts: Facts, occurrence: Occurrence) -> Iterable[int]:
    """Return the moves below the indexing operator, outermost, each once; the indexing itself stays."""
    out = []
    for call in occurrence.calls:
        ids = facts.path_ids(call)
        out.append(next((i for i in ids if facts.trace.name(i) in _MOVES), call))
    return dict.fromkeys(out)
