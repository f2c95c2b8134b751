# ruff: noqa: SIM117  (nesting shows the order of the calls)
"""The reference story as programs for the simulator: seven faults in a loss, put right one after another.

It is told at two sizes. At the size of a workstation's experiment (`SMALL`) the CPU's part and the GPU's take about as
long, so that every fault costs time and every fix can be seen. At the size of the reference article (`ARTICLE`) the GPU
is the limit from the first step on: there the fixes shorten what ``ProfilerStep`` says and not the pace.

Device times follow from arithmetic, not from taste: each kernel moves its bytes at 85 % of the 600 GB/s of an A10G.
Python frames carry the lines of ``examples/reference_story``, so that a suggestion's line can be checked against the
source.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.simulator import Costs, Machine, Run, simulate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "reference_story"
STAGES = range(8)
WIDTHS = (3, 8, 12, 16, 20, 24, 28, 32, 10)
BYTES_PER_US = 600e3 * 0.85
CONV = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x32x16"
DGRAD = "sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x32x16"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>>(int)"


@dataclass(frozen=True)
class Size:
    """How big the batch is, and how the recording was made.

    ``loader_us`` is what a worker needs for a batch; ``slow_us`` what the first recorded step takes longer on the CPU,
    once (0: the recording starts after the warm-up).
    """

    name: str
    batch: int
    side: int
    loader_us: float
    steps: int
    slow_us: float
    costs: Costs

    @property
    def pixels(self) -> int:
        """Values in one batch."""
        return self.batch * 3 * self.side * self.side


# A desktop processor of today: 6 to 7 us per small operator, its launch and the profiler's share included.
FAST_CPU = Costs(op_scale=0.42, launch_us=3.0, copy_call_us=4.0, sync_call_us=2.0)
SMALL = Size("story", batch=20, side=128, loader_us=4_000, steps=10, slow_us=6_000, costs=FAST_CPU)
ARTICLE = Size("article", batch=1024, side=256, loader_us=48_000, steps=3, slow_us=0, costs=Costs())
FIRST_RECORDED = 5


@cache
def def_line(file: str, function: str) -> int:
    """Line of a ``def`` in one of the examples."""
    tree = ast.parse((EXAMPLES / file).read_text(encoding="utf-8"))
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    return lines[-1]


@cache
def line_of(file: str, text: str) -> int:
    """First line of an example that holds a text."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def moving(nbytes: float) -> float:
    """Device time of a kernel that moves so many bytes, us."""
    return max(nbytes / BYTES_PER_US, 2.0)


def run_stage(stage: int, size: Size = SMALL, stacks: bool = True, sustained: bool = True) -> Run:
    """Simulate one stage as torch.profiler would record it, after four steps of warm-up."""
    return simulate(
        step_of(stage, size),
        size.steps,
        warmup=4,
        stacks=stacks,
        first_number=FIRST_RECORDED,
        header={"with_stack": int(stacks)},
        costs=size.costs,
        sustained=sustained,
    )


def step_of(stage: int, size: Size = SMALL) -> Callable[[Machine, int], None]:
    """The training step of a stage."""

    def step(m: Machine, number: int) -> None:
        with m.frame("common.py", def_line("common.py", "train"), "train"):
            m.loader(us=size.loader_us, workers=8)
            m.to_device(size.pixels, pinned=True, non_blocking=True)
            m.to_device(size.batch * 8, pinned=True, non_blocking=True)
            _normalise(m, size)
            _forward(m, size, slow_us=size.slow_us if m.recording and number == FIRST_RECORDED else 0.0)
            _loss(m, stage, size)
            with m.range("Optimizer.zero_grad#SGD.zero_grad"):
                m.cpu(15)
            _backward(m, stage, size)
            _optimizer(m)

    return step


def _python(m: Machine, stack: ExitStack, module: str, file: str, function: str) -> None:
    """What calling a module leaves: its own slice, torch's frames, and the user's forward."""
    stack.enter_context(m.module(module))
    stack.enter_context(m.frame("torch/nn/modules/module.py", 1518, "_wrapped_call_impl", us=1.0))
    stack.enter_context(m.frame("torch/nn/modules/module.py", 1527, "_call_impl", us=1.0))
    if file:
        stack.enter_context(m.frame(file, def_line(file, function), function, us=1.0))


def _kernel_op(m: Machine, op: str, us: float, kernel: str, host_us: float = 8.0) -> None:
    """An operator with one kernel whose grid fits its data."""
    with m.op(op, us=host_us * 0.75, after_us=host_us * 0.25):
        m.kernel(us, kernel, grid=[max(int(us * 50), 96), 1, 1])


def _small(m: Machine, op: str, us: float = 4.0, host_us: float = 9.0) -> None:
    _kernel_op(m, op, us, ELEMENTWISE.format(op.removeprefix("aten::")), host_us=host_us)


def _normalise(m: Machine, size: Size) -> None:
    """uint8 to float, / 255, - 0.5, / 0.5: four passes over the batch."""
    elements = size.pixels
    with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
        m.kernel(moving(elements * 5), "void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda>(int)")
    for op in ("aten::div", "aten::sub", "aten::div"):
        _kernel_op(m, op, moving(elements * 8), ELEMENTWISE.format(op.removeprefix("aten::")))


def _sizes(size: Size) -> list[tuple[int, int]]:
    """(elements in, elements out) of the eight convolutions."""
    out, side = [], size.side
    for a, b in zip(WIDTHS, WIDTHS[1:], strict=False):
        out.append((size.batch * a * side * side, size.batch * b * side * side))
        side = max(side // 2, 1)
    return out


def _forward(m: Machine, size: Size, slow_us: float) -> None:
    """The network; ``slow_us`` is what finding algorithms costs the first time."""
    with ExitStack() as stack:
        _python(m, stack, "SmallNet_0", "common.py", "forward")
        m.cpu(slow_us)
        for index, (before, after) in enumerate(_sizes(size)):
            with m.module(f"Conv2d_{index}"), m.op("aten::conv2d"), m.op("aten::convolution"):
                with m.op("aten::_convolution"):
                    _kernel_op(m, "aten::cudnn_convolution", moving(4 * (before + after)), CONV, host_us=20)
                    _kernel_op(m, "aten::add_", moving(8 * after), ELEMENTWISE.format("add"))
            _small(m, "aten::relu", moving(8 * after))
            with m.module("MaxPool2d_0"), m.op("aten::max_pool2d"):
                _kernel_op(
                    m, "aten::max_pool2d_with_indices", moving(7 * after), "void at::native::max_pool_forward_nchw"
                )
        with m.op("aten::flatten"):
            pass


def _log_softmax(m: Machine, file: str) -> None:
    with m.frame(file, def_line(file, "log_softmax"), "log_softmax"):
        _small(m, "aten::exp")
        _small(m, "aten::sum")
        _small(m, "aten::log")
        with m.op("aten::unsqueeze"):
            pass
        _small(m, "aten::sub")


def _host_tensor(m: Machine, us: float) -> None:
    """A Python list becomes a CPU tensor."""
    with m.op("aten::empty"):
        m.cpu(us)
    with m.op("aten::to", us=0.5):
        pass
    with m.op("aten::lift_fresh", us=0.5):
        pass


def _weighted_nll(m: Machine, stage: int, file: str, size: Size) -> None:
    with m.frame(file, def_line(file, "weighted_nll"), "weighted_nll"):
        if stage < 2:
            _small(m, "aten::max")
            _small(m, "aten::lt")
            m.is_nonzero()
        if stage < 3:
            m.cpu(12)
            _host_tensor(m, 60)
        else:
            _kernel_op(m, "aten::arange", 3.0, "void at::native::elementwise_kernel_with_index<arange>(int)")
        with m.op("aten::index", us=12):
            if stage < 3:
                m.to_device(size.batch * 8)
            m.kernel(4.0, "void at::native::index_elementwise_kernel<128, 4>(int)")
        _small(m, "aten::neg")
        _index(m)
        _small(m, "aten::mul")
        _index(m)
        _small(m, "aten::sum")
        _small(m, "aten::div")
        _small(m, "aten::sum")


def _index(m: Machine) -> None:
    _kernel_op(m, "aten::index", 4.0, "void at::native::index_elementwise_kernel<128, 4>(int)", host_us=14)


def _nll(m: Machine) -> None:
    with m.op("aten::nll_loss_nd"), m.op("aten::nll_loss"):
        _kernel_op(
            m, "aten::nll_loss_forward", 6.0, "void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float>(int)"
        )


def _cross_entropy(m: Machine) -> None:
    with m.op("aten::cross_entropy_loss"):
        with m.op("aten::log_softmax"):
            _kernel_op(m, "aten::_log_softmax", 5.0, "void at::native::softmax_warp_forward<float, 4>(int)")
        _nll(m)


def _loss(m: Machine, stage: int, size: Size) -> None:
    file = f"stage{stage}.py"
    with ExitStack() as stack:
        if stage == 7:
            _compiled(m)
            return
        if stage == 6:
            _python(m, stack, "CrossEntropyLoss_0", "", "")
            with m.frame("torch/nn/modules/loss.py", 1178, "forward"):
                _cross_entropy(m)
            return
        _python(m, stack, "WeightedCrossEntropy_0", file, "forward")
        if stage == 4:
            with m.frame("torch/nn/modules/loss.py", 214, "__init__"):
                for line in (29, 24, 451):
                    with m.frame("torch/nn/modules/module.py", line, "__init__"):
                        m.cpu(25)
        _log_softmax(m, file)
        if stage == 0:
            _host_tensor(m, 20)
            m.to_device(40)
        if stage < 4:
            _weighted_nll(m, stage, file, size)
            return
        with m.module("NLLLoss_0"), m.frame("torch/nn/modules/loss.py", 220, "forward"):
            _nll(m)


def _compiled(m: Machine) -> None:
    """The loss under torch.compile: the same kernels, behind wrappers."""
    with m.frame("torch/_dynamo/eval_frame.py", 655, "_fn"), m.op("TorchDynamo Cache Lookup", us=20):
        pass
    with m.op("Torch-Compiled Region: 0/0", us=15), m.op("CompiledFunction", us=30):
        with m.op("## Call CompiledFxGraph fa3k ##", us=10):
            m.kernel(6.0, "triton_per_fused__log_softmax_0", launch_us=6.0, call="cuLaunchKernel")
            m.kernel(6.0, "triton_red_fused_nll_loss_forward_1", launch_us=6.0, call="cuLaunchKernel")


_NLL_BACKWARD = ("Sum", "Div", "Mul", "Neg")
_LOG_SOFTMAX_BACKWARD = ("Sub", "Log", "Sum", "Exp")


def _backward(m: Machine, stage: int, size: Size) -> None:
    node = "autograd::engine::evaluate_function: "
    with m.thread("backward"):
        by_hand = (_NLL_BACKWARD if stage < 4 else ()) + (_LOG_SOFTMAX_BACKWARD if stage < 6 else ())
        for name in by_hand:
            with m.op(f"{node}{name}Backward0", us=3):
                _small(m, "aten::mul")
        for name in ("nll_loss",) * (stage >= 4) + ("_log_softmax",) * (stage >= 6):
            with m.op(f"{node}{name}Backward0", us=3):
                _small(m, f"aten::{name}_backward_data")
        for before, after in reversed(_sizes(size)):
            with m.op(node + "MaxPool2DWithIndicesBackward0", us=3):
                _kernel_op(m, "aten::max_pool2d_with_indices_backward", moving(8 * after), "max_pool_backward_nchw")
            with m.op(node + "ReluBackward0", us=3):
                _kernel_op(m, "aten::threshold_backward", moving(12 * after), ELEMENTWISE.format("threshold_backward"))
            with m.op(node + "ConvolutionBackward0", us=3), m.op("aten::convolution_backward", us=20):
                if before != size.pixels:
                    m.kernel(moving(4 * (before + after)), DGRAD)
                m.kernel(moving(4 * (before + after)), WGRAD)
                m.kernel(moving(4 * after), "void at::native::reduce_kernel<512, 1, sum>(int)")


def _optimizer(m: Machine) -> None:
    with m.range("Optimizer.step#SGD.step"):
        for op in ("aten::_foreach_mul_", "aten::_foreach_add_", "aten::_foreach_add_"):
            _kernel_op(m, op, 6.0, "void at::native::multi_tensor_apply_kernel<float>(int)", host_us=30)
