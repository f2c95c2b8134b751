"""``main.py profile``: a run that works, one that fails, and arguments that do not fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

import main
from core.run_folder import read_run
from profiling.command import add_arguments, spec_of
from profiling.lifeline import Lifeline
from profiling.processes import started_at
from tests.profiling import light

ROOT = Path(main.__file__).parent
SCRIPT = """
import sys
import time
import torch

torch.manual_seed(int(sys.argv[1]))
net = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
print("training starts")
for step in range(24):
    if step == 20 and len(sys.argv) > 2:
        raise RuntimeError("out of luck")
    loss = net(torch.randn(16, 8)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "main.py", "profile", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, stdin=subprocess.DEVNULL, check=False)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "toy train.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.torch
def test_run_and_its_manifest(script, tmp_path):
    options = ("--interpreter", sys.executable, "--runs", str(tmp_path / "runs"), "--active", "2")
    done = run(str(script), "--json", *options, "--", "3")
    assert done.returncode == 0, done.stderr
    manifest = orjson.loads(done.stdout)
    assert manifest["format"] == "steplens.run/1"
    assert manifest["spec"]["argv"] == ["3"]
    assert b"training starts" in done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    record = read_run(folder)
    assert record.state == "ok"
    assert len(record.losses) >= 5
    assert record.losses[0] == pytest.approx(record.losses[0])
    assert record.copy_of(str(script)).read_text() == SCRIPT
    text = record.trace.read_text()
    assert "_child_losses" not in text  # the window shows nothing of the hook
    assert main.main(["analyze", str(record.trace), "--json"]) == 0


@pytest.mark.torch
def test_script_that_fails(script, tmp_path):
    options = ("--interpreter", sys.executable, "--runs", str(tmp_path / "runs"), "--active", "2", "--quiet")
    quick = [f"{name}={value}" for name, value in light.write(tmp_path).items()]
    done = run(str(script), *options, "--env", quick[0], "--env", quick[1], "--", "3", "fail")
    assert done.returncode == 4
    assert b"out of luck" in done.stdout
    assert b"RuntimeError: out of luck" in done.stderr
    assert b"toy train.py" in done.stdout
    assert b"steplens: The script ended with exit status 1." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), 2),
        (("a.py", "-m", "b"), 2),
        (("a.py", "--active", "x"), 2),
        (("a.py", "--steps", "x"), 2),
        (("nowhere.py", "--active", "0"), 2),
        (("nowhere.py",), 3),
        (("main.py", "--cwd", "/no/such/folder"), 3),
        (("main.py", "--interpreter", "/no/such/python", "--runs", "{tmp}"), 3),
        (("main.py", "--env", "x"), 2),
    ],
)
def test_arguments_that_do_not_fit(arguments, status, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = ["profile", *(a.replace("{tmp}", str(tmp_path)) for a in arguments)]
    try:
        found = main.main(words)
    except SystemExit as stop:
        found = stop.code
    assert found == status
    errors = capsys.readouterr().err
    assert "error:" in errors
    assert "Traceback" not in errors


def test_options_reach_the_run():
    import argparse

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = (
        "-m pkg.train --interpreter py --env A=1=2 --env B= --skip 2 --no-stacks --flops --line-ranges a.py:f --cwd d"
    )
    spec = spec_of(parser.parse_args(words.split()), ["--lr", "1"])
    assert (spec.module, spec.script, spec.argv) == ("pkg.train", "", ("--lr", "1"))
    assert spec.env == {"A": "1=2", "B": ""}
    assert spec.schedule.skip == 2
    assert not spec.options.stacks
    assert spec.options.flops
    assert spec.line_ranges == ("a.py:f",)
    with pytest.raises(SystemExit):
        parser.parse_args(["x.py", "--env", "=1"])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed so here")
def test_nothing_is_left_of_a_script_whose_launcher_was_killed(tmp_path):
    """Both pipes end only when the script and what it has started have ended."""
    script = tmp_path / "endless.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'held')!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        "os.rename(sys.argv[1] + '/held', sys.argv[1] + '/pids')\n"
        "time.sleep(3600)\n"
    )
    options = ("--interpreter", sys.executable, "--runs", str(tmp_path / "runs"))
    command = [sys.executable, "main.py", "profile", str(script), *options, "--", str(tmp_path)]
    launcher = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)  # fmt: skip
    while not (tmp_path / "pids").exists():
        assert launcher.poll() is None
        time.sleep(0.02)
    pids = [int(p) for p in (tmp_path / "pids").read_text().split()]
    marks = [started_at(p) for p in pids]
    assert all(marks)
    launcher.kill()
    launcher.wait()
    try:
        end = time.monotonic() + 20
        while any(started_at(p) == m for p, m in zip(pids, marks, strict=True)) and time.monotonic() < end:
            time.sleep(0.02)
        assert [started_at(p) == m for p, m in zip(pids, marks, strict=True)] == [False, False]
    finally:
        for pid, mark in zip(pids, marks, strict=True):
            if started_at(pid) == mark:
                os.kill(pid, signal.SIGKILL)


def test_a_script_that_has_ended_is_no_longer_watched():
    script = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    line = Lifeline(script.pid)
    watching = line._guard
    assert os.name == "nt" or (watching is not None and watching.poll() is None)
    line.let_go()
    assert watching is None or watching.returncode == 0
    assert script.poll() is None  # let go is not killed
    script.communicate(b"\n")
    assert script.returncode == 0
