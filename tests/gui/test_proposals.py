"""Every station of the shipped story has a diff of the example's own code, or says why there is none."""

from __future__ import annotations

from functools import cache

import pytest

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.run_folder import finder_for
from core.trace import Trace
from gui.panels import tour
from gui.proposals import proposal_for


@cache
def opened(stage: int) -> tuple[Trace, Analysis]:
    trace = open_trace(tour.FOLDER / f"story_stage{stage}_simulated.json.gz")
    return trace, analyze(trace, source=finder_for(trace))


@pytest.mark.parametrize(
    ("rule", "file", "gone", "new"),
    [
        (
            "float-batch-copied",
            "common.py",
            "/ 255.0 - 0.5) / 0.5",
            "torch.add(-1.0, images, alpha=2 / 255)",
        ),
        (
            "compile-without-gain",
            "stage7.py",
            "torch.compile(nn.Cross",
            "lambda device: nn.CrossEntropyLoss().to(device)",
        ),
    ],
)
def test_the_last_stations_have_a_diff(qapp: object, rule: str, file: str, gone: str, new: str) -> None:
    trace, analysis = opened(7)
    found = next(s for s in analysis.suggestions if s.rule_id == rule)
    edit = proposal_for(None, found, trace).edit
    assert edit is not None
    assert edit.path.name == file
    assert any(gone in line for line in edit.diff.splitlines() if line.startswith("-"))
    assert any(new in line for line in edit.diff.splitlines() if line.startswith("+"))


def test_the_others_say_why_there_is_an_example(qapp: object) -> None:
    trace, analysis = opened(7)
    for suggestion in analysis.suggestions:
        found = proposal_for(None, suggestion, trace)
        assert found.edit is not None or len(found.reason) > 20
        assert "not recorded here" not in found.reason or suggestion.source is None
