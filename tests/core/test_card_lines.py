"""Lists of slices name the exact line where a suggestion has found it, and only there."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from core.analysis import Analysis, analyze
from core.card_lines import CardLines
from core.importing import open_trace
from core.reporting.html import page
from core.reporting.sync_groups import sync_groups
from core.reporting.text import report
from core.run_folder import finder_for
from core.trace import Trace

Story = tuple[Trace, Analysis]


@pytest.fixture(scope="module")
def story() -> Story:
    """First station of the story: a copy under ``forward``, whose card has its line by the source beside it."""
    folder = Path(str(files("resources"))) / "samples"
    trace = open_trace(next(folder.glob("story_stage0_simulated*")))
    return trace, analyze(trace, source=finder_for(trace))


def test_the_list_of_waits_has_the_lines_of_the_cards(story: Story) -> None:
    trace, analysis = story
    sources = [s.source for s in analysis.suggestions if s.source is not None and s.source.exact]
    exact = {(source.function, source.line) for source in sources}
    groups, in_all = sync_groups(trace, analysis, finder_for(trace), 50)
    assert len(groups) == in_all
    places = {(g.source.function, g.source.line) for g in groups if g.source is not None}
    assert places <= exact
    for text in (report(trace, analysis), page(trace, analysis)):
        assert "stage0.py:26" not in text


def test_a_card_tells_the_line_of_what_is_called_inside_its_slices_in_the_same_function(story: Story) -> None:
    trace, analysis = story
    card = next(s for s in analysis.suggestions if s.source is not None and s.source.function == "forward")
    assert card.source is not None
    inside = int((trace.slices.parent_id == card.evidence[0].slices[0]).nonzero()[0][0])
    begin = replace(card.source, line=1, exact=False)
    lines = CardLines(trace, analysis.suggestions)
    assert lines.better(inside, begin) == card.source
    assert lines.better(inside, other := replace(begin, function="other")) == other
    assert lines.better(inside, exact := replace(begin, exact=True)) == exact
    assert lines.better(inside, None) is None
    doubtful = [replace(card, source=begin)]
    assert not CardLines(trace, doubtful).knows(inside)
