"""Reads what a script writes to its standard output and error, in the order of writing as far as that can be seen.

Two pipes do not tell which was written to first. Linux keeps a queue of the pipes that have something new: one reader
that follows it mixes up only what was written within the moment that it takes to wake up. Elsewhere each pipe has a
reader of its own.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO

PIECE_BYTES = 1 << 14  # read at once: small enough that the other stream is not kept waiting in a flood

# Written to the script's stderr whenever a profiler starts or stops (by kineto of torch 2.13, and of torch 2.0 to 2.2),
# where a CUDA build of torch finds no driver, and once where memory is recorded; nobody asked for it. The last one
# may come in the middle of a progress bar's line. The ends of these lines are written apart: several ranks mix them up.
_KINETO_EVENT = (
    rb"(?:USDT:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ \w+\.cpp:\d+\] profiler_\w+?"
    rb"|STAGE:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ ActivityProfilerController\.cpp:\d+\] Completed Stage: [\w ]+?)"
    rb"(?=USDT:|STAGE:|\n)"
)
_KINETO_NOISE = re.compile(
    rb"^(?P<events>(?:" + _KINETO_EVENT + rb")+)(?P<ends>\n+)"
    rb"|^ERROR:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ (?:Cuda)?DeviceProperties\.cpp:\d+\] (?:cuda|gpu)GetDeviceCount failed "
    rb"with code \d+\n"
    rb"|\[(?:rank\d+\]: ?\[)?W[\d :.]*CPUAllocator\.cpp:\d+\] Memory block of unknown size was allocated before the "
    rb"profiling started[^\n]*\n",
    re.MULTILINE,
)

Take = Callable[[str, bytes, str], None]


class _Stream:
    """One of the two: decodes what comes, and leaves out what nobody asked for."""

    def __init__(self, name: str, take: Take) -> None:
        self._name, self._take = name, take
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""
        self._ends_to_come = 0  # of lines that nobody asked for

    def _left_of(self, noise: re.Match[bytes]) -> bytes:
        """What is left of the noise: empty lines that are not its own."""
        if not noise["events"]:
            return b""
        own, ends = len(re.findall(rb"USDT:|STAGE:", noise["events"])), len(noise["ends"])
        self._ends_to_come = max(own - ends, 0)
        return b"\n" * max(ends - own, 0)

    def feed(self, chunk: bytes) -> None:
        """Pass a piece on; an empty one is the end."""
        data, self._held = self._held + chunk, b""
        if self._name == "stderr":
            while self._ends_to_come and data:
                self._ends_to_come = self._ends_to_come - 1 if data[:1] == b"\n" else 0
                data = data.removeprefix(b"\n")
            data = _KINETO_NOISE.sub(self._left_of, data)
            last = data.rfind(b"\n") + 1
            if chunk and data[last:].startswith((b"USDT:", b"STAGE:")):
                data, self._held = data[:last], data[last:]
        text = self._decoder.decode(data, not chunk)
        if data or text:
            self._take(self._name, data, text)


class Reader:
    """Reads until both pipes have ended.

    Parameters
    ----------
    pipes
        The reading ends by name, ``stdout`` and ``stderr``.
    take
        Gets the name, the bytes and the same as text; called by threads of this object.
    """

    def __init__(self, pipes: Mapping[str, IO[bytes]], take: Take) -> None:
        streams = {pipe.fileno(): _Stream(name, take) for name, pipe in pipes.items()}
        if sys.platform == "linux":
            threads = [threading.Thread(target=_read_in_order, args=(streams,), name="run-output", daemon=True)]
        else:
            threads = [
                threading.Thread(target=_read_alone, args=(handle, stream), name="run-output", daemon=True)
                for handle, stream in streams.items()
            ]
        self._threads = threads
        self._pipes = pipes  # they close when they are let go of
        for thread in threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end, but no longer than this: a process that the script left behind may hold the pipes."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


def _read_alone(handle: int, stream: _Stream) -> None:
    chunk = b"."
    while chunk:
        try:
            chunk = os.read(handle, PIECE_BYTES)
        except OSError:
            chunk = b""
        stream.feed(chunk)


if sys.platform == "linux":

    def _read_in_order(streams: dict[int, _Stream]) -> None:
        """Edge-triggered, the queue holds each pipe once, in the order in which they got something new."""
        waiting: deque[int] = deque()
        with select.epoll() as queue:
            for handle in streams:
                os.set_blocking(handle, False)
                queue.register(handle, select.EPOLLIN | select.EPOLLET)
            while streams:
                waiting.extend(handle for handle, _ in queue.poll(0 if waiting else -1) if handle not in waiting)
                if not waiting:
                    continue
                handle = waiting.popleft()
                try:
                    chunk = os.read(handle, PIECE_BYTES)
                except BlockingIOError:
                    continue
                except OSError:
                    chunk = b""
                streams[handle].feed(chunk)
                if chunk:
                    waiting.append(handle)
                else:
                    queue.unregister(handle)
                    del streams[handle]
