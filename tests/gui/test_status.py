"""What the status bar says leaves again: after a while, and when another page is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.figures.model import DoctorNote
from gui import statusbar
from gui.main_window import MainWindow
from gui.panels.import_report import ImportReportPanel
from gui.screenshot import settle
from gui.session import Document
from gui.statusbar import things_to_know
from tests.trace_builder import TraceBuilder


def test_a_message_leaves_after_a_while(window: MainWindow, document: Document) -> None:
    bar = window.status
    window.session.set_status("Saved a.html")
    assert "Saved a.html" in bar.counts.accessibleName()
    assert bar._leaves.isActive()
    bar._leaves.timeout.emit()
    assert "Saved a.html" not in bar.counts.accessibleName()
    assert window.session.status == ""
    assert not bar._leaves.isActive()


def test_a_message_leaves_with_its_page(window: MainWindow, document: Document, monkeypatch) -> None:
    monkeypatch.setattr(statusbar, "FRESH_MS", -statusbar.SAID_MS)
    window.session.set_status("The code is on the clipboard.")
    window.session.pageRequested.emit("start")
    assert window.session.status == ""
    monkeypatch.setattr(statusbar, "FRESH_MS", 2 * statusbar.SAID_MS)
    window.session.set_current(document)
    window.session.set_status("Set the variables again, then press Run.")  # said with the page that comes
    window.session.pageRequested.emit("start")
    assert window.session.status != ""


def test_what_is_folded_open_on_the_start_page_leaves_its_link_where_it_was(window: MainWindow) -> None:
    window.resize(1500, 1000)
    window.show()
    page = window.pages["start"]
    settle()
    link = page._fold.link
    before = link.mapTo(window, QPoint(0, 0))
    link.click()
    settle()
    assert page._fold.opened
    assert link.mapTo(window, QPoint(0, 0)) == before
    words = " ".join(made.text() for made in page._fold.findChildren(QLabel))
    assert "the three before them are left out" in words
    assert "wait=1, warmup=2, active=6" in words


def test_what_was_recorded_is_told_from_the_events_where_the_header_is_silent(
    window: MainWindow, tmp_path: Path
) -> None:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5, **{"Input Dims": [[2, 3]], "Call stack": "train.py(12): <module>"})
    document = Document(builder.build(tmp_path / "old.json"))
    assert not [fact for fact in window.status.facts(document) if fact.startswith("recorded")]  # not known yet
    document.analysis = analyze(document.trace)
    assert "recorded with call stacks of operators, shapes" in window.status.facts(document)
    other = Document(TraceBuilder().op("aten::mm", 0, 5).build(tmp_path / "none.json"))
    other.analysis = analyze(other.trace)
    assert "recorded without stacks, shapes, memory" in window.status.facts(other)


def test_what_is_copied_is_said(window: MainWindow, document: Document, monkeypatch) -> None:
    QGuiApplication.clipboard().setText("by another program")
    assert window.session.status == ""
    monkeypatch.setattr(statusbar, "copied_here", lambda: True)  # the platform of the tests does not know it
    QGuiApplication.clipboard().setText("aten::mm  and\nmore")
    assert window.session.status == "Copied: aten::mm and …"
    QGuiApplication.clipboard().setText("x" * 5_000)
    assert len(window.session.status) < 100
    picture = QImage(2, 2, QImage.Format.Format_RGB32)
    QGuiApplication.clipboard().setImage(picture)
    assert window.session.status == "Copied"


def test_the_keys_are_left_out_where_they_would_be_cut(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    bar = statusbar.StatusBar(window.session)
    qtbot.addWidget(bar)
    bar.show()
    for width in (1200, 420, 1200):
        bar.resize(width, bar.height())
        settle()
        assert bar.keys.isHidden() == (width == 420)
        assert bar.keys.isHidden() or bar.keys.geometry().right() <= width
        assert bar.keys.isHidden() or bar.keys.width() >= bar.keys.sizeHint().width()


def test_what_is_said_stands_whole_in_front_of_the_facts(window: MainWindow, document: Document) -> None:
    window.session.set_status("Text size: 200 %")
    counts = window.status.counts
    room_px = counts.fontMetrics().horizontalAdvance("Text size: 200 % · 12…")
    assert counts.fitting(room_px).startswith("Text size: 200 % · ")


def test_the_doctor_counts_what_the_status_bar_counts(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    builder = TraceBuilder().op("aten::mm", 0, 5).event(ph="X", cat="cpu_op", name="bad", ts=3, dur=-4, pid=1, tid=1)
    document = Document(builder.build(tmp_path / "odd.json"))
    analysis = analyze(document.trace)
    for odd in (2, 1, 0):
        notes = [DoctorNote(s, s, f"Note {n}", "", "") for n, s in enumerate(["info", *["warning"] * odd])]
        document.set_analysis(replace(analysis, figures=replace(analysis.figures, doctor=tuple(notes))))
        if odd == 2:
            window.session.add_document(document)
            panel = ImportReportPanel(window.session, document)
            qtbot.addWidget(panel)
        said = [shown.text() for shown in panel.widget().findChildren(QLabel)]
        counted = len(things_to_know(document))
        assert odd <= counted
        words = "1 thing to know about this trace" if counted == 1 else f"{counted} things to know about this trace"
        assert (words in said) is (counted > 0)
        assert window.status.chip.isHidden() is (counted == 0)
        assert counted == 0 or window.status.chip.text() == words
        assert said.count("careful") + said.count("error") == counted
        infos = said.count("note")
        assert ("1 note" if infos == 1 else f"{infos} notes") in said
