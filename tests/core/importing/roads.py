"""Whether two roads made the same of a piece of text."""

from __future__ import annotations

from core.importing.columns import GROUPS, STRING_COLUMNS, EventColumns


def same_columns(one: EventColumns, other: EventColumns) -> None:
    """Assert that two readings tell the same; the order of their texts is their own."""
    assert one.events == other.events
    assert one.problems == other.problems
    assert one.examples == other.examples
    assert one.metadata == other.metadata
    for group, _ in GROUPS:
        for column, values in vars(getattr(one, group)).items():
            others = getattr(getattr(other, group), column)
            assert values.dtype == others.dtype, (group, column)
            if column in STRING_COLUMNS:
                assert [one.strings[i] for i in values] == [other.strings[i] for i in others], (group, column)
            else:
                assert values.tolist() == others.tolist(), (group, column)
