"""The memory tab: curves that are clicked, tables, and growth from step to step."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from gui.main_window import MainWindow
from gui.panels.memory import MemoryPanel
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.charts import LineChart
from tests.trace_builder import TraceBuilder


def growing(growth: int) -> TraceBuilder:
    made = TraceBuilder(profile_memory=1)
    for k in range(6):
        at, base = k * 1000, 1 << 20
        made.step(k, at, 900).op("aten::linear", at + 10, 100).op("aten::empty", at + 20, 10)
        held = base * (4 + growth * k)
        made.memory(at + 25, 4 * base, address=0x10, allocated=held + 4 * base, reserved=64 * base)
        made.memory(at + 300, -4 * base, address=0x10, allocated=held, reserved=64 * base)
    return made


def panel_of(show: Callable[..., Document], window: MainWindow, made: TraceBuilder) -> MemoryPanel:
    trace = made.build()
    document = show(trace)
    document.set_analysis(known_analysis_without(trace))
    panel = MemoryPanel(window.session, document)
    panel.setParent(window)
    panel.resize(700, 400)
    panel.show()
    settle()
    return panel


def known_analysis_without(trace: object) -> object:
    from core.analysis import analyze

    return analyze(trace)  # type: ignore[arg-type]


def cells(panel: MemoryPanel, row: int) -> dict[str, str]:
    model = panel.table.model
    titles = [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]
    return {title: str(model.index(row, c).data()) for c, title in enumerate(titles)}


def test_allocations_say_who_and_for_how_long(show: Callable[..., Document], window: MainWindow) -> None:
    panel = panel_of(show, window, growing(0))
    first = cells(panel, 0)
    assert (first["Allocated in"], first["Under"]) == ("aten::empty", "aten::linear")
    assert first["Size"].startswith("4.00") and first["Held for"].startswith("275")
    panel.group.choose(True)
    assert cells(panel, 0)["Operator"] == "aten::empty"
    assert cells(panel, 0)["Allocations"] == "6"


def test_a_click_on_the_curve_goes_there(show: Callable[..., Document], window: MainWindow) -> None:
    panel = panel_of(show, window, growing(0))
    chart = panel.findChild(LineChart)
    view = panel._document.viewport
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(chart.width() // 2, 40))
    found = chart.value_at(chart.width() // 2)
    assert found is not None
    assert view.start_ns < found[0] < view.end_ns
    assert view.end_ns - view.start_ns < 1_000_000


def test_growth_from_step_to_step_is_flagged(show: Callable[..., Document], window: MainWindow) -> None:
    grows = panel_of(show, window, growing(2))
    words = grows._titles[0][0].full_text()
    assert "the least in a step grows, by 2.00" in words and grows._titles[0][0].property("role") == "warn"
    assert "64.0 MiB reserved (line above)" in words
    steady = panel_of(show, window, growing(0))
    assert "step" not in steady._titles[0][0].full_text()


def test_a_low_panel_has_no_overlaps(show: Callable[..., Document], window: MainWindow) -> None:
    made = growing(1).memory(50, 100, device=-1, allocated=100).memory(90, -100, device=-1, allocated=0)
    panel = panel_of(show, window, made)
    for height in (180, 240, 500):
        panel.resize(600, height)
        settle()
        assert panel._scroll.geometry().bottom() < panel.table.geometry().top()
        charts = panel.findChildren(LineChart)
        assert len(charts) == 2 and not charts[0].geometry().intersects(charts[1].geometry())


def test_a_device_with_one_event_has_its_curve_and_all_share_one_axis(
    show: Callable[..., Document], window: MainWindow
) -> None:
    made = growing(0).memory(70, 3000, device=1, allocated=3000, reserved=4000)
    panel = panel_of(show, window, made)
    first, second = panel.findChildren(LineChart)
    assert "GPU 1: peak 2.93" in panel._titles[1][0].full_text()
    for x in (first.width() // 4, first.width() // 2):
        found = first.value_at(x), second.value_at(x)
        assert found[0] and found[1] and abs(found[0][0] - found[1][0]) < 1
