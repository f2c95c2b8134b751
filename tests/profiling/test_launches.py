"""A script that starts itself anew, or another script of the user's as a command, is recorded there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from profiling._child_launches import Launches
from profiling.events import Gathered
from profiling.notices import notices_of
from tests.profiling.runs import Seen

TRAIN = """
import sys, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for i in range(int(sys.argv[1])):
    o.zero_grad(); (w @ w).sum().backward(); o.step()
print(sys.argv, __name__, __file__ == sys.argv[0] or __file__)
"""

ANEW = """
import os, sys
if os.environ.get("MARK") != "1":
    os.environ["MARK"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])
"""


@pytest.mark.torch
@pytest.mark.launch(text=ANEW + TRAIN, argv=("4", "a b"))
def test_a_script_that_starts_itself_anew(seen: Seen) -> None:
    assert seen.stdout.startswith("['train.py', '4', 'a b'] __main__")
    assert seen.result.script_exit == 0
    assert len(seen.steps) == 4
    assert seen.result.manifest["steps"]["count"] == 4


COMMAND = """
import subprocess, sys
done = subprocess.run([sys.executable, "-X", "utf8", "inner.py", "5"], capture_output=True, text=True)
print(done.returncode); print(done.stdout, end="")
print(subprocess.run([sys.executable, "-c", "print(6)"], capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.torch
@pytest.mark.launch(text=COMMAND, files={"inner.py": TRAIN})
def test_a_script_that_trains_in_a_command_of_its_own(seen: Seen) -> None:
    first, inner, plain = seen.stdout.splitlines()
    assert (first, plain) == ("0", "6")
    assert inner.startswith("['inner.py', '5'] __main__")
    assert len(seen.steps) == 5
    assert seen.result.manifest["traces"][0]["path"].startswith("trace-pid")


SHELL = """
import os, subprocess, sys
subprocess.run("echo plain", shell=True)
subprocess.run(f"echo {sys.executable} train.py", shell=True)
os.system("echo accelerate launch train.py")
"""


@pytest.mark.launch(text=SHELL)
def test_a_command_that_cannot_be_followed_is_told(seen: Seen) -> None:
    assert len(seen.stdout.splitlines()) == 3
    told = [notice for notice in seen.result.notices if notice.key == "commands"]
    assert [notice.values["command"] for notice in told] == [f"echo {sys.executable} train.py"]


def test_it_is_not_told_where_steps_were_recorded() -> None:
    gathered = Gathered(torch_version="2.5.1")
    trace = {"ev": "trace", "path": "trace.json", "kind": "own", "steps": [], "devices": ["cuda"]}
    for event in ({"ev": "notice", "key": "commands", "values": {"command": "sh run.sh"}}, trace):
        gathered.take(event)
    assert "commands" in [notice.key for notice in notices_of(gathered, gathered.traces, 0, "")]
    gathered.traces[0]["steps"] = [0]
    assert notices_of(gathered, gathered.traces, 0, "") == []


def test_only_commands_that_run_the_users_code_are_rewritten(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    for file in (package / "__init__.py", tmp_path / "train.py"):
        file.write_text("")

    def is_users(name: str) -> str:
        return name if name.startswith(str(tmp_path)) and os.path.isfile(name) else ""

    launches = Launches("child.py", "own", "theirs", is_users, None)

    def rewritten(*words: str) -> list[str] | None:
        return launches.rewritten(words, "config", str(tmp_path))

    python = sys.executable
    assert rewritten(python, "train.py", "-c") == [python, "child.py", "config", "train.py", "-c"]
    assert rewritten(python, "-u", "-W", "error", "train.py") == [
        python, "-u", "-W", "error", "child.py", "config", "train.py",
    ]  # fmt: skip
    assert rewritten(python, "-m", "pkg.train", "x") == [python, "child.py", "config", "-m", "pkg.train", "x"]
    for words in (
        [], [python], [python, "-c", "1"], [python, "-m", "pip", "install"], [python, "-m"], [python, "none.py"],
        [python, "-"], ["/elsewhere/python", "train.py"], ["ls", "train.py"], [python, str(Path(os.__file__))],
    ):  # fmt: skip
        assert rewritten(*words) is None, words


def test_what_builds_code_for_torch_is_no_training(tmp_path: Path) -> None:
    told: list[str] = []
    launches = Launches("child.py", "own", "theirs", str, told.append)
    for command in (
        ["/usr/bin/g++", "-I/usr/include/python3.11", "x.cpp"], ["x86_64-linux-gnu-gcc-12", "/a/setup.py"],
        "clang++ -I/python3.12/include x.cpp", [sys.executable, "/lib/torch/_inductor/compile_worker/__main__.py"],
        ["ninja", "build.py"],
    ):  # fmt: skip
        launches._tell(command)
    assert told == []
    launches._tell("sh gcc-train.sh train.py")
    assert told == ["sh gcc-train.sh train.py"]
