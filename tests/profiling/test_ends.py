"""However a script ends, what is whole by then is kept; a short loop is not used up by what comes before its window."""

from __future__ import annotations

import sys

import pytest

from profiling.command import lines_of
from profiling.spec import Schedule
from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch

LOOP = """
import os, signal, sys, threading, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
def train(n):
    for i in range(n):
        o.zero_grad(); (w @ w).sum().backward(); o.step()
"""
SGD = "Optimizer.step#SGD.step"


@pytest.mark.launch(text=LOOP + "train(4)\nprint('bye', flush=True)\nos._exit(7)")
def test_an_exit_without_atexit_keeps_the_steps(seen: Seen) -> None:
    assert (seen.stdout, seen.result.script_exit) == ("bye\n", 7)
    assert seen.count(SGD) == 4
    assert seen.result.manifest["steps"]["count"] == 4
    assert "kept" in seen.result.words


FROM_A_THREAD = """
def leave():
    train(2)
    os._exit(5)
train(3)
threading.Thread(target=leave).start()
threading.Event().wait()
"""


@pytest.mark.launch(text=LOOP + FROM_A_THREAD)
def test_an_exit_from_a_thread_ends_although_another_one_records(seen: Seen) -> None:
    assert seen.result.script_exit == 5


@pytest.mark.launch(text=LOOP + "train(20)\nos.kill(os.getpid(), signal.SIGKILL)")
def test_a_loop_of_few_quick_steps_has_its_window(seen: Seen) -> None:
    assert "signal 9" in seen.result.words
    assert "kept" in seen.result.words
    assert seen.result.manifest["traces"][0]["left_out"] == []
    assert len(seen.steps) == 5


@pytest.mark.launch(text=LOOP + "train(2)\nos.kill(os.getpid(), signal.SIGKILL)")
def test_a_kill_before_the_window_is_full_says_how_to_record_earlier(seen: Seen) -> None:
    assert seen.result.trace is None
    assert "killed-early" in [notice.key for notice in seen.result.notices]
    assert seen.result.missed_its_window


@pytest.mark.launch(
    text=LOOP + "train(2)\nos.kill(os.getpid(), signal.SIGKILL)", schedule=Schedule(skip=0, warmup=0, active=1)
)
def test_a_short_window_from_the_first_step_on_outlives_a_kill(seen: Seen) -> None:
    assert len(seen.steps) == 1
    assert "Steps recorded: 0; from optimizer steps." in lines_of(seen.result)


@pytest.mark.launch(text=LOOP + "train(16)", line_ranges=("train.py:train",))
def test_a_short_loop_has_its_window_with_marks_too(seen: Seen) -> None:
    assert len(seen.steps) == 5
    assert seen.result.manifest["steps"]["wall_steps_timed"] == 3
    assert seen.result.manifest["line_ranges"]["cost_ratio"] > 0


OWN = """
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
def train(n):
    for i in range(n):
        o.zero_grad(); (w @ w).sum().backward(); o.step()
def go(prof):
    prof.start()
    train(3)
    prof.stop()
go(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]))
print("went")
"""


@pytest.mark.launch(text=OWN, line_ranges=("*",))
def test_marks_survive_a_profiler_that_starts_within_a_marked_statement(seen: Seen) -> None:
    assert (seen.result.script_exit, seen.stdout) == (0, "went\n")
    assert seen.count("line: train.py:6 (train)") == 9


GONE = """
import os, tempfile
folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)
train(4)
raise ValueError("in a folder that is gone")
"""


@pytest.mark.launch(text=LOOP + GONE)
def test_a_working_folder_that_is_gone_costs_nothing(seen: Seen) -> None:
    assert seen.stderr.endswith("ValueError: in a folder that is gone\n")
    assert seen.stderr.count("Traceback") == 1
    assert "_child" not in seen.stderr
    assert seen.count(SGD) == 4
    assert any(row["path"].endswith("train.py") for row in seen.result.manifest["sources"])


UNDER_OWN = """
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    for i in range(12):
        o.zero_grad(); (w @ w).sum().backward(); o.step()
"""


@pytest.mark.launch(text=UNDER_OWN)
def test_steps_under_the_scripts_profiler_are_not_called_unprofiled(seen: Seen) -> None:
    steps = seen.result.manifest["steps"]
    assert steps["wall_step_us"] is None
    assert steps["count"] == 12


SPOILED = """
train(3)
os.open = os.write = os.close = None
class Silent:
    def write(self, text): pass
    def flush(self): pass
print("last", flush=True)
sys.stdout = sys.stderr = Silent()
train(2)
"""


@pytest.mark.launch(text=LOOP + SPOILED)
def test_a_script_that_replaces_functions_of_modules_is_still_told_about(seen: Seen) -> None:
    assert (seen.stdout, seen.result.script_exit) == ("last\n", 0)
    assert seen.result.manifest["steps"]["count"] == 5


GROUP = """
import os, subprocess, sys
pid = os.getpid()
os.setpgrp(); os.setpgid(0, 0); os.setpgid(pid, pid)
print(os.getpgrp() == pid, os.setpgrp.__name__, os.setpgid.__module__)
child = os.fork()
if not child:
    os.setpgrp()
    os._exit(os.getpgrp() == os.getpid())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
subprocess.run([sys.executable, "-c", "import os; os.setpgrp(); print(os.getpgrp() == os.getpid())"], check=True)
try:
    os.setpgid(pid, 1)
except PermissionError:
    print("refused")
"""


@pytest.mark.launch(text=GROUP)
@pytest.mark.skipif(sys.platform == "win32", reason="no groups of processes there")
def test_a_script_may_make_itself_the_leader_of_its_group(seen: Seen) -> None:
    assert (seen.result.script_exit, seen.stdout) == (0, "True setpgrp posix\n1\nTrue\nrefused\n"), seen.stderr
