"""The changed code computes what the old code did: both are run, in one process with torch."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.core.fixes.test_propose import FORMS, HEAD, changed

LOSS = """
import torch
import torch.nn as nn
import torch.nn.functional as F

def log_softmax(x):
    return x - x.exp().sum(-1).log().unsqueeze(-1)

def weighted_nll(pred, target, weight):
    assert target.max() < 10
    nll = -pred[range(target.shape[0]), target]
    nll = nll * weight[target]
    nll = nll / weight[target].sum()
    sum_nll = nll.sum()
    return sum_nll

class Loss(nn.Module):
    def forward(self, input, target):
        pred = log_softmax(input)
        return weighted_nll(pred, target, torch.Tensor([0.1] * 10).to(input.device))

criterion = Loss().to("cpu")

def run():
    torch.manual_seed(0)
    x = torch.randn(32, 10, requires_grad=True)
    loss = criterion(x, torch.randint(0, 10, (32,)))
    loss.backward()
    return [loss.item(), x.grad.abs().sum().item()]
"""

LOOP = """
import torch

def run():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    shown = []
    for i in range(5):
        x = torch.randn(8, 3, 8, 8)
        out = net(x)
        loss = torch.nn.CrossEntropyLoss()(out, torch.arange(8) % 5)  # build
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        total += loss.item()  # sum
        shown.append(loss.item())  # list
    return [total, *shown]
"""


def pairs() -> list[tuple[str, str, str, float]]:
    """Name, text before, text after, allowed relative difference."""

    def story(rule: str, line: str, function: str) -> tuple[str, str, str, float]:
        return (rule, LOSS, changed(rule, LOSS.replace(line, f"{line}  # here"), function), 1e-5)

    found = [
        story("constant-copied-each-step", "torch.Tensor([0.1] * 10).to(input.device))", "forward"),
        story("control-flow-on-device-tensor", "assert target.max() < 10", "weighted_nll"),
        story("host-list-index", "nll = -pred[range(target.shape[0]), target]", "weighted_nll"),
        story("hand-written-composite-op", "def weighted_nll(pred, target, weight):", "weighted_nll"),
        story("hand-written-composite-op", "def log_softmax(x):", "log_softmax"),
    ]
    for rule, marker, allowed in (
        ("scalar-read-back", "# sum", 1e-5),
        ("scalar-read-back", "# list", 1e-6),
        ("object-built-in-step", "# build", 0.0),
        ("gradients-zeroed", "opt.zero_grad", 0.0),
        ("single-tensor-optimizer", "opt.step()", 1e-4),
        ("layout-conversions", "loss.backward()", 1e-4),
        ("tensor-cores-unused", "loss.backward()", 5e-2),
        ("algorithm-search-each-step", "loss.backward()", 0.0),
    ):
        found.append(
            (
                rule,
                LOOP,
                changed(
                    rule,
                    LOOP.replace(marker, f"{marker}  # here") if marker.startswith("#") else LOOP,
                    "run",
                    exact=marker.startswith("#"),
                ),
                allowed,
            )
        )
    for expression, _ in FORMS:
        body = f"{HEAD}import math\ndef f(x, y, t):  # here\n    return {expression}\n"
        end = "\ndef run():\n    torch.manual_seed(1)\n"
        end += "    out = f(torch.randn(6, 5), torch.randn(6, 5), torch.arange(6) % 5)\n"
        end += "    return out.flatten().tolist()\n"
        found.append((expression, body + end, changed("hand-written-composite-op", body, "f") + end, 1e-4))
    return found


RUNNER = """
import json, sys, types, warnings
warnings.simplefilter("ignore")
out = []
for name, before, after, allowed in json.load(sys.stdin):
    values = []
    for text in (before, after):
        sys.modules["case"] = types.ModuleType("case")
        space = sys.modules["case"].__dict__
        exec(compile(text, name, "exec"), space)
        values.append(space["run"]())
    out.append([name, values, allowed])
json.dump(out, sys.stdout)
"""


@pytest.mark.torch
def test_same_values():
    cases = pairs()
    assert all(before != after for _, before, after, _ in cases)
    done = subprocess.run(
        [sys.executable, "-c", dedent(RUNNER)], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name, (before, after), allowed in json.loads(done.stdout):
        assert after == pytest.approx(before, rel=allowed, abs=allowed * 1e-2), name
