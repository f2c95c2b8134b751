"""Sync points by call and operator, as reports list them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from core.analysis import Analysis
from core.card_lines import CardLines
from core.source import SourceFinder
from core.suggestions import SourceRef
from core.trace import Trace


@dataclass(frozen=True)
class SyncGroup:
    """Sync points of one call under one operator; ``source`` is the place of the one that waits longest."""

    call: str
    op: str
    calls: int
    wait_ns: int
    source: SourceRef | None


def sync_groups(trace: Trace, analysis: Analysis, finder: SourceFinder, most: int) -> tuple[list[SyncGroup], int]:
    """Return the ``most`` groups that wait longest, longest first, and how many there are in all."""
    syncs, lines = analysis.figures.syncs, CardLines(trace, analysis.suggestions)
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i in range(len(syncs)):
        op = int(syncs.op_id[i])
        members[(trace.name(int(syncs.slice_id[i])), trace.name(op) if op >= 0 else "")].append(i)
    waits = {key: sum(max(int(syncs.wait_ns[i]), 0) for i in rows) for key, rows in members.items()}
    groups = []
    for key in sorted(members, key=lambda key: -waits[key])[:most]:
        rows = members[key]
        most_ns = max(int(syncs.wait_ns[i]) for i in rows)
        longest = [int(syncs.slice_id[i]) for i in rows if int(syncs.wait_ns[i]) == most_ns]
        shown = next((one for one in longest if lines.knows(one)), longest[0])
        groups.append(SyncGroup(*key, len(rows), waits[key], lines.better(shown, finder.of_slice(shown))))
    return groups, len(members)
