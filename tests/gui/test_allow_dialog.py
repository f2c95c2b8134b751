"""Allowing a finding from its card: reason, place and file, and remembered at the next run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from core.allow import Allowed, read_allow_file, scopes
from gui.allow_dialog import AllowDialog
from gui.panels.plan import PlanPanel
from gui.session import ALLOWED
from tests.gui.test_loop import (  # noqa: F401 - a fixture
    SCRIPT,
    SUGGESTION,
    FakeCapture,
    finish,
    loop,
    make_run,
    shown,
)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return make_run(tmp_path / "runs" / "1", project / "train.py")


def dialog_of(window, document, index: int = 0) -> AllowDialog:
    document.show_suggestion(index)
    page = window.current_page()
    next(b for b in page.findChildren(QPushButton) if b.text() == "Allow…").click()
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, AllowDialog) and w.isVisible())
    assert dialog.parent() is window  # else it does not hold the window up, and can lie behind it
    return dialog


def test_scopes_go_from_the_function_to_everywhere():
    found = scopes(replace(SUGGESTION, values={"op_path": "aten::item"}), "meant")
    assert list(found) == ["function", "line", "op", "rule"]
    assert found["line"] == Allowed(SUGGESTION.rule_id, "meant", file="train.py", line=5)
    assert all(entry.fits(replace(SUGGESTION, values={"op_path": "aten::item"})) for entry in found.values())
    assert list(scopes(replace(SUGGESTION, source=None))) == ["rule"]


def test_a_place_is_named_as_people_write_it_and_kept_as_the_trace_has_it(window, loop, run_folder):  # noqa: F811
    path = "aten::to > aten::copy_ [## all#all:wait ##]"
    values = {"op_path": path, "range": "## all2all:wait ##"}
    document = shown(window, run_folder, 1_000_000.0, (replace(SUGGESTION, source=None, values=values),))
    dialog = dialog_of(window, document)
    assert dialog.places.button(0).text() == "Below the operators aten::to > aten::copy_, in the range all2all:wait"
    assert f'op = "{path}"' in dialog.entry.text()
    dialog.reject()


def test_entry_is_added_beside_the_code_when_asked(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    path = tmp_path / "project" / "steplens-allow.toml"
    dialog = dialog_of(window, document)
    assert dialog.path == path
    assert not dialog.add.isEnabled()  # a reason is asked for
    dialog.reason.setText("checked once per epoch")
    dialog.places.button(1).setChecked(True)
    assert "line = 5" in dialog.entry.text()
    assert not path.exists()
    dialog.add.click()
    (entry,) = read_allow_file(path)
    assert entry == Allowed(SUGGESTION.rule_id, "checked once per epoch", file="train.py", line=5)
    assert document.suggestion_state[SUGGESTION.key] == ALLOWED
    assert document.dismiss_reason[SUGGESTION.key] == "checked once per epoch"


def test_a_reason_of_several_lines_is_one_line_of_the_file(window, loop, run_folder, tmp_path):  # noqa: F811
    dialog = dialog_of(window, shown(window, run_folder, 1_000_000.0))
    dialog.reason.setText(" shown\n\tevery <b>step</b> \n")
    dialog.add.click()
    (entry,) = read_allow_file(tmp_path / "project" / "steplens-allow.toml")
    assert entry.reason == "shown every <b>step</b>"


def test_what_is_allowed_already_is_not_added_twice(window, loop, run_folder, tmp_path):  # noqa: F811
    path = tmp_path / "project" / "steplens-allow.toml"
    path.write_bytes(b'# ours\r\n[[allow]]\r\nrule = "control-*"\r\nreason = "x"\r\n')
    before = path.read_bytes()
    document = shown(window, run_folder, 1_000_000.0)
    dialog = dialog_of(window, document)
    dialog.reason.setText("meant")
    dialog.add.click()
    assert path.read_bytes() == before
    assert "allows it already" in window.session.status
    assert list(document.dismiss_reason.values()) == ["x"]  # the card says what the file does


def test_a_run_of_ones_own_remembers_what_is_allowed(window, loop, run_folder, tmp_path):  # noqa: F811
    path = tmp_path / "project" / "steplens-allow.toml"
    path.write_text('[[allow]]\nrule = "control-*"\nfile = "train.py"\nreason = "on purpose"\n')
    capture = FakeCapture(tmp_path / "runs" / "2")
    capture.own = False
    window.session.provide("capture", lambda: capture)
    assert not shown(window, run_folder, 1_000_000.0).suggestion_state  # a folder from elsewhere opens no file
    capture.own = True
    document = shown(window, run_folder, 1_000_000.0)
    assert document.suggestion_state[SUGGESTION.key] == ALLOWED
    assert document.dismiss_reason[SUGGESTION.key] == "on purpose"


def test_for_a_changed_copy_the_file_lies_beside_the_users_script(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    copy = loop.project_of(loop.run_of(document)).folder / "copies" / "1"
    copy.mkdir(parents=True)
    (copy / "train.py").write_text(SCRIPT)
    second = shown(window, make_run(capture.folder, copy / "train.py"), 900_000.0)
    dialog = dialog_of(window, second)
    assert dialog.path == tmp_path / "project" / "steplens-allow.toml"
    dialog.reject()


def test_a_saved_report_leaves_out_what_is_allowed(window, loop, run_folder, tmp_path, monkeypatch):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    document.set_suggestion_state(0, ALLOWED, "on purpose")
    out, proposed = tmp_path / "out.html", []

    def choose(_parent, _title, path, _filter):
        proposed.append(path)
        return str(out), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    window.save_report()
    finish()
    assert proposed[0].startswith(str(tmp_path / "project"))  # not in the run's own folder
    plan, _, apart = out.read_text().partition("Not counted in the plan")
    assert "allowed: on purpose" in apart
    assert SUGGESTION.title not in plan


def test_an_allowed_card_leaves_bars_and_count_and_says_that_it_is_allowed(window, loop, run_folder):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    panel = window.pages[document].findChild(PlanPanel)
    document.show_suggestion(0)
    assert panel.at.text() == "1 of 1"
    document.set_suggestion_state(0, ALLOWED, "on purpose")
    assert panel._cards[0].mark.text() == "allowed: on purpose"
    assert panel.at.text() == ""
