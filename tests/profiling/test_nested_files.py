"""Files that are nested without end are as unreadable as any other damage."""

from __future__ import annotations

from pathlib import Path

from profiling import manifest
from profiling.events import Tail


def test_a_manifest_nested_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / manifest.NAME).write_text("[" * 200_000)
    assert manifest.read(tmp_path) is None


def test_an_event_nested_without_end_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text("[" * 200_000 + '\n{"event": "step"}\n')
    assert Tail(path).read() == [{"event": "step"}]
