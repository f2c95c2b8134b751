"""Compiled regions of torch.compile in a trace."""

from __future__ import annotations

import re
from collections import defaultdict

from core.kinds import SliceKind
from core.rule_tools.facts import Facts

REGION = r"^Torch-Compiled Region"


def compiled_regions(facts: Facts) -> dict[str, list[int]]:
    """Outermost slices of each compiled function, by name with its version left out."""
    ids = facts.matching(REGION, SliceKind.CPU_OP, SliceKind.RANGE)
    ids = ids[~facts.inside(ids, ids)]
    out: dict[str, list[int]] = defaultdict(list)
    for slice_id in ids:
        out[re.sub(r"/\d+$", "", facts.trace.name(int(slice_id)))].append(int(slice_id))
    return dict(out)
