"""Sync points: which calls count, how long they wait, and what they wait for."""

from __future__ import annotations

import pytest

from core.figures.compute import compute_figures
from core.figures.names import sync_kind_of
from core.kinds import CopyDirection, SyncKind
from tests.trace_builder import TraceBuilder

US = 1000


def one_step() -> TraceBuilder:
    return TraceBuilder().step(1, 0, 1000).launch("work", at=10, call=5, start=20, dur=300)


def names(trace, figures) -> list[str]:
    return [trace.name(int(i)) for i in figures.syncs.slice_id]


def test_pageable_copy_blocks_in_the_copy_call_itself():
    trace = (
        one_step()
        .op("aten::to", 95, 260)
        .op("aten::copy_", 98, 250)
        .copy("DtoH (Device -> Pageable)", at=100, call=240, start=322, dur=15)
        .runtime("cudaStreamSynchronize", 342, 4)
        .build()
    )
    figures = compute_figures(trace)
    assert names(trace, figures) == ["cudaMemcpyAsync", "cudaStreamSynchronize"]
    syncs = figures.syncs
    assert SyncKind(syncs.kind[0]) is SyncKind.MEMCPY
    assert CopyDirection(syncs.direction[0]) is CopyDirection.DTOH
    assert syncs.wait_ns[0] == 237 * US  # until its own copy is done, 3 us before it returns
    assert syncs.waited_id[0] == syncs.copy_id[0] >= 0
    assert trace.name(int(syncs.op_id[0])) == "aten::to"
    assert syncs.wait_ns[1] == 0  # nothing was left to wait for
    assert syncs.waited_id[1] == -1
    assert figures.step_figures.sync_wait_ns.tolist() == [237 * US]


def test_a_small_pageable_copy_that_began_after_its_call_returned_kept_nobody_waiting():
    trace = one_step().copy("HtoD (Pageable -> Device)", at=100, call=10, start=322, dur=2).build()
    syncs = compute_figures(trace).syncs
    assert syncs.wait_ns.tolist() == [0]
    assert syncs.waited_id.tolist() == [-1]
    assert syncs.copy_id[0] >= 0


def test_pinned_copy_does_not_block_and_the_sync_after_it_does():
    trace = (
        one_step()
        .op("aten::item", 95, 260)
        .copy("DtoH (Device -> Pinned)", at=100, call=6, start=322, dur=3)
        .runtime("cudaStreamSynchronize", 108, 220)
        .build()
    )
    figures = compute_figures(trace)
    assert names(trace, figures) == ["cudaStreamSynchronize"]
    assert figures.syncs.wait_ns.tolist() == [217 * US]
    assert trace.name(int(figures.syncs.waited_id[0])) == "Memcpy DtoH (Device -> Pinned)"
    assert trace.name(int(figures.syncs.op_id[0])) == "aten::item"


def test_event_query_and_stream_wait_event_never_count():
    trace = one_step().runtime("cudaEventQuery", 50, 100).runtime("cudaStreamWaitEvent", 200, 50).build()
    assert len(compute_figures(trace).syncs) == 0


def test_the_profilers_own_synchronisation_is_nobodys_fault():
    trace = (
        one_step()
        .runtime("cudaDeviceSynchronize", 400, 20)  # the user's: inside the step
        .runtime("cudaDeviceSynchronize", 1010, 500)  # the profiler's: after the last step
        .build()
    )
    syncs = compute_figures(trace).syncs
    assert syncs.wait_start_ns.tolist() == [400 * US - int(trace.slices.start_ns.min())]


def test_the_profilers_own_synchronisation_may_seem_to_begin_in_the_last_step():
    trace = one_step().runtime("cudaDeviceSynchronize", 999.999, 500).build()
    assert len(compute_figures(trace).syncs) == 0


def test_the_profilers_own_synchronisation_without_steps():
    trace = (
        TraceBuilder()
        .runtime("cudaDeviceSynchronize", 0, 9)
        .op("aten::mm", 10, 30)
        .launch("k", at=15, call=5, start=30, dur=200)
        .runtime("cudaDeviceSynchronize", 50, 180)
        .launch("k", at=240, call=5, start=250, dur=20)
        .runtime("cudaDeviceSynchronize", 260, 15)
        .build()
    )
    assert compute_figures(trace).syncs.wait_start_ns.tolist() == [50 * US]


def test_a_sync_at_the_end_of_the_last_step_is_the_users():
    trace = one_step().runtime("cudaDeviceSynchronize", 990, 9).runtime("cudaDeviceSynchronize", 1002, 9).build()
    assert len(compute_figures(trace).syncs) == 1


def test_a_watchdog_thread_holds_nobody_up():
    trace = one_step().runtime("cudaEventSynchronize", 30, 300, tid=999).build()
    assert len(compute_figures(trace).syncs) == 0


def test_wait_ends_with_the_work_and_the_call_costs_the_rest():
    trace = one_step().runtime("cudaDeviceSynchronize", 100, 400).build()
    syncs = compute_figures(trace).syncs
    assert syncs.wait_ns.tolist() == [220 * US]  # the kernel ends at 320
    assert trace.name(int(syncs.waited_id[0])) == "work"


def test_stream_sync_waits_for_its_own_stream():
    trace = (
        TraceBuilder()
        .step(1, 0, 1000)
        .launch("other", at=5, call=3, start=10, dur=900, stream=9)
        .launch("own", at=10, call=3, start=20, dur=100, stream=7)
        .runtime("cudaStreamSynchronize", 50, 72)
        .build()
    )
    figures = compute_figures(trace)
    assert trace.name(int(figures.syncs.waited_id[0])) == "own"
    assert figures.syncs.wait_ns.tolist() == [70 * US]


@pytest.mark.parametrize("call", ["cudaDeviceSynchronize", "cudaFree"])
def test_a_call_that_returned_while_a_device_worked_waited_for_another_one(call):
    builder = TraceBuilder().step(1, 0, 1000).launch("ours", at=10, call=5, start=20, dur=100)
    for start in (110, 180):  # the second device is at work before, during and after the call
        builder.launch("theirs", at=start - 90, call=5, start=start, dur=60, device=1)
    trace = builder.runtime(call, 175, 30).build()
    syncs = compute_figures(trace).syncs
    assert syncs.device.tolist() == [0]
    assert syncs.wait_ns.tolist() == [0]  # our device was done before


def test_rocm_waits_in_memcpy_with_stream_and_in_free():
    trace = (
        one_step()
        .copy("DtoD (Device -> Device)", at=100, call=240, start=322, dur=15, name="hipMemcpyWithStream")
        .runtime("hipFree", 500, 30)
        .build()
    )
    figures = compute_figures(trace)
    assert names(trace, figures) == ["hipMemcpyWithStream", "hipFree"]
    assert [SyncKind(k) for k in figures.syncs.kind] == [SyncKind.MEMCPY, SyncKind.ALLOC]


def test_a_copy_inside_the_device_returns_at_once():
    trace = one_step().copy("DtoD (Device -> Device)", at=100, call=4, start=322, dur=15, name="cudaMemcpy").build()
    assert len(compute_figures(trace).syncs) == 0


def test_allocation_counts_in_steps_only():
    trace = one_step().runtime("cudaMalloc", 500, 30).runtime("cudaMalloc", 1100, 30).build()
    assert len(compute_figures(trace).syncs) == 1


def test_without_device_work_the_wait_is_the_call():
    trace = TraceBuilder().step(1, 0, 100).op("aten::mm", 5, 5).runtime("cudaStreamSynchronize", 20, 40).build()
    assert compute_figures(trace).syncs.wait_ns.tolist() == [40 * US]


def test_cause_names_range_and_frame():
    trace = (
        one_step()
        .range("loss", 90, 400)
        .python("train.py(14): loss", 91, 300)
        .runtime("cudaStreamSynchronize", 100, 230)
        .build()
    )
    syncs = compute_figures(trace).syncs
    assert trace.name(int(syncs.range_id[0])) == "loss"
    assert trace.name(int(syncs.frame_id[0])) == "train.py(14): loss"
    assert syncs.step_id.tolist() == [0]
    assert syncs.op_id.tolist() == [-1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaDeviceSynchronize", SyncKind.DEVICE),
        ("cuCtxSynchronize", SyncKind.DEVICE),
        ("hipDeviceSynchronize", SyncKind.DEVICE),
        ("cudaStreamSynchronize", SyncKind.STREAM),
        ("cuStreamSynchronize", SyncKind.STREAM),
        ("cudaEventSynchronize", SyncKind.EVENT),
        ("cudaMemcpy", SyncKind.MEMCPY),
        ("cudaMemcpy2D", SyncKind.MEMCPY),
        ("cuMemcpyDtoH_v2", SyncKind.MEMCPY),
        ("hipMemcpyWithStream", SyncKind.MEMCPY),
        ("cudaMalloc", SyncKind.ALLOC),
        ("hipFree", SyncKind.ALLOC),
        ("cudaHostAlloc", SyncKind.ALLOC),
        ("urEventWait", SyncKind.EVENT),
        ("urQueueFinish", SyncKind.STREAM),
        ("zeEventHostSynchronize", SyncKind.EVENT),
        ("zeCommandQueueSynchronize", SyncKind.STREAM),
        ("zeCommandListHostSynchronize", SyncKind.STREAM),
        ("aclrtSynchronizeStreamWithTimeout", SyncKind.STREAM),
        ("aclrtSynchronizeDevice", SyncKind.DEVICE),
        ("aclrtSynchronizeEvent", SyncKind.EVENT),
        ("aclrtMemcpy", SyncKind.MEMCPY),
        ("synStreamSynchronize", SyncKind.STREAM),
        ("synDeviceSynchronize", SyncKind.DEVICE),
        ("cnrtQueueSync", SyncKind.STREAM),
        ("cnrtSyncDevice", SyncKind.DEVICE),
        ("musaStreamSynchronize", SyncKind.STREAM),
    ],
)
def test_blocking_calls(name, kind):
    assert sync_kind_of(name) == kind


@pytest.mark.parametrize(
    "name",
    [
        "cudaMemcpyAsync",
        "cudaEventQuery",
        "cudaStreamWaitEvent",
        "cudaMallocAsync",
        "cudaFreeAsync",
        "cudaLaunchKernel",
        "cudaMemsetAsync",
        "cuMemcpyDtoD_v2",
        "aten::cudnn_convolution",
        "urEnqueueKernelLaunch",
        "urEnqueueEventsWait",
        "aclrtMemcpyAsync",
        "aclrtStreamWaitEvent",
        "synLaunch",
        "cnMemcpyDtoHAsync",
        "cnrtInvokeKernel",
    ],
)
def test_calls_that_do_not_block_by_name(name):
    assert sync_kind_of(name) == -1


def test_calls_of_an_unknown_runtime_say_nothing_of_what_the_cpu_waits_for():
    builder = TraceBuilder().step(1, 0, 1000).kernel("work", 20, 300).slice("privateuse1_runtime", "frobWait", 100, 230)
    summary = compute_figures(builder.build()).summary
    assert (summary.sync_points_per_step, summary.sync_wait_ns_per_step) == (None, None)
    known = compute_figures(builder.slice("privateuse1_runtime", "aclrtSynchronizeStream", 100, 230).build()).summary
    assert known.sync_points_per_step == 1
