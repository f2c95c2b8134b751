"""What ``main.py profile`` says of a run at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiling.command import lines_of
from profiling.outcome import read_traceback
from profiling.result import RunResult
from profiling.spec import RunSpec, from_json


def told(tmp_path: Path, output: str = "", **manifest: Any) -> str:
    result = RunResult(
        outcome="ok",
        words="The script ended normally.",
        script_exit=0,
        folder=tmp_path,
        traces=(),
        tail=output,
        notices=(),
        failure=read_traceback(output) if output else None,
        manifest=manifest,
    )
    return "\n".join(lines_of(result))


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ([25, 26, 27, 28, 29], "Steps: 2000, 5 of them recorded (25 to 29); from optimizer steps."),
        ([4, 5, 9, 10], "Steps: 2000, 4 of them recorded (4 to 5, 9 to 10); from optimizer steps."),
        ([7], "Steps: 2000, 1 of them recorded (7); from optimizer steps."),
        ([], "Steps: 2000, 0 of them recorded; from optimizer steps."),
    ],
)
def test_it_is_said_which_steps_were_recorded(recorded, words, tmp_path):
    assert words in told(tmp_path, steps={"count": 2000, "recorded": recorded, "source_words": "optimizer steps"})


def test_an_error_of_syntax_lies_in_no_function(tmp_path):
    output = '  File "/home/me/train.py", line 2\n    print("a"\n         ^\nSyntaxError: \'(\' was never closed\n'
    text = told(tmp_path, output)
    assert 'at /home/me/train.py:2: print("a"' in text
    assert " in :" not in text


def test_a_file_of_a_package_is_run_as_the_module_that_it_is(tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    for name in ("__init__.py", "train.py"):
        (package / name).touch()
    output = (
        "Traceback (most recent call last):\n"
        f'  File "{package / "train.py"}", line 2, in <module>\n'
        "    from .model import Net\n"
        "ImportError: attempted relative import with no known parent package\n"
    )
    text = told(tmp_path, output, spec={"script": str(package / "train.py")})
    assert f"main.py profile --cwd {tmp_path} -m pkg.train" in text
    assert "main.py profile --cwd" not in told(tmp_path, output, spec={"script": str(tmp_path / "alone.py")})


def test_a_run_that_missed_its_window_is_told_how_to_record_from_the_start(tmp_path):
    spec = {"schedule": {"skip": 1, "warmup": 3, "active": 5, "repeat": 1}}
    light = {"path": "trace.json", "kind": "own", "left_out": ["shapes"]}
    whole = {"path": "trace.json", "kind": "own", "left_out": []}
    hint = "--skip 0 --warmup 0"
    assert hint in told(tmp_path, spec=spec, steps={"count": 12, "recorded": list(range(8))}, traces=[light])
    assert hint in told(tmp_path, spec=spec, steps={"count": 15, "recorded": [12, 13, 14]}, traces=[whole])
    assert hint in told(tmp_path, spec=spec, steps={"count": 15, "recorded": []}, traces=[])
    assert hint not in told(tmp_path, spec=spec, steps={"count": 20, "recorded": [8, 9, 10, 11, 12]}, traces=[whole])
    assert hint not in told(tmp_path, spec=spec, steps={"count": 3, "recorded": [0, 1, 2]}, traces=[whole])
    assert hint not in told(tmp_path, spec=spec, steps={"count": 0, "recorded": []}, traces=[whole])
    own = {"schedule": {"skip": 0, "warmup": 0, "active": 5, "repeat": 1}}
    assert hint not in told(tmp_path, spec=own, steps={"count": 15, "recorded": [0]}, traces=[whole])
    script = [{"path": "script-trace-1.json", "kind": "script"}]
    assert hint not in told(tmp_path, spec=spec, steps={"count": 15, "recorded": []}, traces=script)


@pytest.mark.parametrize(("us", "words"), [(519.0, "0.519 ms"), (39_600.0, "39.6 ms"), (2_104_000.0, "2.1 s")])
def test_a_time_is_told_in_its_unit(us, words, tmp_path):
    assert f"A step took {words} without" in told(tmp_path, steps={"wall_step_us": us})


def test_what_is_kept_of_a_run_holds_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("")
    monkeypatch.chdir(tmp_path / "project")
    script = RunSpec("python", script="train.py", runs_root="runs").to_json()
    module = RunSpec("python", module="train").to_json()
    monkeypatch.chdir(tmp_path)
    again = from_json(script)
    again.check()
    assert (again.folder, again.script_as_typed) == (str(tmp_path / "project"), "train.py")
    assert again.runs_root == str(tmp_path / "project" / "runs")
    assert from_json(module).folder == str(tmp_path / "project")
