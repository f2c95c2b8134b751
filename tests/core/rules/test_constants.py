"""A copy of the same size is no proof of a constant: what is said depends on how the tensor came to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from core.analysis import analyze
from core.pricing import WAITS_LATER
from core.suggestions import Suggestion
from core.trace import Trace
from tests.core.rules.kit import keep, sim, work
from tests.simulator import Machine, simulate

PIPELINE = ("transformers/pipelines/base.py", 1173, "_ensure_tensor_on_device")


def _made(m: Machine, *names: str) -> None:
    for name in names:
        with m.op(name):
            m.cpu(2)


def _from_list(m: Machine) -> None:
    _made(m, "aten::empty", "aten::to", "aten::lift_fresh")


def _plain(m: Machine) -> None:
    _from_list(m)
    m.to_device(40)


def _random(m: Machine) -> None:
    with m.op("aten::randn"):
        _made(m, "aten::empty", "aten::normal_")
    m.to_device(4096)


def _kept(m: Machine) -> None:
    with m.module("Net_0"), m.frame("net.py", 20, "forward"):
        m.kernel_op("aten::mm", 100)
        m.to_device(80_000)


def _loaded(m: Machine) -> None:
    with m.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
        _from_list(m)
    m.to_device(128)


def _piped(m: Machine) -> None:
    with m.frame("train.py", 3, "main"):
        _from_list(m)
        with m.frame(*PIPELINE), m.frame(*PIPELINE):
            m.to_device(128)


def _batch_in_module(m: Machine) -> None:
    with m.module("Net_0"), m.frame("net.py", 20, "forward"), m.frame("net.py", 22, "<dictcomp>"):
        m.to_device(80_000)


def found(action: Callable[[Machine], None]) -> list[Suggestion]:
    def program(m: Machine) -> None:
        work(m)
        action(m)
        work(m)

    copies = ("constant-copied-each-step", "pageable-batch-copy")
    return [s for s in analyze(sim(program)()).suggestions if s.rule_id in copies]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (_plain, "If its content is the same each time, make it once"),
        (_random, "Draw them on the GPU."),
        (_kept, "If the module keeps this tensor, register it as a buffer"),
    ],
)
def test_what_is_said_depends_on_how_the_tensor_was_made(action: Callable[[Machine], None], said: str) -> None:
    (one,) = found(action)
    assert one.rule_id == "constant-copied-each-step"
    assert one.fix.summary.startswith(said)
    assert "never changes" not in one.explanation


@pytest.mark.parametrize("action", [_loaded, _piped, _batch_in_module])
def test_a_batch_is_no_constant_however_small(action: Callable[[Machine], None]) -> None:
    (one,) = found(action)
    assert one.rule_id == "pageable-batch-copy"


@dataclass
class _Chain:
    """A constant copied before another read: alone the fix only moves the wait, unless nothing waits later."""

    waits_later: bool

    def __call__(self, m: Machine, number: int) -> None:
        work(m)
        _plain(m)
        if self.waits_later:
            m.item()
        else:
            m.cpu(3000)

    def trace(self) -> Trace:
        return keep(simulate(self, steps=6, sustained=False).to_json())


def test_that_a_wait_only_moves_is_said_where_it_is_true() -> None:
    moved, gone = (
        next(s for s in analyze(_Chain(later).trace()).suggestions if s.rule_id == "constant-copied-each-step")
        for later in (True, False)
    )
    assert moved.saving.ns is not None
    assert moved.saving.ns < 0.9e6 * moved.values["gone_ms"]
    assert moved.more[-1] in WAITS_LATER
    assert "waits at a later line" in moved.explanation
    assert gone.saving.ns is not None
    assert gone.saving.ns >= 0.99e6 * gone.values["gone_ms"]
    assert "later line" not in gone.explanation


def test_what_a_pinned_copy_saves_on_the_device_is_left_out_in_words() -> None:
    (batch,) = found(lambda m: m.to_device(20_000_000))
    (few,) = found(lambda m: m.to_device(40))
    assert "so the saving leaves that out" in batch.explanation
    assert "leaves that out" not in few.explanation  # a few numbers are not to be pinned
