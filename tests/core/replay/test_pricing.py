"""Prices and plan of suggestions about simulated programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis import Analysis, analyze
from core.errors import Cancelled
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.kinds import SliceKind
from core.pricing import price
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind, Outcome, Rule, RuleResult, Suggestion
from core.trace import Trace
from tests.core.replay.helpers import named
from tests.simulator import Machine, Run, simulate
from tests.trace_builder import TraceBuilder


def chain_step(m: Machine, number: int) -> None:
    for _ in range(10):
        m.kernel_op("aten::mm", us=100, host_us=5)
    for name in ("first", "second", "third"):
        with m.range(name):
            if not m.fixed(name):
                m.item()
    for _ in range(50):
        m.kernel_op("aten::add", us=4, host_us=15)


def suggestion(rule: str, effects: tuple[Effect, ...], **kwargs) -> Suggestion:
    return Suggestion(rule_id=rule, title=rule, effects=effects, **kwargs)


def waits(trace: Trace, name: str) -> tuple[Effect, ...]:
    return (Effect(EffectKind.REMOVE_WAIT, named(trace, name)),)


def priced(run: Run, folder: Path, make, **kwargs) -> tuple[Analysis, Trace]:
    trace = open_trace(run.write(folder / "trace.json"))
    found = make(trace)
    rules = {s.rule_id: Rule(s.rule_id, s.rule_id) for s in found}
    results = [
        RuleResult(rule, Outcome.FOUND, suggestions=tuple(s for s in found if s.rule_id == id_))
        for id_, rule in rules.items()
    ]
    return price(trace, compute_figures(trace), results, **kwargs), trace


def chain(trace: Trace) -> list[Suggestion]:
    return [suggestion(name, waits(trace, name)) for name in ("third", "first", "second")]


def test_a_chain_is_planned_in_program_order_and_says_so(tmp_path: Path) -> None:
    run = simulate(chain_step)
    analysis, _ = priced(run, tmp_path, chain)
    assert [s.rules for s in analysis.plan] == [("first",), ("second",), ("third",)]
    assert [s.suggestions for s in analysis.plan] == [(0,), (1,), (2,)]
    assert "alone this saves next to nothing" in analysis.plan[0].note
    assert analysis.plan[0].note == analysis.plan[0].note_template.format_map(analysis.plan[0].note_values)
    left = [s.predicted_step_ns / 1000 for s in analysis.plan]
    for done, predicted in enumerate(left, start=1):
        true = simulate(chain_step, fixes=("first", "second", "third")[:done]).sustained_step_us
        assert predicted == pytest.approx(true, abs=0.05 * run.sustained_step_us)
    for s in analysis.suggestions:
        assert s.severity == "high"  # of the chain, not of the single fix
        assert s.saving.basis in ("replayed", "bounded")
        assert s.saving.pct < 3


def test_figures_get_the_pace_the_error_and_a_verdict(tmp_path: Path) -> None:
    run = simulate(chain_step)
    analysis, _ = priced(run, tmp_path, chain)
    summary = analysis.figures.summary
    assert summary.sustained_step_ns == pytest.approx(run.sustained_step_us * 1000, rel=0.02)
    assert summary.replay_error_pct < 1
    assert summary.verdict == "sync_bound"


def test_savings_in_the_plan_add_up_to_its_end(tmp_path: Path) -> None:
    analysis, _ = priced(simulate(chain_step), tmp_path, chain)
    now = analysis.figures.summary.sustained_step_ns
    added = sum(s.saving.together_ns for s in analysis.suggestions)
    assert now - added == pytest.approx(analysis.plan[-1].predicted_step_ns, abs=10)


def test_two_suggestions_about_one_wait_are_not_counted_twice(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel_op("aten::mm", us=500)
        m.item()
        for _ in range(20):
            m.kernel_op("aten::add", us=4, host_us=15)

    def twice(trace: Trace) -> list[Suggestion]:
        item = named(trace, "aten::item", SliceKind.CPU_OP)
        return [
            suggestion("by-wait", (Effect(EffectKind.REMOVE_WAIT, item),)),
            suggestion("by-work", (Effect(EffectKind.REMOVE_WORK, item),)),
        ]

    analysis, _ = priced(simulate(step), tmp_path, twice)
    best = analysis.suggestions[0]
    assert len(analysis.plan) == 1
    assert best.saving.together_ns == pytest.approx(best.saving.ns, rel=0.01)
    assert analysis.suggestions[1].saving.together_ns is None


def test_advice_without_an_effect_stays_unknown_and_notes_come_last(tmp_path: Path) -> None:
    def mixed(trace: Trace) -> list[Suggestion]:
        return [
            suggestion("note", waits(trace, "first"), informational=True),
            suggestion("advice", ()),
            suggestion("real", waits(trace, "first")),
        ]

    analysis, _ = priced(simulate(chain_step), tmp_path, mixed)
    assert [s.rule_id for s in analysis.suggestions] == ["real", "advice", "note"]
    advice = analysis.suggestions[1]
    assert advice.saving.ns is None
    assert advice.saving.pct is None
    assert advice.saving.basis is None
    assert advice.severity == "low"


@pytest.mark.parametrize("without_device", [False, True])
def test_of_fixes_without_a_number_the_severer_comes_first(tmp_path: Path, without_device: bool) -> None:
    trace = open_trace(simulate(chain_step).write(tmp_path / "trace.json"))
    results = [
        RuleResult(
            Rule(name, name, severity_floor=floor),
            Outcome.FOUND,
            suggestions=(suggestion(name, (), informational=name == "note"),),
        )
        for name, floor in (("note", "low"), ("mild", "low"), ("grave", "high"))
    ]
    if without_device:
        trace = TraceBuilder().op("aten::mm", ts=0.0, dur=50.0).build()
    analysis = price(trace, compute_figures(trace), results)
    assert [s.rule_id for s in analysis.suggestions] == ["grave", "mild", "note"]


@pytest.mark.parametrize(("costs_ns", "place", "severity"), [(1e9, 0, "high"), (0.5, 3, "low"), (None, 3, "low")])
def test_what_only_costs_stands_among_the_plan_by_its_costs(
    tmp_path: Path, costs_ns: float | None, place: int, severity: str
) -> None:
    def mixed(trace: Trace) -> list[Suggestion]:
        return [*chain(trace), replace(suggestion("slow", ()), costs_ns=costs_ns)]

    analysis, _ = priced(simulate(chain_step), tmp_path, mixed)
    assert [s.rule_id for s in analysis.suggestions].index("slow") == place
    assert analysis.suggestions[place].severity == severity
    planned = [analysis.suggestions[i].rule_id for step in analysis.plan for i in step.suggestions]
    assert planned == ["first", "second", "third"]
    assert sorted(analysis.numbers()) == [i for i in range(4) if i != place]  # it has no place of its own in the plan
    assert analysis.in_order([2, 3, 0, 1]) == [0, 1, 2, 3]


def test_a_saving_that_rests_on_an_assumed_factor_is_called_rough(tmp_path: Path) -> None:
    def scaled(trace: Trace) -> list[Suggestion]:
        ops = named(trace, "aten::add", SliceKind.CPU_OP)
        return [
            suggestion("part", (Effect(EffectKind.SCALE_HOST, ops, 0.5),)),
            suggestion("none", (Effect(EffectKind.SCALE_HOST, ops, 0.0),)),
            suggestion("said", (Effect(EffectKind.REMOVE_WORK, ops, assumed=True),)),
        ]

    analysis, _ = priced(simulate(chain_step), tmp_path, scaled)
    basis = {s.rule_id: s.saving.basis for s in analysis.suggestions}
    assert basis["part"] == basis["said"] == "rough"
    assert basis["none"] in ("replayed", "bounded")


def test_idle_time_that_waits_cause_is_not_blamed_on_slow_launching(tmp_path: Path) -> None:
    analysis, _ = priced(simulate(chain_step), tmp_path, chain)
    summary = analysis.figures.summary
    best = 100 * (1 - analysis.plan[-1].predicted_step_ns / summary.sustained_step_ns)
    assert summary.verdict == "sync_bound"
    assert summary.verdict_values["share_pct"] == pytest.approx(best, abs=4.0)
    fixed, _ = priced(simulate(chain_step, fixes=("first", "second", "third")), tmp_path, lambda trace: [])
    assert fixed.figures.summary.verdict != "sync_bound"


def test_without_steps_savings_are_called_rough(tmp_path: Path) -> None:
    analysis, _ = priced(simulate(chain_step, steps=1, marked=False), tmp_path, chain)
    assert analysis.figures.summary.sustained_step_ns is None
    assert {s.saving.basis for s in analysis.suggestions} == {"rough"}


def test_launches_without_device_work_leave_everything_unknown(tmp_path: Path) -> None:
    run = simulate(chain_step)
    events = tuple(e for e in run.events if isinstance(e.tid, str))
    unseen = Run(events, run.syncs, run.step_start_us, run.host_step_us, 0.0, run.device_name, False)
    analysis, _ = priced(unseen, tmp_path, chain)
    assert analysis.plan == ()
    assert all(s.saving.ns is None for s in analysis.suggestions)
    assert analysis.figures.summary.sustained_step_ns is None


def test_progress_rises_and_can_cancel(tmp_path: Path) -> None:
    seen: list[float] = []
    priced(simulate(chain_step), tmp_path, chain, progress=lambda fraction, text: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0

    def cancel(fraction: float, text: str) -> None:
        if fraction > 0.2:
            raise Cancelled

    with pytest.raises(Cancelled):
        priced(simulate(chain_step), tmp_path, chain, progress=cancel)


def test_host_time_that_saves_nothing_is_told_apart_from_the_pace(tmp_path: Path) -> None:
    """In a device-bound loop the last wait gone makes ProfilerStep small and the loop no faster."""

    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=1000)
        with m.range("first"):
            if not m.fixed("first"):
                m.item()
        m.kernel_op("aten::add", us=5)
        with m.range("second"):
            if not m.fixed("second"):
                m.item()

    run = simulate(step)

    def both(trace: Trace) -> list[Suggestion]:
        gone = {name: Effect(EffectKind.REMOVE_WORK, named(trace, name)) for name in ("second", "first")}
        return [suggestion(name, (effect,)) for name, effect in gone.items()]

    analysis, trace = priced(run, tmp_path, both)
    assert [s.rule_id for s in analysis.suggestions] == ["first", "second"]  # the one that frees the CPU first
    assert analysis.suggestions[0].saving.freed_host_ns > 9_000_000
    assert analysis.plan == ()
    replay = Replay(trace, compute_figures(trace))
    effects = [e for s in analysis.suggestions for e in s.effects]
    predicted = replay.host_step_ns(effects) / 1000
    fixed = simulate(step, fixes={"first", "second"})
    assert predicted == pytest.approx(sum(fixed.host_step_us) / len(fixed.host_step_us), rel=0.05)
    assert replay.with_effects(effects) / 1000 == pytest.approx(fixed.sustained_step_us, rel=0.02)
    assert replay.host_step_ns([]) / 1000 == pytest.approx(sum(run.host_step_us) / len(run.host_step_us), rel=0.02)


def test_a_replay_that_fails_leaves_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise IndexError("no such block")

    monkeypatch.setattr("core.pricing.Replay", broken)
    analysis, _ = priced(simulate(chain_step), tmp_path, chain)
    assert len(analysis.suggestions) == 3
    assert all(s.saving.ns is None for s in analysis.suggestions)
    assert analysis.notes["replay"] == "IndexError: no such block"
    assert "the replay failed" in caplog.text


def test_a_replay_that_is_far_off_gives_bounds_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replay, "error_pct", property(lambda self: 80.0))

    def mixed(trace: Trace) -> list[Suggestion]:
        gone = Effect(EffectKind.REMOVE_WORK, named(trace, "first"))
        return [suggestion("wait", waits(trace, "first")), suggestion("work", (gone,))]

    analysis, _ = priced(simulate(chain_step), tmp_path, mixed)
    saving = {s.rule_id: s.saving for s in analysis.suggestions}
    assert saving["wait"].basis == "bounded"
    assert saving["wait"].ns is not None
    assert saving["work"].ns is None
    assert analysis.plan == ()
    assert analysis.figures.summary.sustained_step_ns is None
    assert analysis.figures.summary.replay_error_pct == 80.0


def test_a_replay_that_is_somewhat_off_gives_rough_savings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replay, "error_pct", property(lambda self: 20.0))
    analysis, _ = priced(simulate(chain_step), tmp_path, chain)
    assert {s.saving.basis for s in analysis.suggestions} <= {"rough", "bounded"}
    assert analysis.plan


def test_a_pace_that_the_recorded_period_denies_is_no_ground_for_healthy() -> None:
    """Marks that leave out part of an iteration: the CPU waits in each, so that it cannot have run ahead."""
    builder = TraceBuilder()
    for i in range(6):
        at = 180 * i
        builder.step(i, at, 100).launch("k", at=at + 1, call=3, start=at + 5, dur=94)
        builder.runtime("cudaDeviceSynchronize", at + 10, 89)
    trace = builder.build()
    figures = compute_figures(trace)
    summary = price(trace, figures, []).figures.summary
    assert summary.period_ns == 180_000
    assert summary.sustained_step_ns == pytest.approx(100_000, rel=0.02)
    assert summary.replay_error_pct == pytest.approx(100 * 80 / 180, abs=2)
    assert summary.verdict == figures.summary.verdict != "healthy"


def test_steps_of_two_lengths_do_not_deny_their_mean_pace(tmp_path: Path) -> None:
    """Every other step evaluates: the median period is that of one kind, the pace is the mean of both."""

    def program(m: Machine, number: int) -> None:
        for _ in range(20 if number % 2 else 60):
            m.kernel_op("aten::mm", us=100)
        m.item()

    trace = open_trace(simulate(program, steps=8).write(tmp_path / "t.json"))
    replay = Replay(trace, compute_figures(trace))
    assert not replay.contradicted
    assert replay.error_pct < 1


def test_without_steps_the_recording_is_what_a_fix_saves_of(tmp_path: Path) -> None:
    def request(m: Machine, number: int) -> None:
        for _ in range(30):
            m.kernel_op("aten::add", us=4, host_us=20)
        m.to_host(400, us=2)
        m.cpu(150)

    analysis = analyze(open_trace(simulate(request, steps=30, marked=False).write(tmp_path / "trace.json")))
    notes = [step.note for step in analysis.plan if "would wait longer" in step.note]
    assert notes
    assert all("% of the recording" in note and "of the step" not in note for note in notes)


def test_why_a_fix_saves_more_after_others_is_said(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.loader(0 if m.fixed("loader") else 2000)
        m.to_device(1_000_000, us=100)
        for _ in range(40):
            m.kernel_op("aten::add", us=4, host_us=15)
        m.kernel_op("aten::mm", us=1500)

    analysis = analyze(open_trace(simulate(step, steps=8).write(tmp_path / "trace.json")))
    notes = {s.rules[0]: s.note for s in analysis.plan}
    copy = next(s for s in analysis.suggestions if s.rule_id == "pageable-batch-copy")
    assert copy.saving.together_ns is not None
    assert copy.saving.ns is not None
    assert copy.saving.together_ns > 2 * copy.saving.ns
    assert "would wait longer" in notes["pageable-batch-copy"]
    assert notes["loader-without-workers"] == ""
