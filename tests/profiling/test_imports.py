"""Waiting for a module does not take it from another tool that waits for it, too."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from profiling._child_hooks import when_imported


class OtherTool:
    """Calls back after a module was executed, by an attribute of its loader, as tracers and coverage tools do."""

    def __init__(self, name: str, told: list[str]) -> None:
        self._name, self._told = name, told

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find it through those that come after, and watch its loader."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec: Any = importlib.util.find_spec(name)
        loader = spec.loader

        def exec_module(module: Any) -> None:
            del loader.exec_module
            loader.exec_module(module)
            self._told.append("other")

        loader.exec_module = exec_module
        return spec


def test_two_that_wait_are_both_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waited_for_by_two.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[str] = []
    sys.meta_path.insert(0, OtherTool("waited_for_by_two", told))  # type: ignore[arg-type]
    when_imported("waited_for_by_two", lambda module: told.append(f"ours {module.value}"))
    module = importlib.import_module("waited_for_by_two")
    assert told == ["other", "ours 3"]
    assert "exec_module" not in vars(module.__spec__.loader)
