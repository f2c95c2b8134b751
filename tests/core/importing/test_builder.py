"""The builder of small traces and the loader agree with each other."""

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
