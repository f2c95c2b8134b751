"""Handing large frozen objects to another process: the objects pickled, their columns in memory that both map.

Where the system lets two processes share nameless memory (Linux: ``memfd_create``, no file and no limit of a folder),
the columns are written there once, and both sides read the same pages. Elsewhere they travel through the pipe and
each side has its own.
"""

from __future__ import annotations

import mmap
import os
import pickle
import threading
from bisect import bisect
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

_ALIGN = 64
_CHUNK_BYTES = 4 << 20  # of what goes through the pipe


def send(connection: Connection, content: Any) -> Any:
    """Send an object; return its twin, whose columns are the shared ones (itself where nothing is shared).

    Parameters
    ----------
    connection
        One end of a two-way pipe; the other end calls `receive`.
    content
        Anything that can be pickled. Who keeps the twin instead of it holds the columns in memory once, not twice.

    Raises
    ------
    OSError
        When the other side is gone.
    """
    held: list[pickle.PickleBuffer] = []
    head = pickle.dumps(content, protocol=5, buffer_callback=held.append)
    columns = [buffer.raw() for buffer in held]
    places, total = [], 0
    for column in columns:
        places.append((total, column.nbytes))
        total += -(-column.nbytes // _ALIGN) * _ALIGN
    memory = _filled(columns, places, total)
    if memory is None:
        connection.send((places, total, False))
        connection.send_bytes(head)
        for column in columns:
            for at in range(0, column.nbytes, _CHUNK_BYTES):
                connection.send_bytes(column[at : at + _CHUNK_BYTES])
            connection.send_bytes(b"")
        return content
    try:
        connection.send((places, total, True))
        connection.send_bytes(head)
        reduction.send_handle(connection, memory[0], 0)
        return _unpacked(head, places, memory[1])
    finally:
        os.close(memory[0])


def _filled(columns: list[memoryview], places: list[tuple[int, int]], total: int) -> tuple[int, mmap.mmap] | None:
    """Write the columns to nameless memory: its descriptor, and a read-only view; None where none is to be had.

    All that can fail for want of memory fails here, before the other side has been told what comes.
    """
    memory = _nameless_memory(total)
    if memory is None:
        return None
    try:
        _write(memory, columns, places, total)
        return memory, mmap.mmap(memory, total, access=mmap.ACCESS_READ)
    except (OSError, MemoryError):  # no room for it
        os.close(memory)
        return None


def _write(memory: int, columns: list[memoryview], places: list[tuple[int, int]], total: int) -> None:
    """Write columns to their places, by two threads where that takes longer than starting one."""
    failed: list[BaseException] = []

    def write(first: int, end: int) -> None:
        try:
            for column, (start, size) in zip(columns[first:end], places[first:end], strict=True):
                at = 0
                while at < size:  # written, not copied into a mapping: half the time, and other threads work meanwhile
                    at += os.pwrite(memory, column[at:], start + at)
        except (OSError, MemoryError) as error:
            failed.append(error)

    half = bisect(places, (total // 2,)) if total > _CHUNK_BYTES else len(places)
    other = threading.Thread(target=write, args=(half, len(places)), name="parcel", daemon=True)
    try:
        if half < len(places):
            other.start()
    except RuntimeError:  # no thread to be had
        half = len(places)
    write(0, half)
    if other.ident is not None:
        other.join()
    if failed:
        raise failed[0]


def receive(connection: Connection) -> Any:
    """Return the object that the other side sends; its arrays are read-only.

    Raises
    ------
    EOFError, OSError
        When the other side is gone.
    """
    places, total, shared = connection.recv()
    head = connection.recv_bytes()
    if shared:
        memory = reduction.recv_handle(connection)
        try:
            return _unpacked(head, places, mmap.mmap(memory, total, access=mmap.ACCESS_READ))
        finally:
            os.close(memory)
    data = np.empty(total, np.uint8)
    for at, _size in places:
        while part := connection.recv_bytes():
            data[at : at + len(part)] = np.frombuffer(part, np.uint8)
            at += len(part)
    return _unpacked(head, places, data)


def _unpacked(head: bytes, places: list[tuple[int, int]], data: Any) -> Any:
    view = memoryview(data).toreadonly()
    return pickle.loads(head, buffers=[view[start : start + size] for start, size in places])


def _nameless_memory(size_bytes: int) -> int | None:
    """Descriptor of fresh memory without a name; None where there is none to be had, or nothing to put into it."""
    if not size_bytes or not hasattr(os, "memfd_create"):
        return None
    try:
        memory = os.memfd_create("steplens")
    except OSError:  # an old kernel, or a sandbox
        return None
    try:
        os.ftruncate(memory, size_bytes)
    except OSError:
        os.close(memory)
        return None
    return memory
