"""Reads what a script writes to its standard output and error, in the order of writing as far as that can be seen.

Two pipes do not tell which was written to first. Linux keeps a queue of the pipes that have something new: one reader
that follows it mixes up only what was written within the moment that it takes to wake up. Elsewhere each pipe has a
reader of its own. A line that has not come whole waits a moment for its rest, so that no line of the other stream gets
into the middle of it.
"""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import queue
import re
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import IO

PIECE_BYTES = 1 << 14  # read at once: small enough that the other stream is not kept waiting in a flood
HOLD_SECONDS = 0.05  # for the rest of a line; prompts and progress bars have none to come
LONGEST_LINE = 1 << 16  # bytes held

# Written to the script's stderr whenever a profiler starts or stops (by kineto of torch 2.13, and of torch 2.0 to 2.2),
# where a CUDA build of torch finds no driver, and once where memory is recorded; nobody asked for it. All of them may
# come in the middle of a progress bar's line. The ends of these lines are written apart: several ranks mix them up.
_KINETO_EVENT = (
    rb"(?:USDT:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ \w+\.cpp:\d+\] profiler_\w+?"
    rb"|STAGE:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ ActivityProfilerController\.cpp:\d+\] Completed Stage: [\w ]+?)"
    rb"(?=USDT:|STAGE:|\n)"
)
_KINETO_NOISE = re.compile(
    rb"(?P<events>(?:" + _KINETO_EVENT + rb")+)(?P<ends>\n+)"
    rb"|ERROR:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ (?:Cuda)?DeviceProperties\.cpp:\d+\] (?:cuda|gpu)GetDeviceCount failed "
    rb"with code \d+\n"
    rb"|\[(?:rank\d+\]: ?\[)?W[\d :.]*CPUAllocator\.cpp:\d+\] Memory block of unknown size was allocated before the "
    rb"profiling started[^\n]*\n"
)

Take = Callable[[str, bytes, str], None]
Piece = tuple[int, bytes]  # the pipe's handle, and what came; nothing is its end


class _Stream:
    """One of the two: puts lines together, decodes what comes, and leaves out what nobody asked for."""

    def __init__(self, name: str, take: Take) -> None:
        self._name, self._take = name, take
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = b""  # what has come of one whose end is not here yet
        self._held = b""
        self._ends_to_come = 0  # of lines that nobody asked for
        self.due = math.inf  # when the line is passed on as it is

    def feed(self, chunk: bytes, now: float) -> None:
        """Pass whole lines on, and keep the rest; an empty piece is the end."""
        data = self._line + chunk
        whole = not chunk or len(data) > LONGEST_LINE
        border = len(data) if whole else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if border or not self._line:
            self.due = now + HOLD_SECONDS
        self._line = data[border:]
        if not self._line:
            self.due = math.inf
        if border or not chunk:
            self._pass_on(data[:border], last=not chunk)

    def let_go(self) -> None:
        """The rest of the line takes its time: pass on what is here."""
        data, self._line, self.due = self._line, b"", math.inf
        self._pass_on(data)

    def _left_of(self, noise: re.Match[bytes]) -> bytes:
        """What is left of the noise: empty lines that are not its own."""
        if not noise["events"]:
            return b""
        own, ends = len(re.findall(rb"USDT:|STAGE:", noise["events"])), len(noise["ends"])
        self._ends_to_come = max(own - ends, 0)
        return b"\n" * max(ends - own, 0)

    def _pass_on(self, data: bytes, *, last: bool = False) -> None:
        data, self._held = self._held + data, b""
        if self._name == "stderr":
            while self._ends_to_come and data:
                self._ends_to_come = self._ends_to_come - 1 if data[:1] == b"\n" else 0
                data = data.removeprefix(b"\n")
            data = _KINETO_NOISE.sub(self._left_of, data)
            border = data.rfind(b"\n") + 1
            if not last and data[border:].startswith((b"USDT:", b"STAGE:")):
                data, self._held = data[:border], data[border:]
        text = self._decoder.decode(data, last)
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
        self._pipes = pipes  # they close when they are let go of
        self._thread = threading.Thread(target=_pass_on, args=(streams,), name="run-output", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end, but no longer than this: a process that the script left behind may hold the pipes."""
        self._thread.join(seconds)


def _pass_on(streams: dict[int, _Stream]) -> None:
    source = (_InOrder if sys.platform == "linux" else _Alone)(streams)
    with source:
        while streams:
            due = min(stream.due for stream in streams.values())
            piece = source.next(None if due == math.inf else max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if piece is not None:
                streams[piece[0]].feed(piece[1], now)
                if not piece[1]:
                    del streams[piece[0]]
            for handle, stream in streams.items():
                if stream.due <= now and (piece is None or piece[0] != handle):
                    stream.let_go()


class _Alone(contextlib.nullcontext[None]):
    """Each pipe has a thread of its own; a pipe that nobody writes to keeps it, even where we have ended."""

    def __init__(self, handles: Iterable[int]) -> None:
        super().__init__()
        self._pieces: queue.Queue[Piece] = queue.Queue(2)
        for handle in handles:
            threading.Thread(target=self._read, args=(handle,), name="run-pipe", daemon=True).start()

    def _read(self, handle: int) -> None:
        chunk = b"."
        while chunk:
            try:
                chunk = os.read(handle, PIECE_BYTES)
            except OSError:
                chunk = b""
            self._pieces.put((handle, chunk))

    def next(self, seconds: float | None) -> Piece | None:
        """What comes within this time."""
        try:
            return self._pieces.get(timeout=seconds)
        except queue.Empty:
            return None


if sys.platform == "linux":

    class _InOrder:
        """Edge-triggered, the queue holds each pipe once, in the order in which they got something new."""

        def __init__(self, handles: Iterable[int]) -> None:
            self._waiting: deque[int] = deque()
            self._queue = select.epoll()
            for handle in handles:
                os.set_blocking(handle, False)
                self._queue.register(handle, select.EPOLLIN | select.EPOLLET)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            self._queue.close()

        def next(self, seconds: float | None) -> Piece | None:
            """What comes within this time."""
            waiting = self._waiting
            while True:
                came = self._queue.poll(0 if waiting else seconds)
                waiting.extend(handle for handle, _ in came if handle not in waiting)
                if not waiting:
                    return None
                handle = waiting.popleft()
                try:
                    chunk = os.read(handle, PIECE_BYTES)
                except BlockingIOError:
                    continue
                except OSError:
                    chunk = b""
                if chunk:
                    waiting.append(handle)
                else:
                    self._queue.unregister(handle)
                return handle, chunk
