"""Losses of two runs are compared step by step, whichever steps each of them recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from core.results import compare_results
from core.run_folder import ParametersAt, RunRecord, read_run

RUN = RunRecord(Path("run"), "train.py", "ok", None, None, None)


def run_of(values: dict[int, float], **others: object) -> RunRecord:
    return replace(RUN, losses=tuple(values.values()), loss_steps=tuple(values), **others)


def curve(*ranges: range) -> dict[int, float]:
    return {step: 1.0 / (1 + step) for steps in ranges for step in steps}


def test_windows_at_other_places_are_left_out():
    found = compare_results(run_of(curve(range(10), range(14, 30))), run_of(curve(range(16), range(20, 40))))
    assert (found.status, found.first, found.last) == ("same", None, 29)
    assert found.compared == 10 + 2 + 10
    assert found.left_out == 30 - found.compared


def test_the_first_step_where_they_part_is_that_of_the_trace():
    other = {step: loss * (1.5 if step >= 21 else 1.0) for step, loss in curve(range(30)).items()}
    found = compare_results(run_of(curve(range(10), range(14, 30))), run_of(other))
    assert (found.status, found.first) == ("differs", 21)
    assert found.largest == pytest.approx(1 / 3)


def test_several_backward_passes_of_a_step():
    old = replace(RUN, losses=(1.0, 2.0, 3.0, 4.0), loss_steps=(0, 0, 1, 1))
    new = replace(RUN, losses=(1.0, 2.0, 3.0, 5.0), loss_steps=(0, 0, 1, 1))
    found = compare_results(old, new)
    assert (found.status, found.first, found.compared, found.left_out) == ("differs", 1, 4, 0)


def test_an_older_run_is_compared_up_to_the_first_gap():
    older = replace(RUN, losses=tuple(curve(range(20)).values()))
    found = compare_results(older, run_of(curve(range(8), range(12, 20))))
    assert (found.status, found.compared) == ("same", 8)


def test_nothing_to_compare():
    assert compare_results(None, RUN).status == "unknown"
    assert compare_results(RUN, run_of(curve(range(3)))).status == "unknown"
    assert compare_results(run_of(curve(range(3))), run_of(curve(range(5, 8)))).status == "unknown"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"step": 4, "sums": [[1.0, 2.0]]}, ParametersAt(4, ((1.0, 2.0),))),
        ({"step": 4, "reason": "recorded"}, ParametersAt(4, None, "recorded")),
        ({"step": "4"}, None),
        ([], None),
    ],
)
def test_what_a_file_says(tmp_path, given, expected):
    (tmp_path / "run.json").write_bytes(orjson.dumps({"format": "steplens.run/1"}))
    values = {"format": "steplens.losses/1", "values": [1, 2], "steps": [0, 3], "recorded": True}
    (tmp_path / "losses.json").write_bytes(orjson.dumps({**values, "parameters_after": given}))
    run = read_run(tmp_path)
    assert run is not None
    assert (run.loss_steps, run.losses_recorded, run.parameters_at) == ((0, 3), True, expected)
    (tmp_path / "losses.json").write_bytes(orjson.dumps({**values, "steps": [0, "x"]}))
    run = read_run(tmp_path)
    assert run is not None
    assert run.loss_steps is None
