"""How long a loop will be is read from its source; what the first steps are recorded with hangs on it."""

from __future__ import annotations

import json
import linecache
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from profiling import _child_limits
from profiling._child_early import better
from profiling._child_loops import steps_foreseen
from tests.profiling.runs import Seen


class Loader:
    """As much of a loader as is looked at."""

    def __init__(self, length: int) -> None:
        self._index_sampler = range(length)

    def __iter__(self) -> Any:
        return iter(self._index_sampler)


def foreseen(folder: Path, source: str, **names: Any) -> int | None:
    """What is foreseen for a script at the place where it calls ``step()`` first."""
    path = folder / "loops.py"
    path.write_text(source)
    linecache.clearcache()
    found: list[int | None] = []

    class Done(Exception):
        pass

    def step(*_: object) -> None:
        frame: FrameType | None = sys._getframe()
        found.append(steps_foreseen(frame, lambda name: name if name == str(path) else "", Loader, _child_limits))
        raise Done

    with pytest.raises(Done):
        exec(
            compile(source, str(path), "exec"),
            {"step": step, "o": SimpleNamespace(step=step), "Loader": Loader, **names},
        )
    return found[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("for i in range(12): step(i)", 12),
        ("n = 3\nfor i in range(n): step(i)", 3),
        ("for i in range(0, 101, 10): step(i)", 11),
        ("for a in range(2):\n    for b in [1, 2, 3]:\n        step()", 6),
        ("def train(n):\n    for i in range(n + 1): step()\nfor epoch in range(4): train(5)", 24),
        ("loader = Loader(8)\nfor i, x in enumerate(loader): step()", 8),
        ("for x in tqdm(Loader(8)): step()", None),  # a call: what it gives is not known before it is made
        ("loader = Loader(8)\nfor x in tqdm(loader, total=9): step()", 8),
        ("for i in range(args.steps // 2): step()", 50),
        ("for a, b in zip(range(5), [1, 2]): step()", 2),
        ("items = {1: 2}\nfor k in items: step()", 1),
        ("for i in range(len(names)): step()", 3),
        ("while True: step()", None),
        ("for epoch in range(3):\n    while True: step()", None),
        ("for x in iter(lambda: 1, 2): step()", None),
        ("for x in (y for y in [1]): step()", None),
        ("step()", None),
        ("for i in range(3): pass\nstep()", None),
        ("class A:\n    def go(self):\n        for i in range(self.n): step()\na = A(); a.n = 7\na.go()", 7),
    ],
)
def test_the_length_of_a_loop(tmp_path: Path, source: str, expected: int | None) -> None:
    names: dict[str, Any] = {"args": SimpleNamespace(steps=100), "names": ["a", "b", "c"], "tqdm": lambda x, **_: x}
    assert foreseen(tmp_path, source, **names) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("for i in range(1000):\n    if i == 12: break\n    step(i)", 12),
        ("for i, x in enumerate(Loader(1000)):\n    if i >= args.steps: break\n    step(i)", 100),
        ("loader = Loader(50)\nfor i, x in enumerate(loader):\n    if i >= args.steps: break\n    step(i)", 50),
        ("for i, x in enumerate(unknown(), 1):\n    o.step()\n    if i == 12: break", 12),
        ("import itertools\nfor i in itertools.count():\n    if i >= args.steps: break\n    step(i)", 100),
        ("from itertools import count\nfor i in count(3):\n    o.step()\n    if i == 12: break", 10),
        ("import itertools\nfor i in itertools.count(0, 5):\n    if i >= args.steps: break\n    step(i)", None),
        ("for i, x in enumerate(unknown(), start=1):\n    if 12 < i: break\n    step()", 12),
        ("for i in tqdm(range(1000)):\n    o.step()\n    if args.steps and i + 1 >= args.steps: break", 100),
        ("for i, x in enumerate(unknown()):\n    with open(0) as f:\n        if i == 7: break\n        step()", 7),
        ("n = 0\nwhile n < 9:\n    step()\n    n += 1", 9),
        ("n = 0\nwhile True:\n    o.step()\n    n += 1\n    if n >= config['steps']: break", 30),
        ("n = 0\nwhile n < 9:\n    for x in Loader(99):\n        step()\n        n += 1\n        if n == 9: break", 9),
        (
            "n = 0\nfor epoch in range(5):\n    for x in unknown():\n        if n >= 9: break\n        step()\n"
            "        n += 1\n    if n >= 9: break", 9,
        ),
        ("def f(n):\n    for e in range(5):\n        for i in range(99):\n            if i == n: return\n"
         "            step()\nf(9)", 9),
        ("for x in islice(unknown(), 20): step()", 20),
        ("for x in islice(Loader(100), 20): step()", 20),
        ("for i, x in enumerate(islice(Loader(100), 5, 20)): step()", 15),
        ("for i, x in enumerate(unknown()):\n    if i % 10 == 9: break\n    step()", None),
        ("for i, x in enumerate(unknown()):\n    if x == 3: break\n    step()", None),
        ("for i, x in enumerate(unknown()):\n    if i == limit(): break\n    step()", None),
        ("n = 0\nwhile n < 9:\n    step()\n    n = n + 2", None),
        ("for i in range(99):\n    for j in range(3):\n        if j == 1: break\n    step()", 99),
    ],
)  # fmt: skip
def test_a_loop_that_a_counter_ends(tmp_path: Path, source: str, expected: int | None) -> None:
    names: dict[str, Any] = {
        "args": SimpleNamespace(steps=100), "config": {"steps": 30}, "limit": lambda: 3,
        "unknown": lambda: range(1, 500), "tqdm": lambda x: x, "islice": islice, "open": lambda _: nullcontext(),
    }  # fmt: skip
    assert foreseen(tmp_path, source, **names) == expected


def test_nothing_of_the_users_is_called(tmp_path: Path) -> None:
    class Trap:
        def __len__(self) -> int:
            raise AssertionError("asked")

        @property
        def steps(self) -> int:
            raise AssertionError("read")

        def __iter__(self) -> Any:
            return iter([1])

    assert foreseen(tmp_path, "for x in trap: step()", trap=Trap()) is None
    assert foreseen(tmp_path, "for x in range(k if False else 2): step()", trap=Trap()) is None


def test_two_full_steps_are_better_than_many_light_ones() -> None:
    def made(steps: int, *left_out: str) -> Any:
        return SimpleNamespace(steps=list(range(steps)), left_out=list(left_out))

    light, one, two = made(8, "shapes"), made(1), made(2)
    assert better(one, light) is light
    assert better(two, light) is two
    assert better(light, None) is light
    assert better(made(5), made(4)).steps == [0, 1, 2, 3, 4]
    single = made(1, "shapes")
    assert better(one, single) is one


LEFT_EARLY = """
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
for i in range(1000):
    o.zero_grad(); (w @ w).sum().backward(); o.step(); w.detach().sum().item()
    if [i] == [3]: break
"""


@pytest.mark.torch
@pytest.mark.launch(text=LEFT_EARLY)
def test_a_long_loop_that_is_left_early_still_leaves_a_trace(seen: Seen) -> None:
    row = seen.result.manifest["traces"][0]
    assert seen.count("Optimizer.step#SGD.step") == 4
    assert row["left_out"] == ["memory", "shapes"]
    trace = json.loads((seen.result.folder / row["path"]).read_bytes())
    assert trace["steplens"] == {"first_steps": True, "left_out": ["memory", "shapes"]}  # whoever opens it is told
    assert any("without memory and shapes" in notice for notice in seen.result.notices)


@pytest.mark.torch
@pytest.mark.launch(text=LEFT_EARLY.replace("range(1000)", "range(6)").replace("if [i] == [3]: break", "pass"))
def test_a_short_loop_is_recorded_whole_with_everything(seen: Seen) -> None:
    row = seen.result.manifest["traces"][0]
    assert len(seen.steps) == 6
    assert row["left_out"] == []
    assert any("Input Dims" in e.get("args", {}) for e in seen.events)


IN_BACKWARD = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)); torch.set_num_threads(1)
of = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
def update(p): of[p].step(); of[p].zero_grad()
for p in of: p.register_post_accumulate_grad_hook(update)
for i in range(20): model(torch.randn(2, 4)).sum().backward()
"""


@pytest.mark.torch
@pytest.mark.launch(text=IN_BACKWARD, measure_wall=False)
def test_optimizers_that_step_within_the_backward_pass(seen: Seen) -> None:
    assert [notice for notice in seen.result.notices if notice.key == "recording"] == []
    assert seen.result.manifest["steps"]["count"] == 20
    assert len(seen.steps) == 5
    assert seen.count("Optimizer.step#SGD.step") == 5 * 4


class _BaseDataLoaderIter:
    """As much of torch's iterator as is looked at; it asks how long the loop will be when it is asked for a batch."""

    def __init__(self, ask: Any) -> None:
        self._index_sampler, self._ask = range(7), ask

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> None:
        self._ask()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("for x in made(): pass", 7),
        ("for epoch in range(3):\n    for i, x in enumerate(made()): pass", 21),
        ("for x in (\n    made()\n): pass", 7),
        ("for x in unknown():\n    next(made())", None),  # not the loop's own loader
        ("while True:\n    next(made())", None),
    ],
)
def test_a_loader_made_in_the_loops_own_line(tmp_path: Path, source: str, expected: int | None) -> None:
    names = {"unknown": lambda: iter([1]), "ask": None}
    source = "made = lambda: kind(step)\n" + source
    assert foreseen(tmp_path, source, kind=_BaseDataLoaderIter, **names) == expected


BY_HAND = """
import torch; torch.set_num_threads(1)
w = torch.randn(64, 64, requires_grad=True)
for i in range(20):
    (w @ w).sum().backward()
    with torch.no_grad(): w -= 0.1 * w.grad; w.grad = None
"""


@pytest.mark.torch
@pytest.mark.launch(text=BY_HAND, measure_wall=False)
def test_a_loop_without_optimizer_and_module_has_a_step_for_each_backward(seen: Seen) -> None:
    steps = seen.result.manifest["steps"]
    assert (steps["source_words"], steps["count"]) == ("calls of backward()", 20)
    assert len(seen.steps) == len(steps["recorded"]) == 5
    work = [e["ts"] for e in seen.events if e.get("name") == "aten::sub_"]
    marks = [e for e in seen.events if str(e.get("name")).startswith("ProfilerStep#")]
    assert [sum(m["ts"] <= ts < m["ts"] + m["dur"] for ts in work) for m in marks] == [1] * 5


CALLED = """
import torch; torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
for i in range(20): model(torch.randn(4, 8))
{end}
"""


@pytest.mark.torch
@pytest.mark.launch(text=CALLED.format(end=""), measure_wall=False)
def test_the_last_call_of_a_module_is_a_step_too(seen: Seen) -> None:
    assert seen.result.manifest["steps"]["count"] == 20


@pytest.mark.torch
@pytest.mark.launch(text=CALLED.format(end="raise ValueError"), measure_wall=False)
def test_the_call_that_an_error_followed_is_no_whole_step(seen: Seen) -> None:
    assert seen.result.manifest["steps"]["count"] == 19


WITHOUT_SIGNS = """
import torch; torch.set_num_threads(1)
w = torch.randn(64, 64, requires_grad=True)
for i in range(20):
    w = w - 0.1 * torch.autograd.grad((w @ w).sum(), w)[0]
"""


@pytest.mark.torch
@pytest.mark.launch(text=WITHOUT_SIGNS)
def test_a_loop_that_nothing_tells_the_steps_of_says_what_it_lacks_and_how_to_get_it(seen: Seen) -> None:
    (notice,) = [n for n in seen.result.notices if n.key in ("no-steps", "steps-unknown")]
    assert "without memory, shapes and stacks" in notice
    assert "prof.step()" in notice


MODULES = """
import torch; torch.set_num_threads(1)
net = torch.nn.Linear(4, 4); o = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.randn(80, 4), batch_size=2):
    o.zero_grad(); net(x).sum().backward(); o.step()
"""


@pytest.mark.torch
@pytest.mark.launch(text=MODULES)
def test_modules_are_named_in_every_step_of_the_window(seen: Seen) -> None:
    """The early recording begins under a hook of ours: torch must not take that for the code that calls a module."""
    named = [e["ts"] for e in seen.events if e.get("name", "").startswith("nn.Module: Linear")]
    steps = [e for e in seen.events if e.get("name") in seen.steps]
    assert len(steps) >= 2
    for step in steps:
        assert sum(step["ts"] <= ts < step["ts"] + step["dur"] for ts in named) == 1
