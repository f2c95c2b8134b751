"""Worker processes give what decoding here gives, and their failures cost only time."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from benchmarks.generate import write_trace
from core.errors import Cancelled
from core.importing import open_trace, pool
from core.importing.pool import Pool
from core.importing.slots import Slots


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "t.json"
    with path.open("wb") as file:
        write_trace(file, 30_000, seed=5)
    return path


def _same(one, two):
    for name, column in vars(one.slices).items():
        assert np.array_equal(column, getattr(two.slices, name)), name
    assert list(one.strings.values) == list(two.strings.values)
    assert np.array_equal(one.links.launch_of, two.links.launch_of)
    assert np.array_equal(one.links.forward, two.links.forward)


def test_workers_give_the_same_tables(path):
    here = open_trace(path, workers=0)
    assert here.report.notes == () or set(here.report.repaired) <= {"dangling-flow", "crossing"}
    assert len(here.links.launched) > 3000
    _same(here, open_trace(path, workers=2))
    assert here.event(12345)["name"] == here.name(12345)


def test_a_worker_that_dies_costs_only_time(path, monkeypatch):
    original = Pool.submit

    def submit(self, text, base, raw):
        for process in self._processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
        return original(self, text, base, raw)

    monkeypatch.setattr(Pool, "submit", submit)
    _same(open_trace(path, workers=0), open_trace(path, workers=1))


def test_memory_that_runs_out_over_an_answer_costs_only_time(path, monkeypatch):
    """The opener must not wait for ever for a piece whose answer could not be taken."""
    thread_of_test = threading.get_ident()
    original = pickle.loads

    def loads(data, **options):
        if threading.get_ident() != thread_of_test:
            raise MemoryError
        return original(data, **options)

    monkeypatch.setattr(pool.pickle, "loads", loads)
    waits = []
    original_done = pool._Task.done

    def done(self):
        waits.append(1)
        assert len(waits) < 1000, "nobody finishes the piece"
        return original_done(self)

    monkeypatch.setattr(pool._Task, "done", done)
    _same(open_trace(path, workers=0), open_trace(path, workers=1))


@pytest.mark.parametrize("most", [0, 1])
def test_too_few_threads_cost_only_time(path, monkeypatch, most):
    original = threading.Thread.start
    feeders = []

    def start(self):
        if self.name.startswith("feeder"):
            feeders.append(self)
            if len(feeders) > most:
                raise RuntimeError("can't start new thread")
        original(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    _same(open_trace(path, workers=0), open_trace(path, workers=2))
    assert len(feeders) == 2


def test_calling_off_ends_the_workers(path, monkeypatch):
    started = []
    original = Pool.__init__

    def init(self, *arguments):
        original(self, *arguments)
        started.extend(process.pid for process in self._processes)

    monkeypatch.setattr(Pool, "__init__", init)

    def stop(fraction, what):
        raise Cancelled

    with pytest.raises(Cancelled):
        open_trace(path, workers=1, progress=stop)
    assert len(started) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.parametrize("state", ["whole", "cut", "footer", "early end", "odd", "vanishing"])
def test_pieces_read_by_the_workers_give_the_same(path, tmp_path, monkeypatch, state):
    """Plain files are read by the workers themselves, whatever state they are in."""
    text = path.read_bytes()[:2_000_000]
    end = text.rindex(b",\n  {")
    if state == "whole":
        text = text[:end] + b"\n  ]\n}\n"
    elif state == "footer":
        text = text[:end] + b'\n  ], "filler": "' + b"x" * 600_000 + b'", "traceName": "the end"}'
    elif state == "early end":
        early = text.index(b",\n  {", 500_000)
        text = text[:early] + b'\n  ], "more": [' + text[early + 1 : end] + b"]}"
    elif state == "odd":
        odd = text.index(b",\n  {", 700_000)
        text = text[:odd] + b', {"ph": "X", "name": "a\\qb", "ts": NaN}, 5' + text[odd:end] + b"\n]}"
    damaged = tmp_path / "t.json"
    damaged.write_bytes(text)
    monkeypatch.setattr(Pool, "piece_bytes", 1 << 17)
    here = open_trace(damaged, workers=0)
    if state == "vanishing":
        original = Pool.submit_range

        def submit_range(self, path, *details):
            return original(self, tmp_path / "nowhere.json" if details[0] > 500_000 else path, *details)

        monkeypatch.setattr(Pool, "submit_range", submit_range)
    there = open_trace(damaged, workers=1)
    _same(here, there)
    assert (here.report, here.meta, here.sources) == (there.report, there.meta, there.sources)


def test_a_process_that_opens_traces_may_have_workers_and_a_worker_may_not(monkeypatch):
    large = pool.MIN_BYTES
    assert pool.worker_count(large, None) > 0
    monkeypatch.setattr(pool.multiprocessing, "parent_process", object)
    monkeypatch.setattr(pool, "_openers", {})
    assert pool.worker_count(large, None) == 0
    pool.allow_in_child()
    assert pool.worker_count(large, None) > 0
    monkeypatch.setattr(pool, "forks", lambda: False)
    assert pool.worker_count(large - 1, None) == 0
    monkeypatch.setattr(pool, "forks", lambda: True)
    monkeypatch.setattr(pool.os, "cpu_count", lambda: 2)
    assert pool.worker_count(pool.FORKED_MIN_BYTES, None) == 2
    assert pool.worker_count(pool.FORKED_MIN_BYTES - 1, None) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_forked_workers_give_the_same_tables(path, monkeypatch):
    monkeypatch.setattr(pool, "forks", lambda: True)
    _same(open_trace(path, workers=0), open_trace(path, workers=2))


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_memory_that_runs_out_in_a_worker_costs_only_time_and_is_no_word_on_the_terminal(path, monkeypatch, capfd):
    here, left = open_trace(path, workers=0), Slots.leave

    def leave(self, slot, answer):
        if slot >= 0:
            raise MemoryError
        return left(self, slot, answer)

    monkeypatch.setattr(pool, "forks", lambda: True)
    monkeypatch.setattr(Slots, "leave", leave)
    _same(here, open_trace(path, workers=1))
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_forked_workers_read_again_what_a_path_made_unreadable(path, tmp_path, monkeypatch):
    """That no backslash is escaped is seen late: what was on its way is dropped, and its memory used again."""
    text = path.read_bytes()
    at = text.index(b'"ph"', len(text) // 3)
    odd = tmp_path / "t.json"
    odd.write_bytes(text[:at] + rb'"where": "C:\q\x.py", ' + text[at:])
    monkeypatch.setattr(Pool, "piece_bytes", 1 << 17)
    here = open_trace(odd, workers=0)
    assert "backslashes-repaired" in here.report.repaired
    monkeypatch.setattr(pool, "forks", lambda: True)
    given_back = []
    original = pool.Slots.give_back
    monkeypatch.setattr(pool.Slots, "give_back", lambda self, slot: (given_back.append(slot), original(self, slot))[1])
    _same(here, open_trace(odd, workers=2))
    assert len(given_back) > 2 * len(text) / (1 << 18)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_forked_workers_end_with_a_killed_opener_in_the_midst_of_a_piece(path):
    """The pipe to the opener's output ends only when the opener and all of its workers have ended."""
    script = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from core.importing import open_trace, pool\n"
        "def decode(*details):\n"
        '    os.write(1, b"%d\\n" % os.getppid())\n'
        "    time.sleep(600)\n"
        "pool.decode_piece = decode\n"
        "pool.allow_in_child()\n"
        "assert pool.forks()\n"
        "open_trace(Path(sys.argv[1]), workers=2)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    opener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[3])
    assert opener.stdout is not None
    assert {int(opener.stdout.readline()) for _ in range(2)} == {opener.pid}  # both are at work
    opener.kill()
    assert opener.communicate(timeout=120)[0] == ""


def test_pieces_of_a_short_text_are_small():
    """What the workers need beside the text counts there."""
    with Pool(0, pool.MIN_BYTES - 1) as short, Pool(0, pool.MIN_BYTES) as long:
        assert 2 * short.piece_bytes == long.piece_bytes == 1 << 20
