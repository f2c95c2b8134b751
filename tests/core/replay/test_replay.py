"""The replay on programs whose behaviour is known, one feature at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.kinds import SliceKind
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.clock import Costs


def close(value: float, expected: float, within: float = 0.02) -> bool:
    return abs(value - expected) <= within * abs(expected)


def test_enqueue_time_is_not_taken_for_the_step(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=400)

    run = simulate(step)
    _, replay = replay_of(run, tmp_path)
    assert run.host_step_us[0] < 200
    assert close(replay.step_ns / 1000, 4010)
    assert close(run.sustained_step_us, 4010)
    assert replay.repeated
    assert replay.error_pct < 0.5


def test_three_waits_in_a_chain_only_pay_together(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=100, host_us=5)
        for name in ("first", "second", "third"):
            with m.range(name):
                if not m.fixed(name):
                    m.item()
        for _ in range(50):
            m.kernel_op("aten::add", us=4, host_us=15)

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    effects = [Effect(EffectKind.REMOVE_WAIT, named(trace, name)) for name in ("first", "second", "third")]
    for effect in effects:
        assert replay.what_if([effect]).saved_ns < 0.03 * replay.step_ns
    together = replay.what_if(effects)
    true = run.sustained_step_us - simulate(step, fixes={"first", "second", "third"}).sustained_step_us
    assert true > 0.3 * run.sustained_step_us
    assert abs(together.saved_ns / 1000 - true) < 0.05 * run.sustained_step_us


def test_a_long_final_read_back_of_a_single_step_is_worth_little(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(30):
            m.kernel_op("aten::mm", us=200, host_us=20)
        m.item(tag="last")

    run = simulate(step, steps=1)
    trace, replay = replay_of(run, tmp_path)
    assert next(s.wait_us for s in run.syncs if s.tag == "last") > 4000
    assert not replay.repeated
    waits = named(trace, "cudaMemcpyAsync", SliceKind.RUNTIME)
    assert replay.what_if([Effect(EffectKind.REMOVE_WAIT, waits)]).saved_ns < 0.02 * replay.step_ns


def test_a_full_launch_queue_holds_the_host_back(tmp_path: Path) -> None:
    """One long kernel, then more small launches than the queue takes: the device idles behind the long one."""

    def step(m: Machine, number: int) -> None:
        m.kernel_op("aten::mm", us=60_000)
        for _ in range(3000):
            m.kernel(1.0, launch_us=10.0)

    costs = Costs(queue_limit=1022)
    run = simulate(step, steps=3, costs=costs)
    _, replay = replay_of(run, tmp_path)
    assert run.sustained_step_us > 70_000  # 66 ms of device work
    assert close(replay.step_ns / 1000, run.sustained_step_us)
    assert replay.error_pct < 2


def test_a_step_that_waits_for_an_event_of_the_step_before(tmp_path: Path) -> None:
    events: list[float] = []

    def step(m: Machine, number: int) -> None:
        if number <= 0:
            events.clear()
        for _ in range(5):
            m.kernel_op("aten::mm", us=300)
        if events:
            m.event_synchronize(events[-1])
        events.append(m.event_record())

    run = simulate(step)
    _, replay = replay_of(run, tmp_path)
    assert close(replay.step_ns / 1000, run.sustained_step_us)
    assert replay.error_pct < 5


def test_streams_that_wait_for_each_other(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(4):
            m.kernel_op("aten::mm", us=100)
            m.stream_wait(m.event_record(7), 20)
            m.kernel_op("ncclAllReduce", us=150 if not m.fixed("slow") else 75, stream=20)
            m.stream_wait(m.event_record(20), 7)

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    assert close(replay.step_ns / 1000, run.sustained_step_us)
    work = device_work_under(trace, named(trace, "ncclAllReduce", SliceKind.CPU_OP))
    saved = replay.what_if([Effect(EffectKind.SCALE_DEVICE, work, 0.5)]).saved_ns / 1000
    assert close(saved, run.sustained_step_us - simulate(step, fixes={"slow"}).sustained_step_us, 0.05)


def test_two_devices_work_at_the_same_time(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for device in (0, 1):
            for _ in range(4):
                m.kernel_op("aten::mm", us=500 if device else 300, device=device)

    run = simulate(step)
    _, replay = replay_of(run, tmp_path)
    assert close(run.sustained_step_us, 2004)
    assert close(replay.step_ns / 1000, run.sustained_step_us)


def test_a_graph_launch_is_one_piece_that_shrinks_with_its_kernels(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.graph([20.0 if m.fixed("half") else 40.0] * 50)
        m.stream_synchronize()

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    assert close(replay.step_ns / 1000, run.sustained_step_us)
    kernels = tuple(int(i) for i in trace.device_ids)
    saved = replay.what_if([Effect(EffectKind.SCALE_DEVICE, kernels, 0.5)]).saved_ns / 1000
    assert close(saved, run.sustained_step_us - simulate(step, fixes={"half"}).sustained_step_us, 0.03)


def test_workers_that_cannot_keep_up_set_the_pace(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.loader(us=5000 if not m.fixed("loader") else 2500, workers=1)
        for _ in range(10):
            m.kernel_op("aten::mm", us=100)
        if not m.fixed("item"):
            m.item()

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    assert close(replay.step_ns / 1000, 5000)
    item = named(trace, "aten::item", SliceKind.CPU_OP)
    assert replay.what_if([Effect(EffectKind.REMOVE_WORK, item)]).saved_ns < 0.01 * replay.step_ns
    loader = named(trace, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    faster = replay.what_if([Effect(EffectKind.SCALE_HOST, loader, 0.5)])
    assert close(faster.step_ns / 1000, simulate(step, fixes={"loader"}).sustained_step_us, 0.05)


def test_a_copy_on_a_stream_of_its_own_costs_only_its_own_time(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.to_device(
            1 << 20, us=400, pinned=m.fixed("copy"), non_blocking=m.fixed("copy"), stream=30 if m.fixed("copy") else 7
        )
        for _ in range(10):
            m.kernel_op("aten::mm", us=100)

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    copies = named(trace, "aten::copy_", SliceKind.CPU_OP)
    true = run.sustained_step_us - simulate(step, fixes={"copy"}).sustained_step_us
    saved = replay.what_if([Effect(EffectKind.OVERLAP_COPY, copies)]).saved_ns / 1000
    assert abs(saved - true) < 0.03 * run.sustained_step_us
    only_async = replay.what_if([Effect(EffectKind.MAKE_ASYNC, copies)]).saved_ns / 1000
    assert only_async < saved - 300


def test_an_asynchronous_copy_on_the_stream_of_the_kernels_leaves_it(tmp_path: Path) -> None:
    """A pinned copy blocks nobody, but the kernels behind it on its stream wait for it."""

    def step(m: Machine, number: int) -> None:
        m.to_device(1 << 20, us=400, pinned=True, non_blocking=True, stream=30 if m.fixed("copy") else 7)
        for _ in range(10):
            m.kernel_op("aten::mm", us=200)

    run = simulate(step, steps=6)
    trace, replay = replay_of(run, tmp_path)
    assert close(replay.step_ns / 1000, run.sustained_step_us)
    true = run.sustained_step_us - simulate(step, fixes={"copy"}).sustained_step_us
    for name, kind in (("cudaMemcpyAsync", SliceKind.RUNTIME), ("aten::copy_", SliceKind.CPU_OP)):
        what_if = replay.what_if([Effect(EffectKind.OVERLAP_COPY, named(trace, name, kind))])
        assert what_if.saved_ns / 1000 == pytest.approx(true, abs=0.01 * run.sustained_step_us)
        assert not what_if.bounded


def test_launches_that_block_in_a_debug_mode(tmp_path: Path) -> None:
    """CUDA_LAUNCH_BLOCKING: each launch returns when its kernel has ended, and no sync call shows it."""

    def step(m: Machine, number: int) -> None:
        for _ in range(20):
            m.kernel(50.0, launch_us=5.0 if m.fixed("blocking") else 56.0)
            m.cpu(30.0)

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    launches = named(trace, "cudaLaunchKernel", SliceKind.RUNTIME)
    true = run.sustained_step_us - simulate(step, fixes={"blocking"}).sustained_step_us
    # Every launch of the trace blocks, so that the trace cannot say what a launch costs: half a kernel's error.
    saved = replay.what_if([Effect(EffectKind.REMOVE_WAIT, launches)]).saved_ns / 1000
    assert saved == pytest.approx(true, abs=0.08 * run.sustained_step_us)


def test_without_steps_the_window_is_replayed_once(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.cpu(500)
        m.kernel_op("aten::mm", us=100)
        m.stream_synchronize()

    run = simulate(step, steps=1, marked=False)
    _, replay = replay_of(run, tmp_path)
    assert not replay.has_steps
    assert not replay.repeated
    assert replay.error_pct < 0.5


def test_host_only_work_is_replayed_too(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        with m.op("aten::mm", us=300):
            pass
        if not m.fixed("extra"):
            with m.op("aten::extra", us=100):
                pass

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    extra = named(trace, "aten::extra", SliceKind.CPU_OP)
    saved = replay.what_if([Effect(EffectKind.REMOVE_WORK, extra)]).saved_ns / 1000
    assert saved == pytest.approx(101, abs=1)


def test_the_same_work_is_not_removed_twice(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        with m.range("outer"), m.op("aten::inner", us=200):
            m.kernel(5.0)
        m.cpu(100)

    trace, replay = replay_of(simulate(step), tmp_path)
    outer = Effect(EffectKind.REMOVE_WORK, named(trace, "outer"))
    inner = Effect(EffectKind.REMOVE_WORK, named(trace, "aten::inner", SliceKind.CPU_OP))
    assert replay.what_if([outer, inner]).saved_ns == pytest.approx(replay.what_if([outer]).saved_ns, abs=1)
    half = Effect(EffectKind.SCALE_HOST, named(trace, "outer"), 0.5)
    assert replay.what_if([half, half]).saved_ns == pytest.approx(replay.what_if([half]).saved_ns, abs=1)


def test_accuracy_is_that_of_steps_which_the_replay_was_not_given(tmp_path: Path) -> None:
    """A recording is always reproduced by what it is made of; steps that differ do not foretell each other."""

    def uneven(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=200 if number in (2, 5, 6) else 100, host_us=5)
        m.item()

    def even(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=150, host_us=5)
        m.item()

    _, replay = replay_of(simulate(uneven, steps=6), tmp_path)
    assert replay.error_pct < 0.5
    assert replay.held_out_pct is not None
    assert 15 < replay.held_out_pct < 60  # two of three last 2 ms in one half, one of three in the other
    _, replay = replay_of(simulate(even, steps=6), tmp_path)
    assert replay.held_out_pct is not None
    assert replay.held_out_pct < 1.0
    _, replay = replay_of(simulate(even, steps=3), tmp_path)
    assert replay.held_out_pct is None
