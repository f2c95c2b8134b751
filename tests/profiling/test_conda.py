"""Environments of conda, mamba and pixi are offered wherever those keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiling.interpreters import find_interpreters


def make(folder: Path, *, torch: bool = True) -> str:
    """An environment as conda lays it out; returns its interpreter."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "conda-meta").mkdir()
    python = folder / "bin" / "python3.11"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    (folder / "bin" / "python").symlink_to("python3.11")
    if torch:
        (packages / "torch").mkdir()
        (packages / "torch" / "version.py").write_text("__version__ = '2.5.1.post3'\n")
    return str(folder / "bin" / "python")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody's."""
    for name in ("CONDA_PREFIX", "CONDA_EXE", "MAMBA_EXE", "MAMBA_ROOT_PREFIX", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")
    (tmp_path / "home" / ".conda").mkdir(parents=True)
    return tmp_path / "home"


def found(script: str = "") -> dict[str, str]:
    """Interpreters of the places of conda: path to origin."""
    return {i.path: i.origin for i in find_interpreters(script) if i.origin in ("conda", "beside the script")}


def test_all_that_conda_knows_of(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = make(tmp_path / "data" / "my env")
    (home / ".conda" / "environments.txt").write_text(f"{tmp_path}/data/my env\n/gone/env\n\n")
    expected = {
        elsewhere, make(home / "miniforge3"), make(home / "miniforge3" / "envs" / "train"),
        make(home / ".conda" / "envs" / "own"), make(home / ".local" / "share" / "mamba" / "envs" / "m"),
        make(tmp_path / "prefix" / "envs" / "p"), make(tmp_path / "tools" / "conda"),
    }  # fmt: skip
    monkeypatch.setenv("MAMBA_ROOT_PREFIX", str(tmp_path / "prefix"))
    monkeypatch.setenv("CONDA_EXE", str(tmp_path / "tools" / "conda" / "bin" / "conda"))
    monkeypatch.setenv("MAMBA_EXE", "mamba")
    assert found().keys() >= expected
    assert "/gone/env/bin/python" not in found()


def test_environments_of_the_project_come_first(home: Path) -> None:
    script = home / "project" / "train.py"
    near = [make(script.parent / ".conda"), make(script.parent / ".pixi" / "envs" / "gpu")]
    make(home / "miniforge3")
    script.write_text("")
    assert [i.path for i in find_interpreters(str(script))][:2] == near
    assert [found(str(script))[path] for path in near] == ["beside the script"] * 2
