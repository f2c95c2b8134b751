"""Scripts without steps, stopping after the window, and schedules other than the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiling.errors import ProfilingError
from profiling.run import Run
from profiling.spec import RunSpec, Schedule, from_json
from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch


ENDLESS = """
import atexit, os, torch
torch.autograd.set_detect_anomaly(True, check_nan=False)
print("GPUs", os.environ["CUDA_VISIBLE_DEVICES"])
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
atexit.register(print, "atexit ran", flush=True)
try:
    while True:
        o.zero_grad(); (w @ w).sum().backward(); o.step()
finally:
    print("finally ran", flush=True)
"""
COSINES = "import torch\nx = torch.ones(4)\nfor i in range(20): x = x.cos()\nprint(x.sum().item())\n"
SLOW_COSINES = (
    "import torch, time\nx = torch.ones(4)\nend = time.time() + 1.5\n"
    "while time.time() < end: x = x.cos(); time.sleep(0.01)\nx.sin()\n"
)


@pytest.mark.launch(text=COSINES)
def test_a_script_without_steps_is_recorded_as_a_whole(seen: Seen) -> None:
    assert seen.count("aten::cos") == 20
    assert seen.steps == []
    assert any("no step marks" in notice for notice in seen.result.notices)


@pytest.mark.launch(text=SLOW_COSINES, whole_seconds=0.3)
def test_a_whole_recording_is_bounded(seen: Seen) -> None:
    assert seen.count("aten::cos") > 3
    assert seen.count("aten::sin") == 0
    assert any("first 0.3 seconds" in notice for notice in seen.result.notices)


LEFT = """
import time, torch
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4)), 4)
model = torch.nn.Linear(4, 4); opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x,) in enumerate(loader):
    opt.zero_grad(); model(x).sum().backward(); time.sleep(0.05); opt.step()
    if i == 6: break
"""


@pytest.mark.launch(text=LEFT)
def test_a_loop_that_is_left_counts_its_last_step(seen: Seen) -> None:
    assert seen.result.manifest["steps"]["count"] == 7
    assert len(seen.steps) in (6, 7)  # marked only where the script ends soon after it


@pytest.mark.launch(text=ENDLESS, stop_after_window=True, gpu="none", schedule=Schedule(0, 1, 2, 2))
def test_the_script_ends_after_the_window(seen: Seen) -> None:
    assert seen.stdout.splitlines() == ["GPUs ", "finally ran", "atexit ran"]
    assert sum("Anomaly detection is on" in notice for notice in seen.result.notices) == 1
    assert any("hidden from the script" in notice for notice in seen.result.notices)
    assert seen.result.script_exit == 0
    assert [len(row["steps"]) for row in seen.result.manifest["traces"]] == [2, 2]
    assert (seen.result.folder / "lines.json").is_file()
    assert (seen.result.folder / "sources" / "train.py").read_text() == ENDLESS


@pytest.mark.launch(gpu="3", text=ENDLESS.replace("while True:", "for _ in range(4):"), schedule=Schedule(0, 0, 3, 1))
def test_a_schedule_without_lead_records_at_once(seen: Seen) -> None:
    assert seen.stdout.startswith("GPUs 3\n")
    assert seen.steps == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]


def test_a_spec_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ProfilingError, match="either a script or a module"):
        RunSpec("python")
    with pytest.raises(ProfilingError, match="no step to record"):
        Schedule(active=0)
    with pytest.raises(ProfilingError, match="does not exist"):
        RunSpec("python", script="/nowhere/at/all.py").check()
    spec = RunSpec("python", script="a.py", argv=("--x", "1"), env={"TOKEN": "secret"}, line_ranges=("*",))
    assert "secret" not in str(spec.to_json())
    assert from_json(spec.to_json()).argv == ("--x", "1")


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    run = Run(RunSpec(str(tmp_path / "no-python"), script=str(script), runs_root=str(tmp_path / "runs")))
    with pytest.raises(ProfilingError, match="cannot be started"):
        run.start()


AFTER = """
import time, torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for _ in range(5):
    o.zero_grad(); (w @ w).sum().backward(); o.step()
end = time.time() + 7
while time.time() < end: time.sleep(0.01)
w.detach().sin()
"""


@pytest.mark.launch(text=AFTER)
def test_what_comes_after_the_loop_is_not_recorded_without_end(seen: Seen) -> None:
    assert len(seen.steps) == 5
    assert seen.count("aten::sin") == 0
