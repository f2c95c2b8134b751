"""What was chosen in the form is what is recorded: the schedule's fields, and what torch leaves out of its JSON."""

from __future__ import annotations

import json

import pytest

from profiling.spec import Options, Schedule
from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch

LOOP = """
import torch; torch.set_num_threads(1)
model = torch.nn.Linear(64, 32); o = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(80): o.zero_grad(); model(torch.randn(16, 64)).sum().backward(); o.step()
"""


@pytest.mark.launch(text=LOOP, schedule=Schedule(2, 1, 3, 2), options=Options(flops=True, memory=False, stacks=False))
def test_windows_follow_each_other_as_the_schedule_says_and_operators_have_their_flops(seen: Seen) -> None:
    first, second = seen.result.manifest["traces"]
    assert (len(first["steps"]), len(second["steps"])) == (3, 3)
    passed = second["steps"][0] - first["steps"][-1] - 1
    assert passed == 3 + 1  # skip and warm-up, and the step in which the profiler itself warms up
    (notice,) = [n for n in seen.result.notices if n.key == "more-traces"]
    assert notice.values["names"] == "trace-2.json"
    events = json.loads((seen.result.folder / first["path"]).read_text())["traceEvents"]
    counted = [e for e in events if "flops" in e.get("args", {})]
    assert {(e["name"], e["args"]["flops"]) for e in counted} >= {("aten::addmm", 2 * 16 * 64 * 32)}
    assert sum(e["name"] == "aten::addmm" for e in counted) == 3


STATISTICS_FIRST = """
import torch
from torch.utils.data import DataLoader
loader = DataLoader(torch.randn(60, 4), batch_size=2)
mean = sum(batch.mean() for batch in loader)
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for batch in loader:
    o.zero_grad(); ((batch - mean) @ w).sum().backward(); o.step()
print("end")
"""


@pytest.mark.torch
@pytest.mark.launch(text=STATISTICS_FIRST, measure_wall=False)
def test_a_pass_over_the_loader_before_training_does_not_take_the_window(seen: Seen) -> None:
    assert seen.result.manifest["steps"]["count"] == 30
    assert [row["path"] for row in seen.result.manifest["traces"]] == ["trace.json"]
    assert (len(seen.steps), seen.count("Optimizer.step#SGD.step")) == (5, 5)


@pytest.mark.torch
@pytest.mark.launch(text=STATISTICS_FIRST, measure_wall=False, stop_after_window=True)
def test_a_script_is_ended_after_the_steps_of_training(seen: Seen) -> None:
    assert (seen.result.outcome, seen.stdout) == ("ok", "")
    assert (len(seen.steps), seen.count("Optimizer.step#SGD.step")) == (5, 5)


LOOKS_ONLY = """
import torch
from torch.utils.data import DataLoader
for batch in DataLoader(torch.randn(80, 4), batch_size=2):
    batch.sum()
print("end")
"""


@pytest.mark.torch
@pytest.mark.launch(text=LOOKS_ONLY, measure_wall=False, stop_after_window=True)
def test_a_script_that_only_looks_at_the_data_is_ended_after_its_window(seen: Seen) -> None:
    assert (seen.result.outcome, seen.stdout) == ("ok", "")
    assert len(seen.steps) == 5
