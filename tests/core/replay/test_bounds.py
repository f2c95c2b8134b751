"""Upper bounds: no saving exceeds the idle time that the fix can use up."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.kinds import SliceKind
from core.replay.replay import Replay, WhatIf
from core.suggestions import Effect, EffectKind
from core.trace import Trace
from tests.core.replay.helpers import named, replay_of
from tests.simulator import Machine, simulate


def without_waits(trace: Trace, replay: Replay, name: str) -> WhatIf:
    return replay.what_if([Effect(EffectKind.REMOVE_WAIT, named(trace, name))])


def test_a_wait_before_a_busy_device_is_worth_nothing(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=500)
        with m.range("log"):
            m.item()

    trace, replay = replay_of(simulate(step), tmp_path)
    result = without_waits(trace, replay, "log")
    assert result.freed_host_ns > 4_000_000
    assert result.bound_ns < 0.03 * replay.step_ns
    assert result.saved_ns <= result.bound_ns


def test_the_next_wait_takes_the_lead_back(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=200, host_us=5)
        with m.range("first"):
            m.item()
        with m.range("second"):
            m.item()
        for _ in range(50):
            m.kernel_op("aten::add", us=4, host_us=20)

    trace, replay = replay_of(simulate(step), tmp_path)
    assert without_waits(trace, replay, "first").bound_ns < 0.05 * replay.step_ns
    both = replay.what_if(
        [Effect(EffectKind.REMOVE_WAIT, named(trace, name)) for name in ("first", "second")],
    )
    assert both.bound_ns > 0.3 * replay.step_ns


def test_credit_is_carried_into_the_next_step(tmp_path: Path) -> None:
    """The wait ends the step; all that its fix can use up lies in the next one."""

    def step(m: Machine, number: int) -> None:
        for _ in range(50):
            m.kernel_op("aten::add", us=4, host_us=20)
        for _ in range(10):
            m.kernel_op("aten::mm", us=100, host_us=5)
        with m.range("last"):
            m.item()

    run = simulate(step)
    trace, replay = replay_of(run, tmp_path)
    result = without_waits(trace, replay, "last")
    assert result.bound_ns > 0.3 * replay.step_ns
    assert result.saved_ns > 0.2 * replay.step_ns


def test_work_that_goes_is_worth_its_own_time(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(5):
            m.kernel_op("aten::mm", us=500)
        m.kernel_op("aten::extra", us=300)

    trace, replay = replay_of(simulate(step), tmp_path)
    extra = Effect(EffectKind.REMOVE_WORK, named(trace, "aten::extra", SliceKind.CPU_OP))
    result = replay.what_if([extra])
    assert result.saved_ns / 1000 == pytest.approx(301, abs=2)
    assert result.saved_ns <= result.bound_ns
    assert not result.bounded
