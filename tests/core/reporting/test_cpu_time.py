"""Reports of a trace without device work say where the CPU's time goes, and nothing of a device."""

from __future__ import annotations

from core.analysis import analyze
from core.reporting import cpu_time, html, text
from tests.trace_builder import TraceBuilder


def test_reports_of_the_cpu_alone_say_where_its_time_goes() -> None:
    builder = TraceBuilder(gpu=None)
    for step in range(3):
        builder.step(step, step * 1000, 1000)
        builder.op("aten::convolution", step * 1000 + 10, 800).op("aten::relu", step * 1000 + 850, 100)
    trace = builder.build()
    analysis = analyze(trace)
    operators = cpu_time.sections(trace, analysis)[0]
    assert [(p.name, p.time_ns, p.calls) for p in operators.parts] == [
        ("aten::convolution", 800_000.0, 1.0),
        ("aten::relu", 100_000.0, 1.0),
    ]
    assert operators.parts[0].share_pct == 100 * 8 / 9
    assert operators.note.startswith("Per step (mean of the 3 counted steps)")
    words = text.report(trace, analysis)
    assert cpu_time.TITLE in words
    assert any("89 %" in line and line.endswith("aten::convolution") for line in words.splitlines())
    said = "Operators take 90 % of a step; of their own time aten::convolution takes the most, 89 %."
    assert said in " ".join(words.split())
    page = html.page(trace, analysis)
    assert said in page
    assert cpu_time.TITLE in page
    assert "device below" not in page


def test_steps_that_the_means_leave_out_are_left_out_here_too() -> None:
    builder, at = TraceBuilder(gpu=None, with_stack=1), 0
    for step in range(6):
        long = step == 3  # ten times as long, for an operator that the other steps do not have
        builder.step(step, at, 10_000 if long else 1000).python("nn.Module: Net_0", at + 5, 900)
        builder.op("aten::convolution", at + 10, 800)
        if long:
            builder.op("aten::sort", at + 1000, 8000)
        at += 10_000 if long else 1000
    trace = builder.op("aten::save", at + 10, 5000).build()
    analysis = analyze(trace)
    assert [bool(one) for one in analysis.figures.step_figures.counted] == [True] * 3 + [False] + [True] * 2
    operators, modules = cpu_time.sections(trace, analysis)
    assert [(p.name, p.time_ns, p.share_pct, p.calls) for p in operators.parts] == [
        ("aten::convolution", 800_000.0, 100.0, 1.0)
    ]
    assert "(mean of the 5 counted steps)" in operators.note
    assert operators.note.endswith("of 800 µs in all.")
    assert [(p.name, p.time_ns, p.share_pct) for p in modules.parts] == [("Net_0", 900_000.0, 90.0)]
    assert "of 1 ms." in modules.note
    said = "Operators take 80 % of a step; of their own time aten::convolution takes the most, 100 %."
    assert said in " ".join(text.report(trace, analysis).split())
    assert said in html.page(trace, analysis)


def test_without_a_step_that_counts_the_times_are_of_the_recording() -> None:
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 300).op("aten::mm", 500, 500).build()
    (operators,) = cpu_time.sections(trace, analyze(trace))
    assert [(p.name, p.time_ns, p.calls) for p in operators.parts] == [("aten::mm", 800_000.0, 2.0)]
    assert operators.note.startswith("In the whole recording")


def test_a_report_with_device_work_has_the_device_instead() -> None:
    trace = TraceBuilder().op("aten::mm", 0, 50).kernel("gemm", 60, 20).build()
    assert trace.has_device_work
    analysis = analyze(trace)
    assert cpu_time.TITLE not in text.report(trace, analysis)
    page = html.page(trace, analysis)
    assert cpu_time.TITLE not in page
    assert "device below" in page
