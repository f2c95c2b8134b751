"""What a script writes arrives whole, stream by stream, and neither stream waits for the other."""

from __future__ import annotations

import os
import sys
import threading
from typing import IO

import pytest

from profiling import reading
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

    def write_all(self, name: str, data: bytes) -> None:
        for at in range(0, len(data), 10_000):
            self.ends[name].write(data[at : at + 10_000])

    def wait(self, name: str, text: str) -> None:
        with self.seen:
            assert self.seen.wait_for(lambda: text in self.of(name), 30)

    def of(self, name: str) -> str:
        return "".join(text for stream, _, text in self.pieces if stream == name)

    def close(self) -> None:
        for end in self.ends.values():
            end.close()
        self.reader.join(30)


DEVICES = b"ERROR:2026-01-01 00:00:00 1:1 DeviceProperties.cpp:47] gpuGetDeviceCount failed with code 35"


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


def test_the_profilers_lines_are_left_out_behind_a_progress_bar_too() -> None:
    taken = Taken()
    for line in (b"USDT:2026-01-01 00:00:00 1:1 Sync.cpp:5] profiler_stop", DEVICES):
        taken.write("stderr", b"\r 25%| 25 it" + line + b"\n")
    taken.close()
    assert taken.of("stderr") == "\r 25%| 25 it" * 2


def test_what_is_written_in_turn_is_passed_on_in_turn() -> None:
    taken = Taken()
    for number in range(20):
        name = ("stderr", "stdout")[number % 2]
        taken.write(name, b"%d\n" % number)
        taken.wait(name, f"{number}\n")
    taken.close()
    assert "".join(text for _, _, text in taken.pieces) == "".join(f"{n}\n" for n in range(20))


def flood(taken: Taken, name: str, lines: list[bytes]) -> threading.Thread:
    """Write in a thread; each write fills the pipe, so that its reader gets parts of lines."""
    writer = threading.Thread(target=taken.write_all, args=(name, b"".join(lines)))
    writer.start()
    return writer


@pytest.mark.parametrize("pipes", ["in order", "each alone"])
def test_no_line_of_one_stream_gets_into_a_line_of_the_other(pipes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if pipes == "each alone":
        monkeypatch.setattr(reading.sys, "platform", "other")
    monkeypatch.setattr(reading, "HOLD_SECONDS", 30.0)  # however busy the machine
    taken = Taken()
    lines = {name: [b"%s %d %s\n" % (name.encode(), n, b"x" * 90) for n in range(3000)] for name in taken.ends}
    for writer in [flood(taken, name, lines[name]) for name in taken.ends]:
        writer.join(30)
    taken.close()
    came = b"".join(data for _, data, _ in taken.pieces).splitlines(keepends=True)
    for name, written in lines.items():
        assert [line for line in came if line.startswith(name.encode())] == written
    assert len(came) == 6000


def test_what_has_no_end_of_a_line_is_shown_all_the_same() -> None:
    taken = Taken()
    taken.write("stdout", b"How many steps? ")
    taken.wait("stdout", "How many steps? ")
    taken.write("stderr", b"\r 10 %")
    taken.wait("stderr", "10 %")
    taken.write("stdout", b"5")
    taken.close()
    assert taken.of("stdout") == "How many steps? 5"


def test_a_progress_bar_and_a_line_without_end_do_not_wait_for_what_never_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "HOLD_SECONDS", 3600.0)
    taken = Taken()
    taken.write("stderr", b"\r 10 %")
    taken.write("stderr", b"\r 20 %")
    taken.wait("stderr", "10 %")
    for _ in range(5):
        taken.write("stdout", b"." * (reading.LONGEST_LINE // 4))
    taken.wait("stdout", "." * reading.LONGEST_LINE)
    taken.close()
    assert taken.of("stderr") == "\r 10 %\r 20 %"


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
