from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from core.errors import Cancelled
from gui import jobs


def fail(error: BaseException) -> None:
    raise AssertionError(error)


def test_result_and_progress_arrive_in_the_gui_thread(qtbot: QtBot) -> None:
    seen: list[Any] = []
    threads: list[Any] = []

    def work(progress: jobs.Progress) -> int:
        threads.append(threading.current_thread())
        progress(1.0, "all")
        return 42

    def done(result: int) -> None:
        seen.append((result, threading.current_thread()))

    owner = QObject()
    jobs.run(owner, work, done, fail, on_progress=lambda f, t: seen.append((f, t)))
    qtbot.waitUntil(lambda: len(seen) == 2)
    assert seen == [(1.0, "all"), (42, threading.current_thread())]
    assert threads[0] is not threading.current_thread()


def test_error_reaches_on_error(qtbot: QtBot) -> None:
    errors: list[BaseException] = []
    owner = QObject()

    def work(progress: jobs.Progress) -> None:
        raise ValueError("no")

    jobs.run(owner, work, lambda r: fail(AssertionError()), errors.append)
    qtbot.waitUntil(lambda: bool(errors))
    assert isinstance(errors[0], ValueError)


def test_cancel_stops_the_work_and_nothing_is_called_back(qtbot: QtBot) -> None:
    started, ended = threading.Event(), []
    owner = QObject()

    def work(progress: jobs.Progress) -> None:
        started.set()
        try:
            while True:
                progress(0.5, "")
        except Cancelled:
            ended.append(True)
            raise

    job = jobs.run(owner, work, fail, fail)  # type: ignore[arg-type]
    assert started.wait(60)
    job.cancel()
    qtbot.waitUntil(lambda: bool(ended) and not jobs.busy())


def test_the_latest_job_of_a_key_wins(qtbot: QtBot) -> None:
    gate, results = threading.Event(), []
    owner = QObject()

    def work(value: int, progress: jobs.Progress) -> int:
        gate.wait(60)
        return value

    for value in range(5):
        jobs.run(owner, partial(work, value), results.append, fail, key="same")
    gate.set()
    qtbot.waitUntil(lambda: not jobs.busy())
    assert results == [4]


def test_nothing_is_called_back_once_the_owner_is_gone(qtbot: QtBot) -> None:
    gate = threading.Event()
    owner = QObject()
    jobs.run(owner, lambda progress: gate.wait(60), fail, fail)  # type: ignore[arg-type]
    with qtbot.waitSignal(owner.destroyed):
        owner.deleteLater()
    gate.set()
    qtbot.waitUntil(lambda: not jobs.busy())


@pytest.mark.parametrize("fraction", [0.0, 0.5])
def test_reports_faster_than_the_eye_are_dropped(qtbot: QtBot, fraction: float) -> None:
    seen: list[float] = []
    owner = QObject()

    def work(progress: jobs.Progress) -> None:
        for _ in range(10_000):
            progress(fraction, "")

    jobs.run(owner, work, lambda r: None, fail, on_progress=lambda f, t: seen.append(f))
    qtbot.waitUntil(lambda: not jobs.busy())
    assert 1 <= len(seen) < 1000


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_outlives_the_application_ends_quietly(qapp: QApplication, fails: bool) -> None:
    job = jobs.Job(QObject(), fail, fail, None)
    seen: list[bool] = []

    def work(progress: jobs.Progress) -> None:
        delete(job)  # as Qt does at the application's end
        if fails:
            raise ValueError
        with pytest.raises(Cancelled):
            progress(1.0, "")
        seen.append(True)

    jobs._Task(job, work).run()
    assert seen == [True] * (not fails)
