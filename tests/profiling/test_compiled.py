"""A script that uses torch.compile: our hooks leave what is compiled as it is, and its steps are found."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from profiling import _child_early, _child_hooks
from profiling._child_session import _caller_lines
from profiling.outcome import hint_for
from tests.profiling.runs import Seen

SCRIPT = """
import torch
torch.manual_seed(0)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    def forward(self, x):
        return self.inner(x).sum()

graphs = []
def backend(graph, inputs):
    graphs.append(len(list(graph.graph.nodes)))
    return graph.forward

net = Net()
net.inner.register_forward_hook(lambda module, args, out: out * 2)
o = torch.optim.SGD(net.parameters(), lr=0.1)
net = torch.compile(net, backend=backend)
for i in range(14):
    o.zero_grad()
    net(torch.ones(2, 8)).backward()
    o.step()
from torch._dynamo.utils import counters
print(len(graphs), counters["frames"]["total"], sum(counters["graph_break"].values()))
"""


@pytest.mark.torch
@pytest.mark.launch(text=SCRIPT, whole_torch=True)
def test_what_is_compiled_is_the_same_as_without_us(seen: Seen) -> None:
    assert seen.result.outcome == "ok", seen.stderr
    assert seen.stdout == "1 1 0\n"  # one graph of one frame, compiled once, as where the script runs alone
    assert "Dynamo" not in seen.stderr
    assert len(seen.steps) == 5
    assert seen.result.manifest["steps"]["wall_step_us"]


BROKEN = SCRIPT.replace("return graph.forward", "raise RuntimeError('no compiler')")


@pytest.mark.torch
@pytest.mark.launch(text=BROKEN, whole_torch=True)
def test_the_compilers_own_work_is_not_recorded(seen: Seen) -> None:
    assert seen.result.outcome == "failed"
    assert "no compiler" in seen.stderr
    assert seen.result.traces == ()  # of a step in which nothing but the compiler has run


@pytest.mark.torch
@pytest.mark.launch(text=SCRIPT.replace("range(14)", "range(3)"), whole_torch=True)
def test_a_short_script_is_recorded_from_the_step_after_the_compiler(seen: Seen) -> None:
    assert seen.stdout == "1 1 0\n"
    assert seen.steps == ["ProfilerStep#1", "ProfilerStep#2"]


EACH_STEP = (
    SCRIPT.replace("range(14)", "range(20)")
    .replace("net(torch.ones(2, 8))", "net(torch.ones(2 + i, 8))")
    .replace("backend=backend)", "backend=backend, dynamic=False)")
    .replace("graphs = []", "torch._dynamo.config.automatic_dynamic_shapes = False\ngraphs = []")
)


@pytest.mark.torch
@pytest.mark.launch(text=EACH_STEP, whole_torch=True)
def test_a_script_that_compiles_in_each_step_is_recorded_all_the_same(seen: Seen) -> None:
    assert seen.result.outcome == "ok", seen.stderr
    assert int(seen.stdout.split()[0]) > 3
    assert len(seen.steps) == 5


IN_BACKWARD = """
import torch
twice = torch.compile(lambda gradient: gradient * 2, backend="eager")
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
w.register_hook(lambda gradient: twice(gradient))
for i in range(20):
    (w @ w).sum().backward(); o.step(); o.zero_grad()
"""


@pytest.mark.torch
@pytest.mark.launch(text=IN_BACKWARD, whole_torch=True)
def test_a_backward_pass_that_compiles_leaves_the_profiler_as_it_was(seen: Seen) -> None:
    assert (seen.result.outcome, seen.result.fault, seen.stderr) == ("ok", None, "")
    assert len(seen.steps) == 5


def test_optimizers_whose_hooks_an_old_compiler_takes_away_are_heard() -> None:
    class Optimizer:
        def step(self) -> str:
            return "base"

    class Plain(Optimizer):
        def step(self) -> str:
            return "plain"

    class Heir(Plain):
        pass

    class Left(Optimizer):
        def step(self) -> str:
            return "left"

    Left.step.hooked = True  # type: ignore[attr-defined]
    told: list[object] = []
    hooks = object.__new__(_child_hooks.Hooks)
    optim = SimpleNamespace(Optimizer=Optimizer, Plain=Plain, Heir=Heir, Left=Left, other=1)
    hooks.torch, hooks._stepped = SimpleNamespace(optim=optim), lambda optimizer, *_: told.append(optimizer)
    hooks._hearing_steps(lambda: None)()
    made = [Plain(), Heir(), Left(), Optimizer()]
    assert [optimizer.step() for optimizer in made] == ["plain", "plain", "left", "base"]
    assert told == made[:2]  # once each; torch's own hooks tell of the third


def test_a_step_that_was_compiled_before_its_first_sign_is_not_recorded_early() -> None:
    made = []
    recorder = SimpleNamespace(number=0, lead=4, phase="idle", session=None, lock=nullcontext(), to=made.append)
    recorder.torch = SimpleNamespace(_C=SimpleNamespace(_current_graph_task_id=lambda: -1))
    recorder._early = _child_early.Early(recorder, None, 20)
    _child_early.leave_out(recorder)
    recorder._early.begin()
    assert made == []
    recorder.number = 1
    with pytest.raises(AttributeError):  # there is nothing to record with
        recorder._early.begin()
    assert made == ["early"]


@pytest.mark.parametrize(
    "title",
    [
        "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in "
        "torch._inductor.config.cpp.cxx: (None, 'g++')",
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: InvalidCxxCompiler: No working C++ "
        "compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs",
    ],
)
def test_a_missing_compiler_is_told_with_its_cure(title: str) -> None:
    hint = hint_for(title)
    assert hint is not None
    assert hint.key == "hint-compiler"
    assert re.search(r"C\+\+ compiler", hint)
    assert "without torch.compile" in hint


def test_calls_from_code_that_is_gone_are_left_out_of_the_lines_and_the_others_stay() -> None:
    class Gone:
        line_number = 3

        @property
        def file_name(self) -> str:
            return b"\xa0q".decode("utf-8")

    class Here(Gone):
        file_name, function_name = "train.py", "main"  # type: ignore[assignment]

    def event(caller: Gone, name: str) -> SimpleNamespace:
        fields = SimpleNamespace(caller=caller)
        return SimpleNamespace(children=[], extra_fields=fields, start_time_ns=5, duration_time_ns=2, name=name)

    table = _caller_lines([event(Gone(), "a"), event(Here(), "b")], lambda name: f"/{name}")
    assert (table["files"], table["callees"], table["calls"]["line"]) == (["/train.py"], ["b"], [3])


def test_a_missing_triton_is_told() -> None:
    title = "torch._inductor.exc.TritonMissing: Cannot find a working triton installation. Either the package is not"
    assert getattr(hint_for(title), "key", "") == "hint-triton"
