"""The trace of a script that failed says so, and gives no advice on how to record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from core.reporting import html
from core.reporting.json import document as values_of
from core.reporting.text import report
from core.run_folder import read_run
from gui.main_window import MainWindow
from gui.session import Document
from gui.statusbar import things_to_know
from tests.gui.conftest import training
from tests.trace_builder import TraceBuilder

TITLE = "AttributeError: 'Tensor' object has no attribute 'shap'"


def opened(folder: Path, state: str = "failed", kind: str = "own") -> Document:
    folder.mkdir()
    TraceBuilder(gpu=None, with_stack=1).python("train.py(31): main", 0, 200).op("aten::mm", 0, 100).build(
        folder / "trace.json"
    )
    failure = {
        "title": TITLE,
        "frames": [{"file": "/home/me/train.py", "line": 31, "function": "main", "users": True}],
    }
    content = {
        "format": "steplens.run/1",
        "name": "train.py",
        "state": state,
        "steps": {"count": 0, "recorded": []},
        "failure": failure if state == "failed" else None,
        "traces": [{"path": "trace.json", "kind": kind, "left_out": ["memory", "shapes"]}],
    }
    (folder / "run.json").write_text(json.dumps(content))
    document = Document(open_trace(folder / "trace.json"))
    document.run, document.run_folder = read_run(folder), folder
    document.set_analysis(analyze(document.trace))
    return document


def said(document: Document) -> str:
    """All that is said of a trace in words, without a window."""
    analysis: Any = document.analysis
    rules = [f"{r.reason} {[s.title + s.fix.summary for s in r.suggestions]}" for r in analysis.rules]
    return "\n".join([report(document.trace, analysis), *things_to_know(document), *rules])


def test_a_replay_that_fails_is_told_everywhere(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("no time at all")

    monkeypatch.setattr("core.replay.ahead.Replay", broken)
    training().build(tmp_path / "t.json")
    window.session.open([tmp_path / "t.json"])
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy)
    document, page = window.session.documents[0], window.current_page()
    analysis: Any = document.analysis
    sentence = page.band("verdict").sentence
    qtbot.waitUntil(lambda: "no time at all" in sentence.text())  # painted after the last part has come
    assert "replay" in window.banner.title.text()
    assert "ZeroDivisionError: no time at all" in window.banner.detail.text()
    for words in (report(document.trace, analysis), html.page(document.trace, analysis)):
        assert "no time at all" in words
        assert "all savings are missing" in " ".join(words.split())
    values = values_of(document.trace, analysis)
    assert values["further"]["failed"]["replay"].startswith("ZeroDivisionError")
    assert values["summary"]["sustained_step_us"] is None
    assert caplog.messages
    assert not any(record.exc_info for record in caplog.records)  # a traceback only where it is asked for


@pytest.mark.parametrize("state", ["failed", "stopped", "ok"])
def test_a_run_of_its_own_is_not_told_how_to_record(qapp: object, tmp_path: Path, state: str) -> None:
    document = opened(tmp_path / "run", state)
    words = said(document)
    assert "prof.step()" not in words
    assert "schedule" not in words
    assert "record_shapes=True" not in words.replace("(record_shapes=True).", "")
    assert ("AttributeError in train.py:31 after 0 steps" in words) is (state == "failed")
    assert "memory, shapes, though chosen" in " ".join(words.split())


def test_a_trace_of_the_scripts_own_profiler_is(qapp: object, tmp_path: Path) -> None:
    assert "prof.step()" in said(opened(tmp_path / "run", "ok", "foreign"))


def test_the_trace_says_on_top_how_its_script_ended(window: MainWindow, tmp_path: Path) -> None:
    document = opened(tmp_path / "run")
    window.session.add_document(document)
    page: Any = window.current_page()
    bar = page.band("ended")
    assert bar.isVisible()
    assert "AttributeError in train.py:31 after 0 steps" in bar.accessibleName()
    assert "prof.step()" not in page.band("verdict").sentence.text()
    bar.show_error.click()
    assert window.banner.isVisible()
    assert TITLE in window.banner.title.text()
    assert "train.py:31" in window.banner.detail.text()


def test_any_other_trace_has_no_such_line(window: MainWindow, tmp_path: Path) -> None:
    window.session.add_document(opened(tmp_path / "run", "ok"))
    page: Any = window.current_page()
    assert page.band("ended").isHidden()
