"""The columns that decoding yields, before tracks and nesting: one row per event, grouped by what the event is.

Strings (names, categories, process and thread ids) are int32 ids into `EventColumns.strings`; times are int64 ns as
written (``baseTimeNanoseconds`` not yet added); -1 stands for "absent" in every id and size column, and
``NO_DURATION`` for a duration that is absent or invalid.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pickle import PickleBuffer
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from core.tables import F64, I32, I64, U8
from core.words import visible

NO_DURATION = -1
_G = TypeVar("_G", bound="Group")


@dataclass
class Group:
    """Base of the column groups: knows how to put pieces together and how to take rows."""

    def __len__(self) -> int:
        return len(getattr(self, _dtypes(type(self))[0][0]))

    def rows(self: _G, index: Any) -> _G:
        """Return the rows that ``index`` (mask, slice or row numbers) selects."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Leave out what a group declares: half the time where pieces with dozens of columns come from workers."""
        declared = _dtypes(type(self))
        columns = [getattr(self, name) for name, _ in declared]
        plain = all(c.dtype == kind and c.flags.c_contiguous for c, (_, kind) in zip(columns, declared, strict=True))
        if int(protocol) < 5 or not plain:
            return super().__reduce_ex__(protocol)
        return _of_buffers, (type(self), *map(PickleBuffer, columns))


def _of_buffers(group: type[_G], *columns: Any) -> _G:
    """Make a group from the bytes of its columns, which are not copied."""
    kinds = (kind for _, kind in _dtypes(group))
    return group(*(np.frombuffer(column, kind) for column, kind in zip(columns, kinds, strict=True)))


@dataclass
class SliceColumns(Group):
    """Events with a duration (``X``) and halves of them (``B``, ``E``, ``b``, ``e``)."""

    phase: U8
    category: I32
    name: I32
    pid: I32
    tid: I32
    time_ns: I64
    dur_ns: I64
    correlation: I64
    external: I64
    copy_bytes: I64
    device: I32
    stream: I64
    order: I64  # Python id of a frame: orders frames with equal times
    async_id: I64
    start: I64  # byte offset of the event in the text
    length: I32


@dataclass
class FlowColumns(Group):
    """Ends of arrows (``s``, ``t``, ``f``)."""

    phase: U8
    category: I32
    pid: I32
    tid: I32
    time_ns: I64
    flow_id: I64


@dataclass
class MemoryColumns(Group):
    """``[memory]`` instants."""

    pid: I32
    tid: I32
    time_ns: I64
    device_type: I32
    device: I32
    address: I64
    bytes: I64
    allocated: I64
    reserved: I64


@dataclass
class InstantColumns(Group):
    """Other instants."""

    name: I32
    pid: I32
    tid: I32
    time_ns: I64
    start: I64
    length: I32


@dataclass
class CounterColumns(Group):
    """Values of counters (phase ``C``): one row per named value."""

    name: I32
    pid: I32
    time_ns: I64
    value: F64


_DTYPES: dict[str, type[np.generic]] = {"U8": np.uint8, "I32": np.int32, "I64": np.int64, "F64": np.float64}


def dtype_of(group: type[Group], name: str) -> type[np.generic]:
    """Dtype that a group declares for a column."""
    return _DTYPES[str(group.__annotations__[name])]


_dtypes_of: dict[str, tuple[tuple[str, type[np.generic]], ...]] = {}  # by name of the group


def _dtypes(group: type[Group]) -> tuple[tuple[str, type[np.generic]], ...]:
    """Columns of a group and their dtypes; kept, as a folder of ranks asks for them thousands of times."""
    kept = _dtypes_of.get(group.__name__)
    if kept is None:
        kept = _dtypes_of[group.__name__] = tuple((f.name, dtype_of(group, f.name)) for f in fields(group))
    return kept


def group_of(group: type[_G], columns: dict[str, Sequence[Any]]) -> _G:
    """Make a group from lists."""
    return group(**{name: np.array(columns[name], dtype=dtype) for name, dtype in _dtypes(group)})


def empty(group: type[_G]) -> _G:
    """Make a group without rows."""
    return group(**{name: np.empty(0, dtype=dtype) for name, dtype in _dtypes(group)})


STRING_COLUMNS = frozenset({"category", "name", "pid", "tid"})
GROUPS: tuple[tuple[str, type[Group]], ...] = (
    ("slices", SliceColumns),
    ("flows", FlowColumns),
    ("memory", MemoryColumns),
    ("instants", InstantColumns),
    ("counters", CounterColumns),
)


@dataclass
class EventColumns:
    """All that decoding yields of one file, or of one piece of it.

    ``metadata`` holds ``(pid, tid, what, value)`` of the ``M`` events, last one wins. ``problems`` counts by note
    code what was dropped or repaired, ``examples`` keeps the first of each.
    """

    strings: list[str]
    slices: SliceColumns = field(default_factory=lambda: empty(SliceColumns))
    flows: FlowColumns = field(default_factory=lambda: empty(FlowColumns))
    memory: MemoryColumns = field(default_factory=lambda: empty(MemoryColumns))
    instants: InstantColumns = field(default_factory=lambda: empty(InstantColumns))
    counters: CounterColumns = field(default_factory=lambda: empty(CounterColumns))
    metadata: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    problems: Tally[str] = field(default_factory=Tally)
    examples: dict[str, str] = field(default_factory=dict)
    events: int = 0

    def note(self, code: str, example: str = "", count: int = 1) -> None:
        """Count one loss or repair."""
        if count:
            self.problems[code] += count
            self.examples.setdefault(code, visible(example[:200]))


class Interner:
    """Gives every distinct string an id."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, value: str) -> int:
        """Id of a string."""
        return self.ids.setdefault(value, len(self.ids))

    def translate(self, strings: Sequence[str]) -> I32:
        """int32[n]: ids here of the strings of a piece."""
        ids = self.ids
        return np.array([ids.setdefault(s, len(ids)) for s in strings], dtype=np.int32)
