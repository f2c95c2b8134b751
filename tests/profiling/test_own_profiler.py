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


@pytest.mark.launch(text=MIDDLE)
def test_a_schedule_in_the_middle(seen: Seen) -> None:
    assert seen.stdout == "end\n"
    assert seen.result.script_exit == 0
    written = list((seen.result.folder.parent.parent / "tb").glob("*.json*"))
    assert len(written) == 1
    rows = {row["path"]: row for row in seen.result.manifest["traces"]}
    assert rows["script-trace-1.json"]["kind"] == "script"
    assert names(seen.result.folder / "script-trace-1.json") == names(written[0])
    assert sum(n.startswith("ProfilerStep#") for n in names(written[0])) == 3
    assert seen.result.manifest["steps"]["source"] == "script"
    assert "trace.json" in rows
    assert rows["trace.json"]["steps"]


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
