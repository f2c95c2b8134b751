"""Rules in a fork beside the replay: the same results in the same order, and a fork that dies costs only time."""

import os
import signal
import sys
import threading

import pytest

from core.analysis import analyze
from core.beside import Beside
from core.errors import Cancelled
from core.importing import pool
from core.rehearsal import rehearsal_trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
USER_RULE = """
import os
from core.suggestions import Evidence, Rule, Suggestion
RULE = Rule("users-own", "The user's own")
def check(ctx):
    {body}
    return []
"""


@pytest.fixture(autouse=True)
def forking(monkeypatch):
    """This process counts as one that was made for opening."""
    monkeypatch.setattr(pool, "_openers", {os.getpid(): ()})
    monkeypatch.setattr(pool, "forks", lambda: True)


def _told(**options):
    partial, steps = [], []
    found = analyze(rehearsal_trace(), on_partial=partial.append, progress=lambda f, w: steps.append((f, w)), **options)
    return found, partial, steps


def test_the_same_results_in_the_same_order(tmp_path):
    (tmp_path / "users_own.py").write_text(USER_RULE.format(body="pass"))
    here, partial_here, steps_here = _told(large=1 << 40, extra_folders=[tmp_path])
    there, partial_there, steps_there = _told(large=0, extra_folders=[tmp_path])
    assert [(r.rule.id, r.outcome, r.reason) for r in there.rules] == [
        (r.rule.id, r.outcome, r.reason) for r in here.rules
    ]
    assert there.rules[-1].rule.id == "users-own"
    assert there.suggestions == here.suggestions
    assert there.plan == here.plan
    assert there.figures.summary == here.figures.summary
    assert [len(p.rules) for p in partial_there] == [len(p.rules) for p in partial_here]
    assert steps_there == steps_here


def test_rules_run_elsewhere(tmp_path):
    (tmp_path / "users_own.py").write_text(USER_RULE.format(body="raise ValueError(os.getpid())"))
    found, _, _ = _told(large=0, extra_folders=[tmp_path])
    assert found.rules[-1].reason != f"ValueError: {os.getpid()}"
    assert found.rules[-1].reason.startswith("ValueError: ")


def test_a_fork_that_dies_costs_only_time(tmp_path):
    body = f"os.getpid() == {os.getpid()} or os.kill(os.getpid(), {int(signal.SIGKILL)})"
    (tmp_path / "users_own.py").write_text(USER_RULE.format(body=body))
    found, _, _ = _told(large=0, extra_folders=[tmp_path])
    assert found.suggestions == _told(large=1 << 40)[0].suggestions
    assert found.rules[-1].rule.id == "users-own"


def test_a_replay_that_fails_is_told_as_ever(monkeypatch, caplog):
    import core.replay.replay as replay

    def fail(self, trace, figures):
        raise ArithmeticError("never seen before")

    monkeypatch.setattr(replay.Replay, "__init__", fail)
    found, _, _ = _told(large=0)
    assert found.notes == {"replay": "ArithmeticError: never seen before"}
    assert "the replay failed" in caplog.text
    assert found.suggestions


def test_calling_off_ends_the_fork():
    ended = threading.Event()

    def work(send):
        send("begun")
        signal.pause()

    def on_message(message):
        ended.set()
        raise Cancelled

    with pytest.raises(Cancelled), Beside(work, on_message) as beside:
        process = beside._process.pid
        beside.wait()
    assert ended.is_set()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_process_with_threads_at_work_is_not_forked(monkeypatch):
    monkeypatch.undo()
    assert not pool.forks()
    monkeypatch.setattr(pool, "_openers", {os.getpid(): ()})
    others = {thread.name for thread in threading.enumerate()}
    assert pool.forks() is (others <= pool._HARMLESS)
    release = threading.Event()
    at_work = threading.Thread(target=release.wait)
    at_work.start()
    assert not pool.forks()
    release.set()
    at_work.join()
