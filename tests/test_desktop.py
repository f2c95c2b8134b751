"""The desktop entry is written where desktops look, starts this program, and goes away again."""

from __future__ import annotations

import configparser
import shlex
import sys
from pathlib import Path

import pytest

from gui import desktop


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(desktop, "refresh", lambda home: None)
    return tmp_path


def test_install_and_uninstall(home: Path) -> None:
    paths = desktop.install()
    assert all(p.is_file() and home in p.parents for p in paths)
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(home / "applications" / "steplens.desktop", encoding="utf-8")
    command = shlex.split(parser["Desktop Entry"]["Exec"])
    assert Path(command[0]) == Path(sys.executable)
    assert Path(command[1]).name == "main.py"
    assert Path(command[1]).is_file()
    assert command[2] == "%F"
    assert sorted(desktop.uninstall()) == sorted(paths)
    assert not any(p.exists() for p in paths)
    assert desktop.uninstall() == []


def test_odd_paths_are_quoted() -> None:
    text = desktop.quote(Path('/home/a "b" $c/100%/x'))
    assert text.startswith('"')
    assert "%%" in text
    assert '\\\\"' in text
    assert "\\\\$" in text


def test_wrong_arguments() -> None:
    assert desktop.main([]) == 2
