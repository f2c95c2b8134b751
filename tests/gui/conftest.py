"""A window on a small trace, and an analysis whose every value is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.suggestions import (
    Evidence,
    Fix,
    Outcome,
    PlanStep,
    Rule,
    RuleResult,
    Saving,
    SourceRef,
    Suggestion,
)
from core.trace import Trace
from gui import jobs
from gui.app import make_window
from gui.main_window import MainWindow
from gui.session import Document
from gui.settings import Settings
from tests.trace_builder import TraceBuilder, rows

for waits in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitExposed):
    assert waits.__kwdefaults__["timeout"]
    waits.__kwdefaults__["timeout"] = 60_000  # pytest-qt's five seconds are short where other programs run


def training(steps: int = 4) -> TraceBuilder:
    """Steps of 1000 us: a forward, a read-back that waits for its kernel, and Python frames around them."""
    made = TraceBuilder(with_stack=1)
    made.python("train.py(10): main", 0, steps * 1000)
    for k in range(steps):
        at = k * 1000
        made.step(k, at, 990).range("loss", at + 300, 500)
        made.python("train.py(14): weighted_nll", at + 310, 480)
        made.op("aten::mm", at + 20, 60, Input_Dims=[[4, 8], [8, 2]])
        made.launch("gemm_kernel", at=at + 40, call=10, start=at + 60, dur=500, grid=[8, 1, 1])
        made.op("aten::item", at + 320, 300).op("aten::_local_scalar_dense", at + 321, 298)
        made.copy("DtoH (Device -> Pageable)", at=at + 330, call=280, start=at + 570, dur=5)
    return made


def cpu_only() -> TraceBuilder:
    """No device, no steps."""
    return TraceBuilder(gpu=None).op("aten::mm", 0, 100).op("aten::add", 120, 30)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Training on a device."""
    return training().build(tmp_path / "train.json")


def known_analysis(trace: Trace) -> Analysis:
    """Two suggestions with a saving each, a note, and one rule of each outcome."""
    items, copies = tuple(rows(trace, "aten::item")), tuple(rows(trace, "cudaMemcpyAsync"))
    shared = {"occurrences": 4, "steps": (0, 1, 2, 3)}
    first = Suggestion(
        "scalar-read-back",
        "{op} reads a number back",
        {"op": "aten::item"},
        "The CPU waits {wait} for the GPU.",
        source=SourceRef("/home/me/train.py", 14, "weighted_nll", True),
        evidence=(Evidence("Blocking calls", 4, "", copies), Evidence("Time waiting", 250, "us", items)),
        fix=Fix("Read it every N steps.", "x = loss.item()", "x = loss.detach()", risk="It is printed later."),
        severity="high",
        saving=Saving(240_000, 24.0, "replayed", 240_000),
        **shared,
    )
    first = Suggestion(**{**first.__dict__, "values": {"op": "aten::item", "wait": "250 us"}})
    second = Suggestion(
        "many-tiny-kernels",
        "Many small kernels",
        evidence=(Evidence("Launches", 4, "", tuple(rows(trace, "cudaLaunchKernel"))),),
        fix=Fix("Fuse them."),
        saving=Saving(0, 0.0, "replayed", 60_000),
        **shared,
    )
    note = Suggestion("no-shapes", "Shapes were not recorded", informational=True)
    found = tuple(RuleResult(Rule(s.rule_id, s.title), Outcome.FOUND, "", (s,)) for s in (first, second, note))
    others = (
        RuleResult(Rule("clean-rule", "Something else"), Outcome.CLEAN),
        RuleResult(Rule("ranks-rule", "Ranks drift apart"), Outcome.NOT_CHECKED, "only one rank"),
        RuleResult(Rule("broken-rule", "Broken"), Outcome.FAILED, "ZeroDivisionError", details="Traceback"),
    )
    plan = (PlanStep((0,), ("scalar-read-back",), 760_000), PlanStep((1,), ("many-tiny-kernels",), 700_000))
    figures = compute_figures(trace)
    summary = type(figures.summary)(**{**figures.summary.__dict__, "sustained_step_ns": 1_000_000.0})
    figures = type(figures)(**{**figures.__dict__, "summary": summary})
    return Analysis(figures, (first, second, note), plan, found + others)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings in a file of the test's own."""
    return Settings(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))


@pytest.fixture
def window(qapp: QApplication, settings: Settings) -> Iterator[MainWindow]:
    """A shown window without documents."""
    made = make_window(settings, dark=True)
    made.resize(1400, 900)
    made.show()
    yield made
    jobs.cancel_all()
    jobs.wait_all()
    for document in tuple(made.session.documents):
        made.session.close_document(document)
    made.close()
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def show(window: MainWindow) -> Callable[..., Document]:
    """Show a trace, with a given analysis."""

    def shown(trace: Trace, analysis: Analysis | None = None) -> Document:
        document = Document(trace)
        window.session.add_document(document)
        if analysis is not None:
            document.set_analysis(analysis)
        return document

    return shown


@pytest.fixture
def document(show: Callable[..., Document], trace: Trace) -> Document:
    """The training trace with the known analysis, shown."""
    return show(trace, known_analysis(trace))
