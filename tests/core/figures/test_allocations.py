"""Who allocates memory, how long it is held, and what stays from step to step."""

from __future__ import annotations

from core.figures.allocations import NOT_FREED, UNKNOWN, allocated_by, allocations, in_use, least_per_step
from core.figures.compute import compute_figures
from tests.trace_builder import TraceBuilder


def made() -> TraceBuilder:
    made = TraceBuilder(profile_memory=1)
    for k in range(3):
        at = k * 1000
        made.step(k, at, 900)
        made.op("aten::mm", at + 10, 100).op("aten::empty", at + 20, 10)
        made.memory(at + 25, 500, address=0x10, allocated=700 + 100 * k, reserved=2000)
        made.memory(at + 50, 100, address=0x20 + k, allocated=800 + 100 * k, reserved=2000)
        made.memory(at + 300, -500, address=0x10, allocated=300 + 100 * k, reserved=2000)
    return made


def test_lifetimes_end_at_the_next_free_of_the_address() -> None:
    trace = made().build()
    found = allocations(trace)
    assert [trace.name(i) for i in found.slice_id] == ["aten::empty", "aten::mm"] * 3
    assert found.life_ns.tolist() == [275_000, NOT_FREED] * 3


def test_without_addresses_nobody_knows() -> None:
    trace = TraceBuilder().op("aten::mm", 0, 100).memory(10, 500, address=-1).build()
    assert allocations(trace).life_ns.tolist() == [UNKNOWN]


def test_operators_are_summed_up_by_device() -> None:
    trace = made().memory(5000, 64, address=0x99).build()
    found = allocated_by(trace)
    rows = {
        trace.strings[int(n)] if n >= 0 else "": (int(c), int(b), int(net))
        for n, c, b, net in zip(found.name_id, found.count, found.bytes, found.net_bytes, strict=True)
    }
    assert rows == {"aten::empty": (3, 1500, 1500), "aten::mm": (3, 300, 300), "": (1, 64, 64 - 1500)}


def test_memory_in_use_and_what_stays() -> None:
    trace = made().build()
    times, used, total = in_use(trace, 0)
    assert total and used.max() == 1000
    assert least_per_step(compute_figures(trace), times, used).tolist() == [300, 400, 500]


def test_without_totals_bytes_count_from_the_first_event() -> None:
    bare = TraceBuilder().op("aten::mm", 0, 100)
    bare.memory(10, 500, address=1).memory(20, 70, address=2).memory(30, -500, address=1)
    times, used, total = in_use(bare.build(), 0)
    assert not total and used.tolist() == [500, 570, 70]
