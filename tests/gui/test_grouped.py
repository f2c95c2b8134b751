"""Tables of operators and kernels that are grouped more finely."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from core.trace import Trace
from gui.panels.kernels import KernelsPanel
from gui.panels.operators import OperatorsPanel
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.grouped_panel import GroupedPanel
from tests.gui.conftest import known_analysis, training
from tests.trace_builder import TraceBuilder


def table(panel: GroupedPanel) -> list[dict[str, str]]:
    model = panel.model
    titles = [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]
    return [{title: model.index(row, c).data() for c, title in enumerate(titles)} for row in range(model.rowCount())]


@pytest.fixture
def operators(document: Document, window: object) -> OperatorsPanel:
    made = window.page_of(document).panel("operators") if hasattr(window, "page_of") else None  # type: ignore[union-attr]
    if made is None:
        from gui.document_page import DocumentPage

        made = window.findChild(DocumentPage).panel("operators")  # type: ignore[attr-defined]
    settle()
    return made


def test_operators_by_shapes_and_back(operators: OperatorsPanel) -> None:
    assert "Input shapes" not in table(operators)[0]
    operators.group.choose(1)
    assert not operators.stop.isHidden()
    settle()
    assert operators.stop.isHidden()
    rows = {row["Name"]: row for row in table(operators)}
    assert rows["aten::mm"]["Input shapes"] == "[4, 8], [8, 2]"
    assert rows["aten::item"]["Input shapes"] == "unknown"
    assert operators.model.slice_of(0) >= 0
    operators.group.choose(0)
    assert "Input shapes" not in table(operators)[0]


def test_operators_by_line(operators: OperatorsPanel) -> None:
    operators.group.choose(2)
    settle()
    rows = {row["Name"]: row["Called from"] for row in table(operators)}
    assert rows["aten::item"] == "train.py(14): weighted_nll"
    operators.group.choose(3)
    settle()
    rows = {row["Name"]: row["Called from"] for row in table(operators)}
    assert rows["aten::item"] == "train.py(14): weighted_nll ← train.py(10): main"


def test_stopping_keeps_what_was_shown(operators: OperatorsPanel) -> None:
    before = table(operators)
    operators.group.choose(1)
    operators.cancel()
    settle()
    assert table(operators) == before
    assert operators.group.currentIndex() == 0 and operators.bar.isHidden()


def test_what_was_not_recorded_is_said(show: Callable[..., Document], window: object, tmp_path: Path) -> None:
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 100).build(tmp_path / "bare.json")
    document = show(trace, known_of(trace))
    panel = OperatorsPanel(window.session, document)  # type: ignore[attr-defined]
    panel.group.choose(1)
    settle()
    assert "record_shapes=True" in panel.note.full_text()
    assert [row["Name"] for row in table(panel)] == ["aten::mm"]
    panel.deleteLater()


def test_a_file_that_is_gone_is_said(show: Callable[..., Document], window: object, tmp_path: Path) -> None:
    trace = training().build(tmp_path / "gone.json")
    document = show(trace, known_analysis(trace))
    (tmp_path / "gone.json").unlink()
    panel = OperatorsPanel(window.session, document)  # type: ignore[attr-defined]
    panel.group.choose(1)
    settle()
    assert "gone.json is gone" in panel.note.full_text()
    assert len(table(panel)) > 0 and panel.group.currentIndex() == 0
    kernels = KernelsPanel(window.session, document)  # type: ignore[attr-defined]
    settle()
    assert len(table(kernels)) > 0 and "gone.json is gone" in kernels.note.full_text()
    panel.deleteLater()
    kernels.deleteLater()


def test_kernels_say_how_they_were_launched(document: Document, window: object) -> None:
    panel = KernelsPanel(window.session, document)  # type: ignore[attr-defined]
    settle()
    rows = {row["Name"]: row for row in table(panel)}
    assert rows["gemm_kernel"]["Grid"] == "8"
    assert rows["gemm_kernel"]["Tensor cores"] == "no sign"
    assert rows["Memcpy DtoH (Device -> Pageable)"]["Grid"] == ""
    assert "Registers" not in rows["gemm_kernel"]  # not recorded
    panel.group.choose(2)
    settle()
    rows = {row["Name"]: row for row in table(panel)}
    assert rows["gemm_kernel"]["Operator"] == "aten::mm"
    assert rows["gemm_kernel"]["Calls"] == "4"
    panel.deleteLater()


def known_of(trace: Trace) -> object:
    from core.analysis import analyze

    return analyze(trace)
