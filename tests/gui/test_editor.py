from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton

from core.run_folder import RunRecord
from gui import editor
from gui.main_window import MainWindow
from gui.models import code_context
from gui.session import Document
from gui.settings import SETTINGS, MemorySettings, Settings
from gui.widgets.code import hunk_lines


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Editors that would have been started."""
    calls: list[list[str]] = []

    def start(program: str, arguments: list[str], folder: str) -> tuple[bool, int]:
        calls.append([program, *arguments])
        return True, 1

    monkeypatch.setattr(editor.QProcess, "startDetached", start)
    return calls


def test_a_file_name_is_one_argument_whatever_it_holds() -> None:
    odd = Path("/tmp/a b; rm -rf $(x).py")
    assert editor.command_line("code --goto {file}:{line}", odd, 3) == ["code", "--goto", f"{odd}:3"]


def test_nothing_opens_without_consent_and_consent_is_kept_per_folder(
    window: MainWindow, document: Document, settings: Settings, tmp_path: Path, started: list[list[str]]
) -> None:
    settings.set("editor/command", "edit {file} {line}")
    script = tmp_path / "train.py"
    script.write_text("x = 1\n")
    window.session.ask("open_source", str(script), 7)
    assert started == []
    box = window.findChild(QMessageBox)
    assert str(script) in box.text()
    next(b for b in box.buttons() if "trust" in b.text()).click()
    assert started == [["edit", str(script), "7"]]
    window.session.ask("open_source", str(script), 8)
    assert started[1] == ["edit", str(script), "8"]


def test_cancel_opens_nothing(
    window: MainWindow, document: Document, settings: Settings, tmp_path: Path, started: list[list[str]]
) -> None:
    (tmp_path / "train.py").write_text("")
    window.session.ask("open_source", "train.py", 1)  # beside the trace
    box = window.findChild(QMessageBox)
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert started == []


@pytest.mark.parametrize("command", ['code "{file}', "'", '"" {file}', "no-such-program {file}:{line}"])
def test_an_editor_that_cannot_be_started_is_named(
    window: MainWindow, document: Document, settings: Settings, tmp_path: Path, command: str
) -> None:
    settings.set("editor/command", command)
    settings.set("editor/allowed_folders", [str(tmp_path)])
    script = tmp_path / "train.py"
    script.write_text("x = 1\n")
    window.session.ask("open_source", str(script), 1)
    assert any(command in shown.text().replace("\u200b", "") for shown in window.banner.findChildren(QLabel))


@pytest.mark.parametrize("name", ["/etc/passwd", "../../etc/hosts.py", "gone.py", "\x00.py", "a.sh"])
def test_what_is_no_source_file_is_refused(
    window: MainWindow, document: Document, started: list[list[str]], name: str
) -> None:
    window.session.ask("open_source", name, 1)
    assert window.findChild(QMessageBox) is None
    assert window.banner.isVisible()
    assert started == []


def test_the_runs_own_copy_shows_the_line_and_its_neighbours(
    window: MainWindow, document: Document, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text("".join(f"    line {k}\n" for k in range(1, 30)))
    lines = code_context.around(copy, 14, (14,))
    assert [(line.number, line.text, line.marked) for line in lines][1:3] == [
        (13, "line 13", False),
        (14, "line 14", True),
    ]
    assert code_context.around(tmp_path / "gone.py", 3) == ()
    assert code_context.around(copy, 500) == ()
    run: Any = RunRecord(tmp_path, "r", "ok", None, 941_000.0, None, {}, {"/home/me/train.py": copy})
    document.run = run
    document.analysisChanged.emit()
    document.show_suggestion(0)
    page = window.current_page()
    assert page is not None

    from gui.widgets.code import CodeLines

    assert any("14  line 14" in view.toPlainText() for view in page.side.findChildren(CodeLines))
    assert "941\u202fµs" in [shown.text() for shown in page.findChildren(QLabel)]


def test_a_unified_diff_without_its_headers() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-d\n+e\n"
    assert hunk_lines(diff) == ["  a", "- b", "+ c", "…", "- d", "+ e"]


def test_settings_fall_back_to_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "s.ini"
    path.write_text("[files]\nrecent_max=many\nrecent=one\n[window]\nbottom_tab=rules\n")
    settings = Settings(QSettings(str(path), QSettings.Format.IniFormat))
    assert settings.get("files/recent_max") == 12
    assert settings.get("files/recent") == ["one"]
    assert settings.get("window/bottom_tab") == "rules"
    with pytest.raises(KeyError):
        settings.get("no/such")
    with pytest.raises(TypeError):
        settings.set("files/recent_max", "12")
    assert len({s.key for s in SETTINGS}) == len(SETTINGS)
    memory = MemorySettings()
    for setting in SETTINGS:
        memory.set(setting.key, setting.default)
        assert memory.get(setting.key) == setting.default


def test_a_card_offers_the_editor_only_where_the_file_is_at_hand(
    window: MainWindow, document: Document, tmp_path: Path
) -> None:
    document.show_suggestion(0)
    page = window.current_page()
    assert page is not None
    words = [b.text() for b in page.findChildren(QPushButton)]
    assert not any("in the editor" in w for w in words)  # it would end in an error
    assert "Choose the folder with the sources…" in words
    assert any(
        "train.py:14, which is not on this machine" in w.text().replace("\u200b", "") for w in page.findChildren(QLabel)
    )
    window.session.ask("open_source", "train.py", 14)  # from elsewhere: the error names the way that is there
    assert any("Choose the folder with the sources" in w.text() for w in window.banner.findChildren(QLabel))
    (tmp_path / "train.py").write_text("x = 1\n")  # beside the trace
    assert window.session.ask("has_source", document, "train.py")
