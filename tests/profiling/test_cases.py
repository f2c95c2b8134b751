"""Every script of the fault cases behaves under the profiler as its ``expect.md`` says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiling.processes import descendants
from profiling.spec import RunSpec, package_module
from tests.profiling.runs import run_script, start
from tests.shared import case_path, needs_shared

pytestmark = [needs_shared, pytest.mark.torch]
SGD = "Optimizer.step#SGD.step"


def test_52_sys_exit(tmp_path: Path) -> None:
    seen = run_script(case_path("52", "train.py"), tmp_path)
    assert seen.stdout.splitlines() == ["step 1", "step 2", "step 3", "step 4", "early stop", "atexit ran"]
    assert seen.result.script_exit == 3
    assert seen.result.failure is None
    assert (seen.count(SGD), seen.count("aten::item")) == (4, 4)
    assert "Traceback" not in seen.stderr


def test_53_arguments(tmp_path: Path) -> None:
    typed = ["--lr", "1e-3", "--profile", "cpu", "--out", "a b/c", "-vv", "--name", 'quote " and \\ and $HOME']
    seen = run_script(case_path("53", "train.py"), tmp_path, *typed, "--", "--weird", "-x")
    args, argv0 = seen.stdout.splitlines()
    assert json.loads(args.partition(" ")[2]) == {
        "lr": 0.001, "profile": "cpu", "out": "a b/c", "v": 2, "name": 'quote " and \\ and $HOME',
        "rest": ["--weird", "-x"],
    }  # fmt: skip
    assert argv0 == "ARGV0 train.py"
    assert seen.count(SGD) == 3


def test_53_without_arguments(tmp_path: Path) -> None:
    seen = run_script(case_path("53", "train.py"), tmp_path)
    assert seen.result.script_exit == 2
    assert "usage: train.py" in seen.stderr
    assert seen.result.traces == ()
    assert seen.result.failure is None


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_54_loader_workers(tmp_path: Path, mode: str) -> None:
    seen = run_script(case_path("54", "train.py"), tmp_path, mode)
    assert seen.stdout.splitlines() == ["MAIN START", "batches 8"]
    assert seen.result.script_exit == 0
    assert seen.count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") in (8, 9)
    assert seen.count("aten::sin") == 0
    assert len(seen.steps) == 8
    assert any("loader's worker" in notice for notice in seen.result.notices)


def test_55_package(tmp_path: Path) -> None:
    script = case_path("55", "pkg") / "train.py"
    assert package_module(str(script)) == ("pkg.train", str(case_path("55")))
    seen = run_script("", tmp_path, module="pkg.train", cwd=str(case_path("55")))
    assert seen.stdout == "ok pkg pkg pkg.train\n"
    assert seen.count(SGD) == 5
    seen = run_script("", tmp_path, module="pkg", cwd=str(case_path("55")))
    assert seen.stdout == "ok pkg pkg pkg.train\n"


def test_55_package_as_a_file(tmp_path: Path) -> None:
    seen = run_script(case_path("55", "pkg") / "train.py", tmp_path)
    assert seen.result.failure is not None
    assert seen.result.failure.title == "ImportError: attempted relative import with no known parent package"
    assert "as a module" in seen.result.failure.hint


def test_56_plain_loop(tmp_path: Path) -> None:
    seen = run_script(case_path("56", "plain_loop.py"), tmp_path)
    assert seen.stdout == "finished 12 iterations\n"
    assert seen.count(SGD) == 12
    assert len(seen.steps) == 12
    steps = seen.result.manifest["steps"]
    assert (steps["source"], steps["marked_by_script"], steps["count"]) == ("optimizer", False, 12)


def test_56_own_profiler_never_steps(tmp_path: Path) -> None:
    seen = run_script(case_path("56", "own_schedule_never_steps.py"), tmp_path)
    assert seen.stdout == "finished 12 iterations\n"
    assert seen.count(SGD) == 12
    assert any("prof.step() was not called" in notice for notice in seen.result.notices)


def test_57_crash(tmp_path: Path) -> None:
    script = case_path("57", "train.py")
    seen = run_script(script, tmp_path)
    assert seen.stdout.splitlines() == ["step 1", "step 2", "step 3"]
    assert seen.result.script_exit == 1
    failure = seen.result.failure
    assert failure is not None
    assert failure.title == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x63 and 64x64)"
    assert failure.users_frame is not None
    assert failure.users_frame.code.startswith("return model(torch.randn(32, 63))")
    assert "steplens" not in seen.stderr
    assert "_child" not in seen.stderr
    assert seen.count(SGD) == 2
    assert len(seen.steps) == 2
    assert "kept" in seen.result.words


def wait_for(condition, limit_s: float = 60.0) -> None:
    """Look again and again until something is so."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_58_endless(tmp_path: Path) -> None:
    run, seen = start(RunSpec(sys.executable, script=str(case_path("58", "endless.py")), runs_root=str(tmp_path)))
    wait_for(lambda: run.gathered.traces)
    began = time.monotonic()
    run.stop()
    result = run.wait(20)
    assert result is not None
    assert time.monotonic() - began < 5
    assert result.outcome == "stopped"
    assert "cleaning up after" in seen.stdout
    seen.result = result
    assert len(seen.steps) == 5


def test_58_stubborn(tmp_path: Path) -> None:
    script = str(case_path("58", "endless_stubborn.py"))
    run, seen = start(RunSpec(sys.executable, script=script, runs_root=str(tmp_path)))
    wait_for(lambda: run.gathered.traces)
    began = time.monotonic()
    run.stop()
    result = run.wait(20)
    assert result is not None
    assert time.monotonic() - began < 6
    assert result.outcome == "killed"
    assert "was killed" in result.words
    assert len(result.traces) == 1
    assert run._process is not None
    assert descendants(run._process.pid) == set()


def test_59_flood(tmp_path: Path) -> None:
    seen = run_script(case_path("59", "train.py"), tmp_path)
    assert seen.result.script_exit == 0
    assert "\nline 099999 " in seen.stdout
    assert seen.stdout.endswith("no newline at the end")
    assert seen.stderr.endswith("warn 099990\n")
    assert seen.count(SGD) == 5
    assert (seen.result.folder / "output.log").stat().st_size > 9_000_000


def test_60_changes_folder(tmp_path: Path) -> None:
    seen = run_script(case_path("60", "train.py"), tmp_path)
    assert seen.stdout.splitlines() == [f"START {case_path('60').name}", "DATA hello", "FILES ['result.txt']"]
    assert seen.count(SGD) == 4
    assert seen.result.trace is not None
    assert seen.result.trace.is_relative_to(tmp_path)


def test_61_spawned_ranks(tmp_path: Path) -> None:
    seen = run_script(case_path("61", "train.py"), tmp_path, env={"CASE_PORT": "29671"})
    lines = seen.stdout.splitlines()
    assert lines[0] == "MAIN START"
    assert lines[-1] == "MAIN END"
    assert sorted(lines[1:-1]) == ["rank 0 done", "rank 1 done"]
    ranks = [row for row in seen.result.manifest["traces"] if row.get("rank") is not None]
    assert sorted(row["rank"] for row in ranks) == [0, 1]
    for row in ranks:
        events = json.loads((seen.result.folder / row["path"]).read_text())["traceEvents"]
        assert sum(e.get("name") == SGD for e in events) == 5


def test_63_input_is_closed(tmp_path: Path) -> None:
    seen = run_script(case_path("63", "train.py"), tmp_path)
    assert seen.stdout == "How many steps? "
    assert seen.result.failure is not None
    assert "asks for input" in seen.result.failure.hint


def test_63_input_is_typed(tmp_path: Path) -> None:
    script = str(case_path("63", "train.py"))
    run, seen = start(RunSpec(sys.executable, script=script, runs_root=str(tmp_path), stdin="pipe"))
    wait_for(lambda: "How many steps? " in seen.stdout)
    run.write_stdin("3\n")
    result = run.wait(60)
    assert result is not None
    seen.result = result
    assert "did 3" in seen.stdout
    assert seen.count(SGD) == 3


def test_64_bytes_of_any_kind(tmp_path: Path) -> None:
    seen = run_script(case_path("64", "train.py"), tmp_path)
    assert seen.result.script_exit == 0
    for piece in (
        "latin1 caf\ufffd\n",
        "bytes \ufffd\ufffd\x00\ufffd end\n",
        "中文 🚀\n",
        "split é char\n",
        "last line",
    ):
        assert piece in seen.stdout
    assert seen.stderr.endswith("stderr \ufffd byte\n")
    assert seen.count(SGD) == 11


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [("os_exit.py", 7, "exit status 7"), ("sigkill.py", -9, "signal 9"), ("segfault.py", -11, "signal 11")],
)
def test_66_dies_hard(tmp_path: Path, name: str, status: int, words: str) -> None:
    seen = run_script(case_path("66", name), tmp_path)
    assert seen.stdout == "bye\n"
    assert seen.result.script_exit == status
    assert words in seen.result.words
    assert "No trace was recorded" in seen.result.words
    assert ("memory" in seen.result.words) == (status == -9)


def test_69_odd_path(tmp_path: Path) -> None:
    script = next((case_path("69") / "训练 脚本 (copy)").glob("*.py"))
    seen = run_script(script, tmp_path)
    assert seen.stdout == f"RAN {script.name}\n"
    assert seen.count(SGD) == 2
    assert seen.result.manifest["name"] == script.name


@pytest.mark.parametrize(
    ("name", "title"), [("syntax_error.py", "SyntaxError"), ("missing_module.py", "ModuleNotFoun")]
)
def test_70_fails_at_once(tmp_path: Path, name: str, title: str) -> None:
    seen = run_script(case_path("70", name), tmp_path)
    assert seen.result.script_exit == 1
    assert seen.result.failure is not None
    assert seen.result.failure.title.startswith(title)
    assert seen.result.failure.frames[-1].line == 2
    assert seen.result.failure.frames[-1].file.endswith(name)
    assert seen.result.traces == ()


@pytest.mark.parametrize(("name", "text"), [("no_torch.py", "I never import torch 45\n"), ("empty.py", "")])
def test_70_no_torch(tmp_path: Path, name: str, text: str) -> None:
    seen = run_script(case_path("70", name), tmp_path)
    assert seen.stdout == text
    assert seen.result.script_exit == 0
    assert seen.result.notices == ("The script did not use torch: nothing was recorded.",)
    assert seen.result.traces == ()


def test_71_long_run(tmp_path: Path) -> None:
    seen = run_script(case_path("71", "train.py"), tmp_path)
    assert "2000 steps in" in seen.stdout
    assert seen.result.trace is not None
    assert seen.result.trace.stat().st_size < 100_000_000
    assert len(seen.steps) == 5
    steps = seen.result.manifest["steps"]
    assert steps["count"] == 2000
    assert 0 < steps["wall_step_us"] < steps["profiled_step_us"]


def test_72_work_in_a_thread(tmp_path: Path) -> None:
    seen = run_script(case_path("72", "train.py"), tmp_path)
    assert seen.stdout == "joined\n"
    assert seen.count(SGD) == 6


def test_a_copy_without_git_says_so(tmp_path: Path) -> None:
    script = tmp_path / "copy.py"
    shutil.copyfile(case_path("70", "no_torch.py"), script)
    seen = run_script(script, tmp_path / "runs")
    inside = subprocess.run(["git", "-C", str(tmp_path), "rev-parse"], capture_output=True, check=False).returncode == 0
    assert inside or seen.result.manifest["git"] is None
