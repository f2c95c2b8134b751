"""The builder of small traces and the loader agree with each other."""

import numpy as np

from core.kinds import SliceKind
from tests.trace_builder import TraceBuilder, rows


def test_a_small_trace_links_op_launch_and_kernel():
    trace = (
        TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 30).launch("gemm", at=15, call=5, start=40, dur=20).build()
    )
    (kernel,), (op,), (call,) = (rows(trace, name) for name in ("gemm", "aten::mm", "cudaLaunchKernel"))
    assert trace.links.launch_of[kernel] == call
    assert trace.links.op_of[kernel] == op
    assert trace.slices.parent_id[call] == op
    assert trace.slices.start_ns[kernel] == 40_000
    assert trace.slices.kind[op] == SliceKind.CPU_OP
    assert trace.steps.number.tolist() == [1]
    assert trace.links.device_work_of(op, int(trace.slices.subtree_end[op])).tolist() == [kernel]


def test_an_external_id_used_again_is_that_of_the_operator_that_runs():
    builder = TraceBuilder()
    for start in (0, 100):  # calls of another thread than their operators'
        builder.op("aten::mm", start, 50, External_id=7)
        builder.runtime("cudaLaunchKernel", start + 10, 5, start + 1, tid=77, External_id=7)
        builder.kernel("gemm", start + 60, 20, start + 1, External_id=7)
    builder.runtime("cudaDeviceSynchronize", 300, 5, 9, tid=77, External_id=7)  # no operator runs any more
    builder.kernel("gemm", 120, 20, 1234, External_id=7)  # its launch was not recorded
    trace = builder.build()
    ops, calls = rows(trace, "aten::mm"), rows(trace, "cudaLaunchKernel")
    assert trace.links.op_of[list(calls)].tolist() == list(ops)
    assert trace.links.op_of[list(rows(trace, "gemm"))].tolist() == [ops[0], ops[1], ops[1]]
    assert trace.links.op_of[rows(trace, "cudaDeviceSynchronize")[0]] == -1


def _with_arrow(correlation: int, flow_id: int):
    builder = TraceBuilder().runtime("cudaLaunchKernel", 0, 5, correlation).kernel("gemm", 20, 20, correlation)
    for phase, ts, lane in (("s", 0, 100), ("f", 20, 7)):
        builder.event(ph=phase, cat="ac2g", name="ac2g", id=flow_id, pid=100, tid=lane, ts=ts)
    return builder.build()


def test_numbers_of_slices_are_held_in_32_bits_where_all_fit_and_small_ones_in_16():
    small, large = _with_arrow(5, 5), _with_arrow(1 << 40, 5)
    for name in ("correlation_id", "external_id", "copy_bytes", "event_start"):
        assert getattr(small.slices, name).dtype == np.int32
    for name in ("event_bytes", "track_id", "depth"):
        assert getattr(small.slices, name).dtype == np.int16
    assert large.slices.correlation_id.dtype == np.int64
    assert large.links.launch_of[rows(large, "gemm")[0]] == rows(large, "cudaLaunchKernel")[0]


def test_arrows_may_be_numbered_as_no_correlation_is():
    dangling = [_with_arrow(5, flow_id).report.repaired.get("dangling-flow", 0) for flow_id in (5, 1 << 41)]
    assert dangling == [0, 1]
