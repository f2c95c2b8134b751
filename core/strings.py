"""Interned names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class StringTable:
    """Immutable list of distinct strings; a name column holds int32 ids into it, -1 for "no name".

    Parameters
    ----------
    values
        Distinct strings; position is id.
    """

    __slots__ = ("_ids", "_values")

    def __init__(self, values: Iterable[str]) -> None:
        self._values: tuple[str, ...] = tuple(values)
        self._ids: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, string_id: int) -> str:
        return self._values[string_id] if string_id >= 0 else ""

    def id_of(self, value: str) -> int:
        """Return the id of ``value``, -1 when it is not in the table."""
        if self._ids is None:
            self._ids = {v: i for i, v in enumerate(self._values)}
        return self._ids.get(value, -1)

    @property
    def values(self) -> Sequence[str]:
        """All strings in id order."""
        return self._values
