"""Every script of the fault cases behaves under the profiler as its ``expect.md`` says."""

from __future__ import annotations

import json
import statistics
import sys

import pytest

from profiling.notices import SLOWER_UNPROFILED
from profiling.spec import package_module
from tests.profiling.runs import Seen
from tests.shared import case_path, needs_shared

pytestmark = [needs_shared, pytest.mark.torch]
TYPED = ("--lr", "1e-3", "--profile", "cpu", "--out", "a b/c", "-vv", "--name", 'quote " and \\ and $HOME')
TYPED = (*TYPED, "--", "--weird", "-x")
SGD = "Optimizer.step#SGD.step"


@pytest.mark.launch(case="52", name="train.py")
def test_52_sys_exit(seen: Seen) -> None:
    assert seen.stdout.splitlines() == ["step 1", "step 2", "step 3", "step 4", "early stop", "atexit ran"]
    assert seen.result.script_exit == 3
    assert seen.result.failure is None
    assert (seen.count(SGD), seen.count("aten::item")) == (4, 4)
    assert "Traceback" not in seen.stderr


@pytest.mark.launch(case="53", name="train.py", argv=TYPED)
def test_53_arguments(seen: Seen) -> None:
    args, argv0 = seen.stdout.splitlines()
    assert json.loads(args.partition(" ")[2]) == {
        "lr": 0.001, "profile": "cpu", "out": "a b/c", "v": 2, "name": 'quote " and \\ and $HOME',
        "rest": ["--weird", "-x"],
    }  # fmt: skip
    assert argv0 == "ARGV0 train.py"
    assert seen.count(SGD) == 3


@pytest.mark.launch(case="53", name="train.py")
def test_53_without_arguments(seen: Seen) -> None:
    assert seen.result.script_exit == 2
    assert "usage: train.py" in seen.stderr
    assert seen.result.traces == ()
    assert seen.result.failure is None


@pytest.mark.launch(case="53", name="train.py", argv=("-h",))
def test_53_help(seen: Seen) -> None:
    assert seen.result.script_exit == 0
    assert seen.stdout.startswith("usage: train.py [-h] --lr LR")
    assert "options:" in seen.stdout
    assert seen.result.failure is None
    assert seen.steps == [] if seen.result.traces else True
    assert any("there is no trace" in n or "no step marks" in n for n in seen.result.notices)


def launched(case: str, *values: object, **wishes: object) -> object:
    """A parameter set whose run is started beforehand."""
    return pytest.param(*values, marks=pytest.mark.launch(case=case, **wishes), id=str(wishes.get("name", values[0])))


@pytest.mark.parametrize(
    "mode",
    [launched("54", mode, name="train.py", argv=(mode,)) for mode in ("fork", "spawn")],
)
def test_54_loader_workers(seen: Seen, mode: str) -> None:
    assert seen.stdout.splitlines() == ["MAIN START", "batches 8"]
    assert seen.result.script_exit == 0
    assert seen.count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") in (8, 9)
    assert seen.count("aten::sin") == 0
    assert len(seen.steps) == 8
    assert any("loader's worker" in notice for notice in seen.result.notices)


@pytest.mark.parametrize("module", [launched("55", m, module=m) for m in ("pkg.train", "pkg")])
def test_55_package(seen: Seen, module: str) -> None:
    script = case_path("55", "pkg") / "train.py"
    assert package_module(str(script)) == ("pkg.train", str(case_path("55")))
    assert seen.stdout == "ok pkg pkg pkg.train\n"
    assert seen.count(SGD) == 5


@pytest.mark.launch(case="55", name="pkg/train.py")
def test_55_package_as_a_file(seen: Seen) -> None:
    assert seen.result.failure is not None
    assert seen.result.failure.title == "ImportError: attempted relative import with no known parent package"
    assert "as a module" in seen.result.failure.hint


@pytest.mark.launch(case="56", name="plain_loop.py")
def test_56_plain_loop(seen: Seen) -> None:
    assert seen.stdout == "finished 12 iterations\n"
    assert seen.count(SGD) == 12
    assert len(seen.steps) == 12
    steps = seen.result.manifest["steps"]
    assert (steps["source"], steps["marked_by_script"], steps["count"]) == ("optimizer", False, 12)


@pytest.mark.launch(case="56", name="own_schedule_never_steps.py")
def test_56_own_profiler_never_steps(seen: Seen) -> None:
    assert seen.stdout == "finished 12 iterations\n"
    assert seen.count(SGD) == 12
    assert any("prof.step() was not called" in notice for notice in seen.result.notices)


@pytest.mark.launch(case="57", name="train.py")
def test_57_crash(seen: Seen) -> None:
    assert seen.stdout.splitlines() == ["step 1", "step 2", "step 3"]
    assert seen.result.script_exit == 1
    failure = seen.result.failure
    assert failure is not None
    assert failure.title == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x63 and 64x64)"
    assert failure.users_frame is not None
    assert failure.users_frame.code.startswith("return model(torch.randn(32, 63))")
    assert "steplens" not in seen.stderr.replace(sys.prefix, "")  # whose folder may be called so
    assert "_child" not in seen.stderr
    assert seen.count(SGD) == 2
    assert len(seen.steps) == 2
    assert "kept" in seen.result.words


@pytest.mark.launch(case="58", name="endless.py", stop=True)
def test_58_endless(seen: Seen) -> None:
    assert seen.result.outcome == "stopped"  # it ended before it would have been killed, see test_stop.py for when
    assert "cleaning up after" in seen.stdout
    assert len(seen.steps) == 5


@pytest.mark.launch(case="58", name="endless_stubborn.py", stop=True)
def test_58_stubborn(seen: Seen) -> None:
    assert seen.result.outcome == "killed"
    assert "was killed" in seen.result.words
    assert len(seen.result.traces) == 1
    assert seen.left == set()


@pytest.mark.launch(case="59", name="train.py")
def test_59_flood(seen: Seen) -> None:
    assert seen.result.script_exit == 0
    assert "\nline 099999 " in seen.stdout
    assert seen.stdout.endswith("no newline at the end")
    assert seen.stderr.endswith("warn 099990\n")
    assert seen.count(SGD) == 5
    assert (seen.result.folder / "output.log").stat().st_size > 9_000_000


@pytest.mark.launch(case="60", name="train.py")
def test_60_changes_folder(seen: Seen) -> None:
    assert seen.stdout.splitlines() == [f"START {case_path('60').name}", "DATA hello", "FILES ['result.txt']"]
    assert seen.count(SGD) == 4
    assert seen.result.trace is not None
    assert seen.result.trace.parent == seen.result.folder


@pytest.mark.launch(case="61", name="train.py", whole_torch=True, port="CASE_PORT")
def test_61_spawned_ranks(seen: Seen) -> None:
    lines = seen.stdout.splitlines()
    assert lines[0] == "MAIN START"
    assert lines[-1] == "MAIN END"
    for rank in (0, 1):  # both write to one pipe, and may come between the other's text and its line end
        assert seen.stdout.count(f"rank {rank} done") == 1
    ranks = [row for row in seen.result.manifest["traces"] if row.get("rank") is not None]
    assert sorted(row["rank"] for row in ranks) == [0, 1]
    for row in ranks:
        events = json.loads((seen.result.folder / row["path"]).read_text("utf-8", "replace"), strict=False)[
            "traceEvents"
        ]
        assert sum(e.get("name") == SGD for e in events) == 5


@pytest.mark.launch(case="63", name="train.py")
def test_63_input_is_closed(seen: Seen) -> None:
    assert seen.stdout == "How many steps? "
    assert seen.result.failure is not None
    assert "asks for input" in seen.result.failure.hint


@pytest.mark.launch(case="63", name="train.py", answers={"How many steps? ": "3\n"})
def test_63_input_is_typed(seen: Seen) -> None:
    assert "did 3" in seen.stdout
    assert seen.count(SGD) == 3


@pytest.mark.launch(case="64", name="train.py")
def test_64_bytes_of_any_kind(seen: Seen) -> None:
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
    ("status", "words"),
    [
        launched("66", 7, "exit status 7", name="os_exit.py"),
        launched("66", -9, "signal 9", name="sigkill.py"),
        launched("66", -11, "signal 11", name="segfault.py"),
    ],
)
def test_66_dies_hard(seen: Seen, status: int, words: str) -> None:
    assert seen.stdout == "bye\n"
    assert seen.result.script_exit == status
    assert words in seen.result.words
    assert ("kept" if status == 7 else "No trace was recorded") in seen.result.words
    assert len(seen.result.traces) == (status == 7)
    assert ("memory" in seen.result.words) == (status == -9)


@pytest.mark.launch(case="69", name="*/*.py")
def test_69_odd_path(seen: Seen) -> None:
    script = next((case_path("69") / "训练 脚本 (copy)").glob("*.py"))
    assert seen.stdout == f"RAN {script.name}\n"
    assert seen.count(SGD) == 2
    assert seen.result.manifest["name"] == script.name


@pytest.mark.parametrize(
    ("name", "title"),
    [
        launched("70", "syntax_error.py", "SyntaxError", name="syntax_error.py"),
        launched("70", "missing_module.py", "ModuleNotFoundError", name="missing_module.py"),
    ],
)
def test_70_fails_at_once(seen: Seen, name: str, title: str) -> None:
    assert seen.result.script_exit == 1
    assert seen.result.failure is not None
    assert seen.result.failure.title.startswith(title)
    assert seen.result.failure.frames[-1].line == 2
    assert seen.result.failure.frames[-1].file.endswith(name)
    assert seen.result.traces == ()


@pytest.mark.parametrize(
    "text",
    [
        launched("70", "I never import torch 45\n", name="no_torch.py"),
        launched("70", "", name="empty.py"),
    ],
)
def test_70_no_torch(seen: Seen, text: str) -> None:
    assert seen.stdout == text
    assert seen.result.script_exit == 0
    assert seen.result.notices == ("The script did not use torch: nothing was recorded.",)
    assert seen.result.traces == ()


@pytest.mark.launch(case="71", name="train.py", whole_torch=True)
def test_71_long_run(seen: Seen) -> None:
    assert "2000 steps in" in seen.stdout
    assert seen.result.trace is not None
    assert seen.result.trace.stat().st_size < 100_000_000
    assert len(seen.steps) == 5
    steps = seen.result.manifest["steps"]
    assert steps["count"] == 2000
    assert steps["wall_step_us"] > 0
    if steps["wall_step_us"] > SLOWER_UNPROFILED * steps["profiled_step_us"]:  # other programs ran: that is said
        assert any("took longer without the profiler" in notice for notice in seen.result.notices)
    # The whole loop against its own pace once the window is over: what the recordings add to 2000 steps.
    kept = steps["timings"]
    usual = statistics.median(row["us"] for row in kept if row["phase"] == "done")
    recorded = [row["us"] for row in kept if row["phase"] in ("early", "prime", "window")]
    assert len(recorded) <= 16 + 1 + 5
    assert sum(recorded) + usual * (2000 - len(recorded)) < 2 * 2000 * usual


@pytest.mark.launch(case="72", name="train.py")
def test_72_work_in_a_thread(seen: Seen) -> None:
    assert seen.stdout == "joined\n"
    assert seen.count(SGD) == 6
    assert any("(trainer)" in str(e["args"].get("name")) for e in seen.events if e.get("name") == "thread_name")
