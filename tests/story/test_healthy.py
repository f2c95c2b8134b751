"""On healthy programs nothing worth one percent of the step is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
from core.importing import open_trace
from core.suggestions import Outcome
from tests.simulator import simulate
from tests.story.healthy import PROGRAMS

SHOWN_PCT = 1.0  # what the sidebar shows unasked


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("stacks", [True, False])
def test_nothing_is_suggested(tmp_path: Path, name: str, stacks: bool) -> None:
    program = PROGRAMS[name]
    run = simulate(lambda m, number: program(m), 5, warmup=3, stacks=stacks, sustained=False)
    analysis = analyze(open_trace(run.write(tmp_path / "trace.json")))
    assert not [r for r in analysis.rules if r.outcome is Outcome.FAILED]
    loud = [
        (s.rule_id, s.headline, s.saving.pct)
        for s in analysis.suggestions
        if not s.informational and ((s.saving.pct or 0.0) >= SHOWN_PCT or s.severity != "low")
    ]
    assert loud == []
    assert analysis.plan == ()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_only_notes_about_the_recording_are_left(tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name]
    run = simulate(lambda m, number: program(m), 5, warmup=3, sustained=False)
    analysis = analyze(open_trace(run.write(tmp_path / "trace.json")))
    notes = {s.rule_id for s in analysis.suggestions if s.informational}
    assert notes <= {"data-not-recorded", "enqueue-time", "dominant-kernel"}
