"""The flame graph's tab: what the pointer and the keys do, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolTip

from core.figures.call_paths import Layers
from core.kinds import SliceKind
from core.trace import Trace
from gui.commands import COMMANDS
from gui.panels import kernels, operators
from gui.panels.flame import RANGE, FlamePanel
from gui.screenshot import settle
from gui.session import Document, Session, TimeRange
from gui.widgets.sandwich import SandwichDialog
from gui.widgets.stat_panel import FiguresTable
from tests.gui.conftest import cpu_only, known_analysis, training
from tests.trace_builder import TraceBuilder


@pytest.fixture
def make(qtbot: Any) -> Callable[[Trace], FlamePanel]:
    """Panel of a trace, shown and worked out."""

    def made(trace: Trace) -> FlamePanel:
        session, document = Session(), Document(trace)
        session.add_document(document)
        panel = FlamePanel(session, document)
        panel.keep = session  # type: ignore[attr-defined]  # nothing else holds it
        qtbot.addWidget(panel)
        panel.resize(800, 320)
        panel.show()
        settle()
        return panel

    return made


def node_named(panel: FlamePanel, name: str) -> int:
    graph, trace = panel.view.graph, panel._document.trace
    assert graph is not None
    return next(i for i in range(1, len(graph)) if trace.strings[int(graph.name_id[i])] == name)


def middle(panel: FlamePanel, node: int) -> QPoint:
    return panel.view.box_of(node).center().toPoint()


def test_click_zooms_and_escape_and_back_go_back(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    view = panel.view
    loss = node_named(panel, "loss")
    assert view.box_of(loss).width() < 700
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle(panel, loss))
    assert view.zoomed == loss
    assert view.box_of(loss).width() == pytest.approx(view.viewport().width(), abs=1)
    item = node_named(panel, "aten::item")
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle(panel, item))
    assert view.zoomed == item
    panel.back.click()
    assert view.zoomed == loss
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert view.zoomed == 0
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert view.zoomed == 0 and not panel.back.isEnabled()


def test_a_caller_that_is_clicked_is_zoomed_to(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    view = panel.view
    view.zoom_to(node_named(panel, "aten::item"))
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle(panel, node_named(panel, "loss")))
    assert view.zoomed == node_named(panel, "loss")


def test_double_click_selects_the_slowest_call(make: Callable[[Trace], FlamePanel]) -> None:
    made = TraceBuilder(gpu=None)
    made.op("a", 0, 100).op("b", 200, 10).op("b", 300, 40).op("b", 400, 20)
    panel = make(made.build())
    at = middle(panel, node_named(panel, "b"))
    QTest.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseDClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    chosen = panel._document.selected_slice
    assert panel._document.trace.name(chosen) == "b"
    assert panel._document.trace.slices.dur_ns[chosen] == 40_000


def test_keys_walk_zoom_and_open(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    view = panel.view
    QTest.keyClick(view, Qt.Key.Key_Down)
    assert view.current == node_named(panel, "train.py(10): main")
    assert "train.py(10): main" in panel.status.full_text()
    QTest.keyClick(view, Qt.Key.Key_Down)
    widest = view.current
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert view.current != widest and view.graph.parent[view.current] == view.graph.parent[widest]  # type: ignore[union-attr]
    QTest.keyClick(view, Qt.Key.Key_Left)
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert view.zoomed == widest
    QTest.keyClick(view, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert panel._document.selected_slice == int(view.graph.longest[widest])  # type: ignore[union-attr]
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert view.zoomed == 0


def test_ctrl_enter_is_no_shortcut_of_the_window_while_the_boxes_have_the_keys(
    make: Callable[[Trace], FlamePanel], trace: Trace
) -> None:
    event = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    event.ignore()
    QApplication.sendEvent(make(trace).view, event)
    assert event.isAccepted()
    assert "Ctrl+Return" in next(c for c in COMMANDS if c.id == "done").keys, "which marks a suggestion elsewhere"


def test_tooltip_is_plain_text(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(TraceBuilder(gpu=None).op("<b>x</b>", 0, 100).build())
    at = middle(panel, 1)
    event = QHelpEvent(QEvent.Type.ToolTip, at, panel.view.viewport().mapToGlobal(at))
    QApplication.sendEvent(panel.view.viewport(), event)
    assert "&lt;b&gt;x&lt;/b&gt;" in QToolTip.text()
    assert "100" in QToolTip.text() and "1 call" in QToolTip.text()
    QToolTip.hideText()


def test_search_lights_up_what_it_finds(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    plain = panel.view.grab().toImage()
    panel.search.setText("aten item")
    found = panel.view._found
    assert found is not None and np.flatnonzero(found).tolist() == [node_named(panel, "aten::item")]
    assert "Found: 30" in panel.status.full_text()
    assert panel.view.grab().toImage() != plain
    panel.search.setText("")
    assert panel.view._found is None


def test_search_among_very_many_boxes(make: Callable[[Trace], FlamePanel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gui.panels.flame.AT_ONCE", 1)
    panel = make(training().build())
    panel.search.setText("loss")
    panel.search.setText("item")
    assert panel.view._found is None
    settle()
    assert np.flatnonzero(panel.view._found).tolist() == [node_named(panel, "aten::item")]  # type: ignore[arg-type]
    panel.search.setText("loss")
    panel.search.setText("")
    settle()
    assert panel.view._found is None


def test_a_selected_stretch_and_steps_can_be_chosen(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    document = panel._document
    document.set_analysis(known_analysis(trace))
    settle()
    assert [panel.stretch.itemText(i) for i in range(3)] == ["Whole trace", "Step 0", "Step 1"]
    document.select_range(TimeRange(0, 500_000))
    settle()
    assert panel.stretch.currentData() == RANGE
    assert int(panel.view.graph.total_ns[0]) == 500_000  # type: ignore[union-attr]
    panel.stretch.setCurrentIndex(panel.stretch.findData(1))
    panel.stretch.activated.emit(panel.stretch.currentIndex())
    settle()
    assert int(panel.view.graph.total_ns[0]) == 990_000  # type: ignore[union-attr]
    document.select_range(TimeRange(0, 400_000))  # a step was asked for: it stays
    settle()
    assert panel.stretch.currentData() == 1
    document.select_range(None)
    assert panel.stretch.findData(RANGE) < 0


def test_device_time_shows_kernels(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    assert panel.layers.currentData() == Layers.OWN  # own code was recorded
    panel.measure.setCurrentIndex(1)
    panel.measure.activated.emit(1)
    settle()
    graph = panel.view.graph
    assert graph is not None
    assert SliceKind.KERNEL in graph.kind
    assert int(graph.total_ns[0]) == int(trace.slices.dur_ns[trace.device_ids].sum())


def test_waits_for_the_device_are_red(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    assert "waiting" not in panel.view.words_of(node_named(panel, "cudaMemcpyAsync"))
    panel._document.set_analysis(known_analysis(trace))
    settle()
    call = node_named(panel, "cudaMemcpyAsync")
    assert panel.view.graph is not None and panel.view.graph.wait_ns[call] > 0
    assert "waiting for the device" in panel.view.words_of(call)
    box = panel.view.box_of(call)
    picture = panel.view.viewport().grab(box.toAlignedRect()).toImage()
    middle_row = [picture.pixelColor(x, picture.height() // 2) for x in range(picture.width())]
    assert any(colour.red() > 1.5 * colour.green() for colour in middle_row)


def test_without_a_device_only_cpu_time_is_offered(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(cpu_only().build())
    assert panel.measure.count() == 1
    assert panel.thread_box.isHidden()


def test_it_can_be_stopped_and_asked_again(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(training().build())
    panel.layers.setCurrentIndex(0)
    panel.ask()
    assert not panel.stop.isHidden()
    panel.cancel()
    assert panel.stop.isHidden()
    settle()
    panel.ask()
    settle()
    assert panel.view.graph is not None and panel.bar.isHidden()


def test_nothing_on_the_cpu_is_said(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(TraceBuilder().kernel("k", 0, 10, 1).build())
    assert "Nothing that ran on the CPU" in panel.empty.words.text()


def test_recursion_is_drawn_and_walked(make: Callable[[Trace], FlamePanel]) -> None:
    made = TraceBuilder(gpu=None)
    for depth in range(600):
        made.python("train.py(5): again", depth, 2000 - 2 * depth)
    panel = make(made.build())
    view = panel.view
    assert view.graph is not None and view.graph.levels == 601
    for _ in range(40):
        QTest.keyClick(view, Qt.Key.Key_Down)
    box = view.box_of(view.current)
    assert box.top() >= 0 and box.bottom() <= view.viewport().height()
    view.zoom_to(600)
    assert view.node_at(view.box_of(600).center().toPoint()) == 600
    assert not view.grab().isNull()


def test_what_fills_the_view_stays_when_a_new_graph_comes(make: Callable[[Trace], FlamePanel], trace: Trace) -> None:
    panel = make(trace)
    view, before = panel.view, panel.view.graph
    view.zoom_to(node_named(panel, "loss"))
    panel._document.set_analysis(known_analysis(trace))  # the waits are known now: another graph
    settle()
    assert view.graph is not before
    assert view.zoomed == node_named(panel, "loss")
    view.back()
    assert view.zoomed == 0
    view.zoom_to(node_named(panel, "loss"))
    panel._document.select_range(TimeRange(0, 100_000))  # the loss has not begun yet
    settle()
    assert view.zoomed == 0


def test_a_single_chain_begins_at_its_root(make: Callable[[Trace], FlamePanel]) -> None:
    made = TraceBuilder(gpu=None)
    for depth in range(60):
        made.python("train.py(5): again", depth, 2000 - 2 * depth)
    panel = make(made.build())
    assert panel.view.verticalScrollBar().value() == 0


def test_the_graph_is_written_as_folded_stacks(
    make: Callable[[Trace], FlamePanel], trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = make(trace)
    panel.layers.setCurrentIndex(panel.layers.findData(Layers.NO_PYTHON))
    panel.ask()
    settle()
    panel.copy_folded()
    lines = QApplication.clipboard().text().splitlines()
    stacks = {path: int(count) for path, count in (line.rsplit(" ", 1) for line in lines)}
    assert panel.view.graph is not None
    whole_us = int(panel.view.graph.total_ns[0] - panel.view.graph.self_ns[0]) / 1000
    assert sum(stacks.values()) == pytest.approx(whole_us, rel=0.01)
    assert any(";loss;aten::item" in path or path.startswith("loss;aten::item") for path in stacks)
    out = tmp_path / "graph.txt"
    monkeypatch.setattr("gui.panels.flame.QFileDialog.getSaveFileName", lambda *_: (str(out), ""))
    panel.save_folded()
    settle()
    assert out.read_text().splitlines() == lines


def test_names_cannot_break_the_folded_format(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(TraceBuilder(gpu=None).op("a;b\nc 7", 0, 100).build())
    panel.copy_folded()
    assert QApplication.clipboard().text() == "a,b c 7 100\n"


def test_callers_and_callees_of_the_chosen_box(make: Callable[[Trace], FlamePanel]) -> None:
    made = TraceBuilder()
    for at, caller in ((0, "linear"), (1000, "attend")):
        made.op(caller, at, 500).op("mm", at + 10, 300).op("fill", at + 20, 100)
    panel = make(made.build())
    panel.show_sandwich(0)
    settle()
    assert not panel.window().findChildren(SandwichDialog)
    panel.view.zoom_to(node_named(panel, "mm"))
    QTest.keyClick(panel.view, Qt.Key.Key_C)
    settle()
    (dialog,) = panel.window().findChildren(SandwichDialog)
    trace = panel._document.trace
    names = []
    for view in (dialog.callers, dialog.callees):
        assert view.graph is not None
        names.append({trace.strings[int(i)] for i in view.graph.name_id})
    assert names == [{"mm", "linear", "attend"}, {"mm", "fill"}]
    dialog.grab()
    dialog.callers.opened.emit(0)
    assert trace.name(panel._document.selected_slice) == "mm"
    dialog.close()


def test_a_right_click_offers_what_can_be_done_with_a_box(make: Callable[[Trace], FlamePanel]) -> None:
    panel = make(TraceBuilder(gpu=None).op("linear", 0, 500).op("mm", 10, 300).op("copy", 400, 50).build())
    view, node = panel.view, node_named(panel, "mm")

    def offered(at: int) -> dict[str, bool]:
        return {action.text().split("\t")[0]: action.isEnabled() for action in view.menu(at).actions()}

    assert offered(-1) == dict.fromkeys(offered(node), False)
    assert [title for title, possible in offered(node).items() if possible] == [
        "Zoom into the box",
        "Show its slowest call",
        "Callers and callees",
    ]
    before = view.zoomed
    QTest.mouseClick(view.viewport(), Qt.MouseButton.RightButton, pos=view.box_of(node).center().toPoint())
    assert view.zoomed == before
    view.menu(node).actions()[0].trigger()
    assert view.zoomed == node and offered(node)["Back"] and not offered(node)["Zoom into the box"]
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(3, 3), QPoint(3, 3))
    QApplication.sendEvent(view.viewport(), event)
    (menu,) = (m for m in view.findChildren(QMenu) if m.isVisible())
    next(action for action in menu.actions() if "Callers" in action.text()).trigger()
    menu.close()
    settle()
    (dialog,) = panel.window().findChildren(SandwichDialog)
    assert "Callers and callees" not in {action.text() for action in dialog.callers.menu(0).actions()}
    dialog.close()


def test_rows_of_tables_offer_callers_and_callees(qtbot: Any) -> None:
    trace = training().build()
    session, document = Session(), Document(trace)
    document.set_analysis(known_analysis(trace))
    for panel_of, name in ((operators.create, "aten::mm"), (kernels.create, "")):
        panel = panel_of(session, document)
        qtbot.addWidget(panel)
        settle()
        assert isinstance(panel, FiguresTable)
        model = panel.model
        calls = [model.slice_of(row) for row in range(model.rowCount())]
        row = next((k for k, item in enumerate(calls) if trace.name(item) == name), 0)
        menu = panel.table.menu(model.index(row, 0))
        offered = [action for action in menu.actions() if action.text() == "Callers and callees"]
        assert len(offered) == bool(name), "device work is called by nobody"
        before = panel.note.full_text()
        for action in offered:
            action.trigger()
            assert "worked out" in panel.note.full_text()
            settle()
            assert panel.note.full_text() == before
            (dialog,) = panel.window().findChildren(SandwichDialog)
            assert dialog.callees.graph is not None
            assert trace.strings[int(dialog.callees.graph.name_id[0])] == name
            dialog.close()


def test_callers_and_callees_begin_with_the_function_itself(make: Callable[[Trace], FlamePanel]) -> None:
    made = TraceBuilder(gpu=None)
    for depth in range(40):
        made.op("again", depth, 1000 - 2 * depth)
    made.op("left", 45, 100).op("right", 200, 100)
    panel = make(made.build())
    panel.show_sandwich(node_named(panel, "again"))
    settle()
    (dialog,) = panel.window().findChildren(SandwichDialog)
    assert dialog.callees.graph is not None and dialog.callees.graph.levels > 30
    assert dialog.callees.verticalScrollBar().value() == 0
    dialog.close()
