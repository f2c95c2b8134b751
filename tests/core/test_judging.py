"""Runs of the same code are measurements of one thing: no change within their difference is called one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

import core.compare
from core.compare import compare
from core.judging import is_busy, judge, noise_of
from core.project import Figures, Iteration, Project, project_folder
from core.run_folder import RunRecord, read_run
from core.same_program import ran_same_code
from tests.core.reporting.cases import SUGGESTION, training, with_suggestions


def round_of(number: int, wall: float, recorded: float, **others) -> Iteration:
    figures = Figures(
        "x", recorded, wall, recorded, spread_pct=others.pop("spread", None), error_pct=others.pop("error", None)
    )
    return Iteration(number, f"/runs/{number}", 1.0, figures=figures, **others)


FIRST = round_of(0, 100.0, 110.0)
AGAIN = round_of(3, 60.0, 70.0, parent=0, again=0)
FIXED = round_of(1, 70.0, 80.0, parent=0, copy="/copies/1", predicted_ns=70.0)


def test_a_change_within_what_the_same_code_differs_by_is_none():
    assert judge(FIRST, FIXED, (FIRST, FIXED)).is_gain is True  # nothing else is known
    found = judge(FIRST, FIXED, (FIRST, FIXED, AGAIN))
    assert (found.outcome, found.reasons, found.is_gain) == ("unclear", ("repeat",), None)
    assert (found.before_ns, found.baseline) == (80.0, (0, 3))
    assert found.repeat_pct == pytest.approx(40.0)


def test_a_change_beyond_what_the_same_code_differs_by_is_one():
    quick = round_of(1, 30.0, 33.0, parent=0, copy="/copies/1", predicted_ns=70.0)
    found = judge(FIRST, quick, (FIRST, quick, AGAIN))
    assert (found.is_gain, found.measured_pct) == (True, pytest.approx(-62.5))


def test_two_runs_of_the_changed_code_count_as_well():
    slow = round_of(2, 105.0, 110.0, parent=0, copy="/copies/1")
    assert judge(FIRST, FIXED, (FIRST, FIXED, slow)).reasons == ("repeat",)


def test_the_same_code_is_never_faster_nor_slower():
    found = judge(FIRST, AGAIN, (FIRST, FIXED, AGAIN))
    assert (found.outcome, found.reasons, found.is_gain) == ("unclear", ("same_code",), None)
    assert (found.before_ns, found.after_ns) == (100.0, 60.0)


def test_uneven_steps_that_overlap_prove_nothing_unless_the_code_ran_twice():
    before = round_of(0, 100.0, 100.0, spread=90.0, error=5.0)
    after = round_of(1, 60.0, 60.0, parent=0, copy="/copies/1", spread=60.0, error=5.0)
    assert judge(before, after, (before, after)).reasons == ("spread",)
    again = replace(before, number=2, again=0, parent=0)
    assert judge(before, after, (before, after, again)).is_gain is True


def test_the_profiler_is_no_reason_where_a_step_without_it_is_longer():
    before = round_of(0, 118.0, 100.0)
    after = round_of(1, 60.0, 90.0, parent=0, copy="/copies/1", predicted_ns=95.0)
    assert judge(before, after).reasons == ()
    assert judge(replace(before, figures=replace(before.figures, wall_ns=80.0)), after).reasons == ("profiler",)


def test_a_machine_that_was_busy_is_found_out():
    assert is_busy(416.0, 171.0, 171.0)
    assert is_busy(4545.0, 3775.0, 3775.0)
    assert not is_busy(100.0, 110.0, 90.0)
    busy, quiet = Figures("x", 3775.0, 4545.0, 3775.0), Figures("x", 110.0, 100.0, 110.0)
    assert noise_of([busy], [quiet]) == ("machine",)
    assert noise_of([busy, busy], [quiet]) == ("machine",)
    assert noise_of([busy, busy], [quiet, quiet]) == ()  # both ran twice: that says how much it was


def timed(number: int, wall: float, waited: float | None = 0.0, loop: float | None = 70.0, **others) -> Iteration:
    error = others.pop("wall_error", 0.5)
    found = round_of(number, wall, wall * 1.1, **others)
    return replace(found, figures=replace(found.figures, waited_pct=waited, wall_error_pct=error, loop_ns=loop))


FIX = {"parent": 0, "copy": "/copies/1"}


def test_what_other_programs_did_is_not_called_a_wrong_prediction():
    base = timed(0, 5.6)
    busy = timed(1, 8.7, waited=40.0, predicted_ns=6.1, **FIX)
    found = judge(base, busy)
    assert (found.outcome, found.reasons, found.is_gain) == ("unclear", ("pace",), None)
    low, high = found.range_pct
    assert low < 0 < 55 < high
    assert judge(timed(0, 8.7, waited=40.0), timed(1, 5.6, predicted_ns=8.7, **FIX)).outcome == "unclear"


def test_a_prediction_that_is_wrong_on_a_quiet_machine_is_called_wrong():
    found = judge(timed(0, 5.6), timed(1, 8.7, waited=2.0, predicted_ns=6.1, **FIX))
    assert (found.outcome, found.is_gain) == ("worse", False)
    assert judge(timed(0, 8.7), timed(1, 5.6, predicted_ns=9.5, **FIX)).outcome == "better"


def test_a_prediction_that_the_disturbance_cannot_explain_is_called_wrong():
    found = judge(timed(0, 5.6), timed(1, 8.7, waited=15.0, predicted_ns=6.1, **FIX))
    assert (found.outcome, found.is_gain) == ("worse", False)
    assert found.range_pct[0] > 25


def test_a_processor_that_was_slower_is_told():
    found = judge(timed(0, 5.6), timed(1, 7.3, loop=91.0, predicted_ns=6.1, **FIX))
    assert (found.outcome, found.reasons) == ("unclear", ("pace",))
    assert found.pace_pct == pytest.approx(30.0)
    wrong = judge(timed(0, 5.6), timed(1, 12.0, loop=91.0, predicted_ns=6.1, **FIX))
    assert wrong.outcome == "worse"
    assert judge(timed(0, 5.6), timed(1, 5.6, loop=73.0, predicted_ns=6.16, **FIX)).outcome == "right"


def test_steps_that_scatter_leave_a_small_change_open():
    found = judge(timed(0, 5.6, wall_error=4.0), timed(1, 5.0, wall_error=4.0, predicted_ns=6.1, **FIX))
    assert (found.outcome, found.reasons, found.is_gain) == ("unclear", ("spread",), None)


def test_steps_that_differ_on_a_busy_machine_are_said_to_have_been_disturbed():
    before = timed(0, 5.6, spread=90.0, error=20.0, wall_error=25.0)
    assert judge(before, timed(1, 8.7, waited=90.0, **FIX)).reasons == ("spread", "pace")
    assert judge(before, timed(1, 8.7, **FIX)).reasons == ("spread",)
    longer = timed(1, 8.7, waited=90.0, **FIX)
    longer = replace(longer, figures=replace(longer.figures, sustained_ns=6.0, host_ns=6.0))
    assert judge(timed(0, 5.6), longer).reasons == ("pace",)  # and not that other programs may have been busy


def test_bursts_of_recorded_steps_hide_no_change_that_the_timed_ones_show():
    """A loader's workers that do not keep up: one recorded step in two is long, the mean of the timed ones is known."""
    before, bursts = timed(0, 19.2), timed(1, 9.5, spread=230.0, error=45.0, predicted_ns=9.5 * 1.1, **FIX)
    assert (judge(before, bursts).outcome, judge(before, bursts).is_gain) == ("right", True)
    worse = timed(1, 15.0, spread=230.0, error=45.0, wall_error=8.0, predicted_ns=9.5 * 1.1, **FIX)
    assert judge(before, worse).reasons == ("spread",)  # -22 %, and what was timed scatters too
    assert judge(timed(0, 19.2, wall_error=None), bursts).reasons == ("spread",)


def test_a_prediction_that_no_pair_of_runs_comes_near_is_called_wrong():
    """Both codes were run twice and differ by a fifth between runs: no gain is known, the prediction is wrong."""
    one, other = timed(0, 16.8), timed(2, 13.6, again=0, parent=0)
    first, second = (timed(n, wall, predicted_ns=16.8 * 1.1 * 0.54, **FIX) for n, wall in ((1, 16.7), (3, 18.0)))
    found = judge(one, second, (one, first, other, second))
    assert (found.outcome, found.is_gain, found.reasons) == ("worse", None, ("repeat",))
    crowded = replace(second, figures=replace(second.figures, crowded_pct=50.0))
    assert judge(one, crowded, (one, first, other, crowded)).reasons == ("repeat", "crowded")
    near = replace(second, predicted_ns=16.8 * 1.1 * 0.98)
    assert judge(one, near, (one, first, other, near)).outcome == "unclear"


def test_one_measurement_more_of_the_code_before_leaves_a_wrong_prediction_wrong():
    one, after = timed(0, 100.0), timed(1, 107.8, predicted_ns=43.0 * 1.1, **FIX)
    assert judge(one, after, (one, after)).outcome == "worse"
    again = timed(2, 107.0, again=0, parent=0)
    found = judge(one, after, (one, after, again))
    assert (found.outcome, found.is_gain, found.reasons) == ("worse", None, ("repeat",))
    near = replace(after, predicted_ns=99.0 * 1.1)
    assert judge(one, near, (one, near, again)).outcome == "unclear"


def test_a_code_that_ran_once_could_lie_as_far_off_as_the_others_runs_do():
    one, again = timed(0, 60.0), timed(2, 100.0, again=0, parent=0)
    after = timed(1, 75.0, predicted_ns=60.0 * 1.1 * 1.72, **FIX)
    assert judge(one, after, (one, after, again)).outcome == "unclear"  # by the same factor it could be +108 %


def test_a_gain_is_one_though_the_prediction_stays_open():
    found = judge(timed(0, 100.0, waited=30.0), timed(1, 50.0, predicted_ns=66.0 * 1.1, **FIX))
    assert (found.outcome, found.is_gain) == ("unclear", True)


def test_of_runs_of_the_same_code_those_count_that_were_left_alone():
    busy, calm = timed(0, 9.0, waited=60.0), timed(2, 5.6, parent=0, again=0)
    fixed = timed(1, 5.0, predicted_ns=8.8, **FIX)
    assert judge(busy, fixed).outcome == "unclear"
    found = judge(busy, fixed, (busy, fixed, calm))
    assert (found.before_ns, found.baseline, found.is_gain) == (5.6, (2,), True)


def test_a_quiet_machine_is_not_called_busy_because_the_recorded_step_is_shorter():
    before, after = timed(0, 4545.0), timed(1, 2000.0, **FIX)
    before = replace(before, figures=replace(before.figures, sustained_ns=3775.0, host_ns=3775.0))
    assert judge(before, after).is_gain is True
    unknown = replace(before, figures=replace(before.figures, waited_pct=None))
    assert judge(unknown, after).reasons == ("machine",)


def run_folder(folder: Path, script: Path, wall_us: float, code: str, **spec) -> RunRecord:
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "train.py").write_text(code)
    values = {
        "format": "steplens.run/1",
        "spec": {"script": str(script), "argv": [], **spec},
        "steps": {"wall_step_us": wall_us},
        "sources": [{"path": str(script), "copy": "sources/train.py"}],
    }
    (folder / "run.json").write_bytes(orjson.dumps(values))
    run = read_run(folder)
    assert run is not None
    return run


def test_runs_of_the_same_sources_are_not_compared_as_if_one_were_faster(tmp_path):
    one = run_folder(tmp_path / "a", tmp_path / "train.py", 900.0, "x = 1\n")
    copied = run_folder(tmp_path / "b", tmp_path / "copies" / "1" / "train.py", 500.0, "x = 1\n")
    other = run_folder(tmp_path / "c", tmp_path / "train.py", 500.0, "x = 2\n")
    argued = run_folder(tmp_path / "d", tmp_path / "train.py", 500.0, "x = 1\n", argv=["--fast"])
    hidden = run_folder(tmp_path / "e", tmp_path / "train.py", 500.0, "x = 1\n", env=["FAST"])
    assert ran_same_code((one, copied))
    assert not any(ran_same_code((one, run)) for run in (other, argued, hidden, None))
    trace, analysis = with_suggestions(training(), SUGGESTION)
    again = run_folder(tmp_path / "f", tmp_path / "train.py", 500.0, "x = 1\n")
    found = compare(trace, analysis, trace, analysis, (one, again))
    assert (found.outcome, found.noise) == ("unclear", ("same_code",))
    assert compare(trace, analysis, trace, analysis, (one, other)).outcome == "faster"


def test_a_comparison_knows_what_the_same_code_differs_by(tmp_path):
    """Two runs that are rounds of a project are judged with the project's other runs of the same code."""
    runs = tmp_path / "data" / "runs"
    script = tmp_path / "train.py"
    project = project_folder(tmp_path / "data" / "projects", str(script))
    copy = project / "copies" / "1"
    one = run_folder(runs / "a", script, 900.0, "x = 1\n")
    two = run_folder(runs / "b", copy / "train.py", 700.0, "x = 2\n")
    run_folder(runs / "c", script, 500.0, "x = 1\n")
    trace, analysis = with_suggestions(training(), SUGGESTION)
    assert compare(trace, analysis, trace, analysis, (one, two)).outcome == "faster"
    rounds = (
        replace(round_of(0, 900.0, 950.0), run_folder=str(runs / "a")),
        replace(round_of(1, 700.0, 750.0, parent=0, copy=str(copy)), run_folder=str(runs / "b"), created_s=2.0),
        replace(round_of(2, 500.0, 550.0, parent=0, again=0), run_folder=str(runs / "c"), created_s=3.0),
    )
    Project(project, str(script), rounds).save()
    for pair in ((one, two), (two, one)):
        found = compare(trace, analysis, trace, analysis, pair)
        assert (found.outcome, found.noise) == ("unclear", ("repeat",))
        assert found.repeat_pct == pytest.approx(100 * 4 / 9)


def test_a_comparison_says_that_the_machine_was_busy(tmp_path):
    script = tmp_path / "train.py"
    one, two = (run_folder(tmp_path / n, script, us, n) for n, us in (("a", 900.0), ("b", 700.0)))
    trace, analysis = with_suggestions(training(), SUGGESTION)
    assert compare(trace, analysis, trace, analysis, (one, two)).outcome == "faster"
    busy = replace(one, timing=replace(one.timing, waited_pct=60.0))
    found = compare(trace, analysis, trace, analysis, (busy, two))
    assert (found.outcome, found.noise) == ("unclear", ("pace",))
    little = replace(one, timing=replace(one.timing, waited_pct=8.0))
    assert compare(trace, analysis, trace, analysis, (little, two)).outcome == "faster"


def test_a_comparison_and_a_round_give_the_same_reason_why_a_change_is_open(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    one, two = (run_folder(tmp_path / n, script, us, n) for n, us in (("a", 560.0), ("b", 500.0)))
    trace, analysis = with_suggestions(training(), SUGGESTION)
    known = core.compare.figures_of
    monkeypatch.setattr(core.compare, "figures_of", lambda *given: replace(known(*given), wall_error_pct=4.0))
    found = compare(trace, analysis, trace, analysis, (one, two))
    assert (found.outcome, found.noise) == ("unclear", ("spread",))
    assert judge(timed(0, 5.6, wall_error=4.0), timed(1, 5.0, wall_error=4.0, **FIX)).reasons == found.noise


def test_recorded_steps_that_scatter_hide_no_change_far_beyond_that_of_the_timed_ones(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    one, two = (run_folder(tmp_path / n, script, us, n) for n, us in (("a", 900.0), ("b", 500.0)))
    trace, analysis = with_suggestions(training(), SUGGESTION)
    known = core.compare.figures_of

    def scattered(*given: object) -> Figures:
        return replace(known(*given), spread_pct=57.0, wall_error_pct=2.0)

    monkeypatch.setattr(core.compare, "figures_of", scattered)
    assert compare(trace, analysis, trace, analysis, (one, two)).outcome == "faster"
    near = run_folder(tmp_path / "c", script, 860.0, "c")
    assert compare(trace, analysis, trace, analysis, (one, near)).noise == ("spread",)


def test_a_disturbed_run_of_the_changed_code_does_not_spoil_a_calm_one():
    base, calm = timed(0, 5.6), timed(2, 8.7, predicted_ns=6.1, **FIX)
    busy = timed(1, 30.0, waited=90.0, predicted_ns=6.1, **FIX)
    found = judge(base, calm, (base, busy, calm))
    assert (found.outcome, found.is_gain, found.repeat_pct) == ("worse", False, None)


def test_workers_that_want_more_cores_than_there_are_are_named():
    base, after = timed(0, 2.4), timed(1, 5.1, predicted_ns=2.0, **FIX)
    assert "crowded" not in judge(base, after).reasons
    crowded = replace(after, figures=replace(after.figures, crowded_pct=61.0))
    assert "crowded" in judge(base, crowded).reasons
    as_before = replace(base, figures=replace(base.figures, crowded_pct=55.0))
    assert "crowded" not in judge(as_before, crowded).reasons


def paced(number: int, wall: float, loop: float, **others) -> Iteration:
    figures = Figures(sustained_ns=wall, wall_ns=wall, host_ns=wall, waited_pct=5.0, loop_ns=loop)
    return Iteration(number, f"/runs/{number}", 1.0 + number, figures=figures, **others)


def test_a_prediction_that_every_pair_of_runs_comes_to_held_whatever_the_machine_did():
    first, again = paced(0, 100.0, 70.0), paced(2, 103.0, 69.0, parent=0, again=0)
    fixed = paced(1, 40.0, 115.0, parent=0, copy="/copies/1", predicted_ns=38.0)
    twice = paced(3, 39.0, 112.0, parent=0, copy="/copies/1", again=1, predicted_ns=38.0)
    assert judge(first, fixed).outcome == "unclear"  # the processor's own pace moved
    assert judge(first, fixed, (first, fixed, again)).outcome == "unclear"
    found = judge(first, fixed, (first, fixed, again, twice))
    assert (found.outcome, found.is_gain, found.reasons) == ("right", True, ())
    far = replace(twice, figures=replace(twice.figures, wall_ns=46.0))
    assert judge(first, fixed, (first, fixed, again, far)).outcome == "unclear"
    small = [replace(i, figures=replace(i.figures, wall_ns=99.0)) for i in (fixed, twice)]
    small[0] = replace(small[0], predicted_ns=98.0)
    assert judge(first, small[0], (first, again, *small)).outcome != "right"  # no gain is seen


def test_steps_that_scatter_do_not_hide_that_no_pair_of_runs_comes_near_a_prediction():
    def scattered(one: Iteration, wall: float) -> Iteration:
        return replace(one, figures=replace(one.figures, wall_ns=wall, spread_pct=60.0, error_pct=20.0))

    first, again = paced(0, 119.0, 70.0), paced(2, 119.5, 70.0, parent=0, again=0)
    fixed, twice = (paced(n, 92.0, 70.0, parent=0, copy="/copies/1", predicted_ns=49.0) for n in (1, 3))
    fixed, twice = scattered(fixed, 92.0), scattered(twice, 99.0)
    alone = judge(first, fixed)
    assert (alone.outcome, alone.reasons) == ("unclear", ("spread",))
    found = judge(first, fixed, (first, fixed, again, twice))
    assert (found.outcome, found.reasons) == ("worse", ())  # the change is beyond what runs of the same code differ by
    near = replace(twice, figures=replace(twice.figures, wall_ns=50.0))
    assert judge(first, fixed, (first, fixed, again, near)).outcome == "unclear"
