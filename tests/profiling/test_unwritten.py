"""Whatever cannot be written, a run ends with a result that says so."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profiling import manifest
from profiling import run as runs
from profiling.errors import ProfilingError
from profiling.events import Tail
from profiling.processes import WINDOWS
from profiling.result import RunResult
from profiling.spec import RunSpec
from tests.profiling.runs import Seen, start

LIMITED = """
import resource, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for i in range(20):
    o.zero_grad(); (w @ w).sum().backward(); o.step()
print("end")
"""


@pytest.mark.torch
@pytest.mark.skipif(WINDOWS, reason="a limit of POSIX")
@pytest.mark.launch(text=LIMITED)
def test_a_trace_that_could_not_be_written_is_told_with_its_reason(seen: Seen) -> None:
    result = seen.result
    assert (seen.stdout, result.outcome, result.exit_status, result.traces) == ("end\n", "ok", 3, ())
    assert result.fault is not None
    assert result.fault.key == "unsaved-large"
    assert "nothing-ran" not in [notice.key for notice in result.notices]
    assert not result.missed_its_window
    assert not [path.name for path in result.folder.iterdir() if "trace" in path.name]


def quick(folder: Path) -> RunSpec:
    """A script without torch."""
    script = folder / "short.py"
    script.write_text("print(input())")
    return RunSpec(sys.executable, str(script), stdin="pipe", runs_root=str(folder / "runs"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_cuts_the_log_and_not_the_run(tmp_path: Path) -> None:
    run, seen = start(quick(tmp_path))
    run._close_log()
    run._log = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the run closes it
    run.write_stdin("hello\n")
    result = run.wait(60)
    assert result is not None
    assert (seen.stdout, result.outcome) == ("hello\n", "ok")
    assert any(notice.key == "log-cut" and "No space left" in notice for notice in result.notices)


def test_a_disk_that_is_full_beforehand_is_told_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = manifest.write

    def full(folder: Path, content: Mapping[str, Any]) -> None:
        if folder.parent.parent != tmp_path:
            return write(folder, content)  # of another test's script, which runs meanwhile
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(manifest, "write", full)
    with pytest.raises(ProfilingError, match="No space left"):
        runs.Run(quick(tmp_path)).start()
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("status", [0, 3])
def test_a_fault_of_ours_becomes_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    spec, build = quick(tmp_path), runs.build_result

    def broken(of: RunSpec, *rest: Any, **more: Any) -> RunResult:
        if of is not spec:
            return build(of, *rest, **more)  # another test's script, which runs meanwhile
        raise ValueError("unforeseen")

    monkeypatch.setattr(runs, "build_result", broken)
    Path(spec.script).write_text(f"input(); raise SystemExit({status})")
    run, _ = start(spec)
    run.write_stdin("\n")
    result = run.wait(60)
    assert result is not None
    assert (result.script_exit, result.exit_status) == (status, 3 if status == 0 else 4)
    assert "ValueError: unforeseen" in (result.fault or "")


def test_a_callback_that_fails_does_not_keep_the_run_from_ending(tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("the window is gone")

    run = runs.Run(quick(tmp_path), on_progress=broken)
    run.start()
    run.write_stdin("\n")
    result = run.wait(60)
    assert result is not None
    assert "the window is gone" in (result.fault or "")


@pytest.mark.skipif(WINDOWS, reason="Windows does not let a file in use be deleted")
def test_events_go_on_in_a_file_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    path.write_text('{"ev": 1}\n')
    assert tail.read() == [{"ev": 1}]
    with path.open("a") as out:
        out.write('{"ev": 2}\n')
    path.unlink()
    path.write_text('{"ev": 3}\n{"ev": 4')
    assert tail.read() == [{"ev": 2}, {"ev": 3}]
    with path.open("a") as out:
        out.write("}\n")
    assert tail.read() == [{"ev": 4}]
    tail.close()


def test_a_relative_folder_for_runs_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    script = tmp_path / "sub" / "short.py"
    script.write_text("print(1)")
    run, seen = start(RunSpec(sys.executable, str(script), stdin="null", runs_root="mine"))
    result = run.wait(60)
    assert result is not None
    assert (seen.stdout, result.folder.parent) == ("1\n", tmp_path / "mine")
