"""The simulator's own promises: blocking as CUDA documents it, a pace that is right, and Kineto's dialect."""

from __future__ import annotations

import pytest

from tests.simulator import Machine, Run, simulate
from tests.simulator.clock import Costs


def waits(run: Run, tag: str) -> list[float]:
    return [s.wait_us for s in run.syncs if s.tag == tag]


def test_a_pageable_copy_to_the_device_waits_for_the_stream_and_for_itself() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel(1000)
        m.to_device(1 << 20, us=200, tag="copy")

    run = simulate(step, steps=2)
    assert waits(run, "copy")[0] == pytest.approx(1190, abs=20)


def test_a_pinned_copy_does_not_block_when_asked_not_to() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel(1000)
        m.to_device(1 << 20, us=200, pinned=True, non_blocking=True, tag="copy")

    run = simulate(step, steps=2)
    assert waits(run, "copy") == []
    assert run.host_step_us[0] < 50
    assert run.sustained_step_us == pytest.approx(1202, abs=1)


def test_newer_read_backs_wait_in_the_synchronisation() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel(1000)
        m.item(pinned=True, tag="item")

    run = simulate(step, steps=2)
    assert [s.call for s in run.syncs if s.tag == "item"] == ["cudaStreamSynchronize"] * 2
    assert waits(run, "item")[1] == pytest.approx(985, abs=20)


def test_a_device_synchronisation_waits_for_every_stream_an_event_for_its_own_work() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel(100)
        event = m.event_record()
        m.kernel(900, stream=20)
        m.event_synchronize(event, tag="event")
        m.device_synchronize(tag="device")

    run = simulate(step, steps=1)
    assert waits(run, "event")[0] < 100
    assert waits(run, "device")[0] > 700


def test_a_synchronisation_waits_for_no_work_that_another_thread_queues_later() -> None:
    def step(m: Machine, number: int) -> None:
        with m.background("pin"), m.op("aten::copy_", us=100):
            m.copy("HtoD", 1 << 16, us=50, pinned=True, blocking=False, stream=30)
        m.device_synchronize(tag="device")
        m.cpu(1000)

    assert waits(simulate(step, steps=1), "device") == [0]


def test_stream_waits_order_work_of_two_streams() -> None:
    def step(m: Machine, number: int) -> None:
        first = m.kernel(500)
        m.stream_wait(m.event_record(), 20)
        second = m.kernel(100, stream=20)
        assert second.start_us >= first.end_us

    simulate(step, steps=1)


def test_the_host_runs_ahead_until_the_queue_is_full() -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(100):
            m.kernel(100, launch_us=1)

    run = simulate(step, steps=20, costs=Costs(queue_limit=512))
    assert run.host_step_us[0] < 200
    assert run.host_step_us[-1] == pytest.approx(10_100, rel=0.02)
    assert run.sustained_step_us == pytest.approx(10_100, rel=0.01)


def test_the_pace_of_a_host_bound_loop_is_its_host_time() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel(5)
        m.cpu(300)

    run = simulate(step)
    assert run.sustained_step_us == pytest.approx(run.host_step_us[-1] + 2.0)  # 2 us between steps


def test_a_thread_that_is_waited_for_takes_the_callers_time() -> None:
    def step(m: Machine, number: int) -> None:
        with m.thread("autograd"):
            m.cpu(500)

    assert simulate(step).host_step_us[0] == pytest.approx(520)


def test_workers_limit_the_pace_only_when_they_are_slow() -> None:
    def loop(us: float):
        def step(m: Machine, number: int) -> None:
            m.loader(us, workers=2)
            m.cpu(1000)

        return simulate(step).sustained_step_us

    assert loop(1000) == pytest.approx(1033, abs=5)
    assert loop(4000) == pytest.approx(2000, rel=0.02)


def test_the_trace_is_kinetos() -> None:
    def step(m: Machine, number: int) -> None:
        with m.frame("train.py", 3, "step"), m.range("forward"):
            m.kernel_op("aten::mm", us=50, **{"Input Dims": [[2, 2]]})

    trace = simulate(step, steps=2).to_dict()
    events = trace["traceEvents"]
    assert trace["steplens_simulated"] is True
    assert trace["deviceProperties"][0]["name"] == "NVIDIA A10G"
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    assert {e["cat"] for e in steps} == {"user_annotation", "gpu_user_annotation"}
    kernel = next(e for e in events if e.get("cat") == "kernel")
    call = next(e for e in events if e.get("cat") == "cuda_runtime")
    op = next(e for e in events if e.get("cat") == "cpu_op")
    assert kernel["args"]["correlation"] == call["args"]["correlation"]
    assert kernel["args"]["External id"] == call["args"]["External id"] == op["args"]["External id"]
    assert op["args"]["Input Dims"] == [[2, 2]]
    assert any(e["name"] == "train.py(3): step" for e in events)
    assert {e["ph"] for e in events if e.get("cat") == "ac2g"} == {"s", "f"}


def test_the_same_program_gives_the_same_trace() -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel_op("aten::mm", us=50)

    assert simulate(step).to_json() == simulate(step).to_json()
