"""The window stays in use while changes of code are derived: the GUI thread never runs the fixer."""

from __future__ import annotations

import difflib
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from core.fixes.source_text import SourceText
from gui.fix_dialog import FixDialog
from gui.session import CHOSEN, DONE
from gui.widgets.code import UnifiedDiff
from tests.gui.test_loop import FakeCapture, finish, loop, make_run, shown  # noqa: F401 - a fixture
from tests.gui.test_loop_rounds import ASSERT, BY_HAND, INDEX, SCRIPT, plan_of

FORM = replace(ASSERT, rule_id="explicit-synchronize")  # has rewrites, and none of them fits here


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT + 200 * "# a long file\n")
    return make_run(tmp_path / "runs" / "1", project / "train.py")


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Threads that parse or compare sources."""
    threads: list[int] = []
    parse, compare = SourceText.__init__, difflib.SequenceMatcher.__init__

    def parsed(self: SourceText, text: str) -> None:
        threads.append(threading.get_ident())
        parse(self, text)

    def compared(self: difflib.SequenceMatcher, *args: object, **named: object) -> None:
        if len(args) > 1 and isinstance(args[1], list) and len(args[1]) > 50:  # not the few lines of a widget
            threads.append(threading.get_ident())
        compare(self, *args, **named)

    monkeypatch.setattr(SourceText, "__init__", parsed)
    monkeypatch.setattr(difflib.SequenceMatcher, "__init__", compared)
    return threads


def test_cards_ticks_dialogs_and_runs_never_derive_in_the_gui_thread(window, loop, run_folder, tmp_path, at_work):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (ASSERT, INDEX, BY_HAND))
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    panel = plan_of(window)
    document.show_suggestion(0)
    assert not panel.findChildren(UnifiedDiff)  # it says that it is at work, and goes on
    finish()
    assert any("_assert_async" in view.toPlainText() for view in panel.findChildren(UnifiedDiff))
    for card in panel._cards:
        card.tick.click()
    finish()
    panel.apply.click()
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, FixDialog))
    assert not dialog.copy_button.isEnabled()
    finish()
    dialog.copy_button.click()
    finish()
    assert len(capture.specs) == 1
    loop.apply_to_own_file(document, dialog.joint)
    loop.undo_last()
    assert at_work
    assert threading.get_ident() not in at_work


def test_a_tick_made_too_early_becomes_done_where_no_change_can_be_derived(window, loop, run_folder):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (FORM,))
    plan_of(window)._cards[0].tick.click()
    assert document.suggestion_state == {FORM.key: CHOSEN}
    finish()
    assert document.suggestion_state == {FORM.key: DONE}


def test_a_dialog_that_is_closed_calls_its_work_off(window, loop, run_folder):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (ASSERT, INDEX))
    dialog = FixDialog(loop, document, [0, 1])
    job = dialog._job
    dialog.reject()
    assert job is not None
    assert job.cancelled
    finish()


def test_another_run_beside_the_trace_brings_another_change(window, loop, run_folder, tmp_path):  # noqa: F811
    """What was derived from one run's sources does not stand for those of another."""
    document = shown(window, run_folder, 1_000_000.0, (ASSERT,))
    assert loop.proposal(document, 0).pending
    finish()
    assert loop.proposal(document, 0).edit is not None
    document.run_folder = make_run(tmp_path / "runs" / "7", tmp_path / "project" / "train.py")
    assert loop.proposal(document, 0).pending
    finish()
