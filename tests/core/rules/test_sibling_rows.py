"""Runs of siblings: found whatever number their parents have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.rule_tools import chains


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 4), st.integers(1, 50))
def test_large_groups_are_found_by_parts(group, at_least, part):
    kept, chains._PART = chains._PART, part
    try:
        found = chains._in_large(np.array(group, dtype=np.int32), at_least)
    finally:
        chains._PART = kept
    assert found.tolist() == [group.count(one) >= at_least for one in group]
