"""One process with two devices, of which one computes on what the other sends, against the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
from core.importing import open_trace
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.run import sustained_us


@pytest.mark.parametrize("back", [False, True])
def test_work_that_another_device_releases_follows_it(back: bool, tmp_path: Path) -> None:
    """Halves of a model on two devices: the stream of the second waits for the copy that the first makes."""

    def send(m: Machine, source: int) -> None:
        with m.op("aten::to"), m.op("aten::copy_"):
            m.stream_wait(m.event_record(7, 1 - source), 7, source)
            m.copy("DtoD", 1 << 20, us=70, blocking=False, device=source)
            m.stream_wait(m.event_record(7, source), 7, 1 - source)

    def program(m: Machine, number: int) -> None:
        with m.range("slow", us=0.0):
            for _ in range(5):
                m.kernel_op("aten::mul", 100 if m.fixed("slow") else 250)
        send(m, 0)
        for _ in range(4):
            m.kernel_op("aten::mm", 300, device=1)
        if back:
            send(m, 1)
            m.kernel_op("aten::mm", 200)
        m.stream_synchronize(device=1)

    run = simulate(program, steps=8, stacks=False, sustained=False)
    trace, replay = replay_of(run, tmp_path)
    now, then = sustained_us(program), sustained_us(program, ("slow",))
    assert replay.step_ns / 1000 == pytest.approx(now, rel=0.02)
    work = device_work_under(trace, named(trace, "slow"))
    saved = replay.what_if([Effect(EffectKind.SCALE_DEVICE, work, 0.4)]).saved_ns / 1000
    assert now - then > 0.2 * now
    assert saved == pytest.approx(now - then, abs=0.02 * now)


@pytest.mark.parametrize("reads", [True, False])
def test_devices_that_only_a_read_back_keeps_apart_are_not_said_to_wait_for_each_other(
    reads: bool, tmp_path: Path
) -> None:
    def program(m: Machine, number: int) -> None:
        if not reads:
            m.stream_wait(m.event_record(7, 1), 7, 0)
        for _ in range(4):
            m.kernel_op("aten::mm", 500)
        if reads:
            m.item()
        else:
            m.stream_wait(m.event_record(7, 0), 7, 1)
        for _ in range(4):
            m.kernel_op("aten::mm", 500, device=1)
        m.stream_synchronize(device=1)

    run = simulate(program, steps=8, stacks=False, sustained=False)
    summary = analyze(open_trace(run.write(tmp_path / "t.json"))).figures.summary
    assert ("in turn" in summary.verdict_text) is not reads
    assert summary.verdict == ("sync_bound" if reads else "device_bound")
