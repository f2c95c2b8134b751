from __future__ import annotations

import errno
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit, QListWidget, QMenu, QWidget
from pytestqt.qtbot import QtBot

from core.errors import TraceError
from core.trace import Trace
from gui import commands, dialogs, errors, jobs, opening, panels
from gui.app import make_window
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import Document, Recent, TimeRange
from gui.settings import Settings
from tests.gui.conftest import cpu_only, known_analysis, training


def test_start_page_is_what_one_sees_first(window: MainWindow) -> None:
    page = window.stack.currentWidget()
    assert type(page).__name__ == "StartPage"
    assert window.session.current is None
    assert not window.command_actions["report"].isEnabled()
    assert window.command_actions["open"].isEnabled()


def test_recent_files_are_listed_and_a_missing_one_cannot_be_opened(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    there = training(1).write(tmp_path / "there.json")
    window.session.set_recent([Recent(there, 1e9), Recent(tmp_path / "gone.json", 1e9)])
    page: Any = window.pages["start"]
    from PySide6.QtWidgets import QPushButton

    links = {b.text(): b for b in page.findChildren(QPushButton) if b.property("role") == "link"}
    assert links["there.json"].isEnabled()
    assert not links["gone.json"].isEnabled()
    with qtbot.waitSignal(window.session.documentsChanged):
        links["there.json"].click()


def test_opening_runs_off_the_gui_thread_and_ends_in_a_diagnosed_tab(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path = training().write(tmp_path / "train.json")
    window.session.open([path])
    assert list(window.work) == [str(path)]
    qtbot.waitUntil(lambda: len(window.session.documents) == 1)
    document = window.session.documents[0]
    qtbot.waitUntil(lambda: not document.analysis_running and not window.opener.busy, timeout=60_000)
    assert document.analysis is not None
    assert document.analysis_error is None
    assert not window.work
    assert window.top.tabs.tabText(0) == "train"
    assert window.session.recent[0].path == path
    step = 1_000_000
    assert document.viewport.width_ns < 2 * step  # one typical step, not all four


def test_a_path_that_is_open_already_is_shown_not_opened_twice(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    first, second = (training(1).write(tmp_path / name) for name in ("a.json", "b.json"))
    window.session.open([first, second])
    qtbot.waitUntil(lambda: len(window.session.documents) == 2)
    window.session.open([first])
    assert window.session.current is not None
    assert window.session.current.trace.path == first
    assert len(window.session.documents) == 2


def test_a_bad_file_gives_a_banner_and_what_was_open_stays(
    window: MainWindow, document: Document, tmp_path: Path, qtbot: QtBot
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("[1, 2, 3")
    window.session.open([bad])
    qtbot.waitUntil(window.banner.isVisible)
    assert "bad.json" in window.banner.title.text()
    assert window.banner.hint.text()
    assert window.session.documents == [document]
    assert window.session.current is document
    assert not window.work


def test_cancel_leaves_everything_as_it_was(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def endless(path: Path, progress: jobs.Progress) -> Trace:
        try:
            while True:
                progress(0.3, "reading")
        finally:
            ended.set()

    monkeypatch.setattr(opening, "load_trace", endless)
    window.session.open([tmp_path / "huge.json"])
    line = window.work[str(tmp_path / "huge.json")]
    qtbot.waitUntil(lambda: line.bar.value() == 300)
    line.cancel.click()
    assert ended.wait(60)
    qtbot.waitUntil(lambda: not jobs.busy())
    assert not window.work
    assert not window.session.documents
    assert not window.banner.isVisible()


def test_dropping_files_and_folders_opens_them(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[Path]] = []
    window.session.openRequested.disconnect(window.opener.open)
    window.session.openRequested.connect(lambda paths, folder: asked.append(paths))
    data = QMimeData()
    paths = [tmp_path / "a.json.gz", tmp_path]
    data.setUrls([QUrl.fromLocalFile(str(p)) for p in paths])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPointF(50, 50).toPoint(), Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(window, entered)
    assert entered.isAccepted()
    assert window.drop_sign.isVisible()
    assert window.drop_sign.rect() == window.centralWidget().rect()
    dropped = QDropEvent(QPointF(50, 50), Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(window, dropped)
    assert asked == [paths]
    assert not window.drop_sign.isVisible()


def test_a_script_that_is_dropped_is_offered_for_profiling(window: MainWindow, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    window.open_or_profile([script])
    page: Any = window.stack.currentWidget()
    assert type(page).__name__ == "LaunchPage"
    assert page.script.text() == str(script)
    assert page.as_script.isChecked()


@pytest.mark.parametrize("name", ["train.py", "train.ipynb"])
def test_a_script_chosen_among_traces_is_offered_for_profiling(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = tmp_path / name
    script.write_text("{}")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(script)], ""))
    window.run_command("open")
    page: Any = window.stack.currentWidget()
    assert type(page).__name__ == "LaunchPage"
    assert page.script.text() == str(script)
    assert not window.banner.isVisible()


def test_the_start_page_asks_for_the_script_at_once(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str] = ["", str(tmp_path / "train.py")]
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (chosen.pop(0), ""))
    start: Any = window.pages["start"]
    start.profile_button.click()
    qtbot.waitUntil(lambda: len(chosen) == 1)  # thought better of it: the form is there
    page: Any = window.stack.currentWidget()
    assert page.script.text() == ""
    window.show_page("start")
    start.profile_button.click()
    qtbot.waitUntil(lambda: page.script.text() == str(tmp_path / "train.py"))
    assert window.stack.currentWidget() is page


def test_text_dropped_on_the_window_is_refused(window: MainWindow) -> None:
    data = QMimeData()
    data.setText("hello")
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDragEnterEvent(QPointF(5, 5).toPoint(), Qt.DropAction.CopyAction, data, buttons, keys)
    event.ignore()
    QApplication.sendEvent(window, event)
    assert not event.isAccepted()


def test_closing_a_document_frees_it(window: MainWindow, trace: Trace, qtbot: QtBot) -> None:
    document = Document(trace)
    window.session.add_document(document)
    document.set_analysis(known_analysis(trace))
    for index in range(3):
        document.show_suggestion(index)
    page = window.current_page()
    assert page is not None
    for place in range(page.bottom.count()):
        page.bottom.setCurrentIndex(place)
    qtbot.waitUntil(lambda: not jobs.busy())
    dead, dead_page, dead_timeline = weakref.ref(document), weakref.ref(page), weakref.ref(page.timeline)
    window.session.close_document(document)
    del document, page
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    assert dead() is None
    assert dead_page() is None
    assert dead_timeline() is None
    assert window.session.current is None
    assert type(window.stack.currentWidget()).__name__ == "StartPage"


def test_every_command_has_its_own_keys_and_runs_without_a_document(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [QKeySequence(k).toString() for c in commands.COMMANDS for k in c.keys]
    assert len(keys) == len(set(keys))
    assert len({c.id for c in commands.COMMANDS}) == len(commands.COMMANDS)
    for name in (
        "open_dialog",
        "open_folder_dialog",
        "close",
        "about",
        "palette_dialog",
        "show_keys",
        "settings_dialog",
    ):
        monkeypatch.setattr(window, name, lambda: None)
    for command in commands.COMMANDS:
        window.run_command(command.id)


def test_palette_finds_a_command_by_a_few_letters_and_runs_it(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    window.run_command("palette")
    finder = window.findChild(dialogs.Finder)
    assert finder is not None
    qtbot.keyClicks(finder.field, "next sugg")
    assert finder.findChild(QListWidget).count() == 1
    qtbot.keyClick(finder.field, Qt.Key.Key_Return)
    assert document.current_suggestion == 0


def test_track_finder_lists_every_track(window: MainWindow, document: Document, trace: Trace) -> None:
    window.run_command("track-finder")
    finder = window.findChild(dialogs.Finder)
    assert finder is not None
    assert finder.list.count() == len(trace.tracks)
    finder.choose()


def test_keys_page_names_every_key_of_the_table(window: MainWindow) -> None:
    page = dialogs.KeysPage(window)
    words = " ".join(w.text() for w in page.findChildren(QLabel))
    for command in commands.COMMANDS:
        if command.menu and command.keys:
            assert commands.title_of(command) in words
    page.deleteLater()


def test_search_counts_hits_and_steps_through_them(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.run_command("search")
    qtbot.keyClicks(window.top.search, "gemm")
    qtbot.waitUntil(lambda: len(document.search_hits) == 4)
    assert window.top.hits.text() == "4 hits"
    qtbot.keyClick(window.top.search, Qt.Key.Key_Return)
    first = document.selected_slice
    assert document.trace.name(first) == "gemm_kernel"
    qtbot.keyClick(window.top.search, Qt.Key.Key_Return)
    second = document.selected_slice
    qtbot.keyClick(window.top.search, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert document.selected_slice == first != second
    assert "of 4" in window.top.hits.text()
    qtbot.keyClick(window.top.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not len(document.search_hits))


def test_a_pattern_is_found_inside_words(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    field = window.top.search
    field.setText("e*ker")
    qtbot.waitUntil(lambda: len(document.search_hits) == 4)
    assert window.top.hits.text() == "4 hits"
    field.setText("^e*ker")
    qtbot.waitUntil(lambda: document.search_text == "^e*ker")
    assert window.top.hits.text() == "0 hits"
    assert "^" in field.toolTip()


def test_traces_are_asked_for_where_the_last_one_was(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    asked: list[str] = []
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda _w, _title, where, _f: asked.append(where) or ([], ""))
    window.settings.set("files/last_folder", str(tmp_path))
    window.run_command("open")
    window.session.remember(folder / "one.json", 10)  # as every trace that is opened, from the command line, too
    window.run_command("open")
    window.session.remember(tmp_path / "gone" / "two.json", 10)
    window.run_command("open")
    assert asked == [str(tmp_path), str(folder), str(tmp_path)]


def test_search_switches_and_filters(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    field = window.top.search
    window.run_command("search")
    qtbot.keyClicks(field, "^gemm")
    qtbot.waitUntil(lambda: document.search_text == "^gemm")
    assert not len(document.search_hits)
    qtbot.keyClick(field, Qt.Key.Key_R, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: len(document.search_hits) == 4)
    field.filter.kinds.setCurrentIndex(field.filter.kinds.findData("ops"))
    qtbot.waitUntil(lambda: not len(document.search_hits))
    field.setText("(")
    qtbot.waitUntil(lambda: window.top.hits.text() == "not a pattern")
    assert "not a regular expression" in window.top.hits.toolTip()
    window.session.set_current(document)
    window.session.currentChanged.emit()  # another tab and back
    assert window.top.hits.text() == "not a pattern"
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: document.search_text == "")
    assert not field.query().filtered


def test_enter_right_after_a_name_goes_to_its_hit(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    field = window.top.search
    window.run_command("search")
    for name, key in (("item", Qt.Key.Key_Return), ("gemm", Qt.Key.Key_Enter), ("mm", Qt.Key.Key_Return)):
        field.clear()
        qtbot.keyClicks(field, name)
        qtbot.keyClick(field, key)  # nothing is found yet; what the name before had found is not meant
        qtbot.waitUntil(lambda name=name: document.search_text == name and document.search_at >= 0)
        assert document.current_hit == document.selected_slice
        assert name in document.trace.name(document.selected_slice)
        assert " of " in window.top.hits.text()


def test_typing_in_the_search_field_runs_no_command(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.run_command("search")
    qtbot.keyClicks(window.top.search, "nnTp?/q")
    assert window.top.search.text() == "nnTp?/q"
    assert document.current_suggestion == -1


def test_theme_can_be_switched_and_is_kept(window: MainWindow, settings: Settings) -> None:
    dark = window.palette().window().color().lightness()
    window.run_command("theme")
    assert not window.session.dark
    assert window.palette().window().color().lightness() > dark
    assert settings.get("appearance/theme") == "light"


def test_settings_are_kept_only_when_told_to(window: MainWindow, settings: Settings) -> None:
    from gui.settings_dialog import SettingsDialog

    settings.set("editor/allowed_folders", ["/home/me", "/srv"])
    for answer in ("reject", "accept"):
        dialog = SettingsDialog(settings, window)
        dialog.theme.setCurrentIndex(dialog.theme.findData("light"))
        dialog.editor.setText("ed {file}")
        assert not dialog.folders.remove.isEnabled()  # nothing is chosen yet
        dialog.folders.list.item(0).setSelected(True)
        assert dialog.folders.remove.isEnabled()
        dialog.folders.remove.click()
        getattr(dialog, answer)()
        kept = answer == "accept"
        assert settings.get("editor/command") == ("ed {file}" if kept else "")
        assert settings.get("editor/allowed_folders") == (["/srv"] if kept else ["/home/me", "/srv"])
    assert settings.get("appearance/theme") == "light"


def test_a_stretch_of_time_brings_its_statistics_to_the_front(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    document.select_range(TimeRange(0, 500_000))
    assert page.bottom.currentIndex() == page.panel_ids().index("selection")
    document.select_range(None)
    document.select(3)
    assert page.bottom.currentIndex() == page.panel_ids().index("details")
    window.show_panel("operators")
    document.select(4)
    assert page.bottom.currentIndex() == page.panel_ids().index("operators")
    for panel_id in ("rules", "import_report"):  # they say nothing of a slice
        window.show_panel(panel_id)
        document.select(document.selected_slice + 1)
        assert page.bottom.currentIndex() == page.panel_ids().index("details")
    document.select_range(TimeRange(0, 400_000))
    document.select(2)
    assert page.bottom.currentIndex() == page.panel_ids().index("selection")


def test_tabs_stand_in_the_order_in_which_the_files_were_named(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    paths = [tmp_path / f"{name}.json" for name in "abc"]
    for path in paths:
        training().write(path)
    window.session.open(paths)
    pending: list[tuple[Any, ...]] = []
    for path in paths:  # the jobs are called off; their results come in the order that is worst
        loaded = opening.load_document(path, lambda _fraction, _what: None)
        window.opener._jobs[str(path)].cancel()
        pending.append((str(path), path, None, loaded))
    for number in (2, 0, 1):
        window.opener._opened(*pending[number])
    qtbot.waitUntil(lambda: len(window.session.documents) == 3)
    tabs = window.top.tabs
    assert [d.title for d in window.session.documents] == ["a.json", "b.json", "c.json"]
    assert [tabs.tabText(i) for i in range(tabs.count())] == ["a", "b", "c"]
    assert window.session.current is window.session.documents[0]


def test_what_was_saved_can_be_opened_from_its_message(window: MainWindow, document: Document, monkeypatch) -> None:
    asked: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: asked.append(url) or True)
    window._saved(Path("/tmp/a report.html"), None)
    assert window.notice.isVisible()
    assert "a report.html" in window.notice.words.full_text()
    assert asked == []  # only when asked to
    window.notice.link.click()
    assert [url.toLocalFile() for url in asked] == ["/tmp/a report.html"]


def test_a_trace_opened_again_starts_on_the_typical_step_with_its_states(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path = tmp_path / "again.json"
    training().write(path)

    def opened() -> Document:
        window.session.open([path])
        qtbot.waitUntil(lambda: window.session.current is not None and not window.opener.busy, timeout=60_000)
        assert window.session.current is not None
        return window.session.current

    first = opened()
    fresh = first.viewport.start_ns, first.viewport.end_ns
    first.step_suggestion(1)
    assert first.current_suggestion >= 0
    first.set_suggestion_state(first.current_suggestion, "later")
    states = dict(first.suggestion_state)
    first.zoom_to(0, 50_000)
    window.close_tab()
    again = opened()
    assert again is not first
    assert (again.viewport.start_ns, again.viewport.end_ns) == fresh
    assert again.current_suggestion == -1
    assert again.selected_slice == -1
    assert again.suggestion_state == states


def test_window_state_is_kept_between_starts(qapp: QApplication, settings: Settings) -> None:
    first = make_window(settings)
    first.resize(700, 500)
    first.show()
    first.session.remember(Path("/tmp/some trace.json"), 12)
    first.close()
    second = make_window(settings)
    assert (second.width(), second.height()) == (700, 500)
    assert [r.path for r in second.session.recent] == [Path("/tmp/some trace.json")]
    for made in (first, second):
        made.deleteLater()


def test_cpu_only_trace_says_plainly_that_there_is_nothing_to_wait_for(
    window: MainWindow, show: Callable[..., Document]
) -> None:
    from core.analysis import Analysis
    from core.figures.compute import compute_figures

    trace = cpu_only().build()
    show(trace, Analysis(compute_figures(trace)))
    page = window.current_page()
    assert page is not None
    words = " ".join(w.text() for w in page.findChildren(QLabel))
    assert "nothing can be said about waits for a device" in words
    assert "Where the CPU time goes" in words
    assert "To see a GPU here" in words
    assert "prof.step()" in words
    assert "0\u202f%" not in words


def test_all_panels_have_a_readable_name_for_every_field_and_button(window: MainWindow, document: Document) -> None:
    from PySide6.QtWidgets import QAbstractButton

    for kind in (QAbstractButton, QLineEdit):
        for widget in window.findChildren(kind):
            if widget.objectName().startswith("qt_") or widget.parent().metaObject().className().startswith("QTabBar"):
                continue
            if widget.isVisible() and widget.metaObject().className() not in ("QLineEditIconButton", "QToolButton"):
                assert widget.accessibleName() or widget.text(), widget


def test_labels_never_take_a_name_for_rich_text(window: MainWindow, show: Callable[..., Document]) -> None:
    bold = training(2).op("<b>bold</b><img src=x>", 10, 2)
    trace = bold.build()
    document = show(trace, known_analysis(trace))
    name = trace.strings.id_of("<b>bold</b><img src=x>")
    document.go_to_slice(int((trace.slices.name_id == name).argmax()))
    page = window.current_page()
    assert page is not None
    for shown in page.findChildren(QLabel):
        assert shown.textFormat() == Qt.TextFormat.PlainText, shown.text()
    for widget in page.findChildren(QWidget):
        assert "<b>bold" not in widget.toolTip()


def test_alt_and_a_digit_show_a_tab_and_the_menus_list_the_panels(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    page = window.current_page()
    assert page is not None
    window.activateWindow()
    qtbot.keyClick(page.timeline, Qt.Key.Key_3, Qt.KeyboardModifier.AltModifier)
    assert page.bottom.currentIndex() == 2
    menus = {m.title(): m for m in window.menus["View"].findChildren(QMenu)}
    tabs = menus["Views under the timeline"]
    tabs.aboutToShow.emit()
    assert [a.text().split("\t")[0] for a in tabs.actions()][:3] == ["Details", "Selection", "Operators"]
    tabs.actions()[0].trigger()
    assert page.bottom.currentIndex() == 0
    menus["Pages"].aboutToShow.emit()
    next(a for a in menus["Pages"].actions() if a.text() == "Start").trigger()
    assert window.session.current is None


def test_panels_that_are_listed_but_absent_are_left_out() -> None:
    assert panels.load("no_such_panel") is None
    ids = [spec.id for spec in panels.of_area("bottom")]
    assert ids[:3] == ["details", "selection", "operators"]


class Boom(Exception):
    pass


def test_a_fault_of_ours_opens_one_crash_dialog_and_the_app_stays_up(
    window: MainWindow, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = errors.CrashHooks(window.show_error, window)
    before = sys.excepthook, threading.excepthook
    hooks.install()
    try:
        with qtbot.captureExceptions():
            pass
        sys.excepthook = hooks._hook
        thread = threading.Thread(target=_raise)
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: window.findChild(errors.CrashDialog) is not None)
    finally:
        hooks.remove()
        sys.excepthook, threading.excepthook = before
    for _ in range(5):
        window.show_error(Boom("again"))
    dialogs_open = [d for d in window.findChildren(errors.CrashDialog) if d.isVisible()]
    assert len(dialogs_open) == 1
    dialog = dialogs_open[0]
    dialog.copy()
    report = QApplication.clipboard().text()
    assert "Boom" in report
    assert "PySide6" in report
    dialog.accept()
    assert window.isVisible()


def _raise() -> None:
    raise Boom("our bug")


def test_an_error_one_can_act_on_is_no_crash() -> None:
    shown = errors.as_text(TraceError("t", "d", "h"))
    assert shown == errors.ErrorText("t", "d", "h")
    assert errors.as_text(FileNotFoundError(2, "No such file", "x.json")) is not None
    assert errors.as_text(ValueError("bug")) is None
    full = errors.as_text(OSError(errno.ENOSPC, "No space left on device", "copy/x.py"))
    assert full is not None
    assert "no space left" in full.title
    assert "old runs" in full.hint


def test_without_a_screen_the_program_says_so_and_ends() -> None:
    import os
    import subprocess

    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    code = "import sys, gui.app; sys.exit(gui.app.run([]))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    assert "no screen" in done.stderr


def test_the_report_of_the_current_trace_is_one_page(
    window: MainWindow, document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    from PySide6.QtWidgets import QFileDialog

    out = tmp_path / "out.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: (str(out), ""))
    window.run_command("report")
    qtbot.waitUntil(lambda: "out.html" in window.session.status)
    assert "aten::item" in out.read_text("utf-8")


def test_a_window_that_is_started_needs_no_importer_and_no_rules() -> None:
    import subprocess

    code = (
        "import sys\nfrom gui.app import make_application, make_window\n"
        "app = make_application()\nwindow = make_window()\nwindow.show()\n"
        "late = ('core.importing', 'core.rules.', 'core.replay.', 'libcst')\n"
        "print(sorted(m for m in sys.modules if m.startswith(late)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_torch_is_never_imported() -> None:
    import subprocess

    code = (
        "import sys, gui.app, gui.main_window, gui.panels as p; p.of_area('bottom'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_of_several_files_the_good_ones_open_and_every_bad_one_is_named(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    good = training(1).write(tmp_path / "good.json")
    (tmp_path / "notes.txt").write_text("no trace", encoding="utf-8")
    window.session.open([tmp_path / "missing.json", good, tmp_path / "notes.txt"])
    qtbot.waitUntil(lambda: not window.opener.busy and len(window.session.documents) == 1, timeout=60_000)
    assert window.banner.isVisible()
    assert "missing.json" in window.banner.detail.text()
    assert "notes.txt" in window.banner.detail.text()
    window.session.open([good])
    assert not window.banner.isVisible()


def test_a_window_made_small_leaves_the_timeline_the_larger_part(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    window.resize(1400, 900)
    document.select(3)
    window.resize(900, 600)
    page = window.current_page()
    assert page is not None

    def shared() -> None:
        lanes, side = page.horizontal.sizes()
        assert side <= 290
        assert lanes > 2 * side
        rows_px, views_px = page.vertical.sizes()
        assert rows_px > 1.5 * views_px

    qtbot.waitUntil(shared)


def test_a_window_made_small_and_large_again_gives_the_plan_its_width_back(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    page = window.current_page()
    assert page is not None
    window.resize(1400, 900)
    settle()
    wide = page.horizontal.sizes()[-1]
    for width in (1200, 1000, 900, 1000, 1200, 1400):
        window.resize(width, 600)
        settle()
    qtbot.waitUntil(lambda: abs(page.horizontal.sizes()[-1] - wide) <= 2)


def test_the_search_field_stays_where_it_is_while_hits_are_counted(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    window.resize(1400, 800)
    window.top.say_hits("12 345 of 12 345")
    settle()
    place = window.top.search.geometry()
    for words in ("7 hits", "1 of 7"):
        window.top.say_hits(words)
        settle()
        assert window.top.search.geometry() == place
    window.top.say_hits("")
    qtbot.waitUntil(lambda: window.top.hits.minimumWidth() == 0)
