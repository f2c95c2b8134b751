"""The launch page, the live output and the list of runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QApplication, QHeaderView, QPushButton
from pytestqt.qtbot import QtBot

from gui import jobs, theme
from gui.capture import MOST_LINE_CHARS, Capture, LongLines, split_arguments
from gui.panels.launch import LaunchPage
from gui.panels.output import OutputPage, short_path
from gui.panels.runs import RunsPage
from gui.session import Session
from gui.widgets.labels import FormText
from gui.widgets.python_field import NOTE
from gui.widgets.terminal import LONGEST_LINE, LineBuilder, Terminal
from profiling import manifest
from profiling.events import Progress
from profiling.interpreters import Interpreter
from profiling.preflight import Device, Preflight, Remark
from profiling.result import RunResult
from profiling.sentences import say
from profiling.spec import Options, RunSpec, Schedule


def lines_of(builder: LineBuilder, *pieces: str) -> list[str]:
    """Finished lines and the open one, as plain text."""
    done = [line for piece in pieces for line in builder.feed("stdout", piece)]
    return ["".join(span[0] for span in line) for line in [*done, builder.open]]


def test_a_progress_bar_stays_one_line() -> None:
    pieces = [f"\rprogress {k:3d}%" for k in range(0, 101, 10)]
    assert lines_of(LineBuilder(), *pieces, "\nlast\n") == ["progress 100%", "last", ""]


def test_a_shorter_text_overwrites_only_its_part() -> None:
    assert lines_of(LineBuilder(), "abcdef\rXY") == ["XYcdef"]


def test_escapes_are_colours_or_nothing() -> None:
    builder = LineBuilder()
    done = builder.feed("stdout", "\x1b[31mred\x1b[0m \x1b[2Kcleared\x1b]0;title\x07\n")
    assert "".join(span[0] for span in done[0]) == "red cleared"
    assert done[0][0][1].color == 1
    assert done[0][1][1].color is None


def test_an_escape_cut_in_two() -> None:
    assert lines_of(LineBuilder(), "a\x1b[3", "2mgreen\x1b", "[0m b\n") == ["agreen b", ""]


def test_the_end_of_the_output_stays_in_view_when_the_outcome_takes_room(qtbot: QtBot) -> None:
    terminal = Terminal()
    qtbot.addWidget(terminal)
    terminal.resize(400, 600)
    terminal.show()
    terminal.feed([("stdout", "".join(f"line {n}\n" for n in range(500)))])
    bar = terminal.verticalScrollBar()
    terminal.resize(400, 200)
    assert bar.value() == bar.maximum()
    bar.setValue(10)  # the user reads something further up
    terminal.resize(400, 300)
    assert bar.value() == 10


def test_output_takes_the_colours_of_another_theme(qtbot: QtBot, qapp: QApplication) -> None:
    terminal = Terminal()
    qtbot.addWidget(terminal)
    was = theme.current()

    def colors() -> list[str]:
        block = terminal.document().findBlockByNumber(0)
        return [at.fragment().charFormat().foreground().color().name() for at in block]

    try:
        theme.apply(qapp, dark=True)
        terminal.feed([("stdout", "\x1b[32mgreen"), ("stderr", "warned\n")])
        dark = colors()
        theme.apply(qapp, dark=False)
        light = colors()
        theme.apply(qapp, dark=True)
        assert colors() == dark
    finally:
        theme.apply(qapp, dark=was.dark)
    assert len(dark) == 2
    assert not set(light) & set(dark)


def test_files_of_libraries_are_named_as_they_are_imported() -> None:
    assert short_path("/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py") == "torch/nn/modules/linear.py"
    assert short_path("C:\\venv\\Lib\\site-packages\\torch\\x.py") == "torch/x.py"
    assert short_path("/home/me/train.py") == "/home/me/train.py"


def test_a_long_line_is_cut() -> None:
    (line, _) = lines_of(LineBuilder(), "x" * 100_000, "y" * 100_000 + "\n")
    assert len(line) <= LONGEST_LINE + 2
    assert line.endswith("…")


def test_a_flood_shows_its_end(qapp: QApplication) -> None:
    terminal = Terminal()
    terminal.feed([("stdout", "".join(f"line {k:06d}\n" for k in range(100_000))), ("stderr", "no newline at the end")])
    text = terminal.toPlainText()
    assert "line 099999\nno newline at the end" in text
    assert "lines are left out here" in text
    assert terminal.left_out
    assert terminal.blockCount() < 5000
    terminal.feed([("stderr", ", now it ends\n"), ("stdout", "after\n")])
    assert terminal.toPlainText().endswith("no newline at the end, now it ends\nafter\n")


def test_arguments_are_split_and_never_expanded() -> None:
    assert split_arguments("--a 'b c' \"d $HOME\" *.py; x\\ y") == ("--a", "b c", "d $HOME", "*.py;", "x y")
    with pytest.raises(ValueError):
        split_arguments("'open")


@pytest.fixture
def session(qapp: QApplication) -> Iterator[Session]:
    """A session with profiling in it."""
    from gui.capture import install
    from gui.settings import Settings

    made = Session()
    install(made, Settings())
    yield made
    jobs.cancel_all()
    jobs.wait_all()
    made.deleteLater()


def page_for(session: Session, script: Path) -> LaunchPage:
    """A launch page that asks no interpreter."""
    page = LaunchPage(session)
    page._later.stop()
    page.script.setText(str(script))
    page._picked = True
    page.interpreter.setEditText("/some/python")
    page._later.stop()
    return page


def test_the_form_makes_a_spec(session: Session, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    page = page_for(session, script)
    page.arguments.setText("--name 'a b'")
    page.record.options["stacks"].setChecked(False)
    page.steps.numbers["active"].setValue(9)
    spec = page.spec()
    assert spec.argv == ("--name", "a b")
    assert spec.folder == str(tmp_path)
    assert (spec.options.stacks, spec.schedule.active, spec.stdin) == (False, 9, "pipe")
    assert page.run_button.isEnabled()
    page.script.clear()
    assert not page.run_button.isEnabled()


def test_the_form_shows_that_it_asks_and_its_labels_stand_beside_their_fields(
    session: Session, tmp_path: Path, qtbot: QtBot
) -> None:
    page = page_for(session, tmp_path / "train.py")
    qtbot.addWidget(page)
    page.resize(1000, 900)
    page.show()
    page._later.stop()
    assert page.asking.isVisible()
    page._checked(Preflight("/some/python", "3.12.1", "2.9.0", "", ()))
    assert not page.asking.isVisible()
    for name, field in ((page.as_script, page.script), (page.as_module, page.module)):
        qtbot.waitUntil(lambda n=name, f=field: abs(n.geometry().center().y() - f.geometry().center().y()) <= 2)  # type: ignore[misc]


def test_a_spec_fills_the_form(session: Session, tmp_path: Path) -> None:
    spec = RunSpec(
        "/some/python", module="pkg.train", argv=("--x", "a b"), cwd=str(tmp_path), schedule=Schedule(2, 1, 7, 3),
        options=Options(flops=True, memory=False), step_source="optimizer", line_ranges=("a.py:f",), stdin="pipe",
    )  # fmt: skip
    page = page_for(session, tmp_path / "old.py")
    page.fill(spec)
    page._later.stop()
    made = page.spec()
    assert made.module == "pkg.train"
    assert (made.argv, made.cwd, made.schedule, made.options) == (spec.argv, spec.cwd, spec.schedule, spec.options)
    assert (made.step_source, made.line_ranges) == ("optimizer", ("a.py:f",))


def test_a_run_of_the_example_leaves_what_the_user_had_filled_in(session: Session, tmp_path: Path) -> None:
    page = page_for(session, tmp_path / "mine.py")
    page.arguments.setText("--name 'not closed")
    page.steps.numbers["active"].setValue(7)
    session.ask("capture").show_launcher(RunSpec("/other/python", "example.py"), aside=True)
    assert page.script.text().endswith("example.py")
    assert not page.back.isHidden()
    page.restore()
    assert (page.script.text(), page.arguments.text()) == (str(tmp_path / "mine.py"), "--name 'not closed")
    assert (page.steps.numbers["active"].value(), page.interpreter.path()) == (7, "/some/python")
    assert page.back.isHidden()


def test_a_form_that_was_empty_is_nothing_to_come_back_to(session: Session) -> None:
    page = page_for(session, Path())
    page.script.clear()
    page._picked = False
    session.ask("capture").show_launcher(RunSpec("/other/python", "example.py"), aside=True)
    assert page.script.text().endswith("example.py")
    assert page.back.isHidden()


@pytest.mark.parametrize(("script", "module"), [("", ""), ("mine.py", "pkg.train")])
def test_an_example_fills_a_form_without_one_target_and_gives_it_back(
    session: Session, script: str, module: str
) -> None:
    page = page_for(session, Path())
    page.script.setText(script)
    page.module.setText(module)
    session.ask("capture").show_launcher(RunSpec("/other/python", "example.py"), aside=True)
    assert page.script.text().endswith("example.py")
    page.restore()
    assert (page.script.text(), page.module.text(), page.as_script.isChecked()) == (script, module, True)


def test_the_page_says_why_it_cannot_run(session: Session, tmp_path: Path) -> None:
    page = page_for(session, tmp_path / "train.py")
    said = []

    def why() -> str:
        assert page.run_button.isEnabled() is page.why_not.isHidden() is not bool(page.why_not.text())
        return page.why_not.text()

    assert why() == ""
    page._checked(Preflight("/some/python", "3.13.0", "", "", (), (Remark("stop", "No torch.", ""),)))
    said.append(why())
    page.interpreter.setEditText("")
    said.append(why())
    page.script.clear()
    said.append(why())
    page.as_module.setChecked(True)
    said.append(why())
    assert all(said)
    assert len(set(said)) == len(said)
    page._later.stop()


def test_the_answer_about_a_python_moves_nothing(session: Session, tmp_path: Path, qtbot: QtBot) -> None:
    page = page_for(session, tmp_path / "train.py")
    qtbot.addWidget(page)
    page.resize(1000, 900)
    page.show()
    page._later.stop()
    places: list[int] = []
    qtbot.waitUntil(lambda: (places.append(page.record.y()) or places[-3:]) == [places[-1]] * 3)  # laid out
    before = page.record.mapTo(page, QPoint()).y()
    words = "This interpreter has no torch. Install it there (/some/long/path/to/python -m pip install torch) or choose"
    for found in (
        Preflight("/some/python", "3.13.0", "", "", (), (Remark("stop", words, "another interpreter."),)),
        Preflight("/some/python", "3.12.1", "2.9.0", "", ()),
    ):
        page._checked(found)
        QApplication.processEvents()
        assert page.record.mapTo(page, QPoint()).y() == before


def test_free_disk_is_looked_for_where_runs_are_kept(session: Session, tmp_path: Path, monkeypatch: Any) -> None:
    page = page_for(session, tmp_path / "train.py")
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr("gui.panels.launch.preflight", lambda path, runs_root: asked.append((path, runs_root)))
    monkeypatch.setattr("gui.panels.launch.jobs.run", lambda owner, work, *_, **__: work(lambda *_: None))
    page.check_interpreter()
    assert asked == [("/some/python", page.spec().runs_root)]


def test_remarks_about_a_python_are_one_below_the_other_with_their_cures(
    session: Session, tmp_path: Path, qtbot: QtBot
) -> None:
    page = page_for(session, tmp_path / "train.py")
    qtbot.addWidget(page)
    page.resize(1000, 900)
    page.show()
    remarks = tuple(
        Remark("warn", f"Fault {n} of a rather long kind, which takes a line.", "Cure it.") for n in range(5)
    )
    page._checked(Preflight("/some/python", "3.12.1", "2.9.0", "12.8", (), remarks))
    QApplication.processEvents()
    lines = page.answer.remarks.text().split("\n")
    assert [line[:9] for line in lines] == [f"• Fault {n}" for n in range(5)]
    assert all(line.endswith("Cure it.") for line in lines)
    found, below = page.answer.found.geometry(), page.answer.remarks.geometry()
    assert page.answer.height() >= below.bottom()
    assert below.top() - found.bottom() <= 8  # no gap in between, however much room the form gives
    qtbot.waitUntil(lambda: not jobs.busy())  # the look into the script has shown what it found
    page.hint.remarks.setText("The script does something that costs time, and these words of it take lines. " * 3)
    page.hint.remarks.show()
    for width in (1000, 700, 1200, 600, 800, 1200, 900):
        page.resize(width, 900)
        QApplication.processEvents()  # one layout is enough
        words = [text for text in page.steps.findChildren(FormText) if text.text().startswith("An evaluation")]
        for shown in (page.answer.remarks, page.hint.remarks, *words):
            assert shown.height() == shown.heightForWidth(shown.width())  # no empty lines below, none is cut
        assert len(words) == 1


def test_a_script_that_turns_on_what_spoils_its_times_is_told_before_it_runs(
    session: Session, tmp_path: Path, qtbot: QtBot
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n\ntorch.autograd.set_detect_anomaly(True)\n")
    page = page_for(session, script)
    qtbot.addWidget(page)
    qtbot.waitUntil(lambda: page.hint.remarks.isVisibleTo(page))
    assert page.hint.remarks.text().startswith("Line 3 of the script turns anomaly detection on")
    page.script.setText(str(tmp_path / "gone.py"))
    qtbot.waitUntil(lambda: not page.hint.remarks.isVisibleTo(page))


def test_pythons_are_listed_with_their_torch_and_the_best_is_chosen(
    session: Session, tmp_path: Path, qtbot: QtBot
) -> None:
    page = LaunchPage(session)
    qtbot.addWidget(page)
    found = [Interpreter("/a/python", "in this folder", True, "2.13.0"), Interpreter("/b/python", "pyenv", None)]
    page._take_interpreters(found)
    page._later.stop()
    assert page.interpreter.path() == "/a/python"
    assert [page.interpreter.itemData(k, NOTE) for k in range(2)] == [
        "torch 2.13.0 · in the current folder",
        "no torch found · pyenv",
    ]
    page.interpreter.setEditText("/mine/python")
    page.interpreter.picked.emit()
    page._take_interpreters(found)
    assert page.interpreter.path() == "/mine/python"


def test_the_gpus_that_are_there_can_be_chosen(session: Session, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    page = page_for(session, tmp_path / "train.py")
    page.gpu.offer((Device(0, "NVIDIA L4", 1, 2), Device(1, "NVIDIA H100", 1, 2)))
    assert page.spec().gpu == ""
    page.gpu.setCurrentIndex(page.gpu.findText("5: NVIDIA H100"))
    assert page.spec().gpu == "5"
    page.fill(RunSpec("/some/python", script="a.py", gpu="none"))
    page._later.stop()
    assert page.gpu.currentText() == "None: run on the CPU"
    page.fill(RunSpec("/some/python", script="a.py", gpu="0,1"))
    page._later.stop()
    assert page.spec().gpu == "0,1"


def test_gpu_use_is_shown_while_it_runs(session: Session) -> None:
    capture = session.ask("capture")
    page = OutputPage(session)
    capture.run = SimpleNamespace(gpus=SimpleNamespace(now=[(0, 87, 5 * 10**9), (1, None, None)]), running=False)
    page._tick()
    assert "GPU 0: 87 %" in page.time.text()
    assert "GPU 1" in page.time.text()


@pytest.mark.parametrize(("folder", "told"), [("/p/copies/2", True), ("/p/sources", False)])
def test_a_run_of_a_changed_copy_says_so(session: Session, folder: str, told: bool) -> None:
    capture = session.ask("capture")
    page = OutputPage(session)
    capture.spec = RunSpec("/some/python", script=f"{folder}/train.py", cwd=folder)
    page._started()
    words = page.command.accessibleName() or page.command.text()
    assert ("a changed copy, in /p/copies/2" in words) is told
    assert "train.py" in words
    page._clock.stop()


def test_a_file_of_a_package_offers_the_module(session: Session, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "train.py").write_text("")
    page = page_for(session, tmp_path / "pkg" / "train.py")
    assert page.hint.link.isVisibleTo(page)
    page.hint.link.click()
    assert page.spec().module == "pkg.train"
    assert page.spec().cwd == str(tmp_path)


def test_a_notebook_becomes_a_script(session: Session, tmp_path: Path, qtbot: Any) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["%cd x\n", "print(1)"]}]}))
    page = page_for(session, notebook)
    qtbot.addWidget(page)
    assert page.hint.link.isVisibleTo(page)
    page.hint.link.click()
    qtbot.waitUntil(lambda: page.script.text() == str(tmp_path / "train.py"))
    assert not page.hint.link.isVisibleTo(page)
    code = (tmp_path / "train.py").read_text()
    assert code.endswith("import os; os.chdir(os.path.expanduser('x'))\nprint(1)\n")


def test_the_output_page_follows_a_run(session: Session, tmp_path: Path, qtbot: Any) -> None:
    import sys

    script = tmp_path / "hello.py"
    script.write_text("print('hello', input('name? '))\nraise SystemExit(3)\n")
    capture = session.ask("capture")
    page = OutputPage(session)
    qtbot.addWidget(page)
    capture.start(RunSpec(sys.executable, script=str(script), runs_root=str(tmp_path / "runs"), stdin="pipe"))
    qtbot.waitUntil(lambda: "name? " in page.terminal.toPlainText(), timeout=60_000)
    assert page.input_row.isVisibleTo(page)
    page.input.setText("Ada")
    page.input.returnPressed.emit()
    qtbot.waitUntil(lambda: not capture.running, timeout=60_000)
    assert "hello Ada" in page.terminal.toPlainText()
    assert "exit status 3" in page.words.text()
    assert page.outcome.isVisibleTo(page)
    assert not page.stop_button.isVisibleTo(page)


def test_a_run_that_missed_its_window_is_repeated_from_step_0(session: Session, tmp_path: Path, qtbot: Any) -> None:
    capture = session.ask("capture")
    page = OutputPage(session)
    qtbot.addWidget(page)
    capture.spec = RunSpec("/some/python", script="a.py", env={"A": "b"}, schedule=Schedule(2, 4, 6, 3))
    spec = capture.spec.to_json()
    steps = {"count": 9, "recorded": [0, 1, 2], "source": "optimizer"}
    rows = [{"path": "trace.json", "kind": "own", "left_out": ["shapes"]}]
    content = {"spec": spec, "steps": steps, "traces": rows}
    capture.result = RunResult("ok", say("ended-normally"), 0, tmp_path, (), "", (), None, content)
    started: list[RunSpec] = []
    capture.start = started.append
    page._ended()
    (again,) = [b for b in page.findChildren(QPushButton) if b.text() == "Run again and record from the first step"]
    again.click()
    (wished,) = started
    assert wished.schedule == Schedule(0, 0, 6, 1)
    assert (wished.script, wished.env) == ("a.py", {"A": "b"})
    rows[0]["left_out"] = []
    steps.update(recorded=list(range(6)))
    page._ended()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not [b for b in page.findChildren(QPushButton) if b.text().startswith("Run again and record")]


def test_of_a_huge_trace_is_said_what_made_it_so(session: Session, tmp_path: Path, qtbot: QtBot) -> None:
    capture, trace = session.ask("capture"), tmp_path / "trace.json"
    page = OutputPage(session)
    qtbot.addWidget(page)
    steps = {"count": 30, "recorded": list(range(24)), "source": "optimizer"}
    capture.result = RunResult("ok", say("ended-normally"), 0, tmp_path, (trace,), "", (), None, {"steps": steps})
    said = {}
    for stacks in (True, False):
        capture.spec = RunSpec("/some/python", script="a.py", options=Options(stacks=stacks))
        for mib in (20, 680):
            with open(trace, "wb") as file:
                file.truncate(mib << 20)  # sparse
            said[stacks, mib] = [words for words in page._facts() if "large" in words]
    assert said[True, 20] == said[False, 20] == []
    assert "24 steps with Python stacks" in said[True, 680][0] and "680" in said[True, 680][0]
    assert "24 steps. Fewer" in said[False, 680][0] and "stacks" not in said[False, 680][0]


def test_after_run_the_keys_are_for_the_output(session: Session, qtbot: QtBot) -> None:
    capture = session.ask("capture")
    capture.spec = RunSpec("/some/python", script="a.py")
    page = OutputPage(session)
    qtbot.addWidget(page)
    capture.started.emit()
    page.show()
    assert page.focusWidget() is page.terminal
    page.input.setFocus()
    page.hide()
    page.show()  # of the same run: the focus stays where it was
    assert page.focusWidget() is page.input


def test_closing_the_app_ends_the_script(session: Session, tmp_path: Path, qtbot: Any) -> None:
    import sys

    script = tmp_path / "sleeps.py"
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    capture = session.ask("capture")
    page = OutputPage(session)
    qtbot.addWidget(page)
    capture.start(RunSpec(sys.executable, script=str(script), runs_root=str(tmp_path / "runs"), stdin="pipe"))
    qtbot.waitUntil(lambda: "up" in page.terminal.toPlainText(), timeout=60_000)
    capture.close()
    assert capture.run is not None
    assert capture.run.result is not None
    assert capture.run.result.outcome in ("stopped", "killed")


def test_progress_is_told_in_words(session: Session) -> None:
    capture = session.ask("capture")
    page = OutputPage(session)
    capture.progress = Progress("window", 12, 2, 5)
    capture.progressed.emit()
    assert page.phase.text() == "Recording the chosen steps: step 3 of 5"
    assert "not all recorded yet" in page.stop_button.toolTip()
    assert (page.bar.value(), page.bar.maximum()) == (2, 5)


def test_why_a_recording_begins_again_is_told_while_it_does(session: Session, qtbot: QtBot) -> None:
    capture = session.ask("capture")
    page = OutputPage(session)
    qtbot.addWidget(page)
    assert page.anew.isHidden()
    capture.progress = Progress("wall", 12, 1, 5, say("anew", seconds="4.5", times=2))
    capture.progressed.emit()
    assert not page.anew.isHidden()
    assert page.anew.text().startswith("No step ended for 4.5 seconds, so the recording was cut and began again (2×)")
    capture.progress = Progress("saving", 20)
    capture.progressed.emit()
    assert page.anew.isHidden()


def test_runs_are_listed_and_renamed(session: Session, tmp_path: Path, qtbot: Any) -> None:
    root = tmp_path / "runs"
    session.ask("capture_settings").set("runs/folder", str(root))
    for name in ("a", "b"):
        folder = manifest.new_run_folder(root, name)
        (folder / "trace.json").write_text("{}" * 100)
        content = {
            "format": manifest.FORMAT, "name": name, "state": "ok", "created": time.time(), "torch": "2.13.0",
            "steps": {"recorded": [4, 5], "wall_step_us": 1500.0}, "traces": [{"path": "trace.json"}],
        }  # fmt: skip
        manifest.write(folder, content)
    page = RunsPage(session)
    qtbot.addWidget(page)
    qtbot.waitUntil(lambda: page.table.rowCount() == 2)
    page.table.selectRow(0)
    (run,) = page.chosen()
    opened: list[object] = []
    session.openRequested.connect(lambda paths, folder: opened.append((paths, folder)))
    page.buttons[0].click()
    assert opened == [([run.folder / "trace.json"], run.folder)]
    page.rename(run, "a better name")
    assert json.loads((run.folder / "run.json").read_text())["name"] == "a better name"
    qtbot.waitUntil(lambda: any(page.table.item(r, 0).text() == "a better name" for r in range(2)))


def kept_runs(session: Session, root: Path, qtbot: Any) -> RunsPage:
    """A shown page with three runs: b is the newest, c has no trace and was not timed."""
    session.ask("capture_settings").set("runs/folder", str(root))
    rows = {"a": (10.0, 90.0, "trace.json"), "b": (30.0, 1500.0, "trace.json"), "c": (20.0, None, "")}
    for name, (created, wall_us, trace) in rows.items():
        folder = manifest.new_run_folder(root, name)
        content = {
            "format": manifest.FORMAT, "name": name, "state": "ok", "created": created,
            "steps": {"recorded": [4, 5], "wall_step_us": wall_us}, "traces": [{"path": trace}] if trace else [],
        }  # fmt: skip
        manifest.write(folder, content)
        if trace:
            (folder / trace).write_text("{}" * 100 * len(name))
    page = RunsPage(session)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: page.table.rowCount() == 3)
    return page


def names_in(page: RunsPage) -> list[str]:
    return [page.table.item(row, 0).text() for row in range(page.table.rowCount())]


def test_runs_are_sorted_by_any_column_as_numbers(session: Session, tmp_path: Path, qtbot: Any) -> None:
    page = kept_runs(session, tmp_path / "runs", qtbot)
    assert names_in(page) == ["b", "c", "a"]
    head = page.table.horizontalHeader()
    page.table.selectRow(0)
    head.setSortIndicator(4, Qt.SortOrder.AscendingOrder)
    assert names_in(page) == ["c", "a", "b"]
    assert [run.name for run in page.chosen()] == ["b"]
    head.setSortIndicator(0, Qt.SortOrder.AscendingOrder)
    assert names_in(page) == ["a", "b", "c"]


def test_no_cell_of_the_runs_measures_its_column(session: Session, tmp_path: Path, qtbot: Any) -> None:
    """A header that sizes itself measures the whole column for each cell: 200 runs took four seconds."""
    head = kept_runs(session, tmp_path / "runs", qtbot).table.horizontalHeader()
    modes = {head.sectionResizeMode(column) for column in range(1, head.count())}
    assert modes == {QHeaderView.ResizeMode.Interactive}


def test_a_run_that_went_or_came_outside_the_window_is_noticed(session: Session, tmp_path: Path, qtbot: Any) -> None:
    page = kept_runs(session, tmp_path / "runs", qtbot)
    errors: list[Any] = []
    session.errorRaised.connect(errors.append)
    opened: list[object] = []
    session.openRequested.connect(lambda *found: opened.append(found))
    for index, press in enumerate((page.buttons[0].click, page.buttons[2].click, page.buttons[3].click)):
        page.table.selectRow(0)
        (run,) = page.chosen()
        away = run.folder.rename(tmp_path / "away")
        page.table.clearSelection()
        page.table.selectRow(0)
        press()
        qtbot.waitUntil(lambda: page.table.rowCount() == 2)
        assert len(errors) == index + 1
        assert str(run.folder) in str(errors[-1].detail) and run.name in str(errors[-1])
        away.rename(run.folder)  # taken back out of the bin
        page.hide()
        page.show()
        qtbot.waitUntil(lambda: page.table.rowCount() == 3)
    assert not opened


def test_a_run_from_elsewhere_is_told_from_ones_own(session: Session, tmp_path: Path) -> None:
    """A folder that was sent names an interpreter and a script: no single click may start them."""
    capture, settings = session.ask("capture"), session.ask("capture_settings")
    settings.set("runs/folder", str(tmp_path / "mine"))
    foreign = tmp_path / "Downloads" / "2026-01-01_train.py"
    foreign.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run").mkdir()
    assert capture.is_own(tmp_path / "mine" / "run")
    assert capture.is_own(manifest.default_runs_root() / "run")
    assert not capture.is_own(foreign)
    pages: list[str] = []
    session.pageRequested.connect(pages.append)
    spec = RunSpec(sys.executable, script=str(foreign / "train.py"))
    capture.show_foreign(spec)
    assert not capture.running
    assert capture.wished == spec
    assert "elsewhere" in session.status


def test_what_was_ticked_for_a_run_is_ticked_at_the_next_start(session: Session, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    page = page_for(session, script)
    assert page.steps.ticked() == ["measure_wall"]
    page.interpreter.setEditText(sys.executable)
    page.steps.stop_after.setChecked(True)
    page.steps.wall.setChecked(False)
    page._capture = SimpleNamespace(start=lambda spec: None, running=False)
    page.run()
    again = LaunchPage(session)
    again._later.stop()
    assert again.steps.ticked() == ["stop_after_window"]
    again.steps.tick(["measure_wall"])
    assert page._settings is not None
    page._settings.set("runs/step_choices", ["measure_wall"])


def test_a_line_of_megabytes_does_not_push_out_what_stands_around_it(session: Session) -> None:
    capture = Capture(session)
    shown: list[tuple[str, str]] = []
    capture.output.connect(shown.extend)
    capture._take_output("stdout", "".join(f"line {k:06d}\n" for k in range(1000)))
    for _ in range(40):
        capture._take_output("stdout", "y" * 65_536)
    capture._take_output("stderr", "warn 099990\n")
    capture._take_output("stdout", "\nthe end\n")
    capture.flush()
    text = "".join(piece for stream, piece in shown if stream)
    assert "line 000000\n" in text
    assert "line 000999\n" in text
    assert text.endswith("y" + "warn 099990\n" + "\nthe end\n")
    assert text.count("y") == MOST_LINE_CHARS


def test_progress_bars_are_no_long_line() -> None:
    lines = LongLines()
    kept = "".join(lines.shortened("stderr", f"\rstep {k}") for k in range(10_000))
    assert kept.endswith("\rstep 9999")
    assert kept.count("\r") == 10_000
