"""The verdict of a budget, and the notes of the doctor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.analysis import analyze, outlook
from core.figures.compute import compute_figures, final_verdict
from core.figures.model import Budget, Summary
from core.figures.verdict import TEMPLATES, judge, values_shown
from core.importing import open_trace
from core.kinds import GapCause
from core.reporting.phrases import verdict_word
from core.words import fill
from tests.simulator import simulate
from tests.trace_builder import TraceBuilder


def budget(busy: int, basis: str = "period", **idle: int) -> Budget:
    causes = {int(GapCause[name.upper()]): ns for name, ns in idle.items()}
    return Budget(period_ns=busy + sum(idle.values()), busy_ns=busy, idle_by_cause_ns=causes, basis=basis, steps=3)


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (budget(95, launch=5), "device_bound"),
        (budget(80, launch=7, python=2, sync=6, loader=5), "device_bound"),
        (budget(50, loader=35, sync=10, launch=5), "input_bound"),
        (budget(50, sync=15, copy=10, alloc=5, launch=20), "sync_bound"),
        (budget(40, launch=20, python=20, collector=5, loader=15), "host_bound"),
        (budget(40, communication=40, launch=20), "communication_bound"),
        (budget(20, unknown=70, launch=10), "unknown"),
        (budget(46, queued=26, python=20, launch=7), "unknown"),
        (budget(46, queued=20, python=24, launch=7), "host_bound"),
        (budget(5, compile=90, launch=5), "host_bound"),
        (budget(5, basis="window", compile=90, launch=5), "unknown"),
    ],
)
def test_verdict(case, code):
    verdict = judge(case)
    assert verdict is not None
    assert verdict.code == code
    assert "{" not in verdict.text


def starting_up(steps: int) -> TraceBuilder:
    """Steps in each of which a module is loaded for 600 of 1000 us, but for one more that is cut off."""
    builder = TraceBuilder()
    for i in range(steps):
        at = i * 10_000
        builder.step(i, at, 10_000 if i < steps - 1 else 500)
        for k in range(4 if i < steps - 1 else 1):
            builder.op("aten::mm", at + 6500 + k * 100, 90)
            builder.launch("k", at=at + 6510 + k * 100, call=5, start=at + 6520 + k * 100, dur=20)
        if i < steps - 1:
            builder.runtime("cuModuleLoadData", at + 200, 6000)
    return builder


def test_the_only_step_that_counts_says_nothing_of_the_loop_while_it_starts_up():
    trace = starting_up(2).build()
    analysis = analyze(trace)
    assert (analysis.figures.summary.verdict, analysis.figures.budget.steps) == ("unknown", 1)
    assert analysis.figures.summary.verdict_values["share_pct"] == pytest.approx(60.0, abs=5)
    assert analysis.figures.summary.sustained_step_ns is None
    assert {s.saving.basis for s in analysis.suggestions if s.saving.ns is not None} <= {"rough", "bounded"}
    # Where every step compiles, that is the loop's pace.
    again = analyze(starting_up(5).build()).figures.summary
    assert again.verdict == "host_bound"
    assert again.sustained_step_ns is not None


def test_a_kernel_or_two_without_steps_are_no_pace():
    builder = TraceBuilder().op("aten::mm", 0, 50).launch("k", at=5, call=3, start=20, dur=60)
    assert compute_figures(builder.build()).summary.verdict == "unknown"
    for i in range(2):
        builder.launch("k", at=100 + i, call=1, start=110 + i * 60, dur=60)
    assert compute_figures(builder.build()).summary.verdict == "host_bound"


def test_a_program_that_never_launches_anything_left_the_device_alone():
    calls = (
        TraceBuilder().op("aten::mm", 5, 50).runtime("cudaGetDeviceCount", 1, 1).runtime("cudaStreamSynchronize", 90, 1)
    )
    summary = compute_figures(calls.build()).summary
    assert (summary.verdict, summary.gpu_busy_pct) == ("unknown", None)
    assert "left the GPU alone" in summary.verdict_text
    copied = compute_figures(calls.runtime("cudaMemcpyAsync", 60, 5).build()).summary
    assert "holds none of its work" in copied.verdict_text


def captured(*, begin: bool = True, end: bool = True) -> TraceBuilder:
    builder = TraceBuilder().step(0, 0, 200).launch("before", at=2, call=2, start=5, dur=2)
    if begin:
        builder.runtime("hipStreamBeginCapture", 10, 1)
    for i in range(9):
        builder.runtime("hipLaunchKernel", 20 + i * 10, 3)
    if end:
        builder.runtime("hipStreamEndCapture", 120, 1)
    return builder.launch("after", at=130, call=2, start=135, dur=2)


def test_launches_that_a_graph_captures_are_not_lost():
    """They run nothing, so the device was idle, and that is known."""
    figures = compute_figures(captured().build())
    assert figures.extra["launches_captured_pct"][0] == pytest.approx(100 * 9 / 11)
    assert figures.extra["launches_lost_pct"][0] == 0
    assert figures.summary.verdict == "unknown"
    assert "captured into a graph" in figures.summary.verdict_text
    assert figures.summary.gpu_busy_pct == pytest.approx(2.0)
    assert [n.code for n in figures.doctor if n.code in ("graph-captured", "orphan-kernels/many")] == ["graph-captured"]


def test_a_capture_that_the_recording_cuts_is_one():
    for builder in (captured(end=False), captured(begin=False)):
        assert compute_figures(builder.build()).extra["launches_captured_pct"][0] == pytest.approx(100 * 9 / 11)


def test_where_most_launches_are_lost_how_busy_the_device_was_is_unknown():
    figures = compute_figures(captured(begin=False, end=False).build())
    assert "their events were lost" in figures.summary.verdict_text
    assert (figures.summary.gpu_busy_pct, figures.summary.kernel_busy_pct) == (None, None)


@pytest.mark.parametrize(
    ("orphans", "lost", "words"),
    [
        (0, 2, "2 launches have no device work in the trace."),
        (1, 0, "1 piece of device work has no launch in the trace."),
        (1, 1, "1 piece of device work has no launch in the trace; 1 launch has no device work in it."),
    ],
)
def test_only_what_there_is_of_work_without_launch_and_launches_without_work_is_told(
    orphans: int, lost: int, words: str
):
    builder = TraceBuilder()
    for k in range(20):
        builder.launch("k", at=30 * k, call=5, start=30 * k + 8, dur=20)
    for k in range(orphans):
        builder.kernel("k", 700 + 30 * k, 20)
    for k in range(lost):
        builder.runtime("cudaLaunchKernel", 800 + 30 * k, 5, correlation=90 + k)
    note = next(n for n in compute_figures(builder.build()).doctor if n.code == "orphan-kernels")
    assert note.title == words


def test_orphans_are_counted_as_the_rule_of_that_name_counts_them():
    """A piece without a valid duration is one, too."""
    builder = TraceBuilder().op("aten::mm", 0, 50).kernel("whole", 5, 20)
    trace = builder.slice("kernel", "unfinished", 40, None, 7, 0, device=0, stream=7).build()
    note = next(n for n in compute_figures(trace).doctor if n.code == "orphan-kernels")
    assert note.values["orphans"] == 2
    (found,) = [s for s in analyze(trace).suggestions if s.rule_id == "orphan-kernels"]
    assert (found.values["count"], found.values["of"]) == (2, 2)


def test_exposed_communication_is_not_useful_work():
    verdict = judge(budget(95, launch=5), exposed_communication_ns=40)
    assert verdict is not None
    assert verdict.code == "communication_bound"
    assert verdict.values["share_pct"] == pytest.approx(40.0)


def test_a_device_bound_trace_without_worthwhile_suggestions_is_healthy():
    for saving, code in ((1.0, "healthy"), (20.0, "device_bound"), (None, "device_bound")):
        verdict = judge(budget(95, launch=5), best_saving_pct=saving)
        assert verdict is not None
        assert verdict.code == code


def test_a_device_that_only_copies_for_a_good_part_of_the_time_is_not_healthy():
    for copies, code in ((5, "healthy"), (10, "device_bound"), (49, "device_bound")):
        verdict = judge(budget(95, launch=5), best_saving_pct=1.0, exposed_copy_ns=copies)
        assert verdict is not None
        assert verdict.code == code
    assert verdict.values["share_pct"] == pytest.approx(49.0)


@pytest.mark.parametrize(
    ("kind", "code"), [("HtoD (Pageable -> Device)", "device_bound"), ("DtoD (Device -> Device)", "healthy")]
)
def test_copies_between_host_and_device_are_told_from_those_inside_it(kind, code):
    builder = TraceBuilder()
    for i in range(4):
        at = 100 * i
        builder.step(i, at, 100).copy(kind, at=at + 1, call=3, start=at + 2, dur=30, stream=9)
        builder.launch("k", at=at + 5, call=3, start=at + 32, dur=66)
    assert analyze(builder.build()).figures.summary.verdict == code


def test_priced_without_any_known_saving_is_healthy():
    builder = TraceBuilder()
    for i in range(4):
        builder.step(i, i * 100, 100).launch("k", at=i * 100 + 1, call=3, start=i * 100 + 5, dur=98)
    trace = builder.build()
    figures = compute_figures(trace)
    assert figures.summary.verdict == "device_bound"
    assert final_verdict(trace, figures, sustained_ns=100 * 1000).code == "healthy"
    assert final_verdict(trace, figures, sustained_ns=100 * 1000, best_saving_pct=20.0).code == "device_bound"


def test_the_sustained_step_decides_where_it_is_known():
    recorded = budget(50, python=50)  # one step alone, the loop overlaps it with the next
    assert judge(recorded).code == "host_bound"  # type: ignore[union-attr]
    assert judge(recorded, sustained_ns=52).code == "device_bound"  # type: ignore[union-attr]


def test_no_budget_no_verdict():
    assert judge(Budget(period_ns=None, busy_ns=None)) is None


def test_every_template_is_a_whole_sentence():
    for template in TEMPLATES.values():
        assert template.endswith(".")
        assert template[0].isupper()


def test_launches_without_kernels_are_unknown_not_idle():
    builder = TraceBuilder().step(1, 0, 100)
    for i in range(5):
        builder.op("aten::mm", i * 10, 9).runtime("cudaLaunchKernel", i * 10 + 1, 5, i + 1)
    trace = builder.build()
    figures = compute_figures(trace)
    assert figures.summary.gpu_busy_pct is None
    assert figures.summary.kernels_per_step is None
    assert figures.step_figures.gpu_busy_ns.tolist() == [-1]
    assert figures.summary.verdict == "unknown"
    note = next(note for note in figures.doctor if note.code == "gpu-events-missing")
    assert note.severity == "error"
    assert "5 kernels" in note.title
    assert note.slices
    assert final_verdict(trace, figures).code == "unknown"


def test_waits_are_unknown_where_no_calls_were_recorded():
    figures = compute_figures(TraceBuilder().step(1, 0, 100).op("aten::item", 5, 50).build())
    assert figures.summary.sync_points_per_step is None
    assert figures.summary.sync_wait_ns_per_step is None
    assert figures.step_figures.sync_wait_ns.tolist() == [-1]


def test_a_cpu_trace_is_no_broken_gpu_trace():
    figures = compute_figures(TraceBuilder(gpu=None).step(1, 0, 100).op("aten::mm", 5, 50).build())
    assert figures.summary.verdict == "unknown"
    assert "gpu-events-missing" not in [note.code for note in figures.doctor]


@pytest.mark.parametrize(("computes", "verdict"), [(True, "input_bound"), (False, "unknown")])
def test_a_loader_that_nothing_waits_for_is_no_bound(computes, verdict):
    builder = TraceBuilder(gpu=None).step(1, 0, 100)
    builder.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 90).op("aten::stack", 5, 50)
    if computes:
        builder.op("aten::mm", 93, 5)
    assert compute_figures(builder.build()).summary.verdict == verdict


def test_one_step_around_many_iterations():
    builder = TraceBuilder().step(1, 0, 500)
    for i in range(5):
        builder.range("Optimizer.step#SGD.step", i * 100 + 80, 10)
    note = next(n for n in compute_figures(builder.build()).doctor if n.code == "no-steps-marked")
    assert note.values["count"] == 4
    builder.op("aten::mm", 10, 50)
    card = next(s for s in analyze(builder.build()).suggestions if s.rule_id == "no-steps-marked")
    assert "holds about 4 iterations" in card.explanation
    assert "0 iterations" not in card.explanation
    builder = TraceBuilder().step(1, 0, 500).range("Optimizer.step#SGD.step", 80, 10)
    assert "no-steps-marked" not in [n.code for n in compute_figures(builder.build()).doctor]


def test_clock_skew_is_noticed():
    trace = TraceBuilder().step(1, 0, 100).launch("k", at=50, call=5, start=30, dur=10).build()
    codes = [note.code for note in compute_figures(trace).doctor]
    assert "clock-skew" in codes


def test_missing_stacks():
    trace = TraceBuilder(with_stack=1).step(1, 0, 100).op("aten::mm", 5, 50).build()
    assert "stacks-missing" in [note.code for note in compute_figures(trace).doctor]


def test_a_profiler_inside_the_recording():
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    builder.python("torch/profiler/profiler.py(800): __enter__", 120, 10)
    assert "two-profilers" in [note.code for note in compute_figures(builder.build()).doctor]
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    builder.python("torch/autograd/profiler.py(751): __enter__", 120, 10)  # a record_function
    builder.python("torch/profiler/profiler.py(203): start_trace", 150, 10)  # the schedule's own
    assert "two-profilers" not in [note.code for note in compute_figures(builder.build()).doctor]


def test_notes_are_sorted_and_filled_in():
    builder = TraceBuilder().op("aten::mm", 0, 5).runtime("cudaLaunchKernel", 1, 2, 1)
    notes = compute_figures(builder.build()).doctor
    assert [note.severity for note in notes] == sorted(
        (n.severity for n in notes), key=["error", "warning", "info"].index
    )
    for note in notes:
        assert "{" not in note.title + note.consequence + note.cure
        assert fill(note.templates[0], note.values) == note.title


@pytest.mark.parametrize(("host_us", "code"), [(700, "device_bound"), (1000, "host_bound")])
def test_a_device_that_lags_further_behind_in_each_step_sets_the_pace(host_us, code):
    """Its idle time is that between kernels, of which the next is queued."""
    builder = TraceBuilder()
    for i in range(8):
        builder.step(i, i * host_us, host_us)
        for k in range(50):
            at = i * host_us + k * host_us // 50
            builder.op("aten::mm", at, 11).launch("k", at=at + 1, call=5, start=20 + i * 1000 + k * 20, dur=17)
    trace = builder.build()
    figures = compute_figures(trace)
    found = final_verdict(trace, figures, 1_000_000.0, best_saving_pct=10.0)
    assert figures.summary.gpu_busy_pct == pytest.approx(85, abs=2)
    assert found.code == code
    assert ("queued already" in found.text) is (code == "device_bound")


def test_a_device_that_works_most_of_the_time_is_no_cliff():
    nearly = budget(88, launch=12)
    assert judge(nearly).code == "device_bound"  # type: ignore[union-attr]
    assert "12 %" in judge(nearly).text  # type: ignore[union-attr]
    assert judge(nearly, best_saving_pct=8.0).code == "host_bound"  # type: ignore[union-attr]
    assert judge(nearly, waits_saving_pct=8.0).code == "sync_bound"  # type: ignore[union-attr]
    assert judge(budget(79, launch=21)).code == "host_bound"  # type: ignore[union-attr]


def test_a_device_that_works_most_of_the_time_at_the_pace_of_the_cpu_does_not_set_it(tmp_path):
    """If it took half the time, no step would be shorter."""
    nearly = budget(85, launch=15)
    assert judge(nearly, quicker_device_pct=30.0).code == "device_bound"  # type: ignore[union-attr]
    assert judge(nearly, quicker_device_pct=1.0).code == "host_bound"  # type: ignore[union-attr]

    def program(m, number):
        del number
        for _ in range(30):
            m.kernel_op("aten::mm", 8.4, host_us=2.0)
            m.cpu(3.0)

    run = simulate(program, steps=6, stacks=False, sustained=False)
    summary = analyze(open_trace(run.write(tmp_path / "t.json"))).figures.summary
    assert summary.gpu_busy_pct == pytest.approx(84, abs=2)
    assert summary.verdict == "host_bound"


def test_idling_with_work_launched_is_told_from_idling_without():
    unexplained = judge(budget(30, unknown=70), has_stacks=False)
    assert unexplained is not None
    assert "with_stack=True" in unexplained.text
    partly = judge(budget(30, queued=30, unknown=40), has_stacks=False)
    assert partly is not None
    assert partly.text.startswith("For 40 % of the time")  # the rest was launched already: no stacks would tell more
    held = judge(budget(30, queued=60, unknown=10))
    assert held is not None
    assert (held.code, held.values["held_pct"]) == ("unknown", 60.0)
    late = judge(budget(30, queued=60, unknown=10), held_lead_ns=60)
    assert late is not None
    assert late.values == {"lead_pct": 60.0, "rest_pct": 75.0}


def test_launches_without_work_leave_the_device_unknown():
    builder = TraceBuilder().step(1, 0, 1000).launch("k", at=10, call=5, start=20, dur=50)
    for i in range(4):
        builder.runtime("cudaLaunchKernel", 100 + 10 * i, 5, 100 + i)
    summary = compute_figures(builder.build()).summary
    assert summary.verdict == "unknown"
    assert "80 %" in summary.verdict_text


def test_slow_launching_is_named_beside_communication_where_it_takes_nearly_as_long():
    both = judge(budget(10, communication=50, launch=30, python=10))
    assert both is not None and both.code == "communication_bound"
    assert "40 %" in both.text and "launch" in both.text
    alone = judge(budget(30, communication=60, launch=10))
    assert alone is not None and "launch" not in alone.text


def stepped(*lengths_us: int) -> TraceBuilder:
    builder, at = TraceBuilder(gpu=None), 0
    for number, length in enumerate(lengths_us):
        builder.step(number, at, length).op("aten::mm", at + 1, length - 2)
        at += length
    return builder


def test_steps_that_differ_much_are_told():
    notes = compute_figures(stepped(200, 300, 210, 330, 250, 190).build()).doctor
    (note,) = [note for note in notes if note.code == "uneven-steps"]
    assert note.severity == "warning"
    assert "190 µs to 330 µs" in note.title
    for even in ((200, 205, 210, 390, 200, 204), (200, 300, 210), (200, 230, 245, 260)):
        assert not [n for n in compute_figures(stepped(*even).build()).doctor if n.code == "uneven-steps"]


def two_devices(second_us: int) -> TraceBuilder:
    builder = TraceBuilder()
    for i in range(4):
        builder.step(i, i * 100, 100)
        builder.launch("k", at=i * 100 + 1, call=3, start=i * 100 + 5, dur=98 if i < 3 else 90)
        builder.launch("k", at=i * 100 + 6, call=3, start=i * 100 + 10, dur=second_us, device=1, stream=8)
        builder.runtime("cudaDeviceSynchronize", i * 100 + 12, 80)
    return builder


def test_a_device_that_never_idles_sets_the_pace_of_a_program_with_several():
    summary = compute_figures(two_devices(20).build()).summary
    assert summary.verdict == "device_bound"
    assert summary.verdict_values["device"] == 0
    assert summary.verdict_values["rest_pct"] == pytest.approx(20.0)
    assert "shared out unevenly" not in compute_figures(two_devices(85).build()).summary.verdict_text


@pytest.mark.parametrize(("at_once", "in_turn"), [(False, True), (True, False)])
def test_devices_that_wait_for_each_other_are_said_to_work_in_turn(at_once: bool, in_turn: bool):
    builder = TraceBuilder()
    for i in range(5):
        builder.step(i, i * 100, 100)
        builder.launch("k", at=i * 100 + 1, call=3, start=i * 100 + 5, dur=48)
        begin = i * 100 + (5 if at_once else 54)
        builder.launch("k", at=i * 100 + 6, call=3, start=begin, dur=48, device=1, stream=8)
    summary = compute_figures(builder.build()).summary
    assert ("in turn" in summary.verdict_text) is in_turn
    assert (summary.verdict == "device_bound") is in_turn


def test_tracks_that_another_program_names_as_a_device_are_not_called_cpu_work():
    builder = TraceBuilder(gpu=None).op("aten::mm", 0, 50)
    builder.name_process("/device:GPU:0", pid=9).event(ph="X", pid=9, tid=1, name="fusion", ts=10, dur=20)
    summary = compute_figures(builder.build()).summary
    assert summary.verdict == "unknown"
    assert "how busy that device was is unknown" in summary.verdict_text


def test_a_trace_without_events_is_called_that():
    trace = TraceBuilder().build()
    analysis = analyze(trace)
    assert analysis.figures.summary.verdict_text.startswith("This trace has no events")
    assert verdict_word(trace, "unknown") == "No events"
    assert outlook(trace, analysis) == "empty"


def test_what_valid_files_hold_too_is_no_damage():
    unfinished = TraceBuilder().step(1, 0, 100).slice("cpu_op", "aten::mm", 10, None)
    unnumbered = TraceBuilder().range("ProfilerStep*", 0, 50).step(1, 50, 100)
    for builder in (unfinished, unnumbered):
        assert "invalid-json" not in {s.rule_id for s in analyze(builder.build()).suggestions}


def test_device_work_of_a_trace_without_calls_is_in_the_step_in_which_it_starts():
    figures = compute_figures(TraceBuilder().step(1, 0, 100).kernel("k", 5, 20).kernel("k", 40, 20).build())
    assert figures.summary.kernels_per_step == 2
    note = next(n for n in figures.doctor if n.code == "orphan-kernels")
    assert "in the step in which it starts" in note.consequence


def test_the_sentence_says_the_busy_share_that_the_figure_beside_it_says():
    close = Summary(
        verdict_template=TEMPLATES["mostly_device"],
        verdict_values={"busy_pct": 89.7, "idle_pct": 10.3},
        gpu_busy_pct=89.2,
    )
    assert values_shown(close) == {"busy_pct": 89.2, "idle_pct": pytest.approx(10.8)}
    far = replace(close, gpu_busy_pct=60.0)  # another thing: the loop's pace is not that of the recorded steps
    assert values_shown(far) == close.verdict_values
    one = replace(close, verdict_values={"busy_pct": 89.7, "device": 1})
    assert values_shown(one)["busy_pct"] == 89.7
