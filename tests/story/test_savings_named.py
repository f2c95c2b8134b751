"""No card saves more than the time of what it names: the slices of its effects and the device work below them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.analysis import analyze
from core.importing import open_trace
from core.intervals import union
from core.suggestions import Suggestion
from core.trace import Trace
from tests.story.program import ARTICLE, SMALL, Size
from tests.story.write_samples import sample_path
from tests.trace_builder import TraceBuilder


def named_ns(trace: Trace, suggestion: Suggestion, from_ns: int) -> int:
    """Time that a suggestion's effects name, from an instant on; what lies in one another counts once."""
    slices = trace.slices
    ids = {i for effect in suggestion.effects for i in effect.slices}
    below = (trace.links.device_work_of(i, int(slices.subtree_end[i])).tolist() for i in ids)
    every = np.array(sorted(ids.union(*below)), dtype=np.int64)
    every = every[slices.start_ns[every] >= from_ns]
    total = 0
    for track in np.unique(slices.track_id[every]):
        mine = every[slices.track_id[every] == track]
        total += int(union(slices.start_ns[mine], trace.end_ns[mine]).dur_ns.sum())
    return total


def savings(path: Path) -> list[tuple[str, int, float]]:
    """Rule, saving and time named, ns per step, of each card of a trace that says what it saves."""
    trace = open_trace(path)
    analysis = analyze(trace)
    steps = np.flatnonzero(analysis.figures.step_figures.counted)  # a saving is one of these, on the mean
    found = [s for s in analysis.suggestions if s.effects and s.saving.ns]
    first = int(analysis.figures.steps.start_ns[steps[0]])
    return [(s.rule_id, s.saving.ns or 0, named_ns(trace, s, first) / len(steps)) for s in found]


@pytest.mark.parametrize(("size", "stage"), [(SMALL, 0), (SMALL, 7), (ARTICLE, 2)])
def test_no_card_of_a_sample_saves_more_than_it_names(size: Size, stage: int) -> None:
    found = savings(sample_path(stage, size))
    assert found
    for rule, saved, named in found:
        assert saved <= 1.02 * named, rule


def test_no_card_on_a_cpu_saves_more_than_its_operators_usually_take(tmp_path: Path) -> None:
    """A hand-written log-softmax, one operator of which the system held up for 5 of 60 ms."""
    builder, at = TraceBuilder(gpu=None), 0.0
    for number in range(6):
        held = 5000.0 if number == 3 else 0.0
        builder.step(number, at, 60_200 + held).op("aten::mm", at + 10, 60_000)
        where = at + 60_020
        for name in ("aten::exp", "aten::sum", "aten::log", "aten::sub"):
            took = 20.0 + (held if name == "aten::sum" else 0.0)
            builder.op(name, where, took, Input_Dims=[[32, 10]])
            where += took + 5
        at += 60_210 + held
    (row,) = [row for row in savings(builder.write(tmp_path / "trace.json")) if row[0] == "hand-written-composite-op"]
    assert 0 < row[1] <= 80_000
