"""Slices sorted by name, once for all rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from core.tables import I32, I64
from core.trace import Trace

_NOTHING = np.empty(0, dtype=np.int32)


class NameIndex:
    """Slices of one kind, sorted by name once: a look-up by name costs what it finds, not the trace.

    Parameters
    ----------
    trace
        Whose slices.
    ids
        int32[k]: the slices, ascending.
    """

    def __init__(self, trace: Trace, ids: I32) -> None:
        self.ids = ids
        self._trace = trace

    @cached_property
    def _runs(self) -> tuple[I32, I64, I32]:
        """The slices by name (ascending within each), where each name begins (and the end), and the name ids."""
        names = self._trace.slices.name_id[self.ids]
        if len(self._trace.strings) < 1 << 15:
            names = names.astype(np.int16)  # sorted by radix: several times faster
        order = names.argsort(kind="stable")
        ordered = names[order]
        edges = (ordered[1:] != ordered[:-1]).nonzero()[0] + 1 if len(ordered) else np.empty(0, dtype=np.int64)
        first = np.concatenate([[0], edges])[: len(ordered)]
        return self.ids[order], np.append(first, len(ordered)), ordered[first].astype(np.int32)

    @property
    def name_ids(self) -> I32:
        """int32: distinct name ids, ascending."""
        return self._runs[2]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Distinct names, in the order of their ids."""
        return tuple(self._trace.strings[n] for n in self.name_ids.tolist())

    @cached_property
    def text(self) -> str:
        """All names, one a line."""
        return "\n".join(self.names)

    @cached_property
    def place(self) -> dict[str, int]:
        """Position of each name in `names`."""
        return {name: at for at, name in enumerate(self.names)}

    def rows(self, places: Iterable[int]) -> I32:
        """int32[k]: slices with the names at these positions of `names`, ascending."""
        ordered, bounds, _ = self._runs
        return _together([ordered[bounds[at] : bounds[at + 1]] for at in places])


class NamesOfKinds:
    """The indexes of several kinds as if they were one; ``parts`` are of the same trace, and no slice is in two."""

    def __init__(self, trace: Trace, parts: Sequence[NameIndex]) -> None:
        self._parts = parts
        held: dict[int, list[tuple[NameIndex, int]]] = {}
        for part in parts:
            for at, name_id in enumerate(part.name_ids.tolist()):
                held.setdefault(name_id, []).append((part, at))
        ordered = sorted(held)
        self._held = [held[name_id] for name_id in ordered]
        self.names = tuple(trace.strings[name_id] for name_id in ordered)
        self.place = {name: at for at, name in enumerate(self.names)}

    @cached_property
    def text(self) -> str:
        """All names, one a line."""
        return "\n".join(self.names)

    @property
    def ids(self) -> I32:
        """int32[k]: the slices, ascending."""
        return np.sort(np.concatenate([part.ids for part in self._parts]))

    def rows(self, places: Iterable[int]) -> I32:
        """As `NameIndex.rows`."""
        return _together([part.rows((at,)) for place in places for part, at in self._held[place]])


def _together(found: list[I32]) -> I32:
    """Slices of several names, ascending; those of one name are."""
    if len(found) == 1:
        return found[0]
    if not found:
        return _NOTHING
    rows: I32 = np.concatenate(found)
    rows.sort()
    return rows


class KindIndex:
    """The index of each kind, made when it is first asked for; of several kinds it is put together from theirs."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._single: dict[int, NameIndex] = {}
        self._several: dict[tuple[int, ...], NameIndex | NamesOfKinds] = {}

    def of(self, kinds: tuple[int, ...]) -> NameIndex | NamesOfKinds:
        """Slices of these kinds by name."""
        if len(kinds) == 1:
            return self._one(kinds[0])
        found = self._several.get(kinds)
        if found is None:
            parts = [self._one(kind) for kind in kinds]
            held = [part for part in parts if len(part.ids)] or parts[:1]
            found = held[0] if len(held) == 1 else NamesOfKinds(self._trace, held)
            self._several[kinds] = found
        return found

    def _one(self, kind: int) -> NameIndex:
        found = self._single.get(kind)
        if found is None:
            ids = (self._trace.slices.kind == int(kind)).nonzero()[0].astype(np.int32)
            found = self._single[kind] = NameIndex(self._trace, ids)
        return found
