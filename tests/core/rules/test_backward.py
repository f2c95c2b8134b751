"""A fix of the forward pass takes its part of the backward pass along, where the recording links the two."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.analysis import analyze
from core.suggestions import Suggestion
from tests.core.rules.kit import keep
from tests.simulator import Machine, Run, simulate

DEVICE = {"fast CPU": 60.0, "slow CPU": 3.0}  # us of a pass over the data


def log_softmax(m: Machine, us: float) -> None:
    """``x - x.exp().sum(-1).log().unsqueeze(-1)`` and its backward, or the built-in."""
    if m.fixed("log-softmax"):
        one = m.recorded_op("aten::_log_softmax", us)
        with m.thread("backward"), m.node("LogSoftmaxBackward0", one):
            m.kernel_op("aten::_log_softmax_backward_data", us)
        return
    exp, total, log, sub = (m.recorded_op(f"aten::{name}", us) for name in ("exp", "sum", "log", "sub"))
    with m.thread("backward"):
        with m.node("SubBackward0", sub):
            m.kernel_op("aten::neg", us)
            m.kernel_op("aten::sum", us)
        with m.node("LogBackward0", log):
            m.kernel_op("aten::div", us)
        with m.node("SumBackward1", total):
            m.cpu(3)
        with m.node("ExpBackward0", exp, sum_us=us):  # x was used twice: by exp and by sub
            m.kernel_op("aten::mul", us)


# Operators as they are written out, and for each, in the order of the backward pass: (its number, kernels of its node,
# whether its input was used before and gets its gradients added up); at last the kernels of the built-in's backward.
Written = tuple[str, tuple[tuple[int, int, bool], ...], int]
BUILT_IN: dict[str, Written] = {
    "GELU": (  # 0.5 * x * (1 + erf(x / sqrt(2)))
        "mul div erf add mul",
        ((4, 2, False), (3, 0, False), (2, 4, False), (1, 1, False), (0, 1, True)),
        1,
    ),
    "RMS norm": (  # x * rsqrt(x.pow(2).mean(-1) + eps)
        "pow mean add rsqrt mul",
        ((4, 2, False), (3, 3, False), (2, 0, False), (1, 1, False), (0, 3, True)),
        2,
    ),
    "layer norm": (  # (x - mean) / sqrt(((x - mean) ** 2).mean(-1) + eps)
        "mean sub pow mean add sqrt div",
        ((6, 5, False), (5, 2, False), (4, 0, False), (3, 1, False), (2, 3, True), (1, 2, False), (0, 1, True)),
        2,
    ),
}


def written_out(what: str) -> Callable[[Machine, float], None]:
    """One of `BUILT_IN`, with the nodes of its backward pass as autograd makes them, or as one operator."""
    names, nodes, kernels = BUILT_IN[what]

    def part(m: Machine, us: float) -> None:
        if m.fixed(what):
            one = m.recorded_op("aten::fused", us)
            with m.thread("backward"), m.node("FusedBackward0", one):
                for _ in range(kernels):
                    m.kernel_op("aten::fused_backward", us)
            return
        made = [m.recorded_op(f"aten::{name}", us) for name in names.split()]
        with m.thread("backward"):
            for number, passes, added in nodes:
                node = f"{names.split()[number].title()}Backward0"
                with m.node(node, made[number], sum_us=us if added else 0.0):
                    for _ in range(passes):
                        m.kernel_op("aten::mul", us)
                    if not passes:
                        m.cpu(3)

    return part


def attention(m: Machine, us: float) -> None:
    """Two products with a softmax between them, at half the time when fused, forward and backward."""
    left = 0.5 if m.fixed("attention") else 1.0
    names = ("bmm", "div", "softmax", "bmm")
    made = [m.recorded_op(f"aten::{name}", us * left, host_us=8 * left) for name in names]
    with m.thread("backward"):
        for name, sequence in zip(names[::-1], made[::-1], strict=True):
            with m.node(f"{name.title()}Backward0", sequence, us=1.0 * left):
                m.kernel_op("aten::mul", us * left, host_us=8 * left)


def program(part, us: float):  # type: ignore[no-untyped-def]
    def step(m: Machine, number: int) -> None:
        m.kernel_op("aten::mm", 300)
        for _ in range(6):
            part(m, us)
        m.item()

    return step


def found(run: Run, rule: str) -> Suggestion:
    analysis = analyze(keep(run.to_json()))
    return next(s for s in analysis.suggestions if s.rule_id == rule)


@pytest.mark.parametrize("pace", sorted(DEVICE))
def test_a_hand_written_log_softmax_is_priced_with_its_backward(pace: str) -> None:
    step = program(log_softmax, DEVICE[pace])
    run = simulate(step, steps=4)
    true = run.sustained_step_us - simulate(step, fixes={"log-softmax"}).sustained_step_us
    suggestion = found(run, "hand-written-composite-op")
    assert suggestion.saving.ns is not None
    assert suggestion.saving.ns / 1e3 == pytest.approx(true, rel=0.05)
    part = next(e for e in suggestion.evidence if e.label == "Their part of the backward pass")
    assert part.value == 4 * 6 * 4  # steps, times, and three nodes with a sum; what is left is the built-in's part
    dur_ns = keep(run.to_json()).slices.dur_ns
    assert suggestion.values["back_ms"] * 1e6 == pytest.approx(dur_ns[list(part.slices)].sum() / 4)
    assert "of CPU time per step more, which goes with them." in suggestion.explanation


@pytest.mark.parametrize("pace", sorted(DEVICE))
@pytest.mark.parametrize("what", sorted(BUILT_IN))
def test_norms_and_activations_are_priced_with_their_backward(what: str, pace: str) -> None:
    step = program(written_out(what), DEVICE[pace])
    run = simulate(step, steps=4)
    true = run.sustained_step_us - simulate(step, fixes={what}).sustained_step_us
    suggestion = found(run, "hand-written-composite-op")
    assert suggestion.values["what"] == what
    assert suggestion.saving.ns is not None
    # what is left stands for the built-in, whose own backward may have a kernel more or less than the first operator's
    assert suggestion.saving.ns / 1e3 == pytest.approx(true, rel=0.15)


def test_fused_attention_is_priced_with_its_backward() -> None:
    step = program(attention, 80.0)
    run = simulate(step, steps=4)
    true = run.sustained_step_us - simulate(step, fixes={"attention"}).sustained_step_us
    suggestion = found(run, "unfused-attention")
    assert suggestion.saving.ns is not None
    assert suggestion.saving.ns / 1e3 == pytest.approx(true, rel=0.05)
