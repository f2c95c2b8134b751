"""The processes that read traces for the window: results, errors, cancel, and every way to end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from core import helper as protocol
from core.analysis import analyze
from core.errors import Cancelled, TraceError
from core.importing import open_trace
from gui import helper_process, helpers, store
from gui.helper_process import Helper
from gui.main_window import MainWindow
from gui.opening import load_document
from tests.gui.conftest import training

ROOT = Path(__file__).resolve().parents[2]


def no_progress(fraction: float, what: str) -> None:
    pass


def call_off(fraction: float, what: str) -> None:
    raise Cancelled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace file."""
    training().build(tmp_path / "train.json")
    return tmp_path / "train.json"


@pytest.fixture
def started() -> Iterator[None]:
    """Helpers are wanted, as in the running app; all of them have ended afterwards."""
    helpers.start()
    yield
    held = tuple(helpers._held.all)
    helpers.close_all()
    assert not any(one.alive for one in held)


def taken() -> Helper:
    """A helper that is ready."""
    made = helpers.take(no_progress)
    assert made is not None
    return made


def test_reads_and_diagnoses_as_a_thread_does_and_ends(started: None, path: Path) -> None:
    made = taken()
    trace = made.open(path, None, no_progress)
    own = open_trace(path)
    for name in ("start_ns", "dur_ns", "kind", "parent_id", "correlation_id"):
        np.testing.assert_array_equal(getattr(trace.slices, name), getattr(own.slices, name))
    partial: list[Any] = []
    found = made.analyze(partial.append, no_progress)
    expected = analyze(own)
    assert [s.key for s in found.suggestions] == [s.key for s in expected.suggestions]
    assert [s.saving for s in found.suggestions] == [s.saving for s in expected.suggestions]
    assert found.plan == expected.plan
    assert found.figures.summary == expected.figures.summary
    assert [len(p.rules) for p in partial] == [0, len(expected.rules)]
    assert partial[1].figures is partial[0].figures  # what is there is not sent twice
    assert found.figures.step_of is partial[0].figures.step_of
    made.wait_closed()
    assert not made.alive


def test_an_error_arrives_with_its_place_and_the_helper_goes_on(started: None, path: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("no trace at all")
    with pytest.raises(TraceError) as own:
        open_trace(bad)
    made = taken()
    with pytest.raises(TraceError) as error:
        made.open(bad, None, no_progress)
    for name in ("title", "detail", "hint", "offset_bytes"):
        assert getattr(error.value, name) == getattr(own.value, name)
    assert len(made.open(path, None, no_progress).slices)


def test_diagnoses_what_was_read_elsewhere(started: None, path: Path) -> None:
    own = open_trace(path)
    made = taken()
    made.adopt(own)
    found = made.analyze(lambda _: None, no_progress)
    assert [s.saving for s in found.suggestions] == [s.saving for s in analyze(own).suggestions]
    dead = taken()
    dead.kill()
    with pytest.raises(TraceError, match="ended unexpectedly"):
        dead.adopt(own)


def test_a_start_that_is_under_way_is_waited_for(started: None) -> None:
    made = helpers.take(no_progress, start_one=False)
    assert made is not None and made.alive
    assert helpers.take(no_progress, start_one=False) is None
    helpers.give_back(made)
    assert helpers.take(no_progress, start_one=False) is made
    made.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_helper_is_the_only_process_that_is_started() -> None:
    """In a fresh interpreter: others of this one's tests may have had a tracker of semaphores started."""
    script = (
        "from pathlib import Path\n"
        "from gui import helpers\n"
        "if __name__ == '__main__':\n"
        "    helpers.start()\n"
        "    made = helpers.take(lambda fraction, what: None)\n"
        "    below = [c for t in Path('/proc/self/task').glob('*/children') for c in t.read_text().split()]\n"
        "    print(made.process_id, *below)\n"
        "    for child in below:\n"
        "        assert 'resource_tracker' not in Path(f'/proc/{child}/cmdline').read_text()\n"
        "    made.kill()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made, *below = done.stdout.split()
    assert made in below


def test_cancel_ends_the_process(started: None, path: Path) -> None:
    made = taken()
    with pytest.raises(Cancelled):
        made.open(path, None, call_off)
    assert not made.alive


def test_cancel_ends_a_diagnosis_in_the_midst_of_a_rule(started: None, path: Path, tmp_path: Path) -> None:
    """The rule would sleep for an hour, and reports nothing meanwhile."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "endless.py").write_text(
        "import time\nfrom core.suggestions import Rule\n"
        "RULE = Rule('endless', 'Endless')\n"
        "def check(ctx):\n    time.sleep(3600)\n    return []\n"
    )
    told: list[str] = []

    def call_off_in_it(fraction: float, what: str) -> None:
        told.append(what)
        if what == "endless":
            raise Cancelled

    made = taken()
    made.open(path, None, no_progress)
    with pytest.raises(Cancelled):
        made.analyze(lambda _: None, call_off_in_it, (tmp_path / "rules",))
    assert made._lingering is not None
    made._lingering.join(50)  # it would be killed after a minute
    assert made._process.exitcode == 0  # by itself: what is being written to the cache is never cut off
    assert told.count("endless") == 1  # called off at the first chance


def test_a_helper_that_dies_is_an_error_with_a_cure(started: None, path: Path) -> None:
    made = taken()
    made._process.kill()
    with pytest.raises(TraceError, match="ended unexpectedly") as error:
        made.open(path, None, no_progress)
    assert "-9" in error.value.detail or sys.platform == "win32"
    assert error.value.hint


@pytest.mark.parametrize("during", ["open", "analyze"])
def test_the_window_offers_to_try_again_what_died(
    during: str, started: None, window: MainWindow, qtbot: QtBot, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a button of the message, and by opening the file once more."""
    whole = getattr(Helper, during)

    def dying(self: Helper, *arguments: Any) -> Any:
        self._process.kill()
        return whole(self, *arguments)

    def failed() -> None:
        qtbot.waitUntil(lambda: window.banner.isVisible() and not window.opener.busy, timeout=60_000)
        assert "ended unexpectedly" in window.banner.title.text()
        assert window.banner.again.isVisible()

    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    monkeypatch.setattr(Helper, during, dying)
    window.session.open([path])
    failed()
    monkeypatch.setattr(Helper, during, whole)
    if during == "open":
        window.banner.again.click()
    else:  # its banner would do that, too
        window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    assert window.session.documents[0].analysis is not None
    assert window.session.documents[0].analysis_error is None
    assert not window.banner.isVisible()
    window.session.open([path.with_name("none.json")])
    qtbot.waitUntil(window.banner.isVisible)
    assert not window.banner.again.isVisible()  # it would fail once more


def test_without_a_process_traces_are_read_in_a_thread(
    window: MainWindow, qtbot: QtBot, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Helper, on_end: object) -> None:
        raise OSError("no process for you")

    monkeypatch.setattr(Helper, "__init__", fail)
    helpers.start()
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    assert window.session.documents[0].analysis is not None
    assert helpers.take(no_progress) is None
    assert "read in threads" in caplog.text
    helpers.close_all()


def test_the_window_opens_through_a_helper(started: None, window: MainWindow, qtbot: QtBot, path: Path) -> None:
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    first = helpers._held.spare
    assert first is not None
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    document = window.session.documents[0]
    assert document.analysis is not None and document.analysis.suggestions
    assert window.session.documents[0].trace.event(0)
    first.wait_closed()
    assert not first.alive
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)  # the next one is under way
    assert helpers._held.spare is not first


def test_closing_a_trace_lets_its_helper_go(started: None, window: MainWindow, qtbot: QtBot, path: Path) -> None:
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    first = helpers._held.spare
    assert first is not None
    window.session.openRequested.disconnect(window.opener.open)
    window.opener.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents), timeout=60_000)
    window.session.close_document(window.session.documents[0])
    first.wait_closed()
    assert not first.alive


def test_a_closed_trace_leaves_the_memory(
    started: None, window: MainWindow, qtbot: QtBot, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without waiting for Python's own search for circles, which may come much later."""
    searches: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: searches.append(len(window.session.documents)))
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    helper = helpers._held.spare
    assert helper is not None
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    assert helper._known is None  # it is remembered until the next one starts
    assert not searches
    window.session.close_document(window.session.documents[0])
    qtbot.waitUntil(lambda: searches == [0], timeout=60_000)


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_ctrl_c_in_the_terminal_never_reaches_a_helper() -> None:
    """Neither while it loads its modules, where it would print a traceback, nor later."""
    made = Helper(lambda _: None)

    def deaf() -> bool:
        status = Path(f"/proc/{made.process_id}/status").read_text()
        masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))]
        return bool((masks[0] | masks[1]) & 1 << signal.SIGINT - 1)

    assert deaf()
    assert made.wait_ready(no_progress)
    assert deaf()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    made.kill()


@pytest.mark.skipif(not hasattr(os, "waitpid"), reason="no process waits to be collected here")
def test_a_closed_helper_is_collected_when_it_has_ended(started: None) -> None:
    made = taken()
    assert made.process_id is not None
    made.close()
    assert made._lingering is not None
    made._lingering.join(50)
    with pytest.raises(ChildProcessError):  # no zombie is left
        os.waitpid(made.process_id, os.WNOHANG)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_closed_helper_that_hangs_is_killed(started: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_process, "LINGER_S", 0.05)
    made = taken()
    assert made.process_id is not None
    os.kill(made.process_id, signal.SIGSTOP)
    os.waitpid(made.process_id, os.WUNTRACED)  # it stands still now
    made.close()
    assert made._lingering is not None
    made._lingering.join(60)  # the thread that kills it and waits for its end: of two that wait, one may miss it
    assert made._process.exitcode == -signal.SIGKILL


def test_nothing_is_left_of_a_killed_window() -> None:
    """The pipe to the window's output ends only when the window, its helper and all they began have ended."""
    script = (
        "import os, signal\n"
        "from gui import helpers\n"
        "if __name__ == '__main__':\n"
        "    helpers.start()\n"
        "    made = helpers.take(lambda fraction, what: None)\n"
        "    print(made.process_id, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, 'SIGKILL') else signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) > 0


def test_errors_survive_the_pipe() -> None:
    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"{a} and {b}")

    for error, kind, words in (
        (ValueError("wrong"), ValueError, "wrong"),
        (MemoryError(), MemoryError, ""),
        (Odd(1, 2), RuntimeError, "1 and 2"),
    ):
        try:
            raise error
        except Exception as caught:
            back = protocol.restored(protocol.portable(caught))
        assert type(back) is kind
        assert words in str(back)
        assert "test_errors_survive_the_pipe" in "".join(back.__notes__)
    back = protocol.restored(protocol.portable(TraceError("a", "b", "c", 7)))
    assert isinstance(back, TraceError) and back.offset_bytes == 7


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_one_that_stands_still_before_it_is_ready_is_no_spare(started: None, qtbot: QtBot) -> None:
    """The next trace would wait for it for a minute."""
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    still = helpers._held.spare
    assert still is not None and still.process_id is not None
    os.kill(still.process_id, signal.SIGSTOP)
    with pytest.raises(Cancelled):
        helpers.take(call_off)
    assert not still.alive
    assert taken() is not still


def test_after_an_opening_that_was_called_off_the_next_helper_is_started(
    started: None, qtbot: QtBot, path: Path
) -> None:
    qtbot.waitUntil(lambda: helpers._held.spare is not None, timeout=60_000)
    first = helpers._held.spare
    assert first is not None and first.wait_ready(no_progress)
    with pytest.raises(Cancelled):
        load_document(path, call_off)
    qtbot.waitUntil(lambda: helpers._held.spare not in (None, first), timeout=60_000)


@pytest.mark.parametrize("part", ["restore", "page", "tab"])
def test_what_fails_while_a_trace_arrives_is_said_and_it_can_be_opened_again(
    window: MainWindow, qtbot: QtBot, path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise ValueError("no luck")

    errors: list[BaseException] = []
    window.session.errorRaised.connect(errors.append)
    with monkeypatch.context() as patched:
        if part == "restore":
            patched.setattr(store, "restore", fail)
        elif part == "page":
            patched.setattr(window.session, "ask", fail)
        else:
            patched.setattr(window.opener, "_add", fail)
        window.session.open([path])
        qtbot.waitUntil(lambda: bool(errors), timeout=60_000)
    assert not window.opener.busy and not window.session.documents
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
