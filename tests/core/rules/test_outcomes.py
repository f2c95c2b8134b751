"""Clean means looked at: where a trace holds nothing that a rule could judge, it says so, and never 'clean'."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.figures.compute import compute_figures
from core.rule_runner import run_rules
from core.suggestions import Outcome, RuleResult
from core.trace import Trace
from tests.core.rules.kit import built, sim, steps, work
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder

ALWAYS = "crossing-slices invalid-json"  # every slice and the file itself are looked at
PATTERNS = "evaluation-with-gradients hand-written-composite-op loop-over-tensor-elements unfused-attention"
PATTERNS += " unfused-cross-entropy fusible-kernel-sequence"  # looked for among all operators
WAITS = """allocation-in-step blocking-pinned-copy constant-copied-each-step control-flow-on-device-tensor
data-dependent-shape event-wait explicit-synchronize grad-norm-read-back grad-scaler-read-back host-index-tensor
host-list-index op-reads-back pageable-batch-copy pinning-in-step scalar-read-back synchronous-memcpy synchronous-memset
tensor-read-back"""  # looked for among all calls of the runtime
KERNELS = "double-precision-by-accident fp32-matmul-without-tf32 grid-too-small layout-conversions low-occupancy"
KERNELS += " tensor-cores-unused launch-bound"
ON_GPU = f"{WAITS} {KERNELS} clock-skew data-parallel dtype-ping-pong model-on-cpu"
ON_GPU += " gpu-events-missing lazy-initialisation orphan-kernels"


def _frames() -> Trace:
    return built(TraceBuilder(gpu=None).python("train.py(1): main", 0, 80).python("train.py(4): step", 10, 20))


def _one_range() -> Trace:
    return built(TraceBuilder(gpu=None).range("evaluate", 0, 80))


def _cpu_steps() -> Trace:
    builder = steps(4, gpu=None)
    for i in range(4):
        for k in range(6):
            builder.op("aten::mm", i * 1000 + k * 100, 80)
    return built(builder)


def _kernels_alone() -> Trace:
    builder = TraceBuilder()
    for i in range(9):
        builder.kernel("gemm", i * 100, 50, 9000 + i)
    return built(builder)


def _trained(m: Machine) -> None:
    work(m)


def outcomes(trace: Trace) -> dict[str, RuleResult]:
    return {r.rule.id: r for r in run_rules(trace, compute_figures(trace))}


@pytest.mark.parametrize(
    ("make", "clean", "found"),
    [
        (_one_range, ALWAYS, ""),
        (_frames, f"{ALWAYS} two-profilers", ""),
        (_cpu_steps, f"{ALWAYS} {PATTERNS} no-steps-marked outlier-step warmup-captured", "data-not-recorded"),
        (
            _kernels_alone,
            f"{ALWAYS} double-precision-by-accident grid-too-small layout-conversions low-occupancy gpu-events-missing",
            "no-steps-marked orphan-kernels",
        ),
        (sim(_trained, marked=False), f"{ALWAYS} {PATTERNS} {ON_GPU}", "data-not-recorded no-steps-marked"),
        (
            sim(_trained),
            f"{ALWAYS} {PATTERNS} {ON_GPU} float-batch-copied gpu-underfed many-tiny-copies no-steps-marked"
            " steps-truncated warmup-captured",
            "data-not-recorded enqueue-time",
        ),
    ],
    ids=["one-range", "python-frames", "cpu-steps", "kernels-alone", "gpu-without-steps", "gpu-with-steps"],
)
def test_only_what_was_looked_at_is_called_clean(make: Callable[[], Trace], clean: str, found: str) -> None:
    results = outcomes(make())
    assert {i for i, r in results.items() if r.outcome is Outcome.CLEAN} == set(clean.split())
    assert {i for i, r in results.items() if r.outcome is Outcome.FOUND} == set(found.split())
    for result in results.values():
        if result.outcome is Outcome.NOT_CHECKED:
            assert result.reason.endswith((".", ")")), result.rule.id
        else:
            assert result.outcome in (Outcome.CLEAN, Outcome.FOUND), result.details


def test_a_trace_without_any_slice_was_not_checked_at_all() -> None:
    results = outcomes(built(TraceBuilder(gpu=None).counter("memory", 5, used=3.0)))
    assert {r.outcome for r in results.values()} == {Outcome.NOT_CHECKED}


def test_marks_that_are_there_make_a_rule_look() -> None:
    """The other side: with a loader, an optimizer and a compiled region the same rules do decide."""

    def program(m: Machine) -> None:
        with m.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
            m.cpu(5)
        with m.op("Torch-Compiled Region: 0/0"):
            work(m)
        with m.range("Optimizer.zero_grad#SGD.zero_grad"):
            m.cpu(5)
        with m.range("Optimizer.step#SGD.step"), m.op("aten::_fused_sgd_"):
            m.kernel(30)

    results = outcomes(sim(program)())
    for rule in """loader-starves-step loader-without-workers compile-without-gain graph-break-or-recompile
        single-tensor-optimizer gradients-zeroed optimizer-read-back""".split():  # noqa: SIM905
        assert results[rule].outcome is Outcome.CLEAN, (rule, results[rule].reason)
