"""A report says what the rounds of its script measured."""

from __future__ import annotations

from dataclasses import replace

from core.project import AppliedFix, Figures, Iteration, Project, project_folder
from core.reporting.rounds_told import rounds_told
from tests.core.test_judging import run_folder

FIX = AppliedFix("small", "Use arange", "train.py:3", "Use arange.", "", None)


def test_a_report_tells_what_the_rounds_measured(tmp_path):
    script, runs = tmp_path / "train.py", tmp_path / "data" / "runs"
    place = project_folder(tmp_path / "data" / "projects", str(script))
    copy = place / "copies" / "1"
    first, fixed = run_folder(runs / "a", script, 100.0, "x = 1\n"), run_folder(runs / "b", copy / "t.py", 90.0, "x\n")
    assert rounds_told(None) == rounds_told(first) == []
    rows = (
        Iteration(0, str(runs / "a"), 1.0, figures=Figures(sustained_ns=100.0, wall_ns=100.0)),
        Iteration(1, str(runs / "b"), 2.0, 0, (FIX,), 70.0, str(copy), Figures(sustained_ns=151.0, wall_ns=151.0)),
        Iteration(2, "", 3.0, 0, (FIX, FIX), 70.0, str(copy) + "2", state="stopped"),
    )
    Project(place, str(script), rows).save()
    told = "slower (+51 % a step, predicted −30 %)."
    assert rounds_told(first) == [f"Measured in round 1, with “Use arange” fixed: {told}"]
    assert rounds_told(fixed) == [f"This run is round 1 of {script}, with “Use arange” fixed: {told}"]
    waited = replace(rows[1].figures, wall_ns=90.0, waited_pct=5.0, wall_error_pct=20.0)
    Project(place, str(script), (rows[0], replace(rows[1], figures=waited), rows[2])).save()
    assert rounds_told(first)[0].endswith("unclear (−10 % a step, predicted −30 %).")
