"""Cases of the rules on the CPU's part: launches, chains of operators, compiling, the optimizer."""

from __future__ import annotations

from core.trace import Trace
from tests.core.rules.kit import Case, built, sim, steps, work
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder


def _ops(*names: str, us: float = 4.0, then: float = 100.0):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        work(m, then)
        for name in names:
            m.kernel_op(f"aten::{name}", us)
        work(m, then)

    return sim(program)


def _many(us: float):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        for _ in range(40):
            m.kernel_op("aten::add", us, host_us=20)

    return sim(program)


def _marked(m: Machine) -> None:
    work(m)


def _built_in_step(frame: tuple[str, int, str]):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        with m.frame("train.py", 10, "forward"):
            with m.frame(*frame):
                m.cpu(50)
            work(m)

    return sim(program)


def _python_on_cpu(held_us: float) -> Trace:
    """Steps of a millisecond of a CPU: a function in Python, and one operator in what is left."""
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000).python("train.py(1): main", at, 1000).python(
            "text.py(30): tokens", at + 1, held_us
        )
        builder.op("aten::mm", at + held_us + 5, 990 - held_us)
    return builder.build()


def _moves(count: int) -> Trace:
    """Steps of a millisecond of a CPU: an environment and a model in turn, then a backward pass."""
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        at = number * 1000.0
        builder.step(number, at, 1000).python("train.py(1): main", at, 999)
        for k in range(count):
            start = at + 5 + 40 * k
            builder.python("nn.Module: Policy_0", start, 19).op("aten::addmm", start + 2, 15)
            builder.python("game.py(30): step", start + 20, 19)
        builder.op("aten::mm", at + 800, 190)
    return builder.build()


def _decoded(first: int, grows: bool = True) -> Trace:
    """Six steps of a CPU, a token each: two caches of ``first`` tokens or more get one token by ``cat``."""
    builder = TraceBuilder(gpu=None)
    for number in range(6):
        at, held = number * 1000.0, first + (number if grows else 0)
        builder.step(number, at, 1000).op("aten::linear", at + 5, 400)
        for k in range(2):
            sizes = [[[2, 8, held, 64], [2, 8, 1, 64]], []]
            builder.op("aten::cat", at + 410 + 110 * k, 100, Input_Dims=sizes, Input_type=["TensorList", "Scalar"])
    return built(builder)


def _generated(lengths: tuple[int, ...], keys: int = 0, joins: bool = True) -> Trace:
    """Steps of a CPU, a token each: two layers of attention of so many queries, over as many keys or ``keys``."""
    builder = TraceBuilder(gpu=None).python("run.py(1): generate", 0, len(lengths) * 1000.0)
    for number, length in enumerate(lengths):
        at = number * 1000.0
        builder.step(number, at, 1000).op("aten::linear", at + 5, 400)
        for k in range(2):
            sizes = [[2, 4, length, 32], [2, 4, keys or length, 32], [2, 4, keys or length, 32]]
            builder.op("aten::scaled_dot_product_attention", at + 410 + 110 * k, 100, Input_Dims=sizes)
        if joins:
            builder.op("aten::cat", at + 700, 10, Input_Dims=[[[2, length], [2, 1]], []])
    return built(builder)


def _copied(tensors: int, caller: str = "train.py(8): ema_of") -> Trace:
    """Three steps of a CPU that each copy an object with so many tensors, in Python around an operator for each."""
    builder = TraceBuilder(gpu=None)
    for number in range(3):
        at = number * 1000.0
        builder.step(number, at, 1000).op("aten::mm", at + 5, 400)
        builder.python(caller, at + 420, 560).python("copy.py(128): deepcopy", at + 430, 500)
        for k in range(tensors):
            builder.python("torch/nn/parameter.py(74): __deepcopy__", at + 440 + 50 * k, 30)
            builder.op("aten::clone", at + 442 + 50 * k, 20)
    return built(builder)


def _cross_entropy(fused: bool):  # type: ignore[no-untyped-def]
    def halves(m: Machine) -> None:
        m.kernel_op("aten::log_softmax", 4)
        m.kernel_op("aten::nll_loss_nd", 4)

    def program(m: Machine) -> None:
        if not fused:
            halves(m)
            return
        with m.op("aten::cross_entropy_loss"):
            halves(m)

    return sim(program)


def _compiled(kernels: int):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        work(m)
        with m.op("Torch-Compiled Region: 0/0", us=40):
            for _ in range(kernels):
                m.kernel(4)

    return sim(program)


def _regions(*names: str):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        for name in names:
            with m.op(f"Torch-Compiled Region: {name}"):
                m.kernel(50)

    return sim(program)


def _loop(rounds: int):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        for _ in range(rounds):
            with m.op("aten::select"):
                pass
            m.kernel_op("aten::mul", 2)
        with m.op("aten::stack"):
            m.kernel(2)

    return sim(program)


def _optimizer(*names: str, times: int = 30):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        work(m)
        with m.range("Optimizer.step#Adam.step"):
            for _ in range(times):
                for name in names:
                    m.kernel_op(name, 3)

    return sim(program)


def _zeroed(tensors: int):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        with m.range("Optimizer.zero_grad#SGD.zero_grad"):
            for _ in range(tensors):
                m.kernel_op("aten::zero_", 3)
        work(m)

    return sim(program)


def _collector(us: float) -> Trace:
    builder = steps(2, 10_000.0)
    for i in range(2):
        at = i * 10_000.0 + 100
        builder.op("aten::mm", at, 50).launch("gemm", at + 5, 5, at + 20, 100)
        builder.python("train.py(1): main", at + 60, 8000)
        builder.python("Python GC", at + 100, us)
    return built(builder)


def _attention(m: Machine) -> None:
    for name in ("bmm", "div", "softmax", "bmm"):
        m.kernel_op(f"aten::{name}", 200)


def _fused_attention(m: Machine) -> None:
    m.kernel_op("aten::scaled_dot_product_attention", 200)
    m.kernel_op("aten::bmm", 200)


def _startup(us: float) -> Trace:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, us + 20).launch("gemm", 5, us, us + 10, 50)
    for i in range(30):
        at = us + 100 + i * 100
        builder.op("aten::mm", at, 50).launch("gemm", at + 5, 6, at + 15, 50)
    return built(builder)


LOG_SOFTMAX = ("exp", "sum", "log", "sub")
CASES = {
    "launch-bound": Case(_many(3), _many(300)),
    "no-steps-marked": Case(sim(_marked, marked=False), sim(_marked)),
    "hand-written-composite-op": Case(_ops(*LOG_SOFTMAX), _ops("exp", "sum", "add", "sub")),
    "python-work-in-step": Case(lambda: _python_on_cpu(400), lambda: _python_on_cpu(60)),
    "environment-loop": Case(lambda: _moves(12), lambda: _moves(4)),
    "tensor-grown-by-cat": Case(lambda: _decoded(500), lambda: _decoded(500, grows=False)),
    "object-built-in-step": Case(
        _built_in_step(("torch/nn/modules/loss.py", 245, "__init__")),
        _built_in_step(("transformers/modeling_outputs.py", 245, "__init__")),
    ),
    "unfused-cross-entropy": Case(_cross_entropy(False), _cross_entropy(True)),
    "compile-without-gain": Case(_compiled(2), _compiled(30)),
    "graph-break-or-recompile": Case(_regions("0/0", "1/0", "2/0"), _regions("0/0", "0/0")),
    "loop-over-tensor-elements": Case(_loop(20), _loop(5)),
    "single-tensor-optimizer": Case(
        _optimizer("aten::mul_", "aten::add_"), _optimizer("aten::_foreach_mul_", "aten::_foreach_add_")
    ),
    "gradients-zeroed": Case(_zeroed(5), _zeroed(0)),
    "garbage-collection-stall": Case(lambda: _collector(3000), lambda: _collector(200)),
    "unfused-attention": Case(sim(_attention), sim(_fused_attention)),
    "lazy-initialisation": Case(lambda: _startup(400_000), lambda: _startup(8)),
    "generation-without-cache": Case(
        lambda: _generated((8, 9, 10, 11, 12)), lambda: _generated((1, 1, 1, 1, 1), keys=9)
    ),
    "model-copied-in-step": Case(lambda: _copied(5), lambda: _copied(0)),
    "fusible-kernel-sequence": Case(_ops("add", "mul", "sigmoid", "tanh", us=80), _ops("add", "mul", us=80)),
}
