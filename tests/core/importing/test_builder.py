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
