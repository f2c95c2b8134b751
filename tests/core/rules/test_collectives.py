"""Advice about collectives fits what they are for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.analysis import analyze
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.reporting.cpu_time import verdict_text
from core.rule_tools.collective_kinds import kinds_of
from core.rule_tools.communication import collectives, exposed_ns, step_time_ns
from core.rule_tools.facts import Facts
from core.suggestions import Outcome, Suggestion
from core.trace import Trace
from tests.core.rules.cases_device import _ranks, _reduce
from tests.core.rules.kit import built, run_rule, steps
from tests.trace_builder import TraceBuilder

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP_US = 4000.0


def _layers(
    kernel: str, *, above: str = "", backward: bool = False, mark: str = "", product_us: float = 60, **args: Any
) -> Trace:
    """Three steps of 24 layers: a product, then a collective that nothing overlaps; perhaps a backward pass."""
    builder = steps(3, STEP_US)
    for i in range(3):
        start = i * STEP_US
        if mark:
            builder.range(mark, start + 10, 20)
        for j in range(24):
            at = start + 40 + j * 140
            if backward and j >= 12:
                builder.op("autograd::engine::evaluate_function: MmBackward0", at, 30)
            else:
                builder.op("aten::mm", at, 30)
            builder.launch("gemm", at + 5, 5, at + 10, product_us)
            if above:
                builder.range(above, at + 40, 30)
            builder.op("record_param_comms", at + 41, 20)
            builder.launch(kernel, at + 45, 5, at + 75, 60, stream=20, In_msg_nelems=256, dtype="Half", **args)
    return built(builder)


@pytest.mark.parametrize("kernel", [GATHER, SCATTER])
@pytest.mark.parametrize(("product_us", "hidden_pct"), [(60, 90), (30, 100 * 23 / 48), (6, 100 * 23 / 240)])
def test_of_sharded_weights_as_much_can_be_hidden_as_is_computed_beside(
    kernel: str, product_us: float, hidden_pct: float
) -> None:
    """Each of 24 collectives of 60 us, but the first or last of a step, has the product next to it."""
    trace = _layers(kernel, backward=True, mark="FullyShardedDataParallel.forward", product_us=product_us)
    found = _share(trace)
    assert found.values["hidden_pct"] == pytest.approx(hidden_pct, rel=0.01)
    (effect,) = found.effects
    assert effect.factor == pytest.approx(1 - hidden_pct / 100, rel=0.01)


@pytest.mark.parametrize(("backward_us", "left_pct"), [(2800, 30), (1500, 50), (600, 80)])
def test_no_more_of_the_gradients_can_be_hidden_than_the_backward_pass_takes(
    backward_us: float, left_pct: float
) -> None:
    trace = _reduce(3000, backward_us + 10, backward_us)
    (found,) = run_rule("exposed-communication", trace).suggestions
    assert found.values["left_pct"] == pytest.approx(left_pct)


def _share(trace: Trace) -> Suggestion:
    (found,) = run_rule("communication-share", trace).suggestions
    return found


@pytest.mark.parametrize(
    ("kernel", "options", "words"),
    [
        (REDUCE, {}, "not gradients"),
        (REDUCE, {"backward": True}, "not gradients"),  # half of them in the forward pass
        (SEND_RECV, {"Collective_name": "all_to_allv"}, "Split the batch"),
        (SEND_RECV, {"above": "nccl:all_to_all"}, "Split the batch"),
        (SEND_RECV, {"above": "nccl:recv 2->3", "backward": True}, "micro-batches"),
        (GATHER, {}, "before it is needed"),
        ("ncclDevKernel_Broadcast_RING_LL(int)", {}, "as early as its input is ready"),
    ],
)
def test_collectives_of_the_model_itself_get_advice_in_words(kernel: str, options: dict[str, Any], words: str) -> None:
    found = _share(_layers(kernel, **options))
    assert words in found.fix.summary
    assert (found.fix.before, found.fix.after) == ("", "")
    assert found.effects == ()
    assert "DistributedDataParallel" not in found.fix.summary + found.explanation


def test_weights_of_fsdp_are_prefetched() -> None:
    found = _share(_layers(GATHER, backward=True, mark="FullyShardedDataParallel.forward"))
    assert "prefetch" in found.fix.summary
    assert len(found.effects) == 1


@pytest.mark.parametrize(("elements", "tiny"), [(1, True), (1 << 20, False)])
def test_barriers_and_metrics_are_no_gradients(elements: int, tiny: bool) -> None:
    builder = steps(3, STEP_US)
    for i in range(3):
        at = i * STEP_US + 40
        builder.op("aten::mm", at, 30).launch("gemm", at + 5, 5, at + 10, 1000)
        builder.op("autograd::engine::evaluate_function: MmBackward0", at + 40, 30)
        builder.launch("gemm", at + 45, 5, at + 1020, 1000)
        builder.launch(REDUCE, at + 100, 5, at + 2100, 1500, stream=20, In_msg_nelems=elements, dtype="Float")
    trace = built(builder)
    late = run_rule("exposed-communication", trace)
    assert (late.outcome is Outcome.CLEAN) is tiny
    assert ("other ranks" in _share(trace).fix.summary) is tiny


def _sharded(scatters_forward: bool = False, gathers_late: bool = False) -> Trace:
    """Three steps: layers that gather their weights and compute, then backward ones that scatter their gradients."""
    builder = steps(3, STEP_US)
    for i in range(3):
        for j in range(24):
            at, back = i * STEP_US + 40 + j * 140, j >= 12
            builder.op("autograd::engine::evaluate_function: MmBackward0" if back else "aten::mm", at, 30)
            builder.launch("gemm", at + 5, 5, at + 10, 60)
            scatters = back or (scatters_forward and j % 2 == 1)
            if gathers_late:
                scatters = j < 23
            builder.launch(SCATTER if scatters else GATHER, at + 45, 5, at + 75, 60, stream=20)
    return built(builder)


def test_weights_gathered_as_fsdp_does_are_prefetched_without_its_marks() -> None:
    found = _share(_sharded())
    assert "prefetch" in found.fix.summary
    assert len(found.effects[0].slices) == 3 * 24
    assert "FSDP" not in found.explanation


@pytest.mark.parametrize("options", [{"scatters_forward": True}, {"gathers_late": True}])
def test_tensor_parallelism_and_sharded_optimizers_gather_no_weights_ahead(options: dict[str, bool]) -> None:
    assert "prefetch" not in _share(_sharded(**options)).fix.summary


def test_gradients_of_ddp_may_be_compressed_and_only_they_are_counted_on() -> None:
    trace = _layers(REDUCE, backward=True, mark="DistributedDataParallel.forward")
    found = _share(trace)
    assert "bf16_compress_hook" in found.fix.after
    assert len(found.effects[0].slices) == 3 * 12  # not those of the forward pass


def test_small_messages_of_the_forward_pass_are_not_called_gradients() -> None:
    (found,) = run_rule("many-small-collectives", _layers(REDUCE)).suggestions
    assert found.fix.before == found.fix.after == ""
    (ddp,) = run_rule("many-small-collectives", _layers(REDUCE, backward=True, mark="FSDP::pre_forward")).suggestions
    assert "units of FSDP" in ddp.fix.summary


def test_only_gradients_are_sent_after_the_backward_pass() -> None:
    def trace(kernel: str, mark: str = "", **args: Any) -> Trace:
        builder = steps(3, 8000.0)
        for i in range(3):
            at = i * 8000.0 + 20
            if mark:
                builder.range(mark, at, 20)
            builder.op("aten::mm", at + 30, 20).launch("gemm", at + 35, 5, at + 45, 300)
            builder.op("autograd::engine::evaluate_function: MmBackward0", at + 60, 40)
            builder.launch("gemm", at + 70, 5, at + 400, 1000)
            builder.op("record_param_comms", at + 110, 20)
            builder.launch(kernel, at + 115, 5, at + 1500, 3000, stream=20, **args)
        return built(builder)

    (by_hand,) = run_rule("exposed-communication", trace(REDUCE)).suggestions
    assert "dist.all_reduce(p.grad)" in by_hand.fix.before
    (ddp,) = run_rule("exposed-communication", trace(REDUCE, "DistributedDataParallel.forward")).suggestions
    assert "bucket_cap_mb" in ddp.fix.before
    assert run_rule("exposed-communication", trace(SEND_RECV, Collective_name="send")).outcome is Outcome.CLEAN


def test_two_gpus_of_one_process_share_a_step() -> None:
    builder = steps(3, 2000.0)
    for i in range(3):
        for device in (0, 1):
            at = i * 2000.0 + 20 + device * 30
            builder.op("c10d::allreduce_", at, 20)
            builder.launch(REDUCE, at + 2, 5, at + 10, 1800, device=device, stream=20)
            builder.launch(REDUCE, at + 8, 5, at + 12, 1500, device=device, stream=21)
    trace = built(builder)
    facts = Facts(trace, compute_figures(trace))
    comm = collectives(facts)
    assert set(kinds_of(facts, comm)) == {"all-reduce"}
    assert exposed_ns(facts, comm).sum() == 6 * 1_800_000
    assert exposed_ns(facts, comm).sum() <= step_time_ns(facts)


def test_of_two_collectives_at_once_both_are_hidden() -> None:
    builder = steps(3, 4000.0)
    for i in range(3):
        at = i * 4000.0 + 20
        builder.range("DistributedDataParallel.forward", at, 20)
        builder.op("autograd::engine::evaluate_function: MmBackward0", at + 30, 20)
        builder.launch("gemm", at + 35, 5, at + 60, 500)
        builder.op("c10d::allreduce_", at + 60, 20)
        builder.launch(REDUCE, at + 62, 5, at + 600, 1800, stream=20)
        builder.launch(REDUCE, at + 70, 5, at + 700, 1500, stream=21)
    found = _share(built(builder))
    assert len(found.effects[0].slices) == 6
    assert found.values["step_exposed_ms"] == pytest.approx(1.8)


def test_the_card_says_the_verdicts_share() -> None:
    builder = steps(5, STEP_US)
    for i in range(5):
        at = i * STEP_US
        builder.op("aten::mm", at + 40, 30).launch("gemm", at + 45, 5, at + 60, 2900)
        last = 900 if i == 4 else 0  # the last step has no period, so it is in no mean of the device's time
        builder.launch(REDUCE, at + 100, 5, at + 3000, 900 + last, stream=20)
    trace = builder.build()
    found, summary = _share(trace), compute_figures(trace).summary
    assert summary.verdict == "communication_bound"
    assert found.values["share_pct"] == pytest.approx(summary.verdict_values["share_pct"])
    assert found.values["step_exposed_ms"] == pytest.approx(0.9)
    assert [round(float(e.value or 0), 6) for e in found.evidence[1:]] == [0.9, 0.9]


def test_the_rank_that_others_wait_for_is_named_with_the_verdict_and_placed_by_what_it_costs() -> None:
    trace = _ranks(1500)
    analysis = analyze(trace)
    at = next(i for i, one in enumerate(analysis.suggestions) if one.rule_id == "straggler")
    found = analysis.suggestions[at]
    assert found.costs_ns == pytest.approx(1.5e6)
    planned = {i for step in analysis.plan for i in step.suggestions}
    others = [i for i, one in enumerate(analysis.suggestions) if i not in planned and not one.informational]
    assert all((analysis.suggestions[i].saving.ns or 0) > 1.5e6 for i in others if i < at)
    assert others[-1] != at or len(others) == 1
    words = verdict_text(trace, analysis)
    assert "Rank 1 arrives last in 4 collectives: what the others wait for it, 6 ms in this recording, counts" in words


def test_only_what_the_waiting_device_does_not_compute_meanwhile_is_lost(tmp_path: Path) -> None:
    """Reduced beside the backward pass: each rank computes 4 ms with what may be reduced after 1, 2, 3 and 4 ms.

    Rank 1 begins 8 ms later. The first collective keeps rank 0 waiting for all of that; for 3 ms of it that computes.
    The others, queued behind it, come as late as rank 1: the step of both takes 8 ms longer than without.
    """
    paths = []
    for rank in (0, 1):
        builder = TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        for i in range(4):
            at, late = i * 20_000.0, 8000.0 if rank else 0.0
            builder.step(i + 1, at, 13_000).op("aten::mm", at + 1, 200)
            end = at
            for bucket in range(4):
                builder.launch("gemm", at + 10 + bucket * 20, 5, at + 100 + late + bucket * 1000, 1000)
                start = max(at + 1100 + bucket * 1000 + late, end)
                end = at + 1100 + 8000 + bucket * 1000 + 500
                builder.launch(REDUCE, at + 15 + bucket * 20, 5, start, end - start, stream=20)
            assert end == at + 12_600
        paths.append(builder.write(tmp_path / f"{rank}.json"))
    (found,) = run_rule("straggler", open_trace(paths)).suggestions
    assert found.costs_ns == pytest.approx(8e6, rel=0.01)


def test_a_rank_that_is_waited_for_is_told_apart_from_the_one_with_the_longest_steps(tmp_path: Path) -> None:
    """Rank 1 arrives last, and rank 0, which waits, has the longer marked steps: no contradiction, when it is said."""
    paths = []
    for rank in (0, 1):
        builder = TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        for i in range(4):
            at, late = i * 5000.0, 1500.0 if rank else 0.0
            builder.step(i + 1, at, 3000 if rank else 4900)
            builder.op("aten::mm", at + 10, 60).launch("gemm", at + 20, 5, at + 40, 500 + late)
            start = at + 560 + late
            builder.launch(REDUCE, at + 105, 5, start, at + 2600 - start, stream=20)
        paths.append(builder.write(tmp_path / f"{rank}.json"))
    trace = open_trace(paths)
    (found,) = run_rule("straggler", trace).suggestions
    assert "rank 1 arrives last" in found.explanation
    assert "steps of rank 0 are the longer ones, 4.9 ms against 3 ms" in found.explanation
    (even,) = run_rule("straggler", _ranks(1500)).suggestions
    assert "longer ones" not in even.explanation


@pytest.mark.parametrize("always", [True, False])
def test_buckets_that_are_rebuilt_after_the_first_iteration_are_no_fault(always: bool) -> None:
    """The first iteration of DDP sends everything after the backward pass, the others layer by layer."""
    builder = steps(3, STEP_US)
    for i in range(3):
        at = i * STEP_US + 40
        builder.range("DistributedDataParallel.forward", at, 30).op("aten::mm", at, 30)
        builder.launch("gemm", at + 5, 5, at + 10, 1000)
        builder.op("autograd::engine::evaluate_function: MmBackward0", at + 40, 30)
        builder.launch("gemm", at + 45, 5, at + 1020, 1000)
        start = 2100 if always or not i else 1100
        builder.launch(REDUCE, at + 100, 5, at + start, 900, stream=20, In_msg_nelems=1 << 20, dtype="Float")
    result = run_rule("exposed-communication", built(builder))
    assert (result.outcome is Outcome.FOUND) is always


@pytest.mark.parametrize("call", ["nccl:barrier", "c10d::barrier", "nccl:all_reduce"])
def test_barriers_are_no_small_messages_to_join(call: str) -> None:
    builder = steps(3, STEP_US)
    for i in range(3):
        builder.op("autograd::engine::evaluate_function: MmBackward0", i * STEP_US + 5, 10)
        for j in range(30):
            at = i * STEP_US + 20 + j * 100
            (builder.op if "c10d" in call else builder.range)(call, at, 40)
            builder.op("record_param_comms", at + 2, 30)
            builder.launch(REDUCE, at + 5, 5, at + 20, 30, stream=20, In_msg_nelems=1, dtype="Float")
    result = run_rule("many-small-collectives", built(builder))
    assert (result.outcome is Outcome.FOUND) is ("all_reduce" in call)


@pytest.mark.parametrize("stages", [True, False])
def test_stages_of_a_pipeline_are_no_needless_averaging(stages: bool) -> None:
    builder = steps(4, STEP_US)
    for i in range(4):
        for j in range(4):
            at = i * STEP_US + 20 + j * 600
            builder.range("DistributedDataParallel.forward", at, 50).op("aten::mm", at + 10, 30)
            builder.launch("gemm", at + 15, 5, at + 30, 100)
            builder.op("autograd::engine::evaluate_function: MmBackward0", at + 100, 30)
            builder.launch("gemm", at + 105, 5, at + 140, 100)
            builder.launch(REDUCE, at + 200, 5, at + 260, 100, stream=20, In_msg_nelems=1 << 20, dtype="Half")
            if stages:
                builder.range("nccl:send 0->1", at + 400, 30)
                builder.launch(SEND_RECV, at + 405, 5, at + 420, 50, stream=30)
        builder.range("Optimizer.step#Adam.step", i * STEP_US + 3000, 100)
    result = run_rule("all-reduce-while-accumulating", built(builder))
    assert result.outcome is (Outcome.NOT_CHECKED if stages else Outcome.FOUND)


def _micro_steps(reduced: tuple[bool, ...], *, inside: bool = True, ddp: bool = True) -> Trace:
    """Four steps of a CPU of so many micro steps: which of them average their gradients, from the backward pass on."""
    builder = TraceBuilder(gpu=None)
    for number in range(4):
        begin = number * 10_000.0
        builder.step(number, begin, 9_900)
        for k, reduces in enumerate(reduced):
            at = begin + 10 + 2000 * k
            if ddp:
                builder.range("DistributedDataParallel.forward", at, 300)
            builder.op("aten::linear", at + 10, 250)
            builder.op("autograd::engine::evaluate_function: AddmmBackward0", at + 400, 200)
            if reduces:
                node = "torch::autograd::AccumulateGrad" if inside else "Metric"
                builder.op(f"{'autograd::engine::evaluate_function: ' if inside else ''}{node}", at + 700, 300)
                builder.op("c10d::allreduce_", at + 710, 280)
                builder.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", at + 1_800, 10)
        builder.range("Optimizer.step#SGD.step", begin + 2000 * len(reduced) + 20, 100)
    return built(builder)


def test_all_reduces_of_every_micro_step_are_found_without_a_gpu() -> None:
    (found,) = run_rule("all-reduce-while-accumulating", _micro_steps((True, True, True))).suggestions
    assert found.values["per"] == 3
    assert found.values["count"] == 8  # of four steps, all but the last of each
    assert found.effects == ()
    assert found.costs_ns == pytest.approx(2 * 1_100_000)  # from the first all-reduce to the last copy


@pytest.mark.parametrize(
    "trace",
    [
        lambda: _micro_steps((False, False, True)),  # no_sync
        lambda: _micro_steps((True,)),  # a step of the optimizer each
        lambda: _micro_steps((True, True, True), inside=False),  # a metric's
    ],
)
def test_what_does_not_average_gradients_needlessly_is_not_found(trace: Callable[[], Trace]) -> None:
    assert run_rule("all-reduce-while-accumulating", trace()).outcome is Outcome.CLEAN
