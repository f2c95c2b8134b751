"""Healthy programs: nothing in them is worth a change, and nothing may be suggested."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulator import Machine

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(int)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
PLAIN = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)"
NODE = "autograd::engine::evaluate_function: "


def _kernel(m: Machine, op: str, us: float, name: str, stream: int = 7, host_us: float = 8.0) -> None:
    with m.op(op, us=host_us * 0.75, after_us=host_us * 0.25):
        m.kernel(us, name, stream=stream, grid=[4000, 1, 1])


def _optimizer(m: Machine) -> None:
    with m.range("Optimizer.step#AdamW.step"):
        _kernel(m, "aten::_fused_adamw_", 60, "void at::native::multi_tensor_apply_kernel<float>(int)")


def _batch(m: Machine) -> None:
    m.to_device(600_000, pinned=True, non_blocking=True)
    m.to_device(2048, pinned=True, non_blocking=True)


def _train(m: Machine, layers: int = 12, us: float = 400.0) -> None:
    with m.range("forward"):
        for _ in range(layers):
            _kernel(m, "aten::linear", us, GEMM)
            _kernel(m, "aten::relu", us / 8, PLAIN)
    with m.op("aten::cross_entropy_loss"):
        _kernel(m, "aten::log_softmax", 8, "void softmax_warp_forward<float>(int)")
        _kernel(m, "aten::nll_loss_nd", 6, "void nll_loss_forward_reduce<float>(int)")
    with m.thread("backward"):
        for _ in range(layers):
            with m.op(NODE + "ReluBackward0"):
                _kernel(m, "aten::threshold_backward", us / 8, PLAIN)
            with m.op(NODE + "AddmmBackward0"):
                _kernel(m, "aten::mm", us, GEMM)
                _kernel(m, "aten::mm", us, GEMM)
    _optimizer(m)


def plain_training(m: Machine) -> None:
    m.loader(us=2000, workers=4)
    _batch(m)
    _train(m)


def training_that_reads_the_loss_after_the_step(m: Machine) -> None:
    """GPU-bound with one read per step: it costs nothing as long as the next step is queued fast enough."""
    m.loader(us=2000, workers=4)
    _batch(m)
    _train(m, us=2000)
    m.item(pinned=True)


def training_with_stacks(m: Machine) -> None:
    with m.frame("train.py", 10, "main"):
        plain_training(m)


def transformer_with_fused_attention(m: Machine) -> None:
    m.loader(us=3000, workers=8)
    _batch(m)
    for _ in range(8):
        _kernel(m, "aten::layer_norm", 40, "void at::native::vectorized_layer_norm_kernel<float>(int)")
        _kernel(m, "aten::linear", 500, GEMM)
        _kernel(m, "aten::scaled_dot_product_attention", 300, FLASH)
        _kernel(m, "aten::linear", 500, GEMM)
        _kernel(m, "aten::gelu", 60, PLAIN)
    with m.thread("backward"):
        for _ in range(8):
            with m.op(NODE + "AddmmBackward0"):
                _kernel(m, "aten::mm", 1000, GEMM)
                _kernel(m, "aten::mm", 800, GEMM)
    _optimizer(m)


def inference_by_graph(m: Machine) -> None:
    """One graph launch per step; the answer has to be read."""
    m.to_device(4096, pinned=True, non_blocking=True)
    m.graph([200.0] * 60)
    with m.frame("serve.py", 5, "answer"):
        m.cpu(20)


def data_parallel_with_overlap(m: Machine) -> None:
    m.loader(us=2000, workers=4)
    _batch(m)
    for _ in range(6):
        _kernel(m, "aten::linear", 600, GEMM)
    with m.thread("backward"):
        for layer in range(6):
            with m.op(NODE + "AddmmBackward0"):
                _kernel(m, "aten::mm", 900, GEMM)
                if layer < 5:
                    _kernel(m, "c10d::allreduce_", 400, NCCL, stream=20)
    _optimizer(m)


def convolutions_in_channels_last(m: Machine) -> None:
    m.loader(us=2000, workers=4)
    _batch(m)
    for _ in range(10):
        _kernel(m, "aten::cudnn_convolution", 500, "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc")
        _kernel(m, "aten::batch_norm", 80, "void cudnn::bn_fw_tr_1C11_kernel_NHWC<__half2>(int)")
    with m.thread("backward"):
        for _ in range(10):
            with m.op(NODE + "ConvolutionBackward0"):
                _kernel(m, "aten::convolution_backward", 900, "sm80_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwc")
    _optimizer(m)


def small_in_memory_data(m: Machine) -> None:
    """No workers, and none needed: a batch is ready at once."""
    m.loader(us=25, workers=0)
    _batch(m)
    _train(m)


def accumulation(m: Machine) -> None:
    for _ in range(2):
        m.loader(us=1500, workers=4)
        _batch(m)
        _train(m, layers=6)


def event_timing_read_late(m: Machine) -> None:
    """Events recorded around the step, and never waited for in it."""
    m.event_record()
    plain_training(m)
    m.event_record()


PROGRAMS: dict[str, Callable[[Machine], None]] = {
    f.__name__: f
    for f in (
        plain_training,
        training_that_reads_the_loss_after_the_step,
        training_with_stacks,
        transformer_with_fused_attention,
        inference_by_graph,
        data_parallel_with_overlap,
        convolutions_in_channels_last,
        small_in_memory_data,
        accumulation,
        event_timing_read_late,
    )
}
