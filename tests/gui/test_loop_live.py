"""Once round the loop for real: a script is profiled, a fix applied to a copy, the copy run, the results compared."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from core.run_folder import read_run
from examples.guided_loop import LOOK_MS, Walk, markdown, wait
from gui.main_window import MainWindow
from gui.session import DONE
from gui.settings import Settings
from profiling.spec import RunSpec, Schedule
from tests.profiling import light

SCRIPT = """
import os
import torch


def nll(scores, target):
    log_probs = scores - scores.exp().sum(-1).log().unsqueeze(-1)
    return (-log_probs[range(target.shape[0]), target]).mean()


assert os.environ["NEEDED"] == "1"
torch.manual_seed(0)
net = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)
for step in range(12):
    loss = nll(net(torch.randn(64, 8)), torch.randint(0, 4, (64,)))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
"""


def test_once_round(window: MainWindow, settings: Settings, qtbot: QtBot, tmp_path: Path) -> None:
    script = tmp_path / "project" / "toy.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    runs = tmp_path / "runs"
    settings.set("runs/folder", str(runs))
    walk = Walk(window)
    schedule = Schedule(skip=1, warmup=2, active=3)
    first = walk.profile(
        RunSpec(
            sys.executable,
            str(script),
            env={"NEEDED": "1", **light.write(tmp_path)},
            schedule=schedule,
            stdin="null",
            parameters=True,
            runs_root=str(runs),
        )
    )
    second = walk.fix_next(first)
    assert second is not None
    heads, before, after = walk.rows()
    assert before[heads.index("What was fixed")] == "as it was"
    assert after[heads.index("Same losses")].startswith(("equal, ", "within rounding, "))
    assert after[heads.index("Prediction")] in ("held", "unclear") or after[heads.index("Prediction")].startswith(
        "too "
    )
    assert markdown([heads, before, after]).count("\n") == 3
    page = window.pages["iterations"]
    assert "The parameters at the end are the same (2 compared)." in page.words.text()  # type: ignore[attr-defined]
    assert script.read_text() == SCRIPT
    states = walk.loop.fix_states(first)
    assert [state.kind for state in states.values()] == ["measured"]
    gained = [bool(s.judged and s.judged.is_gain) for s in states.values()]
    assert gained == [DONE in first.suggestion_state.values()]  # on a busy machine it may bring nothing
    assert walk.loop.project is not None
    _, fixed = walk.loop.project.iterations
    run = read_run(Path(fixed.run_folder))
    assert run is not None
    assert "torch.nn.functional" in Path(str(run.spec["script"])).read_text()
    assert run.spec["schedule"]["active"] == 3


def test_waiting_takes_no_processor_from_the_script_that_is_timed(qapp: object) -> None:
    asked, ended = [0], [False]

    def done() -> bool:
        asked[0] += 1
        return ended[0]

    QTimer.singleShot(2 * LOOK_MS, lambda: ended.insert(0, True))
    wait(done, "it did not end")
    assert asked[0] < 100  # a loop that never rests asks thousands of times
