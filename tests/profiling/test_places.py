"""A run folder that is renamed, moved or deleted while the script runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiling import manifest
from profiling._child_place import Place
from profiling.processes import WINDOWS
from profiling.run import Run
from profiling.spec import RunSpec
from tests.profiling import light
from tests.profiling.runs import Seen, _until, start

SCRIPT = """
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for i in range(6):
    o.zero_grad(); (w @ w).sum().backward(); o.step()
    if i == 2: input("ready")
print("end")
"""


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[Run, Seen]]:
    """A script that has trained a little and waits for a line."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    spec = RunSpec(
        sys.executable, str(script), stdin="pipe", env=light.write(tmp_path), runs_root=str(tmp_path / "runs")
    )
    run, seen = start(spec)
    _until(lambda: "ready" in seen.stdout, 100)
    yield run, seen
    run.stop(now=True)
    run.wait(10)


@pytest.mark.torch
@pytest.mark.skipif(WINDOWS, reason="Windows does not let a folder in use be renamed")
def test_a_folder_that_is_moved_keeps_its_run(waiting: tuple[Run, Seen], tmp_path: Path) -> None:
    run, _ = waiting
    target = tmp_path / "elsewhere" / "mine"
    target.parent.mkdir()
    first = run.folder
    first.rename(target)
    run.write_stdin("\n")
    result = run.wait(60)
    assert result is not None
    assert not first.exists()
    assert (result.folder, result.outcome) == (target, "ok")
    assert result.trace == target / "trace.json"
    assert result.trace.is_file()
    kept = manifest.read(target)
    assert kept is not None
    assert (kept["state"], kept["steps"]["count"]) == ("ok", 6)
    assert (target / "output.log").read_text().endswith("end\n")
    assert not (target / "child.json").exists()


@pytest.mark.torch
@pytest.mark.skipif(WINDOWS, reason="Windows does not let a folder in use be deleted")
def test_a_folder_that_is_deleted_does_not_keep_the_run_from_ending(waiting: tuple[Run, Seen]) -> None:
    run, seen = waiting
    shutil.rmtree(run.folder)
    run.write_stdin("\n")
    result = run.wait(60)
    assert result is not None
    assert seen.stdout.endswith("end\n")
    assert (result.outcome, [path.name for path in result.traces]) == ("ok", ["trace.json"])
    assert manifest.read(result.folder) is not None


@pytest.mark.torch
@pytest.mark.skipif(WINDOWS, reason="Windows does not let a folder in use be deleted")
def test_a_folder_that_becomes_a_file_is_named_as_the_reason(waiting: tuple[Run, Seen]) -> None:
    run, _ = waiting
    shutil.rmtree(run.folder)
    run.folder.write_text("mine")
    run.write_stdin("\n")
    result = run.wait(60)
    assert result is not None
    assert run.folder.read_text() == "mine"
    assert (result.outcome, result.exit_status, result.traces) == ("ok", 3, ())
    assert "could not be written: Not a directory" in (result.fault or "")
    assert "nothing-ran" not in [notice.key for notice in result.notices]


def test_a_place_follows_its_folder_and_no_other(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    place = Place(str(first))
    assert place.now() == str(first)
    if not WINDOWS:
        first.rename(tmp_path / "second")
        first.mkdir()  # another one in its place
        assert place.now() == str(tmp_path / "second")
        (tmp_path / "second").rmdir()
        assert place.now() == str(tmp_path / "second")
    place.let_go()
    assert Place(str(tmp_path / "none")).now() == str(tmp_path / "none")


STUBBORN = """
import signal, time, torch
signal.signal(signal.SIGINT, signal.SIG_IGN)
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
while True:
    o.zero_grad(); (w @ w).sum().backward(); o.step()
    print("step", flush=True)
    time.sleep(0.4)
"""


@pytest.mark.torch
@pytest.mark.skipif(WINDOWS, reason="the script ignores a signal that Windows does not have")
def test_a_script_that_does_not_follow_stop_leaves_its_steps(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STUBBORN)
    run, seen = start(
        RunSpec(sys.executable, str(script), stdin="null", env=light.write(tmp_path), runs_root=str(tmp_path / "runs"))
    )
    _until(lambda: seen.stdout.count("step") >= 2, 100)
    run.stop()
    result = run.wait(60)
    assert result is not None
    assert result.outcome in ("stopped", "killed")
    assert result.trace is not None
    assert result.manifest["traces"][0]["steps"]
    assert not (result.folder / "stop").exists()
