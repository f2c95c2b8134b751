"""The file that keeps what a script writes: not more than a disk can bear, however much that is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

LIMIT_BYTES = 1 << 30


class OutputLog(io.FileIO):
    """A new file, without a buffer; raises OSError for what is beyond the limit."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self._left = LIMIT_BYTES

    def write(self, data: Any) -> int:
        """Write all of it, or what there is room for."""
        rest, data = len(data) - self._left, data[: self._left]
        self._left -= len(data)
        if (super().write(data) or 0) < len(data):
            super().write(data[-1:])  # the system tells why it took no more
            raise OSError("it broke off")
        if rest > 0:
            raise OSError(f"it is longer than {LIMIT_BYTES >> 20} MiB")
        return len(data)
