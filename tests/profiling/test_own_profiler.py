"""A script that brings its own profiler keeps it, and both traces are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch

LOOP = """
import torch, torch.nn as nn
from torch.profiler import profile, schedule, ProfilerActivity, tensorboard_trace_handler
torch.manual_seed(0); torch.set_num_threads(1)
model = nn.Linear(64, 10); opt = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    opt.zero_grad(); model(torch.randn(32, 64)).sum().backward(); opt.step()
"""


def names(path: Path) -> list[str]:
    """Names of the slices of a trace."""
    return [
        e["name"]
        for e in json.loads(path.read_text("utf-8", "replace"), strict=False)["traceEvents"]
        if e.get("ph") == "X"
    ]


MIDDLE = (
    LOOP
    + """
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=2, warmup=1, active=3, repeat=1),
             on_trace_ready=tensorboard_trace_handler("tb")) as prof:
    for i in range(12):
        step(); prof.step()
for i in range(40): step()
print("end")
"""
)


@pytest.mark.launch(text=MIDDLE, measure_wall=False)
def test_a_schedule_in_the_middle(seen: Seen) -> None:
    assert seen.stdout == "end\n"
    assert seen.result.script_exit == 0
    written = list((seen.result.folder.parent.parent / "tb").glob("*.json*"))
    assert len(written) == 1
    rows = {row["path"]: row for row in seen.result.manifest["traces"]}
    assert rows["script-trace-1.json"]["kind"] == "script"
    assert names(seen.result.folder / "script-trace-1.json") == names(written[0])
    assert sum(n.startswith("ProfilerStep#") for n in names(written[0])) == 3
    steps = seen.result.manifest["steps"]
    assert (steps["source"], steps["count"]) == ("optimizer", 52)  # prof.step() is called in the first ones only
    assert rows["trace.json"]["steps"] == steps["recorded"]
    assert len(seen.steps) == 5
    assert [notice.values["names"] for notice in seen.result.notices if notice.key == "script-traces"] == [
        "script-trace-1.json"
    ]


THROUGHOUT = (
    LOOP
    + """
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
             on_trace_ready=tensorboard_trace_handler("tb")) as prof:
    for i in range(20):
        step(); prof.step()
"""
)


@pytest.mark.launch(text=THROUGHOUT, measure_wall=False)
def test_steps_that_the_script_marks_after_its_own_window_are_counted(seen: Seen) -> None:
    steps = seen.result.manifest["steps"]
    assert (steps["source"], steps["count"], len(steps["recorded"])) == ("script", 20, 5)
    assert [notice.key for notice in seen.result.notices if notice.key == "no-steps"] == []
    marks = [e for e in seen.events if str(e.get("name")).startswith("ProfilerStep#")]
    assert sorted(e["name"][13:] for e in marks) == sorted(map(str, steps["recorded"]))
    work = [e["ts"] for e in seen.events if e.get("name") == "Optimizer.step#SGD.step"]
    assert [sum(m["ts"] <= ts < m["ts"] + m["dur"] for ts in work) for m in marks] == [1] * 5


PLAIN = (
    LOOP
    + """
for i in range(3): step()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for i in range(3): step()
print(len(prof.events()) > 0)
"""
)


@pytest.mark.launch(text=PLAIN)
def test_no_schedule_and_no_export(seen: Seen) -> None:
    assert seen.stdout == "True\n"
    rows = {row["path"]: row for row in seen.result.manifest["traces"]}
    assert names(seen.result.folder / "script-trace-1.json").count("Optimizer.step#SGD.step") == 3
    assert rows["trace.json"]["steps"] == [0, 1, 2]


OF_AUTOGRAD = (
    LOOP
    + """
from torch.autograd import profiler
for i in range(3): step()
with profiler.profile() as written:
    for i in range(3): step()
written.export_chrome_trace("own.json")
with profiler.profile() as shown: step()
print(len(shown.key_averages()) > 0)
for i in range(20): step()
"""
)


@pytest.mark.launch(text=OF_AUTOGRAD, measure_wall=False)
def test_the_profiler_of_autograd_is_one_of_the_scripts_own(seen: Seen) -> None:
    assert seen.stdout == "True\n"
    rows = {row["path"]: row for row in seen.result.manifest["traces"]}
    assert set(rows) == {"trace.json", "script-trace-1.json", "script-trace-2.json"}
    assert rows["script-trace-1.json"]["written_as"].endswith("own.json")
    folder = seen.result.folder
    assert [names(folder / f"script-trace-{n}.json").count("Optimizer.step#SGD.step") for n in (1, 2)] == [3, 1]
    assert len(seen.steps) == 5


@pytest.mark.launch(text=THROUGHOUT.replace("range(20)", "range(7)").replace("wait=1", "wait=0"), measure_wall=False)
def test_what_the_scripts_own_profiler_marks_after_its_last_step_is_no_step(seen: Seen) -> None:
    steps = seen.result.manifest["steps"]
    assert steps["count"] == 7
    assert sorted(name[13:] for name in seen.steps) == sorted(map(str, steps["recorded"]))
