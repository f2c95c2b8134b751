"""Slices sorted by name, once for all rules."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from core.tables import I32, I64
from core.trace import Trace


class NameIndex:
    """Slices of one kind (or several), sorted by name once: a look-up by name costs what it finds, not the trace.

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
        order = np.argsort(names, kind="stable")
        ordered = names[order]
        edges = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1 if len(ordered) else np.empty(0, dtype=np.int64)
        first = np.concatenate([[0], edges])[: len(ordered)]
        return self.ids[order], np.append(first, len(ordered)), ordered[first].astype(np.int32)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Distinct names, in the order of their ids."""
        return tuple(self._trace.strings[n] for n in self._runs[2].tolist())

    @cached_property
    def place(self) -> dict[str, int]:
        """Position of each name in `names`."""
        return {name: at for at, name in enumerate(self.names)}

    def rows(self, places: Iterable[int]) -> I32:
        """int32[k]: slices with the names at these positions of `names`, ascending."""
        ordered, bounds, _ = self._runs
        found = [ordered[bounds[at] : bounds[at + 1]] for at in places]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.int32)
