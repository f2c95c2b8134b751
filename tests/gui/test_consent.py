"""Own rules and sources of other machines: asked for, remembered, taken back, and seen in the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from core.analysis import Analysis
from core.suggestions import Outcome
from gui import own_rules, source_folders
from gui.helper_process import Helper
from gui.main_window import MainWindow
from gui.session import Document
from gui.settings import MemorySettings, Settings
from gui.settings_dialog import SettingsDialog
from gui.suggestion_body import BodyMaker
from tests.gui.conftest import training

OWN = """
from core.suggestions import Evidence, Fix, Rule, Suggestion

RULE = Rule(id="{id}", title="Every product")


def check(ctx):
    ids = tuple(i for i in range(len(ctx.trace.slices)) if ctx.trace.name(i) == "aten::mm")
    seen = (Evidence("Products", len(ids), "", ids),)
    return [Suggestion(RULE.id, "{{count}} products, says my rule", {{"count": len(ids)}}, occurrences=4, evidence=seen,
                       fix=Fix("Fewer."))]
"""
SCRIPT = """def main():
    for step in range(4):
        weighted_nll()


def other():
    pass





def weighted_nll(loss):
    print("nothing")
    value = loss.item()
    return value
"""


@pytest.fixture
def rules(settings: Settings) -> Path:
    """A folder of own rules beside the settings: a good one and a broken one."""
    folder = own_rules.folder_of(settings)
    assert folder is not None
    folder.mkdir()
    (folder / "good.py").write_text(OWN.format(id="every-product"))
    (folder / "broken.py").write_text("def check(:\n")
    return folder


def opened(qtbot: QtBot, window: MainWindow, path: Path) -> Document:
    before = len(window.session.documents)
    window.session.open([path])
    qtbot.waitUntil(lambda: len(window.session.documents) > before, timeout=60_000)
    return window.session.documents[-1]


def diagnosed(qtbot: QtBot, window: MainWindow, document: Document) -> Analysis:
    qtbot.waitUntil(lambda: not window.opener.busy, timeout=60_000)
    assert document.analysis is not None
    return document.analysis


def question(window: MainWindow) -> QMessageBox | None:
    shown = [box for box in window.findChildren(QMessageBox) if box.isVisible()]
    return shown[0] if shown else None


def answer(window: MainWindow, words: str) -> None:
    box = question(window)
    assert box is not None
    next(b for b in box.buttons() if b.text() == words).click()


def test_own_rules_run_only_after_the_user_said_so(
    qtbot: QtBot, window: MainWindow, settings: Settings, rules: Path, tmp_path: Path
) -> None:
    document = opened(qtbot, window, training().write(tmp_path / "train.json"))
    box = question(window)
    assert box is not None
    assert str(rules) in box.text()
    assert "broken.py, good.py" in box.informativeText()
    assert "every-product" not in {r.rule.id for r in diagnosed(qtbot, window, document).rules}
    answer(window, "Run these rules")
    results = {r.rule.id: r for r in diagnosed(qtbot, window, document).rules}
    assert results["every-product"].outcome is Outcome.FOUND
    assert results["broken"].outcome is Outcome.FAILED
    assert "SyntaxError" in results["broken"].reason
    assert results["scalar-read-back"].outcome is Outcome.FOUND  # ours are not held up by the broken one
    assert own_rules.allowed(settings) == (rules,)


def test_the_process_that_diagnoses_gets_what_is_allowed(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "train.py").write_text(SCRIPT)
    path = training().write(tmp_path / "train.json")
    made = Helper(lambda ended: None)
    try:
        assert made.wait_ready(lambda fraction, what: None)
        made.open(path, None, lambda fraction, what: None)
        parts: list[Analysis] = []
        found = made.analyze(parts.append, lambda fraction, what: None, (rules,), (tmp_path / "sources",))
    finally:
        made.kill()
    assert {r.rule.id: r.outcome for r in found.rules}["every-product"] is Outcome.FOUND
    assert "every-product" not in {r.rule.id for r in parts[1].rules}  # ours come first
    source = next(s.source for s in found.suggestions if s.rule_id == "scalar-read-back")
    assert source is not None
    assert source.exact


def test_the_answer_is_kept_and_can_be_taken_back(
    qtbot: QtBot, window: MainWindow, settings: Settings, rules: Path, tmp_path: Path
) -> None:
    own_rules.decide(settings, allow=True)
    document = opened(qtbot, window, training().write(tmp_path / "train.json"))
    assert question(window) is None
    assert "every-product" in {r.rule.id for r in diagnosed(qtbot, window, document).rules}
    dialog = SettingsDialog(settings, window)
    assert dialog.rules.isChecked()
    dialog.rules.setChecked(False)
    dialog.accept()
    assert dialog.consent_changed
    window.session.ask("renew_sources")
    assert "every-product" not in {r.rule.id for r in diagnosed(qtbot, window, document).rules}
    assert own_rules.allowed(settings) == ()


def test_a_no_is_not_asked_again(
    qtbot: QtBot, window: MainWindow, settings: Settings, rules: Path, tmp_path: Path
) -> None:
    first = opened(qtbot, window, training().write(tmp_path / "train.json"))
    answer(window, "Do not run them")
    assert "every-product" not in {r.rule.id for r in diagnosed(qtbot, window, first).rules}
    own_rules.OwnRules(window.session, settings)._opened()  # as after the next start
    assert question(window) is None


def test_pictures_and_tests_without_a_file_know_no_rules() -> None:
    assert own_rules.folder_of(MemorySettings()) is None
    assert own_rules.files_of(MemorySettings()) == own_rules.allowed(MemorySettings()) == ()


def links(window: MainWindow, document: Document) -> dict[str, object]:
    analysis = document.analysis
    assert analysis is not None
    found = next(i for i, s in enumerate(analysis.suggestions) if s.rule_id == "scalar-read-back")
    body = BodyMaker(window.session, document, window).body(found, analysis.suggestions[found])
    return {link.text: link.run for link in body.source} | {"code": [line.text for line in body.code if line.marked]}


def test_sources_of_another_machine_are_read_where_the_user_says(
    qtbot: QtBot, window: MainWindow, settings: Settings, tmp_path: Path
) -> None:
    traces, sources = tmp_path / "traces", tmp_path / "mine" / "project"
    traces.mkdir()
    sources.mkdir(parents=True)
    (sources / "train.py").write_text(SCRIPT)
    document = opened(qtbot, window, training().write(traces / "train.json"))
    diagnosed(qtbot, window, document)
    before = links(window, document)
    assert before["code"] == []
    choose = before["Choose the folder with the sources…"]
    assert callable(choose)
    choose()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    assert dialog.windowTitle() == "Choose the folder that holds train.py"
    dialog.fileSelected.emit(str(tmp_path / "mine" / "project"))
    dialog.close()
    diagnosed(qtbot, window, document)
    after = links(window, document)
    assert after["code"] == ["    value = loss.item()"]
    assert f"read from {sources / 'train.py'}" in after
    # another trace in the same folder, after the next start
    second = opened(qtbot, window, training().write(traces / "second.json"))
    diagnosed(qtbot, window, second)
    assert links(window, second)["code"] == ["    value = loss.item()"]
    # elsewhere a name without a folder means nothing
    third = opened(qtbot, window, training().write(tmp_path / "third.json"))
    diagnosed(qtbot, window, third)
    assert links(window, third)["code"] == []
    dialog_ = SettingsDialog(settings, window)
    dialog_.sources.list.item(0).setSelected(True)
    dialog_.sources.remove.click()
    dialog_.accept()
    assert dialog_.consent_changed
    window.session.ask("renew_sources")
    diagnosed(qtbot, window, document)
    assert links(window, document)["code"] == []


def test_a_folder_that_does_not_hold_the_file_is_refused_in_words(
    qtbot: QtBot, window: MainWindow, settings: Settings, document: Document, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with qtbot.waitSignal(window.session.errorRaised) as raised:
        window.session.ask("map_sources", document, "/home/me/train.py")
        dialog = window.findChild(QFileDialog)
        assert dialog is not None
        dialog.fileSelected.emit(str(tmp_path / "empty"))
    assert "does not hold /home/me/train.py" in str(raised.args[0])
    assert source_folders.known(settings) == ()
    dialog.close()


def test_a_mapping_keeps_the_part_of_the_path_that_differs(tmp_path: Path, settings: Settings) -> None:
    trace = training().python("/home/alice/proj/pkg/model.py(3): forward", 1, 5).build(tmp_path / "t.json")
    (tmp_path / "proj" / "pkg").mkdir(parents=True)
    (tmp_path / "proj" / "pkg" / "model.py").write_text("")
    made = source_folders.mapping_for(trace, "/home/alice/proj/pkg/model.py", tmp_path / "proj")
    assert made is not None
    assert (made.there, made.here) == ("/home/alice/proj", str(tmp_path / "proj"))
    assert made.fits(trace)
    source_folders.keep(settings, (made,))
    assert source_folders.roots(settings, trace) == (tmp_path / "proj",)
    assert source_folders.roots(settings, training().build(tmp_path / "u.json")) == ()
    settings.set(source_folders.KEY, ["no json", "[1, 2, 3]", "{}"])
    assert source_folders.known(settings) == ()


@pytest.mark.parametrize("why", ["link", "size", "binary"])
def test_a_file_that_is_there_but_is_not_read_is_refused_with_the_reason(
    window: MainWindow, settings: Settings, document: Document, tmp_path: Path, qtbot: QtBot, why: str
) -> None:
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    if why == "link":
        (tmp_path / "train.py").write_text(SCRIPT)
        (chosen / "train.py").symlink_to(tmp_path / "train.py")
    else:
        (chosen / "train.py").write_bytes(SCRIPT.encode() + (b"#" * 4_000_000 if why == "size" else b"\0\1\2"))
    with qtbot.waitSignal(window.session.errorRaised) as raised:
        window.session.ask("map_sources", document, "/home/me/train.py")
        dialog = window.findChild(QFileDialog)
        assert dialog is not None
        dialog.fileSelected.emit(str(chosen))
    words = {"link": "is a link that leads out of it", "size": "is too large", "binary": "is no text"}
    assert words[why] in str(raised.args[0])
    assert source_folders.known(settings) == ()
    dialog.close()


def test_a_folder_chosen_later_is_looked_into_first(
    qtbot: QtBot, window: MainWindow, settings: Settings, tmp_path: Path
) -> None:
    wrong, right = tmp_path / "old" / "proj", tmp_path / "new" / "proj"
    for folder, script in ((wrong, "import os\n"), (right, SCRIPT)):
        folder.mkdir(parents=True)
        (folder / "train.py").write_text(script)
    made = training()
    for event in made.events:
        event["name"] = str(event.get("name", "")).replace("train.py(", "/home/me/proj/train.py(")
    document = opened(qtbot, window, made.write(tmp_path / "train.json"))
    diagnosed(qtbot, window, document)
    for words, folder in (("Choose the folder with the sources…", wrong), ("Choose another folder…", right.parent)):
        choose = links(window, document)[words]
        assert callable(choose)
        choose()
        dialog = window.findChild(QFileDialog)
        assert dialog is not None
        dialog.fileSelected.emit(str(folder))
        dialog.close()
        dialog.setParent(None)
        diagnosed(qtbot, window, document)
    after = links(window, document)
    assert after["code"] == ["    value = loss.item()"]
    assert f"read from {right / 'train.py'}" in after
