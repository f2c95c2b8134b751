"""Work in a fork: its result and its news; and nothing, where it may not be, or has come to nothing."""

import os
import signal
import sys

import pytest

from core.errors import Cancelled
from core.importing import forked, pool
from core.importing.forked import Forked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(pool, "forks", lambda: True)
    monkeypatch.setattr(forked.os, "cpu_count", lambda: 2)


def _ignore(news):
    del news


def test_what_a_fork_returns_and_tells_arrives():
    held = [1, 2]
    begun = Forked(lambda tell: (tell("half"), os.getpid(), held)[1:])
    held.append(3)  # after the fork
    heard = []
    process_id, seen = begun.result(heard.append)
    assert process_id != os.getpid()
    assert seen == [1, 2]
    assert [news for news in heard if news is not None] == ["half"]


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 / 0, lambda: os._exit(0)])
def test_of_a_fork_that_dies_nothing_comes(end):
    assert Forked(lambda tell: end()).result(_ignore) is None


def test_what_cannot_be_handed_back_is_nothing():
    assert Forked(lambda tell: lambda: 1).result(_ignore) is None


def test_where_nothing_may_be_forked_nothing_is_begun(monkeypatch):
    assert not Forked(lambda tell: 1, worthwhile=False).started
    monkeypatch.setattr(forked.os, "cpu_count", lambda: 1)
    assert not Forked(lambda tell: 1).started
    monkeypatch.setattr(forked.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(forked.multiprocessing, "parent_process", object)  # a window, which needs a core
    assert not Forked(lambda tell: 1).started
    monkeypatch.setattr(forked.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(pool, "forks", lambda: False)
    begun = Forked(lambda tell: 1)
    assert not begun.started
    assert begun.result(_ignore) is None


def test_no_process_to_be_had_is_as_none_allowed(monkeypatch):
    def refuse(*_):
        raise OSError("no process")

    monkeypatch.setattr(os, "fork", refuse)
    assert Forked(lambda tell: 1).result(_ignore) is None


def test_calling_off_ends_the_fork():
    """The fork holds one end of a pipe: the other one ends with it."""
    read, write = os.pipe()

    def work(tell):
        tell(os.getpid())
        signal.pause()

    begun = Forked(work)
    os.close(write)

    def hear(news):
        if news is not None:
            raise Cancelled

    with pytest.raises(Cancelled):
        begun.result(hear)
    assert os.read(read, 1) == b""
    os.close(read)
