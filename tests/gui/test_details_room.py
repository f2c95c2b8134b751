"""Details: the histogram has the room that the panel has, and the line is the one of the card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from core.importing import open_trace
from core.suggestions import SourceRef
from gui import jobs
from gui.main_window import MainWindow
from gui.models.columns import Column, ColumnModel
from gui.panels.details import DetailsPanel
from gui.screenshot import settle
from gui.session import Document, Session
from gui.timeline.slices import label_of
from gui.timeline.tooltip import tip_lines
from gui.widgets.labels import Elided
from gui.widgets.same_name import SameName
from gui.widgets.slice_title import SliceTitle
from gui.widgets.wrapped_link import WrappedLink
from tests.trace_builder import TraceBuilder, rows


def details(window: MainWindow) -> DetailsPanel:
    page = window.current_page()
    assert page is not None
    panel = page.panel("details")
    assert isinstance(panel, DetailsPanel)
    return panel


def test_the_histogram_gives_way_in_a_low_panel_and_is_never_cut(qtbot: QtBot) -> None:
    made = TraceBuilder(gpu=None)
    for k in range(12):
        made.op("aten::mm", k * 100, 5 + 7 * k)
    session, document = Session(), Document(made.build())
    session.add_document(document)
    panel = DetailsPanel(session, document)
    qtbot.addWidget(panel)
    panel.show()
    document.select(3)
    heights = {}
    for height in (160, 240, 500):
        panel.resize(1200, height)
        settle()
        same = panel.findChildren(SameName)[-1]
        assert same.chart is not None
        heights[height] = same.chart.height()
        bottom = same.chart.mapTo(panel.viewport(), same.chart.rect().bottomLeft()).y()
        assert bottom <= panel.viewport().height()
    assert heights[160] < heights[240] <= heights[500]


def test_the_line_that_a_card_has_found_is_shown(window: MainWindow, document: Document) -> None:
    analysis = document.analysis
    assert analysis is not None
    chosen = next(i for i in analysis.suggestions[0].evidence[0].slices)
    panel = details(window)
    begin = SourceRef("train.py", 10, "loss")
    known = replace(begin, line=14, exact=True)
    card = replace(analysis.suggestions[0], source=known)
    document.set_analysis(replace(analysis, suggestions=(card, *analysis.suggestions[1:])))
    assert panel._card_lines().better(chosen, begin) == known
    assert panel._card_lines().better(chosen, replace(begin, function="other")) != known


def test_a_recorded_call_stack_is_not_called_missing(qtbot: QtBot, tmp_path: Path) -> None:
    """Torch 1.8 to 1.11 kept the calls in an argument of the operator."""
    made = TraceBuilder(gpu=None)
    calls = "torch/nn/modules/module.py(1051): _call_impl;train.py(44): <module>"
    made.op("aten::mm", 10, 20, Call_stack=calls)
    made.op("aten::add", 40, 20)
    made.write(tmp_path / "train.json")
    session, document = Session(), Document(open_trace(tmp_path / "train.json"))
    session.add_document(document)
    panel = DetailsPanel(session, document)
    qtbot.addWidget(panel)
    document.select(0)
    jobs.wait_all()
    settle()
    assert panel._no_stack.text() == "module.py:1051 _call_impl\ntrain.py:44 <module>"
    document.select(1)
    jobs.wait_all()
    settle()
    assert "with_stack=True" in panel._no_stack.text()


def test_a_launch_whose_work_is_not_in_the_trace_says_so(qtbot: QtBot) -> None:
    made = TraceBuilder().op("aten::mm", 0, 50).launch("gemm", at=10, call=5, start=60, dur=20)
    trace = made.runtime("cudaLaunchKernel", 30, 5).runtime("cudaStreamIsCapturing", 40, 5).build()
    document = Document(trace)
    panel = DetailsPanel(Session(), document)
    qtbot.addWidget(panel)

    def said(slice_id: int) -> str:
        document.select(slice_id)
        labels = panel._columns[0].findChildren(QLabel)
        return " ".join(w.full_text() if isinstance(w, Elided) else w.text() for w in labels)

    linked, bare = rows(trace, "cudaLaunchKernel")
    assert "nothing that is in the trace" in said(bare)
    assert "Launches" in said(linked)
    for other in (linked, rows(trace, "cudaStreamIsCapturing")[0], rows(trace, "aten::mm")[0]):
        assert "nothing that is in the trace" not in said(other)


def test_self_time_and_the_time_of_what_was_launched_are_as_in_tooltip_and_tables(qtbot: QtBot) -> None:
    """Operators that a frame, a range or a step calls stand on a track of their own."""
    made = TraceBuilder().step(1, 0, 100).range("loss", 10, 50).python("model.py(9): loss", 10, 50)
    made.op("aten::mm", 20, 30).runtime("cudaGraphLaunch", 22, 5, 77)
    trace = made.kernel("gemm", 60, 20, 77).kernel("second", 80, 10, 77).build()
    document = Document(trace)
    panel = DetailsPanel(Session(), document)
    qtbot.addWidget(panel)

    def said(name: str) -> str:
        document.select(rows(trace, name)[0])
        return " | ".join(w.full_text() for w in panel._columns[0].findChildren(Elided))

    for name in ("loss", "model.py(9): loss"):
        assert "50.0 µs total · 20.0 µs self" in said(name).replace("\N{NARROW NO-BREAK SPACE}", " ")
        assert any("self 20.0" in line for line in tip_lines(trace, None, rows(trace, name)[0]))
    assert "self" not in said("gemm")
    said("cudaGraphLaunch")
    told = [w.text() for w in panel._columns[0].findChildren(QLabel) if "30.0" in w.text()]
    assert len(told) == 1  # 20 µs and 10 µs of device work


def test_a_kernel_is_called_alike_on_its_slice_in_the_tooltip_the_tables_and_here(tmp_path: Path, qtbot: QtBot) -> None:
    whole = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
    )
    trace = TraceBuilder().launch(whole, at=0, call=5, start=10, dur=50).build(tmp_path / "add.json")
    kernel = int(rows(trace, whole)[0])
    on_slice = label_of(trace, kernel)
    assert on_slice == "add · elementwise"
    assert tip_lines(trace, None, kernel)[0] == on_slice
    table = ColumnModel([Column("Name", "name", [whole])])
    assert table.data(table.index(0, 0)).startswith(f"{on_slice} – ")
    document = Document(trace)
    panel = DetailsPanel(Session(), document)
    qtbot.addWidget(panel)
    document.select(kernel)
    assert [e.full_text() for e in panel.findChildren(SliceTitle)[-1].findChildren(Elided)] == [on_slice, whole]
    document.select(int(rows(trace, "cudaLaunchKernel")[0]))
    links = [b.text() for b in panel.findChildren(QPushButton) if b.accessibleName().startswith("Go to")]
    assert on_slice in links


def test_the_line_of_a_long_file_name_can_be_read_in_a_narrow_panel(qtbot: QtBot) -> None:
    made = TraceBuilder(gpu=None)
    made.python("models/layers/multi_query_attention_with_bias.py(770): forward_with_all_heads", 0, 90)
    made.op("aten::mm", 10, 20)
    trace = made.build()
    session, document = Session(), Document(trace)
    session.add_document(document)
    panel = DetailsPanel(session, document)
    qtbot.addWidget(panel)
    panel.resize(860, 200)
    panel.show()
    document.select(rows(trace, "aten::mm")[0])
    settle()
    source = next(link for link in panel.findChildren(WrappedLink) if ":770" in link.text())
    assert source.width() < source.sizeHint().width()
    assert source.height() >= source.heightForWidth(source.width())
    assert ":770" in "".join(source.lines(source.width()))
