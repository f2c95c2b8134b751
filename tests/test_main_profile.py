"""``main.py profile``: a run that works, one that fails, and arguments that do not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import main
from core.run_folder import read_run
from profiling.command import add_arguments, spec_of
from profiling.errors import ProfilingError

ROOT = Path(main.__file__).parent
SCRIPT = """
import sys
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
    done = run(str(script), *options, "--", "3", "fail")
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
        (("nowhere.py", "--active", "0"), 3),
        (("nowhere.py",), 3),
        (("main.py", "--cwd", "/no/such/folder"), 3),
        (("main.py", "--interpreter", "/no/such/python", "--runs", "{tmp}"), 3),
        (("main.py", "--env", "x"), 3),
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
    with pytest.raises(ProfilingError, match="NAME=VALUE"):
        spec_of(parser.parse_args(["x.py", "--env", "=1"]), [])
