"""The table of the story, as printed in docs/guided-loop.md: every prediction held, and every fault is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import story_table


def test_every_prediction_held(capsys: pytest.CaptureFixture[str]) -> None:
    story_table.main()
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in rows[2:]] == [str(stage) for stage in range(7)]
    assert all(row[8].startswith("held") for row in rows[3:])
    assert all(".py:" in row[9] for row in rows[3:])
    assert [row[5] for row in rows[2:]] == ["6", "4", "2", "0", "0", "0", "0"]
    printed = (Path(__file__).parents[2] / "docs" / "guided-loop.md").read_text("utf-8")
    for line in lines:
        assert line in printed.splitlines(), "docs/guided-loop.md shows another table"
