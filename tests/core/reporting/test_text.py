"""The report for a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from core.analysis import Analysis, analyze
from core.compare import compare
from core.reporting import comparing, units
from core.reporting.html import page as page_of
from core.reporting.phrases import Amounts, in_chain, place, printable
from core.reporting.text import Page, clip, report
from core.suggestions import PlanStep, Saving, SourceRef, Suggestion
from tests.core.reporting.cases import NOTE, SUGGESTION, training, with_suggestions
from tests.trace_builder import TraceBuilder


def test_report_says_everything():
    text = report(*with_suggestions(training(), SUGGESTION, NOTE))
    for part in (
        "Step times",
        "host step",
        "device step",
        "period",
        "sustained step",
        "testing them takes four counted steps of one loop",
        "The plan: 900 µs → 630 µs per step",
        "A value is read back 4 times",
        "alone saves 270 µs (30 %) per step, replayed",
        "train.py:12 in train_step",
        "Waiting per step: 280 µs",
        "- x += loss.item()",
        "+ x += loss.detach()",
        "Risk: None.",
        "Also seen",
        "No step is marked",
        "Sync points: 4",
        "cudaMemcpyAsync  in aten::item",
        "1 could not be checked, 1 failed",
        "The trace holds no memory events. (memory-creep)",
    ):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_width_is_kept(width):
    text = report(*with_suggestions(training(), SUGGESTION, NOTE), Page(width))
    code = {"- x += loss.item()", "+ x += loss.detach()"}
    long = [line for line in text.splitlines() if len(line) > max(width, 60) and line.strip() not in code]
    assert long == []


def test_colour_changes_no_word():
    trace, analysis = with_suggestions(training(), SUGGESTION, NOTE)
    coloured = report(trace, analysis, Page(100, True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == report(trace, analysis, Page(100))


def test_trace_without_device_or_steps():
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 10).build()
    text = report(trace, analyze(trace))
    assert "No step is marked in this trace" in text
    assert "unknown: no device work was recorded" in text
    assert " 0 %" not in text


def test_names_cannot_write_to_the_terminal():
    evil = replace(SUGGESTION, title="evil \x1b[31m\x07 {times}", fix=replace(SUGGESTION.fix, before="x\x1b[2J"))
    text = report(*with_suggestions(training(), evil))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert printable("a\nb\x1b") == "a\nb\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("time_ns", "expected"),
    [
        (None, "unknown"),
        (0, "0 ns"),
        (12, "12 ns"),
        (999.6, "1 µs"),
        (1500, "1.5 µs"),
        (999_960, "1 ms"),
        (12_345_678, "12.3 ms"),
        (174_829_333, "175 ms"),
        (61_000_000_000, "61 s"),
        (1_234_000_000_000, "1\u202f234 s"),
        (-2_500_000, "-2.5 ms"),
    ],
)
def test_durations(time_ns, expected):
    assert units.duration(time_ns) == expected


def test_other_units():
    assert units.percent(9.96) == "10 %"
    assert units.percent(0.12) == "0.1 %"
    assert units.percent(None) == "unknown"
    assert units.count(4.0) == "4"
    assert units.count(2.25) == "2.2"
    assert units.size(9_633_792) == "9.19 MiB"
    assert units.measure(1500.0, "us") == "1.5 ms"
    assert units.measure("x", "") == "x"
    assert units.measure(0.00001234, "") == "0.00001234"
    assert clip("a" * 50, 20) == "a" * 13 + "…" + "a" * 6


def test_each_device_is_named_where_there_are_several():
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    for device, dur in ((0, 80), (1, 40)):
        builder.kernel("k", 5, dur, device=device).kernel("k", 105, dur, device=device)
    trace = builder.build()
    assert "the mean of GPU 0 80 %, GPU 1 40 %" in report(trace, analyze(trace))


def test_the_report_says_over_how_many_of_the_steps_the_means_are():
    builder = TraceBuilder()
    for number, (at, length) in enumerate([(0, 900), (900, 100), (1000, 100), (1100, 100)]):
        builder.step(number, at, length).launch("k", at=at + 1, call=3, start=at + 5, dur=60)
    trace = builder.build()
    analysis = analyze(trace)
    assert "means over 3 of 4 steps" in report(trace, analysis)
    assert "Means over 3 of 4 steps." in page_of(trace, analysis)
    one = TraceBuilder().step(0, 0, 100).launch("k", at=1, call=3, start=5, dur=60).build()
    assert "means over 1 step\n" in report(one, analyze(one))


def test_a_recording_of_the_cpu_alone_is_called_so_everywhere():
    builder = TraceBuilder(gpu=None)
    for number in range(3):
        builder.step(number, number * 100, 100).op("aten::mm", number * 100 + 1, 90)
    trace = builder.build()
    analysis = analyze(trace)
    assert analysis.figures.summary.verdict == "unknown"  # in JSON the code stays
    for text in (report(trace, analysis), page_of(trace, analysis)):
        assert "CPU only" in text
        assert "Unknown" not in text
    assert "device step" not in report(trace, analysis)


def test_a_saving_of_nothing_is_said_in_words():
    suggestion = Suggestion("x", "Title", saving=Saving(0, 0.0, "replayed"))
    times, shares = Amounts(" per step"), Amounts(" per step", 8_000_000.0)
    two_ms = replace(suggestion, saving=Saving(2_000_000, 5.0, "replayed"))
    assert times.alone(suggestion).startswith("alone saves nothing, ")
    assert times.alone(two_ms) == "alone saves 2 ms (5.0 %) per step, replayed"
    assert shares.alone(two_ms) == "alone saves 25 % of the recorded step, replayed"
    at_most = replace(two_ms, saving=replace(two_ms.saving, basis="bounded"))
    assert times.alone(at_most) == "alone saves up to 2 ms (5.0 %) per step"
    assert times.worth(at_most.saving, 2e6) == "up to −2 ms"
    assert times.alone(replace(suggestion, saving=Saving())) == ""
    assert (times.saved(2e6), shares.saved(2e6)) == ("−2 ms", "−25 %")
    assert (times.then(6e6), shares.then(6e6)) == ("then 6 ms per step", "then 75 % of the recorded step")
    assert shares.whole(8e6, 6e6) == "−25 % of the recorded step"


def test_without_steps_nothing_is_said_of_a_step():
    builder = TraceBuilder()
    for number in range(20):
        at = number * 100
        builder.launch("k", at=at, call=3, start=at + 4, dur=60)
        builder.runtime("cudaDeviceSynchronize", at + 5, 62)
    trace = builder.build()
    analysis = analyze(trace)
    assert any(s.saving.ns for s in analysis.suggestions)
    text = report(trace, analysis)
    assert "of the whole recording" in text
    plan = text[text.index("Suggestions") : text.index("Also seen")]
    assert "per step" not in plan


def test_a_share_of_the_replayed_part_is_not_called_one_of_the_whole_recording():
    builder = TraceBuilder().op("aten::set_up", 0, 4_000)
    for number in range(20):
        at = 5_000 + number * 100
        builder.launch("k", at=at, call=3, start=at + 4, dur=60)
        builder.runtime("cudaDeviceSynchronize", at + 5, 62)
    trace = builder.build()
    analysis = analyze(trace)
    assert analysis.replayed_ns is not None
    best = max((s.saving for s in analysis.suggestions if s.saving.pct), key=lambda saving: saving.ns)
    assert best.pct == pytest.approx(100 * best.ns / analysis.replayed_ns, rel=1e-3)
    text = report(trace, analysis)
    assert "of the whole recording, rough" not in text
    assert f"of the {units.duration(analysis.replayed_ns)} from its first device work on" in text


def test_without_runtime_calls_nobody_says_that_the_cpu_never_waits():
    trace = TraceBuilder().step(1, 0, 100).kernel("k", 5, 80).build()
    analysis = analyze(trace)
    assert analysis.figures.summary.sync_points_per_step is None
    for text in (report(trace, analysis), page_of(trace, analysis)):
        assert "never waits" not in text
        assert "no calls of the device's runtime were recorded" in " ".join(unescape(text).split())
    called = TraceBuilder().step(1, 0, 100).launch("k", at=1, call=3, start=5, dur=80).build()
    for text in (report(called, analyze(called)), page_of(called, analyze(called))):
        assert "never waits" in text


def test_the_budget_of_a_recording_without_a_period_is_not_called_a_period():
    one = TraceBuilder().step(1, 0, 100).launch("k", at=1, call=3, start=5, dur=80).build()
    for text in (report(one, analyze(one)), page_of(one, analyze(one))):
        assert "a period of" not in text
        assert "Where a step of 100 µs goes" in text
    more = training().build()
    assert "Where a period of 1 ms goes" in report(more, analyze(more))


def test_inferred_steps_are_not_called_profiler_steps():
    builder = TraceBuilder()
    for number in range(4):
        builder.range("Optimizer.step#SGD.step", number * 100 + 60, 20)
        builder.launch("k", at=number * 100 + 1, call=3, start=number * 100 + 5, dur=60)
    trace = builder.build()
    text = report(trace, analyze(trace))
    assert "inferred" in text
    assert "(ProfilerStep)" not in text
    assert "(ProfilerStep)" in report(*with_suggestions(training(), SUGGESTION))


def test_reproducing_the_recording_is_not_shown_as_accuracy():
    trace, analysis = with_suggestions(training(), SUGGESTION)
    said = report(trace, analysis)
    assert "replay within" not in said
    assert "How far to trust the predictions is unknown" in " ".join(said.split())
    summary = replace(analysis.figures.summary, held_out_error_pct=3.4)
    known = Analysis(replace(analysis.figures, summary=summary), analysis.suggestions, analysis.plan, analysis.rules)
    assert "from one half of the steps they came within 3.4 % of the other." in " ".join(report(trace, known).split())
    summary = replace(summary, held_out_error_pct=113.0)
    known = Analysis(replace(analysis.figures, summary=summary), analysis.suggestions, analysis.plan, analysis.rules)
    said = " ".join(report(trace, known).split())
    assert "they missed the other by 113 %. The steps differ that much among themselves" in said
    assert "within 0 %" not in said


def test_two_shares_of_the_same_work_say_what_each_is_of():
    def lines(first_us: int) -> str:
        builder = TraceBuilder()
        for i in range(6):
            builder.step(i, i * 100, 100)
            builder.launch("k", at=i * 100 + 5, call=3, start=i * 200 + first_us, dur=190)
        trace = builder.build()
        return report(trace, analyze(trace))

    assert "GPU busy             63 %" in lines(200)  # the host's steps end long before the work that they queued
    assert "of the host's steps; of the period below, 95 %" in lines(200)
    assert "of the host's steps" not in lines(12)


@pytest.mark.parametrize("word", ["o", "T1, ", "<Ft\n"])
def test_names_of_any_length_leave_reports_readable(word):
    """Wherever they stand: ranges, functions, operators, kernels, evidence."""
    name = word * (60_000 // len(word))
    made = TraceBuilder(with_stack=1)
    for k in range(4):
        at = k * 1000
        made.step(k, at, 990).range("r" + name, at + 300, 500)
        made.python(f"train.py(14): f{name}", at + 310, 480)
        made.op("aten::" + name, at + 20, 60)
        made.launch("k" + name, at=at + 40, call=10, start=at + 60, dur=500)
        made.op("aten::item", at + 320, 300).op("aten::_local_scalar_dense", at + 321, 298)
        made.copy("DtoH (Device -> Pageable)", at=at + 330, call=280, start=at + 570, dur=5)
    trace = made.build()
    found = analyze(trace)
    assert found.suggestions
    page = page_of(trace, found)
    assert len(report(trace, found)) < 20_000
    assert len(page) < 100_000
    assert "…" in page
    assert len(comparing.report(trace, trace, compare(trace, found, trace, found))) < 20_000


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SourceRef("a.py", 16, "forward", True), "a.py:16 in forward"),
        (SourceRef("a.py", 16, "forward", True, also=(17,)), "a.py:16 in forward, also line 17"),
        (SourceRef("a.py", 16, "forward", candidates=(17, 20)), "a.py:16 in forward (or lines 17 and 20)"),
        (SourceRef("a.py", 14, "forward"), "a.py:14 in forward (about)"),
    ],
)
def test_a_place_tells_all_its_lines(source: SourceRef, words: str) -> None:
    assert place(source) == words


def test_what_a_fix_saves_only_with_its_chain_is_said_beside_its_severity():
    alone = Suggestion("x", "Title", severity="medium", saving=Saving(0, 0.0, "rough", together_ns=0))
    step = PlanStep((0,), ("x",), 630_000, "note", note_values={"members": 2, "position": 1, "group_pct": 6.5})
    words = "6.5 % together with the other fix of its chain"
    assert in_chain(alone, step) == words
    many = replace(step, note_values={**step.note_values, "members": 4})
    assert in_chain(alone, many) == "6.5 % together with the 3 other fixes of its chain"
    assert in_chain(replace(alone, saving=Saving(4, 4.0, "rough")), step) == ""  # most of it is its own
    assert in_chain(alone, replace(step, note_values={})) == in_chain(alone, None) == ""
    trace, analysis = with_suggestions(training(), replace(SUGGESTION, severity="medium", saving=alone.saving))
    analysis = replace(analysis, plan=(step,))
    assert words in " ".join(report(trace, analysis).split())
    assert words in unescape(page_of(trace, analysis))
