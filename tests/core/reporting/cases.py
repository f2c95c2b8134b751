"""Small analysed traces that the tests of reports share."""

from __future__ import annotations

from dataclasses import replace

from core.analysis import Analysis, analyze
from core.figures.compute import compute_figures
from core.suggestions import (
    Evidence,
    Fix,
    Outcome,
    PlanStep,
    Rule,
    RuleResult,
    Saving,
    SourceRef,
    Suggestion,
)
from core.trace import Trace
from tests.trace_builder import TraceBuilder


def training(steps: int = 4, item: bool = True, kernel_us: float = 60.0, **header: object) -> TraceBuilder:
    """A loop whose every step launches kernels and, with ``item``, reads a scalar back."""
    builder = TraceBuilder(**header)  # type: ignore[arg-type]
    for n in range(steps):
        at = n * 1000.0
        builder.step(n, at, 900)
        builder.python("train.py(10): train_step", at + 5, 880)
        builder.op("aten::mm", at + 20, 40).launch("gemm", at + 30, 5, at + 50, kernel_us)
        builder.range("forward", at + 15, 100)
        if item:
            builder.op("aten::item", at + 200, 300).op("aten::_local_scalar_dense", at + 205, 290)
            builder.copy("DtoH (Device -> Pageable)", at + 210, 280, at + 480, 3)
        builder.op("aten::add", at + 600, 40).launch("add_kernel", at + 610, 5, at + 620, 20)
    return builder


def analysed(builder: TraceBuilder) -> tuple[Trace, Analysis]:
    trace = builder.build()
    return trace, analyze(trace)


SUGGESTION = Suggestion(
    "scalar-read-back",
    "A value is read back {times} times",
    values={"times": 4, "op_path": "aten::item > aten::_local_scalar_dense"},
    why="The CPU waits {times} times.",
    occurrences=4,
    steps=(0, 1, 2, 3),
    source=SourceRef("/home/user/project/train.py", 12, "train_step", True),
    evidence=(Evidence("Waiting per step", 280_000, "ns", (1, 2)),),
    fix=Fix("Keep the value on the device.", "x += loss.item()", "x += loss.detach()", "https://pytorch.org", "None."),
    severity="high",
    saving=Saving(270_000, 30.0, "replayed"),
)
NOTE = Suggestion("no-steps-marked", "No step is marked", informational=True)


def with_suggestions(builder: TraceBuilder, *suggestions: Suggestion) -> tuple[Trace, Analysis]:
    """A trace whose figures are real and whose suggestions are given."""
    trace = builder.build()
    figures = compute_figures(trace)
    figures = replace(figures, summary=replace(figures.summary, sustained_step_ns=900_000.0, replay_error_pct=1.2))
    plan = (PlanStep((0,), (suggestions[0].rule_id,), 630_000, "Alone it saves all."),) if suggestions else ()
    rules = (
        RuleResult(Rule("scalar-read-back", "t"), Outcome.FOUND, suggestions=suggestions),
        RuleResult(Rule("memory-creep", "t"), Outcome.NOT_CHECKED, "The trace holds no memory events."),
        RuleResult(Rule("launch-bound", "t"), Outcome.CLEAN),
        RuleResult(Rule("broken-rule", "t"), Outcome.FAILED, "ValueError: x"),
    )
    return trace, Analysis(figures, suggestions, plan, rules)
