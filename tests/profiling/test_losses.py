"""Losses of all steps but the recorded ones, and of those too where results were asked for; parameters after a step."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from profiling.run import run_blocking
from profiling.spec import RunSpec, Schedule
from tests.profiling import light

SCRIPT = """\
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
for step in range(70):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    if step + 1 == 2:
        print("after 2:", [float(p.detach().sum()) for p in net.parameters()], flush=True)
"""

pytestmark = pytest.mark.torch


def ran(tmp_path: Path, **options: Any) -> tuple[dict[str, Any], str, str]:
    """Contents of ``losses.json``, the trace, and what the script printed."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    said: list[str] = []
    spec = RunSpec(
        sys.executable,
        str(script),
        schedule=Schedule(skip=1, warmup=2, active=3),
        stdin="null",
        env=light.write(tmp_path),
        runs_root=str(tmp_path / "runs"),
        **options,
    )
    result = run_blocking(spec, on_output=lambda stream, text: said.append(text))
    assert result.trace is not None
    return json.loads((result.trace.parent / "losses.json").read_text()), result.trace.read_text(), "".join(said)


def test_the_trace_shows_nothing_of_it_and_later_steps_are_kept(tmp_path: Path) -> None:
    kept, trace, _ = ran(tmp_path)
    assert "_child_losses" not in trace
    steps = kept["steps"]
    gaps = [(a, b) for a, b in zip(steps, steps[1:], strict=False) if b > a + 1]
    assert len(gaps) == 1  # the window, with the step before it that the profiler gets ready in
    assert gaps[0][1] - gaps[0][0] - 1 == 4
    assert steps[-1] == 69
    assert kept["recorded"] is False
    assert len(kept["values"]) == len(steps)
    assert "parameters" not in kept


def test_where_results_are_asked_for_no_step_is_missing(tmp_path: Path) -> None:
    kept, _, said = ran(tmp_path, parameters=True, parameters_after=2)
    assert kept["steps"] == list(range(70))
    assert kept["recorded"] is True
    assert len(kept["parameters"]) == 2
    at = kept["parameters_after"]
    assert at["step"] == 2
    printed = json.loads(said.split("after 2:")[1].splitlines()[0])
    assert [row[0] for row in at["sums"]] == pytest.approx(printed, rel=1e-5)
    assert at["sums"] != kept["parameters"]


def test_parameters_are_not_summed_up_in_the_window(tmp_path: Path) -> None:
    plain, _, _ = ran(tmp_path, measure_wall=False)
    window = next(a + 2 for a, b in zip(plain["steps"], plain["steps"][1:], strict=False) if b > a + 1)
    kept, trace, _ = ran(tmp_path, measure_wall=False, parameters=True, parameters_after=window + 1)
    assert kept["parameters_after"] == {"step": window + 1, "reason": "recorded"}
    assert "vector_norm" not in trace
