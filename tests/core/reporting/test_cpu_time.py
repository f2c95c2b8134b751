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
        ("aten::convolution", 800_000.0, 3),
        ("aten::relu", 100_000.0, 3),
    ]
    assert operators.parts[0].share_pct == 100 * 8 / 9
    assert operators.note.startswith("Per step")
    words = text.report(trace, analysis)
    assert cpu_time.TITLE in words
    assert any("89 %" in line and line.endswith("aten::convolution") for line in words.splitlines())
    said = "Operators take 90 % of a step; of their own time aten::convolution takes the most, 89 %."
    assert said in " ".join(words.split())
    page = html.page(trace, analysis)
    assert said in page
    assert cpu_time.TITLE in page
    assert "device below" not in page


def test_a_report_with_device_work_has_the_device_instead() -> None:
    trace = TraceBuilder().op("aten::mm", 0, 50).kernel("gemm", 60, 20).build()
    assert trace.has_device_work
    analysis = analyze(trace)
    assert cpu_time.TITLE not in text.report(trace, analysis)
    page = html.page(trace, analysis)
    assert cpu_time.TITLE not in page
    assert "device below" in page
