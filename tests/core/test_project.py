"""Iterations: kept, judged, compared."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from core import files, project
from core.fixes import ProposedEdit
from core.judging import judge
from core.moved_run import moved_spec, source_root
from core.project import (
    AppliedFix,
    Figures,
    Iteration,
    Project,
    figures_of,
    fix_of,
    load_project,
    predicted_step,
    project_folder,
)
from core.results import compare_losses, compare_parameters
from core.run_folder import RunRecord, finder_for, read_losses, read_run
from core.suggestions import PlanStep
from tests.core.reporting.cases import SUGGESTION, training, with_suggestions
from tests.trace_builder import TraceBuilder

EDIT = ProposedEdit(Path("train.py"), "scalar-read-back", "a\n", "b\n", "Does it.", "None.")


def iteration(number=0, sustained=None, wall=None, host=None, predicted=None, rules=(), fixes=()):
    figures = Figures("sync_bound", sustained, wall, host, rules=rules)
    parent = None if number == 0 else number - 1
    return Iteration(number, f"/runs/{number}", 1.0, parent, fixes, predicted, figures=figures)


def test_project_is_kept(tmp_path):
    fix = fix_of(SUGGESTION, EDIT)
    project = Project(tmp_path / "p", "/home/u/train.py")
    project = project.with_iteration(iteration(0, 100.0)).with_iteration(iteration(1, 80.0, fixes=(fix,)))
    project.save()
    assert load_project(tmp_path / "p") == project
    assert project.find(Path("/runs/1")).number == 1
    assert project.next_number() == 2
    assert project.next_copy() == tmp_path / "p" / "copies" / "2"
    assert fix.place == "/home/user/project/train.py:12"
    assert "-a" in fix.diff


def test_no_round_is_lost_because_a_figure_is_of_an_arrays_kind(tmp_path):
    figures = Figures("x", sustained_ns=np.float64(1.5), kernels=np.int64(3))  # type: ignore[arg-type]
    one = Iteration(0, "/runs/1", 1.0, predicted_ns=np.float32(2.0), figures=figures)  # type: ignore[arg-type]
    Project(tmp_path, "/code/train.py", (one,)).save()
    (kept,) = load_project(tmp_path).iterations
    assert (kept.figures.sustained_ns, kept.figures.kernels, kept.predicted_ns) == (1.5, 3, 2.0)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"format": "other/1"}', b'{"format": "steplens.project/1", "iterations": 3}']
)
def test_damaged_project(tmp_path, content):
    (tmp_path / "project.json").write_bytes(content)
    found = load_project(tmp_path)
    assert found is None or found.iterations == ()


def test_damaged_iteration_is_left_out(tmp_path):
    Project(tmp_path, "s").with_iteration(iteration(0)).with_iteration(iteration(1)).save()
    values = orjson.loads((tmp_path / "project.json").read_bytes())
    values["iterations"][0] = {"number": 0, "nonsense": 1}
    (tmp_path / "project.json").write_bytes(orjson.dumps(values))
    assert [i.number for i in load_project(tmp_path).iterations] == [1]


def test_one_folder_per_script(tmp_path):
    a, b = project_folder(tmp_path, "/x/train.py"), project_folder(tmp_path, "/y/train.py")
    assert a != b
    assert a.name.startswith("train-")
    assert project_folder(tmp_path, "/x/train.py") == a


def test_figures_come_from_trace_and_run(tmp_path):
    _, analysis = with_suggestions(training(), SUGGESTION)
    run = RunRecord(tmp_path, "n", "ok", None, 123.0, None)
    found = figures_of(analysis, run)
    assert found.sustained_ns == 900_000.0
    assert found.wall_ns == 123.0
    assert found.rules == ("scalar-read-back",)
    assert figures_of(analysis, None).wall_ns is None


def test_prediction_of_plan_and_of_one():
    _, analysis = with_suggestions(training(), SUGGESTION, replace(SUGGESTION, rule_id="other"))
    assert predicted_step(analysis, [0]) == 630_000  # the plan's first step
    assert predicted_step(analysis, [1]) == 900_000 - 270_000
    assert predicted_step(analysis, [0, 1]) is None
    longer = replace(analysis, plan=(*analysis.plan, PlanStep((1,), ("other",), 500_000)))
    assert predicted_step(longer, [1, 0]) == 500_000


@pytest.mark.parametrize(
    ("before", "after", "measure", "outcome"),
    [
        (iteration(0, 100.0), iteration(1, 81.0, predicted=80.0), "sustained", "right"),
        (iteration(0, 100.0), iteration(1, 99.0, predicted=80.0), "sustained", "worse"),
        (iteration(0, 100.0), iteration(1, 50.0, predicted=80.0), "sustained", "better"),
        (iteration(0, 100.0), iteration(1, 50.0), "sustained", "unknown"),
        (iteration(0, wall=100.0), iteration(1, wall=50.0), "wall", "unknown"),
        (iteration(0, 216.0, wall=93.8), iteration(1, 218.0, wall=134.0, predicted=136.0), "wall", "worse"),
        (iteration(0), iteration(1, 50.0), "", "unknown"),
    ],
)
def test_judge(before, after, measure, outcome):
    found = judge(before, after)
    assert (found.measure, found.outcome) == (measure, outcome)


def test_the_step_without_the_profiler_counts():
    before, after = iteration(0, 216.0, wall=93.8, host=216.0), iteration(1, 218.0, 134.0, 214.0, predicted=136.0)
    found = judge(before, after)
    assert found.measured_pct == pytest.approx(42.9, abs=0.1)
    assert found.is_gain is False
    assert found.recorded_ns == (216.0, 218.0)
    assert found.reasons == ("profiler",)


def test_noise_is_not_a_result():
    quiet = iteration(0, 100.0, wall=95.0, host=100.0)
    after = iteration(1, 50.0, wall=90.0, host=50.0, predicted=99.0)
    found = judge(quiet, after)
    assert (found.outcome, found.reasons) == ("unclear", ("machine",))
    wide = replace(after, figures=Figures("x", 50.0, 45.0, 50.0, spread_pct=40.0))
    assert judge(quiet, wide).reasons == ("spread",)


@pytest.mark.parametrize(("step", "outcome"), [(85.0, "unclear"), (60.0, "unclear"), (50.0, "better")])
def test_a_change_far_beyond_the_error_of_uneven_steps_is_one(step, outcome):
    before = replace(iteration(0, 100.0), figures=Figures("x", 100.0, None, 100.0, spread_pct=40.0, error_pct=6.0))
    after = iteration(1, step, predicted=90.0)
    assert judge(before, after).outcome == "unclear"  # how sure the other is was not kept
    after = replace(after, figures=replace(after.figures, spread_pct=8.0, error_pct=4.0))
    assert judge(before, after).outcome == outcome


def test_what_a_newer_version_keeps_of_a_round_does_no_harm(tmp_path):
    project = Project(tmp_path, "train.py", (iteration(0, 100.0),))
    project.save()
    file = tmp_path / "project.json"
    values = orjson.loads(file.read_bytes())
    values["iterations"][0]["figures"]["of_the_future"] = 1
    file.write_bytes(orjson.dumps(values))
    found = load_project(tmp_path)
    assert found is not None and found.iterations == project.iterations


def test_judgement_says_why():
    fixes = (fix_of(SUGGESTION, EDIT),)
    before = iteration(0, 100.0, rules=("scalar-read-back",))
    after = iteration(1, 99.0, wall=10.0, host=30.0, predicted=50.0, rules=("scalar-read-back", "x"), fixes=fixes)
    found = judge(before, after)
    assert found.off_by_pct == pytest.approx(49.0)
    assert found.reasons == ("still_found", "new_found", "profiler")


def test_losses():
    assert compare_losses(None, (1.0,)).status == "unknown"
    assert compare_losses((), ()).status == "unknown"
    assert compare_losses((None,), (None,)).status == "unknown"
    same = compare_losses((2.0, 1.0, 0.5), (2.0, 1.0000001))
    assert (same.status, same.compared, same.first) == ("same", 2, None)
    parted = compare_losses((2.0, 1.0, 0.5), (2.0, 1.1, 0.9))
    assert (parted.status, parted.first) == ("differs", 1)
    assert parted.largest == pytest.approx(0.4 / 0.9)
    assert compare_losses((2.0, None), (2.0, 3.0)).first == 1


def test_copy_runs_with_the_same_options(tmp_path):
    (tmp_path / "proj" / ".git").mkdir(parents=True)
    (tmp_path / "proj" / "scripts").mkdir()
    script = tmp_path / "proj" / "scripts" / "train.py"
    other = tmp_path / "proj" / "lib" / "net.py"
    far = tmp_path / "elsewhere" / "x.py"
    spec = {"script": str(script), "cwd": str(tmp_path / "data"), "argv": ["--lr", "1"]}
    sources = {str(p): p for p in (script, other, far)}
    run = RunRecord(tmp_path, "n", "ok", None, None, None, spec, sources)
    root = source_root(run)
    assert root == tmp_path / "proj"
    moved = moved_spec(spec, root, tmp_path / "copy")
    assert moved == {**spec, "script": str(tmp_path / "copy" / "scripts" / "train.py")}
    assert moved_spec({"module": "m", "cwd": str(root)}, root, tmp_path / "c")["cwd"] == str(tmp_path / "c")


def test_run_folder(tmp_path):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "train.py").write_text("x = 1\n")
    values = {
        "format": "steplens.run/1",
        "name": "train",
        "state": "ok",
        "steps": {"wall_step_us": 12.5, "profiled_step_us": None},
        "sources": [
            {"path": "/home/u/train.py", "copy": "sources/train.py"},
            {"path": "/etc/passwd", "copy": "../../../etc/passwd"},
        ],
        "traces": [{"path": "trace.json"}, {"path": "/etc/passwd"}, "x"],
    }
    (tmp_path / "run.json").write_bytes(orjson.dumps(values))
    (tmp_path / "losses.json").write_bytes(orjson.dumps({"format": "steplens.losses/1", "values": [1.5, None, "x"]}))
    run = read_run(tmp_path)
    assert run.wall_step_ns == 12_500.0
    assert run.profiled_step_ns is None
    assert run.copy_of("train.py") == tmp_path / "sources" / "train.py"
    assert run.original_of("/home/u/train.py") == Path("/home/u/train.py")
    assert run.copy_of("/etc/passwd") is None
    assert run.traces == (tmp_path / "trace.json",)
    assert run.losses == (1.5, None, None)
    trace = TraceBuilder().op("aten::mm", 0, 1).build(tmp_path / "trace.json")
    assert finder_for(trace) is not None


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"format": "x"}'])
def test_no_run(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    assert read_run(tmp_path) is None
    assert read_losses(tmp_path / "run.json") is None
    assert read_run(tmp_path / "none") is None


def test_parameters_are_compared_by_sum_and_length():
    assert compare_parameters(None, ((1.0, 1.0),)).status == "unknown"
    assert compare_parameters(((1.0, 1.0),), ((1.0, 1.0), (1.0, 1.0))).status == "unknown"
    assert compare_parameters(((1e-9, 5.0), None), ((2e-9, 5.0), None)).status == "same"  # sums next to nothing
    parted = compare_parameters(((1.0, 5.0), (2.0, 4.0)), ((1.0, 5.0), (2.1, 4.0)))
    assert (parted.status, parted.first, parted.compared) == ("differs", 1, 2)


KILLED = """
import sys
import threading
from dataclasses import replace
from pathlib import Path
from core.project import Iteration, Project
project = Project(Path(sys.argv[1]), "train.py")
n = 0
while True:
    project = project.with_iteration(Iteration(n % 40, "/runs/" + "x" * 2000, float(n), None))
    project.save()
    n += 1
    print(n, flush=True)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_project(tmp_path):
    folder = tmp_path / "p"
    for kill_after in (1, 3, 8):
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert writer.stdout is not None
        for _ in range(kill_after):
            assert writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        project = load_project(folder)
        assert project is not None
        assert len(project.iterations) >= min(kill_after, 40)


def test_copies_of_sources_behind_a_link_are_not_read(tmp_path):
    """A folder that was sent may hold a link to anywhere in place of the copies."""
    folder = tmp_path / "sent"
    folder.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "train.py").write_text("password = 1\n")
    (folder / "run.json").write_bytes(orjson.dumps({"format": "steplens.run/1"}))
    trace = TraceBuilder(with_stack=1).python("train.py(1): f", 0, 10).build(folder / "trace.json")
    (folder / "sources").symlink_to(tmp_path / "secret", target_is_directory=True)
    assert read_run(folder) is not None
    assert finder_for(trace).resolve("train.py") is None
    (folder / "sources").unlink()
    (folder / "sources").mkdir()
    (folder / "sources" / "train.py").write_text("x = 1\n")
    assert finder_for(trace).resolve("train.py") == folder / "sources" / "train.py"


@pytest.mark.parametrize(
    "content",
    [
        b"{ torn",
        b'{"format": "steplens.project/2", "script": "a.py", "iterations": [], "more": 1}',
        b'{"format": "steplens.project/1", "script": "a.py", "iterations": [{"number": "three"}, {"odd": 1}]}',
        b"[" * 100_000,
    ],
)
def test_a_project_that_is_not_understood_is_kept(tmp_path, content):
    """Of a later version, or damaged: what is written then takes nothing away."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "project.json").write_bytes(content)
    load_project(folder)
    made = Project(folder, "a.py", (Iteration(0, str(tmp_path / "run"), 1.0),))
    made.save()
    made.save()
    assert load_project(folder) == made
    kept = [path for path in folder.iterdir() if path.name != "project.json"]
    assert [path.read_bytes() for path in kept] == [content]


def test_an_iteration_of_odd_kinds_is_left_out(tmp_path):
    project = Project(tmp_path, "s").with_iteration(iteration(0, 100.0)).with_iteration(iteration(1))
    project.save()
    whole = orjson.loads((tmp_path / "project.json").read_bytes())
    for key, value in (("number", "1"), ("run_folder", 3), ("created_s", None), ("predicted_ns", "x"), ("parent", 0.5),
                       ("run_folder", "a\0b"), ("copy", "\0"), ("figures", "x"), ("figures", [[1]])):  # fmt: skip
        odd = {**whole, "iterations": [whole["iterations"][0], {**whole["iterations"][1], key: value}]}
        (tmp_path / "project.json").write_bytes(orjson.dumps(odd))
        found = load_project(tmp_path)
        assert found is not None and [i.number for i in found.iterations] == [0], key


def test_rounds_that_another_window_has_written_are_kept(tmp_path):
    base = Project(tmp_path, "s").with_iteration(iteration(0)).save()
    one = base.with_iteration(replace(iteration(1), created_s=2.0)).save()
    one = one.with_iteration(replace(iteration(2), created_s=4.0, parent=1)).save(one)
    other = base.with_iteration(replace(iteration(1), created_s=3.0)).save(base)
    wanted = [
        (1.0, 0, base.iterations[0].parent),
        (2.0, 1, iteration(1).parent),
        (4.0, 2, 1),
        (3.0, 3, iteration(1).parent),
    ]
    assert [(i.created_s, i.number, i.parent) for i in other.iterations] == wanted
    assert other.same(replace(iteration(1), created_s=3.0)).number == 3
    assert load_project(tmp_path) == other
    assert [path.name for path in tmp_path.iterdir()] == ["project.json"]
    again = one.save(one)  # a number that was written stays, in both windows
    assert [(i.created_s, i.number, i.parent) for i in again.iterations] == wanted


def test_what_refers_to_a_round_that_got_another_number_still_does(tmp_path):
    base = Project(tmp_path, "s").with_iteration(iteration(0)).save()
    base.with_iteration(replace(iteration(1), created_s=2.0)).save(base)
    mine = base.with_iteration(replace(iteration(1), created_s=3.0))
    mine = mine.with_iteration(replace(iteration(2), created_s=4.0, again=1, made_from=1)).save(base)
    rows = {i.created_s: i for i in mine.iterations}
    assert {made: i.number for made, i in rows.items()} == {1.0: 0, 2.0: 1, 3.0: 3, 4.0: 2}
    assert (rows[4.0].parent, rows[4.0].again, rows[4.0].made_from) == (3, 3, 3)


def test_what_another_window_has_measured_is_not_taken_back(tmp_path):
    base = Project(tmp_path, "s").with_iteration(replace(iteration(0), state="running")).save()
    ended = base.with_iteration(replace(base.iterations[0], state="ok")).save(base)
    assert base.save(base) == ended  # this window only knows that it was running
    mine = base.with_iteration(replace(base.iterations[0], state="failed"))
    assert mine.save(base).iterations[0].state == "failed"  # unless it has something to say itself


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_what_two_windows_save_at_the_same_moment_is_all_there(tmp_path, monkeypatch):
    """The second one reads what is written only after the first has written."""
    folder, said = tmp_path / "p", []
    second = Project(folder, "/x/train.py", (Iteration(0, "/r/2", 2.0),))
    saving = threading.Thread(target=second.save)
    write = project.write_atomically

    def slow(path: Path, data: bytes) -> None:
        if not said:
            said.append(1)
            saving.start()
            saving.join(0.1)  # it waits for this one, which has read, and not written yet
        write(path, data)

    monkeypatch.setattr(project, "write_atomically", slow)
    Project(folder, "/x/train.py", (Iteration(0, "/r/1", 1.0),)).save()
    saving.join()
    assert {i.run_folder for i in load_project(folder).iterations} == {"/r/1", "/r/2"}


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_a_window_that_stands_still_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOCK_S", 0.0)
    with files.alone_in(tmp_path):
        assert Project(tmp_path, "/x/train.py").save().folder == tmp_path
    with files.alone_in(tmp_path / "none"):
        pass


def test_a_sum_of_many_may_differ_by_a_share_of_itself():
    """Of a thousand numbers that each differ by half a thousandth the sum does so too: that is rounding."""
    assert compare_parameters(((78.0, 5.0),), ((78.03, 5.0),)).status == "same"
    parted = compare_parameters(((78.0, 5.0),), ((80.0, 5.0),))
    assert (parted.status, parted.largest) == ("differs", pytest.approx(2 / 80))


def test_a_round_that_is_made_from_one_that_was_cut_off_is_compared_with_the_last_good_one(tmp_path):
    good = Figures(sustained_ns=1e6)
    fix, other = (AppliedFix("r", title, "", "", "", None) for title in ("one", "two"))
    first = Iteration(0, "/runs/0", 1.0, figures=good)
    failed = Iteration(1, "/runs/1", 2.0, 0, (fix,), copy="/copies/1", figures=good, state="failed")
    unrun = Iteration(2, "", 3.0, 1, (other,), copy="/copies/2", state="planned")
    project = Project(tmp_path, "train.py", (first, failed, unrun))
    assert project.base_for(first) == (first, ())
    assert project.base_for(failed) == (first, (fix,))
    assert project.base_for(unrun) == (first, (fix, other))
    measured = replace(failed, figures=replace(good, wall_ns=9e5))  # it failed after that
    assert project.with_iteration(measured).base_for(measured) == (measured, ())
    own = replace(first, state="failed")
    alone = Project(tmp_path, "train.py", (own,))
    assert alone.base_for(own) == (own, ())  # nothing better is known
    later = Iteration(3, "/runs/3", 4.0, figures=good)
    assert alone.with_iteration(later).base_for(own) == (later, ())
    assert project.base_for(None) == (first, ())
