"""What looks like a fault to a naive reader of traces, and is none: traps of rules that their near misses leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.analysis import Analysis, analyze
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, sim, steps
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder

GEMM = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_stages_64x3_tn"


def kernels(*names: str, us: float = 300, op: str = "aten::mm", header: Any = (), **args: Any) -> Trace:
    """Three steps with a launch of each kernel in each, one after the other."""
    builder = steps(3, 2000.0, **dict(header))
    for number in range(3):
        for k, name in enumerate(names):
            at = number * 2000.0 + 20 + 400 * k
            builder.op(op, at, 60).launch(name, at + 10, 5, at + 20, us, **args)
    return built(builder)


def not_found(rule: str, trace: Trace) -> None:
    result = run_rule(rule, trace)
    assert result.outcome in (Outcome.CLEAN, Outcome.NOT_CHECKED), [s.headline for s in result.suggestions]


@pytest.mark.parametrize("name", [GEMM, "void cudnn::bn_fw_tr_1C11_kernel", "void cub::DeviceScanKernel<float>"])
def test_the_grid_of_a_library_s_kernel_is_not_the_user_s(name: str) -> None:
    small = {"grid": [8, 1, 1], "block": [128, 1, 1]}
    not_found("grid-too-small", kernels(name, us=900, **small))
    assert run_rule("grid-too-small", kernels("my_scan", us=900, **small)).outcome is Outcome.FOUND


def test_a_small_grid_of_a_tiny_kernel_costs_nothing() -> None:
    not_found("grid-too-small", kernels("my_scan", GEMM, us=900, grid=[800, 1, 1], block=[128, 1, 1]))
    builder = steps(3, 2000.0)
    for number in range(3):
        at = number * 2000.0
        builder.op("mine::scan", at + 5, 30).launch(
            "my_scan", at + 10, 5, at + 20, 3, grid=[8, 1, 1], block=[128, 1, 1]
        )
        builder.op("aten::mm", at + 50, 30).launch(GEMM, at + 55, 5, at + 70, 900, grid=[800, 1, 1])
    not_found("grid-too-small", built(builder))


def test_matrix_products_run_well_at_a_low_occupancy() -> None:
    low = {"est._achieved_occupancy_%": 5, "grid": [800, 1, 1], "block": [128, 1, 1]}
    not_found("low-occupancy", kernels(GEMM, us=900, **low))
    assert run_rule("low-occupancy", kernels("my_scan", us=900, **low)).outcome is Outcome.FOUND


def test_a_metric_in_double_precision_is_no_model_in_it() -> None:
    builder = steps(3, 2000.0)
    for number in range(3):
        at = number * 2000.0
        builder.op("aten::sum", at + 5, 30).launch("void at::native::reduce_kernel<double, 4>", at + 10, 5, at + 20, 3)
        builder.op("aten::mm", at + 50, 30).launch(GEMM, at + 55, 5, at + 70, 900)
    not_found("double-precision-by-accident", built(builder))


def test_polling_an_event_blocks_nobody() -> None:
    builder = steps(3, 2000.0)
    for number in range(3):
        at = number * 2000.0
        builder.op("aten::mm", at + 5, 30).launch(GEMM, at + 10, 5, at + 20, 900)
        for k in range(200):
            builder.runtime("cudaEventQuery", at + 100 + 5 * k, 4, 0)
    trace = built(builder)
    not_found("event-wait", trace)
    not_found("explicit-synchronize", trace)


def test_channels_last_gains_nothing_without_tensor_cores() -> None:
    names = ("volta_scudnn_128x64_relu_interior_nn_v1", "void cudnn::ops::nchwToNhwcKernel<float>(int)")
    not_found("layout-conversions", kernels(*names, op="aten::cudnn_convolution"))
    names = ("sm80_xmma_fprop_implicit_gemm_tf32f32", "void cudnn::ops::nchwToNhwcKernel<float>(int)")
    assert run_rule("layout-conversions", kernels(*names, op="aten::cudnn_convolution")).outcome is Outcome.FOUND


def test_a_copy_within_one_device_does_not_block() -> None:
    builder = steps()
    for number in range(3):
        at = number * 1000.0
        builder.op("aten::mm", at + 5, 30).launch(GEMM, at + 10, 5, at + 20, 300)
        builder.op("mine::move", at + 50, 300)
        builder.copy("DtoD (Device -> Device)", at + 60, 4, at + 320, 10, bytes=1 << 20, name="cudaMemcpy")
    not_found("synchronous-memcpy", built(builder))


def test_a_loader_of_the_first_step_starts_its_workers() -> None:
    builder = TraceBuilder()
    for number in range(5):
        at, wait = number * 10_000.0, 7000 if number == 0 else 20
        builder.step(number + 1, at, 9000)
        builder.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 10, wait)
        builder.op("aten::mm", at + wait + 50, 60).launch(GEMM, at + wait + 60, 5, at + wait + 80, 1500)
    not_found("loader-starves-step", built(builder))


def test_what_limits_the_occupancy_of_a_kernel_is_told_as_recorded() -> None:
    known = {"registers_per_thread": 128, "shared_memory": 40960, "est._achieved_occupancy_%": 12}
    (found,) = run_rule(
        "low-occupancy", kernels("my_scan", us=900, grid=[800, 1, 1], block=[64, 2, 1], **known)
    ).suggestions
    assert "blocks of 128 threads takes 128 registers per thread and 40 KiB of shared" in found.explanation
    broken = known | {"block": [64, "x"], "grid": [800, 1, 1]}
    (found,) = run_rule("low-occupancy", kernels("my_scan", us=900, **broken)).suggestions
    assert "registers" not in found.explanation


@pytest.mark.parametrize(
    ("name", "outcome"), [("SyncBatchNorm", Outcome.FOUND), ("aten::batch_norm", Outcome.NOT_CHECKED)]
)
def test_synchronised_batch_norm_is_seen_without_stacks(name: str, outcome: Outcome) -> None:
    builder = steps(3, 2000.0)
    for number in range(3):
        for layer in range(2):
            at = number * 2000.0 + 20 + 600 * layer
            builder.op(name, at, 400).range("nccl:_all_gather_base", at + 10, 300)
            builder.launch("ncclDevKernel_AllGather_RING_LL", at + 20, 5, at + 40, 200)
    assert run_rule("sync-batch-norm", built(builder)).outcome is outcome


@pytest.mark.parametrize(
    "name",
    [
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNN",
        "cutlass3x_sm100_tensorop_s128x256x16gemm_bf16",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cute::wgmma>>(int)",
    ],
)
def test_new_names_of_kernels_that_use_tensor_cores_are_known(name: str) -> None:
    gpu = {"gpu": None, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0}]}
    for rule in ("tensor-cores-unused", "fp32-matmul-without-tf32"):
        assert run_rule(rule, kernels(name, us=900, header=gpu)).outcome is Outcome.CLEAN
    old = kernels("ampere_sgemm_64x64_nn", us=900, header=gpu)
    assert run_rule("fp32-matmul-without-tf32", old).outcome is Outcome.FOUND


def test_copies_that_run_ahead_of_their_step_do_not_make_its_work_look_longer() -> None:
    """Batches are copied by a stream of their own, as early as they are queued; the kernels lag behind."""
    builder = TraceBuilder()
    for i in range(8):  # 100 us to queue, 300 us to run
        at = i * 100
        builder.step(i, at, 100).op("aten::to", at + 2, 10)
        builder.copy("HtoD (Pinned -> Device)", at + 5, 5, at + 12, 20, 1 << 20, stream=30)
        builder.op("aten::mm", at + 20, 50).launch("gemm", at + 30, 5, 40 + 300 * i, 299)
    (found,) = run_rule("enqueue-time", built(builder)).suggestions
    assert found.values["device_ms"] == pytest.approx(0.3, rel=0.05)
    assert found.occurrences == len(found.steps) > 1  # true of each step, not of one among them


def test_a_number_that_is_read_back_before_gloo_sends_is_no_tensor_of_the_gpu_s() -> None:
    """Counters and barriers of the CPU go by gloo beside a loss that is logged."""
    builder = steps(3, 2000.0)
    for number in range(3):
        at = number * 2000.0 + 20
        builder.op("aten::mm", at, 60).launch("gemm", at + 10, 5, at + 20, 100)
        builder.op("aten::item", at + 100, 90).copy("DtoH (Device -> Pageable)", at + 105, 60, at + 125, 30, bytes=4)
        builder.range("gloo:all_reduce", at + 200, 400)
    not_found("gloo-with-device-tensors", built(builder))


def test_loading_of_kernels_is_start_up_and_no_cost_of_the_profiler() -> None:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 50).launch("gemm", 10, 5, 20, 30).op("aten::mm", 9000, 50)
    for k, name in enumerate(("Lazy Function Loading", "Runtime Triggered Module Loading")):
        builder.slice("overhead", name, 100 + 4000 * k, 3000, 0, -1)
    not_found("profiler-overhead", built(builder))


def test_a_search_for_unused_parameters_in_the_first_step_alone_is_not_done_in_each() -> None:
    """A static graph is searched once; what is said of each step is not true of it."""
    builder = steps(4, 2000.0)
    for number in range(4):
        at = number * 2000.0 + 20
        builder.python("torch/nn/parallel/distributed.py(1500): forward", at, 1500).op("aten::mm", at + 5, 60)
        builder.launch("gemm", at + 10, 5, at + 20, 1000)
    builder.python("torch/nn/parallel/distributed.py(500): _find_tensors", 1100, 300)
    not_found("unused-parameter-search", built(builder))


def test_an_index_between_tensors_of_the_cpu_is_no_copy_to_the_gpu() -> None:
    builder = steps(3, 2000.0)
    for number in range(3):
        at = number * 2000.0 + 20
        builder.op("aten::index", at, 90).op("aten::to", at + 5, 20)  # of the loader's batch, on the CPU
        builder.op("aten::to", at + 100, 90)
        builder.copy("HtoD (Pageable -> Device)", at + 105, 60, at + 125, 30, bytes=1 << 20)
        builder.op("aten::mm", at + 300, 60).launch("gemm", at + 310, 5, at + 320, 100)
    not_found("host-index-tensor", built(builder))


def gpu_bound(action: Callable[[Machine], None]) -> Analysis:
    """Eight steps of 3 ms of kernels that the CPU queues in a fraction of it; the action comes at their end."""

    def program(m: Machine) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", 300)
        action(m)

    return analyze(sim(program, steps=8)())


def saved(analysis: Analysis, rule: str) -> float:
    """Share of the step that the suggestions of a rule save alone; there is one at least."""
    mine = [s for s in analysis.suggestions if s.rule_id == rule]
    assert mine
    assert all(s.saving.ns is not None for s in mine)
    sustained = analysis.figures.summary.sustained_step_ns
    assert sustained is not None
    return sum(s.saving.ns or 0 for s in mine) / sustained


def test_a_scaler_s_read_of_a_deep_queue_is_cheap() -> None:
    def scaled(m: Machine) -> None:
        m.kernel_op("aten::_amp_foreach_non_finite_check_and_unscale_", 5)
        m.item()

    assert saved(gpu_bound(scaled), "grad-scaler-read-back") < 0.03


def test_a_compiled_region_that_gains_nothing_costs_nothing_where_the_gpu_is_the_limit() -> None:
    def compiled(m: Machine) -> None:
        with m.op("Torch-Compiled Region: 0/0", us=60):
            m.kernel(4)
            m.kernel(4)

    analysis = gpu_bound(compiled)
    assert analysis.figures.summary.verdict in ("device_bound", "healthy")
    assert saved(analysis, "compile-without-gain") < 0.01
    assert all(analysis.suggestions[step.suggestion].rule_id != "compile-without-gain" for step in analysis.plan)
