"""Every wait is charged to one rule, and the rules report exactly these waits."""

from __future__ import annotations

from collections import Counter

import pytest

from core.figures.compute import compute_figures
from core.rule_runner import run_rules
from core.rule_tools.facts import Facts
from core.rule_tools.sync_classes import classify
from core.source import SourceFinder
from core.suggestions import EffectKind, RuleContext
from core.trace import Trace
from tests.core.rules.cases_waits import CASES
from tests.core.rules.kit import keep
from tests.simulator import simulate
from tests.story.program import ARTICLE, step_of
from tests.trace_builder import TraceBuilder

WAITS = [
    rule
    for rule in CASES
    if rule
    not in (
        "loader-without-workers",
        "loader-starves-step",
        "loader-workers-recreated",
        "copy-not-overlapped",
        "float-batch-copied",
        "pinning-in-step",
        "many-tiny-copies",
        "debug-mode-left-on",
        "synchronous-memset",
    )
]


def classes(trace: Trace) -> dict[str, list[int]]:
    figures = compute_figures(trace)
    context = RuleContext(trace, figures, {}, SourceFinder(trace))
    found = classify(context, Facts(trace, figures))
    return {rule: [row for o in items for row in o.rows] for rule, items in found.items()}


@pytest.mark.parametrize("rule", WAITS)
def test_each_case_is_charged_to_its_rule_alone(rule: str) -> None:
    trace = CASES[rule].found()
    found = classes(trace)
    assert set(found) == {rule}
    rows = [row for rows in found.values() for row in rows]
    assert max(Counter(rows).values()) == 1


def test_no_wait_of_the_story_is_reported_twice_and_none_is_lost() -> None:
    trace = keep(simulate(step_of(0, ARTICLE), 3, warmup=4, first_number=5, sustained=False).to_json())
    figures = compute_figures(trace)
    rows = [row for rows in classes(trace).values() for row in rows]
    in_steps = [row for row in range(len(figures.syncs)) if figures.syncs.step_id[row] >= 0]
    assert sorted(rows) == in_steps
    reported: Counter[int] = Counter()
    kinds = (EffectKind.REMOVE_WAIT, EffectKind.MAKE_ASYNC)
    for result in run_rules(trace, figures):
        for suggestion in result.suggestions:
            if suggestion.effects and suggestion.effects[0].kind in kinds:
                reported.update(set(suggestion.effects[0].slices))
    assert not reported or max(reported.values()) == 1


def test_the_last_read_of_a_recording_is_a_note_only() -> None:
    def step(m, number: int) -> None:  # type: ignore[no-untyped-def]
        for _ in range(3):
            m.kernel_op("aten::mm", 500)
        m.device_synchronize()
        if number == 4:
            m.to_host(4096)

    trace = keep(simulate(step, 3, warmup=0, sustained=False).to_json())
    results = {r.rule.id: r for r in run_rules(trace, compute_figures(trace))}
    found = results["tensor-read-back"].suggestions
    assert [s.informational for s in found] == [True]


def test_a_watchdog_on_a_thread_of_its_own_holds_nobody_up() -> None:
    def step(m, number: int) -> None:  # type: ignore[no-untyped-def]
        event = m.event_record()
        for _ in range(3):
            m.kernel_op("aten::mm", 500)
        with m.background("watchdog"):
            m.event_synchronize(event)

    assert classes(keep(simulate(step, 3, sustained=False).to_json())) == {}


def test_a_synchronisation_inside_the_last_of_several_steps_is_no_profilers() -> None:
    builder = TraceBuilder()
    for step in range(3):
        at = step * 1000
        builder.step(step, at, 1000).op("aten::mm", at + 10, 30).launch("k", at=at + 15, call=5, start=at + 30, dur=500)
        builder.runtime("cudaDeviceSynchronize", at + 50, 485)
    trace = builder.runtime("cudaDeviceSynchronize", 3010, 20).build()
    assert len(classes(trace)["explicit-synchronize"]) == 3


def test_calls_of_one_operator_of_which_the_first_stands_on_another_thread_are_one_wait() -> None:
    builder = TraceBuilder()
    for step in range(3):
        at, own = step * 1000, 77 + step
        builder.step(step, at, 1000).op("aten::mm", at + 10, 30).launch("k", at=at + 15, call=5, start=at + 30, dur=500)
        builder.op("aten::item", at + 200, 400).op("aten::_local_scalar_dense", at + 205, 390, External_id=own)
        builder.runtime("cudaMemcpyAsync", at + 206, 3, 900 + step, tid=9, External_id=own)
        builder.memcpy("DtoH (Device -> Pageable)", at + 530, 5, 900 + step)
        builder.runtime("cudaStreamSynchronize", at + 210, 330, External_id=own)
    found = classes(builder.build())
    assert [len(rows) for rows in found.values()] == [6]
