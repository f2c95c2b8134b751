"""Memory that forked workers share with the opening process: there they leave the columns of a piece.

Through a pipe each column would be copied four times: into the pickle, into the pipe, out of it and out of the pickle.
"""

from __future__ import annotations

import mmap
import pickle
from collections import deque
from typing import Any

_ALIGN = 64


class Slots:
    """Places for so many answers at a time, each of so many bytes; made before the workers are forked.

    Raises
    ------
    OSError
        When the system has no such memory.
    """

    def __init__(self, count: int, slot_bytes: int) -> None:
        self._slot_bytes = slot_bytes
        self._memory = memoryview(mmap.mmap(-1, count * slot_bytes))  # pages that nothing is written to cost nothing
        self._free = deque(range(count))

    def take(self) -> int:
        """Number of a slot that is free, -1 where none is."""
        return self._free.popleft() if self._free else -1

    def give_back(self, slot: int) -> None:
        """What was left in a slot is no longer looked at."""
        self._free.append(slot)

    def leave(self, slot: int, answer: Any) -> bytes:
        """Put the columns of an answer into a slot (in a worker); returns what has to be sent for `find`."""
        held: list[pickle.PickleBuffer] = []
        head = pickle.dumps(answer, protocol=5, buffer_callback=held.append)
        columns = [buffer.raw() for buffer in held]
        at, places = slot * self._slot_bytes, []
        for column in columns:
            places.append((at, column.nbytes))
            at += -(-column.nbytes // _ALIGN) * _ALIGN
        if slot < 0 or at > (slot + 1) * self._slot_bytes:
            return pickle.dumps((pickle.dumps(answer, protocol=5), []), protocol=5)
        for column, (start, size) in zip(columns, places, strict=True):
            self._memory[start : start + size] = column
        return pickle.dumps((head, places), protocol=5)

    def find(self, sent: bytes) -> Any:
        """Return the answer (in the opening process); its columns are good until the slot is given back."""
        head, places = pickle.loads(sent)
        return pickle.loads(head, buffers=[self._memory[start : start + size] for start, size in places])
