"""Cases of the rules on kernels, memory and several GPUs."""

from __future__ import annotations

from typing import Any

from core.trace import Trace
from tests.core.rules.kit import Case, built, sim, steps, work
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder

SGEMM = "ampere_sgemm_128x64_tn"
TF32 = "ampere_tf32_s1688gemm_tf32_128x64_tn"


def _kernel(op: str, kernel: str, us: float = 400.0, times: int = 4, **args: Any):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        for _ in range(times):
            with m.op(op, **args):
                m.kernel(us, kernel)

    return sim(program)


def _on(compute: tuple[int, int], kernel: str, op: str = "aten::mm", **args: Any) -> Trace:
    """Steps of one kernel on a GPU of that compute capability."""
    builder = steps(3, 2000.0, record_shapes=1)
    builder.header["deviceProperties"][0].update(computeMajor=compute[0], computeMinor=compute[1])
    for i in range(3):
        at = i * 2000.0 + 20
        builder.op(op, at, 60, **args).launch(kernel, at + 10, 5, at + 30, 900, grid=[640, 1, 1], block=[128, 1, 1])
    return built(builder)


def _conv(bias: bool) -> Trace:
    builder = steps(3, 2000.0, record_shapes=1)
    for i in range(3):
        at = i * 2000.0 + 20
        dims = [[8, 3, 32, 32], [16, 3, 3, 3], [16] if bias else []]
        builder.op("aten::conv2d", at, 100, Input_Dims=dims)
        builder.launch("cudnn_conv", at + 10, 5, at + 20, 100)
        if bias:
            builder.op("aten::add_", at + 40, 20).launch("add", at + 45, 5, at + 125, 20)
        builder.op("aten::batch_norm", at + 120, 50, Input_Dims=[[8, 16, 32, 32]])
        builder.launch("bn", at + 130, 5, at + 150, 50)
    return built(builder)


def _layout(name: str):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        for _ in range(4):
            with m.op("aten::cudnn_convolution"):
                m.kernel(80, name)
                m.kernel(200, "sm80_xmma_fprop_implicit_gemm_tf32")

    return sim(program)


def _search(searching: tuple[int, ...]) -> Trace:
    builder = steps(3, 2000.0)
    for i in range(3):
        at = i * 2000.0 + 20
        builder.op("aten::cudnn_convolution", at, 900)
        builder.launch("conv", at + 10, 5, at + 20, 300)
        if i in searching:
            builder.runtime("cudaEventSynchronize", at + 20, 305, 50 + i)
            builder.launch("conv", at + 400, 5, at + 410, 300)
    return built(builder)


def _grid(blocks: int, occupancy: float) -> Trace:
    builder = steps(3, 2000.0)
    for i in range(3):
        at = i * 2000.0 + 20
        args = {"est._achieved_occupancy_%": occupancy}
        builder.op("mine::scan", at, 60)
        builder.launch("my_scan_kernel", at + 10, 5, at + 20, 900, grid=[blocks, 1, 1], block=[128, 1, 1], **args)
    return built(builder)


def _copies(us: float):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        work(m, 300)
        with m.op("aten::clone"), m.op("aten::copy_"):
            m.kernel(us, "void at::native::direct_copy_kernel_cuda<float>(int)")

    return sim(program)


def _unexplained(busy_us: float) -> Trace:
    builder = TraceBuilder()
    for i in range(4):
        builder.step(i + 1, i * 1000.0, 1000.0)
        for j in range(6):
            builder.kernel("k", i * 1000.0 + 100 + j * busy_us / 6, busy_us / 6 - 0.1, correlation=None)
    return built(builder)


def _shares(first: float):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        m.kernel_op("aten::softmax", first, "void softmax_warp_forward<float>(int)")
        for i in range(5):
            m.kernel_op("aten::add", 100, f"void kernel_{i}<float>(int)")

    return sim(program)


def _cpu_model(gpu: str | None) -> Trace:
    builder = TraceBuilder(gpu=gpu)
    for i in range(5):
        builder.op("aten::conv2d", i * 1000.0, 900).op("aten::mkldnn_convolution", i * 1000.0 + 10, 880)
    return built(builder)


# -- memory -----------------------------------------------------------------------------------------------------


def _memory(peak: int, low: tuple[int, ...] = (), reserved: tuple[int, ...] = ()) -> Trace:
    n = max(len(low), len(reserved), 3)
    builder = steps(n, 1000.0, profile_memory=1)
    for i in range(n):
        at = i * 1000.0 + 20
        builder.op("aten::mm", at, 900).launch("gemm", at + 10, 5, at + 20, 100)
        start = low[i] if low else 1 << 20
        held = reserved[i] if reserved else peak
        builder.memory(at + 30, 1 << 20, allocated=start, reserved=reserved[i - 1] if reserved and i else held)
        builder.memory(at + 60, peak - start, allocated=peak, reserved=held)
        builder.memory(at + 90, -(peak - start), allocated=start, reserved=held)
    return built(builder)


def _grad(numbered: bool) -> Trace:
    builder = steps(3, 1000.0)
    for i in range(3):
        for j in range(4):
            at = i * 1000.0 + 20 + j * 100
            extra = {"Sequence_number": i * 4 + j} if numbered else {}
            builder.op("aten::linear", at, 60, **extra).launch("gemm", at + 10, 5, at + 20, 50)
    return built(builder)


def _checkpoint(peak: int) -> Trace:
    builder = steps(3, 2000.0, profile_memory=1)
    for i in range(3):
        at = i * 2000.0 + 20
        builder.op("CheckpointFunctionBackward", at, 900)
        builder.op("aten::mm", at + 10, 60).launch("gemm", at + 20, 5, at + 30, 300)
        builder.memory(at + 40, peak, allocated=peak, reserved=peak)
    return built(builder)


# -- several GPUs -----------------------------------------------------------------------------------------------

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def _data_parallel(devices: int) -> Trace:
    builder = steps(3, 2000.0)
    for i in range(3):
        at = i * 2000.0 + 20
        builder.range("DataParallel.forward", at, 900)
        for d in range(devices):
            builder.op("aten::mm", at + 10 + d * 40, 30)
            builder.launch("gemm", at + 15 + d * 40, 5, at + 30 + d * 40, 300, device=d)
    return built(builder)


def _reduce(
    us: float, at_us: float, compute_us: float = 1000.0, micro: int = 1, every: bool = True, **args: Any
) -> Trace:
    """Backward kernels of ``compute_us`` and an all-reduce that starts ``at_us`` after the first."""
    builder = steps(3, 8000.0)
    for i in range(3):
        for j in range(micro):
            at = i * 8000.0 + 20 + j * 2500
            builder.range("DistributedDataParallel.forward", at, 100)
            builder.op("aten::mm", at + 10, 60).launch("gemm", at + 20, 5, at + 40, 100)
            builder.op("autograd::engine::evaluate_function: MmBackward0", at + 120, 60)
            builder.launch("gemm", at + 130, 5, at + 160, compute_us)
            if every or j == micro - 1:
                builder.op("c10d::allreduce_", at + 190, 20)
                builder.launch(NCCL, at + 195, 5, at + 160 + at_us, us, stream=20, **args)
        builder.range("Optimizer.step#SGD.step", i * 8000.0 + 7000, 100)
    return built(builder)


def _gloo(copy: bool) -> Trace:
    builder = steps(3, 2000.0)
    for i in range(3):
        at = i * 2000.0 + 20
        builder.op("aten::mm", at, 60).launch("gemm", at + 10, 5, at + 20, 100)
        if copy:
            builder.op("aten::to", at + 100, 90).copy(
                "DtoH (Device -> Pageable)", at + 105, 60, at + 125, 30, bytes=4096
            )
        builder.range("gloo:all_reduce", at + 200, 400)
    return built(builder)


def _frames(*names: str, inside: str = "") -> Trace:
    builder = steps(3, 2000.0)
    for i in range(3):
        at = i * 2000.0 + 20
        builder.python("train.py(3): main", at, 1500)
        for j, name in enumerate(names):
            builder.python(name, at + 10 + j * 100, 80)
            if inside:
                builder.op(inside, at + 20 + j * 100, 30)
        builder.op("aten::mm", at + 900, 60).launch("gemm", at + 910, 5, at + 920, 100)
    return built(builder)


def _ranks(slow_us: float) -> Trace:
    """Two ranks whose collectives end together; rank 1 computes ``slow_us`` longer."""
    from core.importing import open_trace
    from tests.core.rules import kit

    paths = []
    for rank in (0, 1):
        builder = TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        for i in range(4):
            at, late = i * 5000.0, slow_us if rank else 0.0
            builder.step(i + 1, at, 4900)
            builder.op("aten::mm", at + 10, 60).launch("gemm", at + 20, 5, at + 40, 500 + late)
            start = at + 560 + late
            builder.op("c10d::allreduce_", at + 100, 20)
            builder.launch(NCCL, at + 105, 5, start, at + 2600 - start, stream=20)
        paths.append(builder.write(kit.Path(kit._FOLDER.name) / f"ranks{next(kit._NUMBER)}_{rank}.json"))
    return open_trace(paths)


def _small_collectives(times: int, backward: bool = True) -> Trace:
    builder = steps(3, 8000.0)
    for i in range(3):
        if backward:
            builder.op("autograd::engine::evaluate_function: MmBackward0", i * 8000.0 + 5, 10)
        for j in range(times):
            at = i * 8000.0 + 20 + j * 100
            builder.op("c10d::allreduce_", at, 40)
            builder.launch(NCCL, at + 5, 5, at + 20, 30, In_msg_nelems=256, dtype="Float")
    return built(builder)


GIB = 1 << 30
CASES = {
    "fp32-matmul-without-tf32": Case(_kernel("aten::mm", SGEMM), lambda: _on((7, 0), "volta_sgemm_128x64_tn")),
    "tensor-cores-unused": Case(
        lambda: _on((7, 0), "volta_sgemm_128x64_tn"), lambda: _on((7, 0), "volta_h884gemm_128x64_tn")
    ),
    "matmul-dims-misaligned": Case(
        lambda: _on((8, 0), TF32, Input_Dims=[[64, 50257], [50257, 768]], Input_type=["c10::Half", "c10::Half"]),
        lambda: _on((8, 0), TF32, Input_Dims=[[63, 50304], [50304, 768]], Input_type=["c10::Half", "c10::Half"]),
    ),
    "conv-bias-before-batch-norm": Case(lambda: _conv(True), lambda: _conv(False)),
    "layout-conversions": Case(
        _layout("void cudnn::ops::nchwToNhwcKernel<float>(int)"), _layout("void at::native::relu_kernel<float>(int)")
    ),
    "algorithm-search-each-step": Case(lambda: _search((0, 1, 2)), lambda: _search((0,))),
    "grid-too-small": Case(lambda: _grid(8, 50), lambda: _grid(800, 50)),
    "low-occupancy": Case(lambda: _grid(800, 5), lambda: _grid(800, 70)),
    "dtype-ping-pong": Case(_copies(600), _copies(10)),
    "gpu-underfed": Case(lambda: _unexplained(200), lambda: _unexplained(800)),
    "dominant-kernel": Case(_shares(2000), _shares(100)),
    "double-precision-by-accident": Case(
        _kernel("aten::mm", "ampere_dgemm_64x64_nn"), _kernel("aten::mm", "ampere_sgemm_64x64_nn")
    ),
    "model-on-cpu": Case(lambda: _cpu_model("Test GPU"), lambda: _cpu_model(None)),
    "memory-near-limit": Case(lambda: _memory(23 * GIB), lambda: _memory(12 * GIB)),
    "allocator-thrash": Case(
        lambda: _memory(GIB, reserved=(2 * GIB, 3 * GIB, 2 * GIB, 3 * GIB, 2 * GIB)),
        lambda: _memory(GIB, reserved=(2 * GIB, 3 * GIB, 3 * GIB, 3 * GIB, 3 * GIB)),
    ),
    "memory-creep": Case(
        lambda: _memory(GIB, low=tuple((i + 1) * 8_000_000 for i in range(8))),
        lambda: _memory(GIB, low=tuple(8_000_000 + 1000 * (i % 2) for i in range(8))),
    ),
    "evaluation-with-gradients": Case(lambda: _grad(True), lambda: _grad(False)),
    "checkpointing-trade": Case(lambda: _checkpoint(4 * GIB), lambda: _checkpoint(20 * GIB)),
    "data-parallel": Case(lambda: _data_parallel(2), lambda: _data_parallel(1)),
    "communication-share": Case(lambda: _reduce(3000, 1000), lambda: _reduce(500, 100)),
    "exposed-communication": Case(lambda: _reduce(3000, 1010), lambda: _reduce(900, 50)),
    "all-reduce-while-accumulating": Case(
        lambda: _reduce(300, 1010, micro=2), lambda: _reduce(300, 1010, micro=2, every=False)
    ),
    "gloo-with-device-tensors": Case(lambda: _gloo(True), lambda: _gloo(False)),
    "unused-parameter-search": Case(
        lambda: _frames("torch/nn/parallel/distributed.py(500): _find_tensors"),
        lambda: _frames("torch/nn/parallel/distributed.py(500): forward"),
    ),
    "straggler": Case(lambda: _ranks(1500), lambda: _ranks(0)),
    "many-small-collectives": Case(lambda: _small_collectives(30), lambda: _small_collectives(3)),
    "sync-batch-norm": Case(
        lambda: _frames("nn.Module: SyncBatchNorm_0", "nn.Module: SyncBatchNorm_1", inside="c10d::_allgather_base_"),
        lambda: _frames("nn.Module: BatchNorm2d_0", "nn.Module: BatchNorm2d_1", inside="c10d::_allgather_base_"),
    ),
}
