"""The check for machines with a GPU says what it misses, and where its samples come from: without one, on a model."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.rule_runner import load_rules
from examples import gpu_check
from profiling.preflight import Device

SAMPLES = gpu_check.ROOT / "resources" / "samples"


def run_of(folder: Path, stage: int, *, lines: bool = True) -> Any:
    """What a run of this stage would leave on a machine with a GPU; the trace is a simulated one."""
    trace = folder / "trace.json"
    trace.write_bytes(gzip.decompress((SAMPLES / f"story_stage{stage}_simulated.json.gz").read_bytes()))
    if lines:
        file = str(gpu_check.STORY / f"stage{stage}.py")
        sources = [{"file": file, "line": line, "function": "weighted_nll"} for line in (17, 19, 28)]
        calls = [{"source": source, "times": 1, "stack": []} for source in (*sources, None)]
        (folder / "sync_lines.json").write_text(json.dumps({"calls": calls}))
    manifest = {"torch": "2.13.0+cu126", "python": "3.11.7", "created": 1.8e9, "steps": {"wall_step_us": 1200.0}}
    return SimpleNamespace(outcome="ok", words="", folder=folder, trace=trace, notices=(), manifest=manifest)


def test_a_capture_with_everything_has_no_faults(tmp_path: Path) -> None:
    result = run_of(tmp_path, 0)
    assert gpu_check.faults_of(0, result, gpu_check.analyze(result.trace), 1200.0) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    result = run_of(tmp_path, 0, lines=False)
    result.manifest["steps"]["wall_step_us"] = None
    found = {"trace": {"has_gpu": False}, "steps": [1], "suggestions": [], "sync_points": []}
    assert gpu_check.faults_of(0, result, found, None) == [
        "its steps could not be timed without the profiler",
        "no kernels in the trace (CUPTI?)",
        "only 1 steps",
        "the run timed no step without the profiler",
        *(f"{rule} was not found" for rule in gpu_check.EXPECTED[0]),
        "no sync points",
        "exact lines of 3 synchronising calls, found []",
    ]


def test_a_fault_that_a_stage_has_put_right_must_be_gone(tmp_path: Path) -> None:
    result = run_of(tmp_path, 0)
    found = gpu_check.analyze(result.trace)
    assert gpu_check.faults_of(3, result, found, 1200.0) == [f"{rule} is still found" for rule in gpu_check.EXPECTED[0]]


def test_the_rules_that_are_expected_exist() -> None:
    known = {loaded.rule.id for loaded in load_rules()}
    assert {rule for rules in gpu_check.EXPECTED.values() for rule in rules} <= known


def test_a_sample_says_where_it_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_of(tmp_path, 6)
    target = tmp_path / "kept" / "story_stage6_measured.json.gz"
    gpu_check.keep_sample(result, target, gpu_check.origin_of(result, Path("stage6.py"), "NVIDIA H200", 900.0))
    assert gzip.decompress(target.read_bytes()) == result.trace.read_bytes()
    origin = json.loads((target.parent / "story_stage6_measured.origin.json").read_text())
    assert (origin["device"], origin["torch"], origin["measured_step_us"]) == ("NVIDIA H200", "2.13.0+cu126", 900.0)
    assert "kept as" in capsys.readouterr().out


GPU = Device(0, "NVIDIA H200", 100 << 30, 140 << 30)


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A GPU is there; stage 1 cannot be captured at all, the others as simulated."""
    monkeypatch.setattr("sys.argv", ["gpu_check", "--stages", "1", "0"])
    monkeypatch.setattr(gpu_check, "look", lambda: ([GPU], ["torch 2.13.0, NVIDIA H200"]))
    monkeypatch.setattr(gpu_check, "timed_step_us", lambda *_: 1200.0)
    monkeypatch.setattr(gpu_check, "analyze", lambda *_: {"summary": {"step_us": 1300.0}})
    monkeypatch.setattr(gpu_check, "faults_of", lambda *_: [])

    def capture(script: Path, _runs: Path, batch: int, _limit_s: float) -> tuple[Any, bool]:
        assert batch == gpu_check.WHOLE_BATCH
        if script.stem == "stage1":
            raise RuntimeError("no such call")
        return run_of(tmp_path, 0), False

    monkeypatch.setattr(gpu_check, "capture", capture)


@pytest.mark.usefixtures("on_a_gpu")
def test_a_stage_that_fails_leaves_the_others_their_turn(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main() == 1
    out = capsys.readouterr().out
    assert "1 missing: all of it (RuntimeError: no such call)" in out
    assert "    0 " in out
    assert out.endswith("1 things are missing\n")


@pytest.mark.usefixtures("on_a_gpu")
def test_the_check_ends_with_a_capture_that_was_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = SimpleNamespace(outcome="stopped", words="It was stopped.", trace=None, notices=())
    monkeypatch.setattr(gpu_check, "capture", lambda *_: (stopped, False))
    assert gpu_check.main() == 130
    assert "It was stopped." in capsys.readouterr().out
    monkeypatch.setattr(gpu_check, "capture", lambda *_: (stopped, True))  # it took too long: the next one
    assert gpu_check.main() == 1
    assert capsys.readouterr().out.count("its capture was not over after 300 s") == 2


def test_what_takes_too_long_is_ended_with_its_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.output_of([sys.executable, "-c", "print(7)"], 60) == "7\n"
    assert gpu_check.output_of([sys.executable, "-c", "raise SystemExit('broken')"], 60) == ""
    assert "broken" in capsys.readouterr().err
    code = "import os, time; os.fork(); time.sleep(3600)"
    assert gpu_check.output_of([sys.executable, "-c", code], 0.2) == ""
    assert "not over after" in capsys.readouterr().err


def test_small_devices_get_small_batches() -> None:
    assert [gpu_check.batch_for(gib << 30) for gib in (6, 15, 16, 140)] == [128, 128, 1024, 1024]


def test_without_a_gpu_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_check"])
    monkeypatch.setattr(gpu_check, "look", lambda: ([], ["This torch is a CPU build."]))
    assert gpu_check.main() == 0
    assert "This torch is a CPU build." in capsys.readouterr().out
