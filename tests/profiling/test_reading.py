"""What a script writes arrives whole, stream by stream, and neither stream waits for the other."""

from __future__ import annotations

import os
import sys
import threading
from typing import IO

import pytest

from profiling.reading import Reader


class Taken:
    """What a reader has passed on."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, bytes, str]] = []
        self.seen = threading.Condition()
        self.ends: dict[str, IO[bytes]] = {}
        pipes = {}
        for name in ("stdout", "stderr"):
            ours, theirs = os.pipe()
            pipes[name], self.ends[name] = os.fdopen(ours, "rb", 0), os.fdopen(theirs, "wb", 0)
        self.reader = Reader(pipes, self._take)

    def _take(self, name: str, data: bytes, text: str) -> None:
        with self.seen:
            self.pieces.append((name, data, text))
            self.seen.notify_all()

    def write(self, name: str, data: bytes) -> None:
        self.ends[name].write(data)

    def wait(self, name: str, text: str) -> None:
        with self.seen:
            assert self.seen.wait_for(lambda: text in self.of(name), 30)

    def of(self, name: str) -> str:
        return "".join(text for stream, _, text in self.pieces if stream == name)

    def close(self) -> None:
        for end in self.ends.values():
            end.close()
        self.reader.join(30)


def test_bytes_and_characters_arrive_whole() -> None:
    taken = Taken()
    taken.write("stdout", "é".encode()[:1])
    taken.write("stderr", b"USDT:2026-01-01 00:00:00 1:1 Sync.cpp:5] profiler_st")
    taken.write("stderr", b"art\nwarn\n")
    taken.write("stdout", "é".encode()[1:] + b"\xff")
    taken.close()
    assert taken.of("stdout") == "é\ufffd"
    assert taken.of("stderr") == "warn\n"
    assert b"".join(data for name, data, _ in taken.pieces if name == "stdout") == "é".encode() + b"\xff"


def test_the_profilers_lines_of_several_ranks_are_left_out_however_they_mix() -> None:
    taken = Taken()
    line = b"USDT:2026-01-01 00:00:00 1:1 Sync.cpp:5] profiler_stop"
    taken.write("stderr", b"before\n" + line + line + b"\n\n\nmiddle\n" + line + line + b"\n")
    taken.wait("stderr", "middle")
    taken.write("stderr", b"\nafter\n")
    taken.close()
    assert taken.of("stderr") == "before\n\nmiddle\nafter\n"


def test_what_is_written_in_turn_is_passed_on_in_turn() -> None:
    taken = Taken()
    for number in range(20):
        name = ("stderr", "stdout")[number % 2]
        taken.write(name, b"%d;" % number)
        taken.wait(name, f"{number};")
    taken.close()
    assert "".join(text for _, _, text in taken.pieces) == "".join(f"{n};" for n in range(20))


@pytest.mark.skipif(sys.platform != "linux", reason="one reader for both pipes is used on Linux only")
def test_a_flood_of_one_stream_does_not_keep_the_other_waiting() -> None:
    taken = Taken()
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            taken.write("stdout", b"." * 65536)

    writer = threading.Thread(target=flood)
    writer.start()
    taken.wait("stdout", "...")
    taken.write("stderr", b"help")
    with taken.seen:
        came = taken.seen.wait_for(lambda: any(name == "stderr" for name, _, _ in taken.pieces), 30)
    over.set()
    writer.join(30)
    taken.close()
    assert came
