"""A torch that mixes up the stacks of two recordings is given time between them, and no recording too many."""

from __future__ import annotations

import pytest

from profiling.spec import Schedule
from tests.profiling.runs import Seen

pytestmark = pytest.mark.torch

THREADS = 6
OLD = f"""
import threading, torch; torch.set_num_threads(1)
torch.__version__ = "2.7.1"
end = threading.Event()
for _ in range({THREADS}): threading.Thread(target=end.wait, daemon=True).start()
model = torch.nn.Linear(8, 8); o = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps):
    for i in range(steps): o.zero_grad(); model(torch.randn(4, 8)).sum().backward(); o.step()
"""


@pytest.mark.launch(text=OLD + "train(40)", schedule=Schedule(0, 0, 2, 2))
def test_each_thread_has_its_turn_between_two_recordings_with_stacks(seen: Seen) -> None:
    first, second = seen.result.manifest["traces"]
    assert first["steps"] == [0, 1]
    assert second["steps"][0] - 2 >= THREADS + 1


@pytest.mark.launch(text=OLD.replace("2.7.1", "2.8.0") + "train(40)", schedule=Schedule(0, 0, 2, 2))
def test_a_torch_that_mixes_up_nothing_is_not_waited_for(seen: Seen) -> None:
    assert seen.result.manifest["traces"][1]["steps"] == [4, 5]


@pytest.mark.launch(text=OLD + "train(6)")
def test_the_early_recording_leaves_the_stacks_to_the_one_that_may_follow(seen: Seen) -> None:
    (trace,) = seen.result.manifest["traces"]
    assert (len(trace["steps"]), trace["left_out"]) == (6, ["stacks"])
    assert any("without stacks" in notice for notice in seen.result.notices)
