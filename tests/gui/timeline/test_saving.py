from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QFileDialog

from core.errors import TraceError
from core.importing import open_trace
from gui.session import TimeRange
from gui.timeline import saving
from gui.timeline.menus import row_menu, slice_menu
from gui.timeline.view import TimelineView
from tests.trace_builder import TraceBuilder, rows


def answer(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))


def test_part_of_a_trace_is_saved_off_the_gui_thread(view: TimelineView, tmp_path: Path, monkeypatch, qtbot) -> None:
    out = tmp_path / "part.json.gz"
    answer(monkeypatch, out)
    view.document.select_range(TimeRange(1_000_000, 2_000_000))
    saving.trimmed_trace(view)
    qtbot.waitUntil(lambda: "part.json.gz" in view.session.status, timeout=60_000)
    part = open_trace(out)
    assert rows(part, "ProfilerStep#1")
    assert not rows(part, "ProfilerStep#3")


def test_of_rows_that_a_drag_went_over_only_these_are_saved(
    view: TimelineView, tmp_path: Path, monkeypatch, qtbot
) -> None:
    out = tmp_path / "rows.json.gz"
    answer(monkeypatch, out)
    trace = view.document.trace
    track = int(trace.slices.track_id[rows(trace, "aten::mm")[0]])
    view.document.select_range(TimeRange(1_000_000, 2_000_000, (track,)))
    saving.trimmed_trace(view)
    qtbot.waitUntil(lambda: "rows.json.gz" in view.session.status, timeout=60_000)
    part = open_trace(out)
    assert rows(part, "aten::mm")
    assert not rows(part, "train.py(14): weighted_nll")


def test_a_copied_name_is_whole_and_in_one_line(make_view, tmp_path: Path, qtbot) -> None:
    name = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::CUDAFunctor_add<float>, " * 8 + "int)"
    view = make_view(TraceBuilder().launch(name, at=0, call=5, start=10, dur=50).build(tmp_path / "long.json"))
    view.document.select(int(rows(view.document.trace, name)[0]))
    view.copy_text()
    qtbot.waitUntil(lambda: "vectorized" in QGuiApplication.clipboard().text())
    assert QGuiApplication.clipboard().text().splitlines()[0] == name


def test_an_existing_file_is_refused_in_words(view: TimelineView, tmp_path: Path, monkeypatch, qtbot) -> None:
    errors: list[BaseException] = []
    view.session.errorRaised.connect(errors.append)
    taken = tmp_path / "taken.png"
    taken.write_text("mine")
    answer(monkeypatch, taken)
    saving.picture(view, vectors=False)
    saving.picture(view, vectors=True)
    assert [type(e) for e in errors] == [TraceError, TraceError]
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    answer(monkeypatch, taken)
    saving.trimmed_trace(view)
    qtbot.waitUntil(lambda: len(errors) == 3, timeout=60_000)
    assert taken.read_text() == "mine"


def test_menus_name_what_they_do_and_do_it(view: TimelineView) -> None:
    stream = next(r for r in view.rows.rows if r.title == "stream 7")
    menu = row_menu(view, stream)
    by_text = {a.text(): a for a in menu.actions() if a.text()}
    by_text["Pin to the top"].trigger()
    assert stream.pinned
    by_text["Hide"].trigger()
    assert stream.hidden
    again = {a.text(): a for a in row_menu(view, None).actions() if a.text()}
    assert again["Show hidden rows (1)"].isEnabled()
    view.filter.show_text("nothing")
    again["Default arrangement"].trigger()
    assert not view.rows.filter_text
    assert not view.filter.isVisible()
    assert not stream.pinned
    assert not stream.hidden
    again["Collapse all groups"].trigger()
    assert not view.rows.by_key["gpu/0"].expanded
    mm = rows(view.document.trace, "aten::mm")[1]
    menu = slice_menu(view, mm, 1_500_000.0)
    by_text = {a.text(): a for a in menu.actions() if a.text()}
    by_text["Select its time"].trigger()
    assert view.document.selected_range == TimeRange(1_020_000, 1_080_000)
    by_text["Mark this time"].trigger()
    assert [m.start_ns for m in view.document.marks] == [1_500_000]
    by_text["Legend"].trigger()
    assert view.canvas.show_legend


def test_the_name_that_is_offered_is_no_path(view: TimelineView, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a run stands in the title, and a folder that was sent says what it is."""
    offered: list[str] = []

    def ask(_view: object, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        offered.append(name)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    view.document.title = "/root/evil\\run · trace.json"
    saving.picture(view, vectors=True)
    assert offered == ["-root-evil-run · trace-timeline.svg"]


def test_the_palette_is_offered_all_that_the_timeline_can_do(view: TimelineView) -> None:
    offered = {title: (keys, run) for title, keys, run in view.offers()}
    keys = [keys for keys, _ in offered.values() if keys]
    assert len(set(keys)) == len(keys) > 15, "no key stands twice"
    offered["Show or hide the legend"][1]()
    assert view.canvas.show_legend
    offered["Next sync point"][1]()
    assert view.document.selected_slice >= 0
    offered["Select the time of the selected slice"][1]()
    assert "Save the selected part of the trace…" in {title for title, _, _ in view.offers()}
    offered["Collapse all groups"][1]()
    assert not view.rows.by_key["gpu/0"].expanded
    offered["Default arrangement"][1]()
    assert view.rows.by_key["gpu/0"].expanded


def test_each_offer_has_the_key_that_does_it(view: TimelineView) -> None:
    for title, keys, _ in view.offers():
        if not keys:
            continue
        pressed = QKeySequence(keys)[0]
        event = QKeyEvent(QKeyEvent.Type.ShortcutOverride, pressed.key(), pressed.keyboardModifiers())
        event.ignore()
        QApplication.sendEvent(view, event)
        assert event.isAccepted(), f"{title}: {keys} means nothing in the timeline"
