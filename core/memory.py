"""What the C library does with memory that is let go (glibc; elsewhere nothing here changes anything)."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
LARGE_BYTES = 1 << 19  # a column of a large trace
MANY = 200_000  # rows whose columns take longer to fill than handing back takes (2 ms)


def share_arena() -> None:
    """Have all threads use one heap: each would keep what it once needed in one of its own."""
    _mallopt(_ARENA_MAX, 1)


def keep() -> None:
    """Hand nothing back: fetching memory anew for every piece takes a tenth of the time of decoding it.

    Only for a process that ends soon.
    """
    _mallopt(_MMAP_THRESHOLD, 1 << 30)
    _mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def hand_back_large() -> None:
    """Hand each large block back when it is let go: left to itself the library does so less and less often.

    Not where many are made in turn: fetching memory anew makes the diagnosis of a large trace take a twentieth longer.
    """
    _mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Hand back what is kept of memory that was let go: after reading it is as much as the columns themselves."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def give_back_between(rows: int) -> None:
    """As `give_back`, between two stages of work on a table of so many rows: with few there is nothing to hand back."""
    if rows >= MANY:
        give_back()


def small_pages() -> None:
    """Have numpy ask for no huge pages: one of 2 MB stays as long as any part of it is in use."""
    with suppress(ImportError, AttributeError, TypeError):
        from numpy._core import multiarray

        multiarray._set_madvise_hugepage(False)  # type: ignore[attr-defined]  # else an environment variable alone sets it


def _mallopt(option: int, value: int) -> None:
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(option, value)
