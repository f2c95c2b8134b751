"""Cases of the rules on what a recording itself gets wrong."""

from __future__ import annotations

from core.trace import Trace
from tests.core.rules.kit import Case, built, keep, sim, work
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder


def _steps(*lengths: float, kernels: int = 4, cut: int = -1, **header: object) -> Trace:
    """Steps of these lengths with some kernels each; the ``cut`` one has a single kernel."""
    builder = TraceBuilder(**header)
    at = 0.0
    for i, length in enumerate(lengths):
        builder.step(i + 1, at, length)
        for j in range(1 if i == cut else kernels):
            builder.op("aten::mm", at + 20 + j * 60, 40).launch("gemm", at + 30 + j * 60, 5, at + 40 + j * 60, 40)
        at += length + 10
    return built(builder)


def _unseen(launches: bool) -> Trace:
    builder = TraceBuilder()
    for i in range(5):
        builder.op("aten::mm", i * 100.0, 50)
        if launches:
            builder.runtime("cudaLaunchKernel", i * 100.0 + 10, 5, 10 + i)
    return built(builder)


def _orphans(lost: int) -> Trace:
    builder = TraceBuilder()
    for i in range(20):
        at = i * 100.0
        if i < lost:
            builder.kernel("gemm", at + 20, 50, 9000 + i)
        else:
            builder.op("aten::mm", at, 50).launch("gemm", at + 10, 5, at + 20, 50)
    return built(builder)


def _crossing(crossed: bool) -> Trace:
    builder = TraceBuilder()
    for i in range(10):
        at = i * 100.0
        builder.op("aten::mm", at, 60).launch("gemm", at + 10, 5, at + 20, 50)
        builder.op("aten::add", at + 40 if crossed else at + 70, 50 if crossed else 20)
    return built(builder)


def _clocks(early: float) -> Trace:
    builder = TraceBuilder()
    for i in range(20):
        at = i * 100.0
        builder.op("aten::mm", at, 50).launch("gemm", at + 10, 5, at + 20 - early, 30)
    return built(builder)


def _text(damaged: bool) -> Trace:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 50).launch("gemm", 10, 5, 20, 30).range("say hi", 60, 10)
    data = builder.to_json()
    return keep(data.replace(b'"say hi"', b'"say "hi""') if damaged else data)


def _stacks(recorded: bool) -> Trace:
    builder = TraceBuilder(with_stack=1)
    builder.op("aten::mm", 0, 50).launch("gemm", 10, 5, 20, 30)
    if recorded:
        builder.python("train.py(1): main", 0, 80)
    return built(builder)


def _overhead(us: float) -> Trace:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 50).launch("gemm", 10, 5, 20, 30).op("aten::mm", 9000, 50)
    builder.slice("overhead", "Buffer Flush", 100, us, 0, -1)
    return built(builder)


def _nested(inner: str) -> Trace:
    builder = TraceBuilder()
    builder.python("train.py(1): main", 0, 9000).python("torch/profiler/profiler.py(800): step", 10, 100)
    builder.python(inner, 5000, 100)
    builder.op("aten::mm", 6000, 50).launch("gemm", 6010, 5, 6020, 30)
    return built(builder)


def _ahead(m: Machine) -> None:
    work(m, 3000, 4)


def _in_step(m: Machine) -> None:
    work(m, 3000, 4)
    m.device_synchronize()


def _complete(everything: bool) -> Trace:
    builder = TraceBuilder(with_stack=1, record_shapes=1, profile_memory=1)
    builder.op("aten::mm", 0, 50, Input_Dims=[[8, 8], [8, 8]]).launch("gemm", 10, 5, 20, 30)
    if everything:
        builder.python("train.py(1): main", 0, 80).memory(5, 512, allocated=512, reserved=1024)
    return built(builder)


CASES = {
    "warmup-captured": Case(lambda: _steps(9000, 1000, 1000, 1000), lambda: _steps(1500, 1000, 1000, 1000)),
    "gpu-events-missing": Case(lambda: _unseen(True), lambda: _unseen(False)),
    "orphan-kernels": Case(lambda: _orphans(5), lambda: _orphans(0)),
    "steps-truncated": Case(
        lambda: _steps(1000, 1000, 1000, 1000, cut=3, kernels=8), lambda: _steps(1000, 1000, 1000, 1000, kernels=8)
    ),
    "crossing-slices": Case(lambda: _crossing(True), lambda: _crossing(False)),
    "clock-skew": Case(lambda: _clocks(40), lambda: _clocks(9)),
    "invalid-json": Case(lambda: _text(True), lambda: _text(False)),
    "stacks-missing": Case(lambda: _stacks(False), lambda: _stacks(True)),
    "outlier-step": Case(
        lambda: _steps(1000, 1000, 5000, 1000, 1000, 1000), lambda: _steps(1000, 1000, 1500, 1000, 1000, 1000)
    ),
    "profiler-overhead": Case(lambda: _overhead(3000), lambda: _overhead(20)),
    "two-profilers": Case(
        lambda: _nested("torch/profiler/profiler.py(700): start"),
        lambda: _nested("torch/autograd/profiler.py(700): __enter__"),
    ),
    "enqueue-time": Case(sim(_ahead, steps=5), sim(_in_step, steps=5)),
    "data-not-recorded": Case(lambda: _complete(False), lambda: _complete(True)),
}
