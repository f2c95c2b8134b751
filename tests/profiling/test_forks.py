"""Processes that the script forks: ranks leave traces of their own, and every child ends as it would alone."""

from __future__ import annotations

import json
import sys
import threading
from types import SimpleNamespace

import pytest

from profiling._child_procs import settle_before_group_ends
from profiling.events import Gathered
from profiling.notices import notices_of
from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch

RANKS = """
import os, torch
import torch.multiprocessing as mp
def worker(rank, steps):
    os.environ["RANK"] = str(rank)
    w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
    for i in range(steps):
        o.zero_grad(); (w @ w).sum().backward(); o.step()
    print(f"rank {rank} done\\n", end="", flush=True)  # in one piece, also where Python does not buffer
mp.start_processes(worker, args=(5,), nprocs=2, start_method="fork")
print("all done")
"""


@pytest.mark.launch(text=RANKS)
def test_forked_ranks_leave_a_trace_each(seen: Seen) -> None:
    assert seen.result.script_exit == 0
    assert sorted(seen.stdout.split("\n"))[-3:] == ["all done", "rank 0 done", "rank 1 done"]
    rows = seen.result.manifest["traces"]
    if any("child processes" in notice for notice in seen.result.notices):
        pytest.skip("this torch is built for a device, whose profiler does not survive a fork")
    assert [(row["rank"], len(row["steps"])) for row in rows] == [(0, 5), (1, 5)]
    for row in rows:
        events = json.loads((seen.result.folder / row["path"]).read_text())["traceEvents"]
        assert sum(e.get("name") == "Optimizer.step#SGD.step" for e in events) == 5


FORK = """
import os, sys, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for i in range(2): o.zero_grad(); (w @ w).sum().backward(); o.step()
if os.fork() == 0:
    print("written by the child")
    sys.exit(3)
print("child ended with", os.waitstatus_to_exitcode(os.wait()[1]))
for i in range(3): o.zero_grad(); (w @ w).sum().backward(); o.step()
"""


@pytest.mark.launch(text=FORK)
def test_a_forked_child_ends_with_its_own_status(seen: Seen) -> None:
    assert sorted(seen.stdout.splitlines()) == ["child ended with 3", "written by the child"]
    assert seen.result.script_exit == 0
    assert seen.result.trace is not None


def test_a_forked_rank_that_left_no_trace_is_told() -> None:
    gathered = Gathered(torch_version="2.5.1")
    trace = {"ev": "trace", "path": "trace-pid7.json", "kind": "own", "steps": [0], "devices": ["cuda"], "pid": 7}
    for event in ({"ev": "forked", "pid": 7}, {"ev": "forked", "pid": 8}, trace):
        gathered.take(event)
    assert [n.key for n in notices_of(gathered, gathered.traces, 0, "")] == ["children"]
    gathered.forked.discard(8)
    assert notices_of(gathered, gathered.traces, 0, "") == []


BEFORE_TORCH = """
import os, sys
def train(steps):
    import torch
    w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
    for i in range(steps): o.zero_grad(); (w @ w).sum().backward(); o.step()
for steps in (5, 3):
    if os.fork() == 0:
        train(steps)
        sys.exit(0)
print("ended with", sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))
"""


@pytest.mark.launch(text=BEFORE_TORCH)
def test_children_forked_before_torch_was_imported_leave_traces(seen: Seen) -> None:
    assert seen.stdout == "ended with [0, 0]\n"
    assert sorted(len(row["steps"]) for row in seen.result.manifest["traces"]) == [3, 5]


PARENT_AND_CHILD = """
import os, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
def train(steps):
    for i in range(steps): o.zero_grad(); (w @ w).sum().backward(); o.step()
if os.fork() == 0:
    train(2)
    os._exit(0)
os.wait()
train(4)
"""


@pytest.mark.launch(text=PARENT_AND_CHILD)
def test_the_scripts_own_process_comes_before_what_it_forked(seen: Seen) -> None:
    rows = seen.result.manifest["traces"]
    if len(rows) == 1:
        pytest.skip("this torch is built for a device, whose profiler does not survive a fork")
    assert [len(row["steps"]) for row in rows] == [4, 2]
    assert rows[0]["path"] == "trace.json"


MANY = """
import os, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for i in range(36):
    if os.fork() == 0:
        o.zero_grad(); (w @ w).sum().backward(); o.step()
        os._exit(0)
    os.wait()
"""


@pytest.mark.launch(text=MANY)
def test_of_many_forked_processes_only_the_first_ones_leave_traces(seen: Seen) -> None:
    keys = {notice.key for notice in seen.result.notices}
    if "children-device" in keys:
        pytest.skip("this torch is built for a device, whose profiler does not survive a fork")
    assert sum(row["path"].startswith("trace-pid") for row in seen.result.manifest["traces"]) == 32
    assert "children-many" in keys
    assert "children" not in keys
    assert not list(seen.result.folder.glob("process-*"))


FORKED_IN_A_STEP = """
import os, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
def step(): o.zero_grad(); (w @ w).sum().backward(); o.step()
step()
if os.fork() == 0:
    step()
    os._exit(0)
os.wait()
step()
"""


@pytest.mark.launch(text=FORKED_IN_A_STEP)
def test_a_child_of_a_parent_that_records_stacks_is_not_recorded_and_the_run_says_why(seen: Seen) -> None:
    assert [row["path"] for row in seen.result.manifest["traces"]] == ["trace.json"]
    keys = {notice.key for notice in seen.result.notices}
    assert len(keys & {"children-stacks", "children-device"}) == 1
    assert "children" not in keys


def test_threads_get_the_interpreters_lock_before_their_group_is_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    module = SimpleNamespace(destroy_process_group=lambda group=None: done.append(f"destroyed {group}"))
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace(destroy_process_group=None))
    settle_before_group_ends(module)
    go = threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), done.append("freed")))
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(30)  # nobody takes the lock away: it is given
    try:
        go.set()
        module.destroy_process_group(group=1)
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert done == ["freed", "destroyed 1"]
