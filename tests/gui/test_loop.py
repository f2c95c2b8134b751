"""The guided loop in the window: diff, copy, run, row of the table; and two traces side by side."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton

from core.allow import read_allow_file
from core.analysis import Analysis
from core.errors import TraceError
from core.figures.compute import compute_figures
from core.fixes.together import Joint
from core.importing import open_trace
from core.project import AppliedFix, Figures, Iteration, Project, load_project
from core.results import ResultCheck
from core.round_checks import checks_of
from core.run_folder import read_run
from core.suggestions import Outcome, PlanStep, Rule, RuleResult, Saving, SourceRef, Suggestion
from gui import allow_file, jobs, round_words, suggestion_text, text, theme
from gui.fix_dialog import FixDialog
from gui.loop import Loop
from gui.loop_fixes import Derived, near_lines
from gui.opened import machine
from gui.panels.plan import PlanPanel
from gui.screenshot import settle
from gui.session import DISMISSED, DONE, LATER, Document
from gui.take_over_dialog import TakeOverDialog
from gui.take_over_dialog import measured as told_measured
from profiling.processes import started_at
from tests.gui.conftest import training

SCRIPT = """import torch


def weighted_nll(pred, target):
    assert target.max() < 10
    return pred


for step in range(3):
    weighted_nll(torch.zeros(3), torch.zeros(3))
"""
SUGGESTION = Suggestion(
    "control-flow-on-device-tensor",
    "Python tests a tensor",
    occurrences=3,
    steps=(0, 1, 2),
    source=SourceRef("train.py", 5, "weighted_nll", True),
    severity="high",
    saving=Saving(100_000, 10.0, "replayed"),
)


class FakeCapture(QObject):
    """Stands for what runs scripts."""

    ended = Signal()

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.result = SimpleNamespace(outcome="failed")
        self.specs: list[object] = []
        self.running = False
        self.run = self
        self.folder = folder

        self.shown: list[object] = []
        self.own = True

    def start(self, spec: object) -> None:
        self.specs.append(spec)

    def is_on(self, folder: Path) -> bool:
        return self.running and self.folder == folder

    def is_own(self, folder: Path) -> bool:
        return self.own

    def show_foreign(self, spec: object) -> None:
        self.shown.append(spec)


def finish() -> None:
    """Let all jobs end, and those that they start."""
    for _ in range(10):
        jobs.wait_all()
        settle()
        if not jobs.busy():
            return


def derived(loop: Loop, document: Document, *indices: int) -> Derived:
    """The changes of several suggestions."""
    found: list[Derived] = []
    loop.fixes.derive(loop, document, indices, found.append)
    finish()
    return found[0]


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run's folder with its source and trace."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return make_run(tmp_path / "runs" / "1", project / "train.py")


def make_run(
    folder: Path,
    script: Path,
    losses: list[float] | None = None,
    wall_us: float = 900.0,
    waited_pct: float | None = None,
) -> Path:
    (folder / "sources").mkdir(parents=True)
    shutil.copy(script, folder / "sources" / "train.py")
    training().write(folder / "trace.json")
    values = {
        "format": "steplens.run/1",
        "name": "train.py",
        "state": "ok",
        "created": 5.0,
        "spec": {"interpreter": "python", "script": str(script), "argv": ["--lr", "1"]},
        "steps": {"wall_step_us": wall_us, "wall_waited_pct": waited_pct},
        "sources": [{"path": str(script), "copy": "sources/train.py"}],
        "traces": [{"path": "trace.json"}],
    }
    (folder / "run.json").write_bytes(orjson.dumps(values))
    if losses is not None:
        (folder / "losses.json").write_bytes(orjson.dumps({"format": "steplens.losses/1", "values": losses}))
    return folder


def shown(window, folder: Path, sustained_ns: float, suggestions: tuple[Suggestion, ...] = (SUGGESTION,)) -> Document:
    """Show a run's trace with a known analysis."""
    from core.importing import open_trace

    trace = open_trace(folder / "trace.json")
    figures = compute_figures(trace)
    figures = replace(figures, summary=replace(figures.summary, sustained_step_ns=sustained_ns))
    plan = tuple(PlanStep((i,), (s.rule_id,), int(sustained_ns) - 100_000) for i, s in enumerate(suggestions))
    rules = tuple(RuleResult(Rule(s.rule_id, s.title), Outcome.FOUND, suggestions=(s,)) for s in suggestions)
    document = Document(trace)
    document.run_folder = folder
    window.session.add_document(document)
    document.set_analysis(Analysis(figures, suggestions, plan, rules or (RuleResult(Rule("x", "x"), Outcome.CLEAN),)))
    return document


@pytest.fixture
def loop(window, settings, tmp_path) -> Loop:
    settings.set("runs/folder", str(tmp_path / "runs"))
    found = window.session.ask("loop")
    assert isinstance(found, Loop)
    return found


def test_run_becomes_the_first_round(window, loop, run_folder):
    shown(window, run_folder, 1_000_000.0)
    (first,) = loop.project.iterations
    assert (first.number, first.parent, first.fixes) == (0, None, ())
    assert first.figures.wall_ns == 900_000.0
    assert load_project(loop.project.folder) == loop.project


def test_fix_is_a_diff_of_the_users_own_code(window, loop, run_folder):
    document = shown(window, run_folder, 1_000_000.0)
    assert window.session.ask("can_apply_fix", document, 0) is None  # it is being derived
    finish()
    assert window.session.ask("can_apply_fix", document, 0)
    edit = window.session.ask("proposed_edit", document, 0)
    assert "+    torch._assert_async(target.max() < 10)" in edit.diff
    assert edit.path.name == "train.py"


def test_trace_from_elsewhere_has_no_diff(window, loop, tmp_path):
    trace = training().build(tmp_path / "x.json")
    document = Document(trace)
    window.session.add_document(document)
    document.set_analysis(Analysis(compute_figures(trace), (SUGGESTION,)))
    assert window.session.ask("can_apply_fix", document, 0) is False
    assert "not recorded here" in loop.proposal(document, 0).reason


def test_copy_is_made_and_run_with_the_same_options(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    (spec,) = capture.specs
    script = Path(spec.script)
    assert "_assert_async" in script.read_text()
    assert script.is_relative_to(loop.root())
    assert spec.argv == ("--lr", "1")
    assert (tmp_path / "project" / "train.py").read_text() == SCRIPT
    planned = load_project(loop.project.folder).iterations[1]  # on disk before the run has ended
    assert (planned.number, planned.parent, planned.state) == (1, 0, "running")
    assert planned.predicted_ns == 900_000.0
    make_run(capture.folder, script, wall_us=812.0)
    shown(window, capture.folder, 905_000.0, ())
    first, second = loop.project.iterations
    assert second.figures.sustained_ns == 905_000.0
    assert second.fixes[0].rule_id == SUGGESTION.rule_id
    assert loop.judged == (loop.project.folder, 1)
    page = window.pages["iterations"]
    assert "the prediction held" in page.words.text()
    assert page.model.rowCount() == 2
    columns = range(page.model.columnCount())
    heads = {page.model.headerData(c, Qt.Orientation.Horizontal): c for c in columns}
    tip = page.model.headerData(heads["Measured"], Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "without the profiler, where both rounds have it" in tip


def test_a_run_from_elsewhere_is_shown_before_it_is_run(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    capture.own = False
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    assert not capture.specs
    assert len(capture.shown) == 1


def test_copy_that_fails_is_told(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    capture.ended.emit()
    assert load_project(loop.project.folder).iterations[1].state == "failed"
    window.session.ask("rounds")
    page = window.pages["iterations"]
    page.choose(1)
    shown_buttons = {b.text(): b.property("role") for b in page.below.findChildren(QPushButton) if not b.isHidden()}
    assert shown_buttons == {"Go on from round 0": "primary", "Run it now": None}  # there is no trace to open
    name = page.model.index(1, 0).data()
    assert name == "(the script failed) Let the device check it (train.py:5)"


def test_a_round_made_from_one_that_failed_is_compared_with_the_last_good_one(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    copy = Path(loop.project.iterations[1].copy)
    (copy / "train.py").write_text(SCRIPT)  # so that there is something left to be changed
    failed = make_run(capture.folder, copy / "train.py")  # it wrote its first steps before it failed
    record = orjson.loads((failed / "run.json").read_bytes())
    hint = "Install a C++ compiler."
    record |= {"state": "failed", "steps": {}, "failure": {"title": "InvalidCxxCompiler: none", "hint": hint}}
    (failed / "run.json").write_bytes(orjson.dumps(record))
    tried = shown(window, failed, 2_000_000.0, (replace(SUGGESTION, rule_id="scalar-read-back"),))
    said = round_words.verdict(loop.project, checks_of(loop.project), 1)
    assert "InvalidCxxCompiler: none. Install a C++ compiler. Your own files are as they were" in said
    capture.folder = tmp_path / "runs" / "3"
    loop.run_copy(tried, 0)
    finish()
    made = loop.project.iterations[2]
    assert (made.parent, made.made_from, made.predicted_ns, len(made.fixes)) == (0, 1, None, 2)
    make_run(capture.folder, Path(made.copy) / "train.py", wall_us=700.0)
    shown(window, capture.folder, 800_000.0, ())
    said = round_words.verdict(loop.project, checks_of(loop.project), 2).replace("\u202f", " ")
    assert said.startswith("Round 2: faster. The step without the profiler went from 900 µs in round 0 to 700 µs")
    assert "It was made from round 1, which was cut off before it was measured" in said
    assert "prediction for it" not in said


def test_users_file_is_changed_only_when_asked_and_comes_back(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    script = tmp_path / "project" / "train.py"
    joint = derived(loop, document, 0).joint
    applied = loop.apply_to_own_file(document, joint)
    assert applied is not None
    assert "_assert_async" in script.read_text()
    assert SUGGESTION.key not in document.suggestion_state  # nothing is done before a run has shown it
    assert loop.fix_state(document, 0).kind == "applied"
    window.session.ask("undo_fix", document, 0)
    assert loop.fix_state(document, 0) is None
    assert script.read_text() == SCRIPT
    script.write_text("changed = 1\n")
    errors = []
    window.session.errorRaised.connect(errors.append)
    assert loop.apply_to_own_file(document, joint) is None
    assert "has changed since the run" in str(errors[0])
    assert script.read_text() == "changed = 1\n"


def test_several_files_are_changed_all_or_none(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    script = tmp_path / "project" / "train.py"
    (_, edit), *_ = joint_edits = list(derived(loop, document, 0).joint.edits)
    latin = script.with_name("helper.py")
    latin.write_bytes(b"# -*- coding: latin-1 -*-\n")
    text = "# -*- coding: latin-1 -*-\n"
    broken = replace(edit, path=latin, before=text, after=text + "x = '\u20ac'\n")
    errors = []
    window.session.errorRaised.connect(errors.append)
    assert loop.apply_to_own_file(document, Joint(edits=(*joint_edits, (0, broken)))) is None
    assert "has no '\u20ac'" in str(errors[-1])
    assert script.read_text() == SCRIPT
    assert latin.read_text() == text
    assert loop.fix_state(document, 0) is None


def test_dialog_shows_the_change_or_why_there_is_none(window, loop, run_folder):
    other = replace(SUGGESTION, rule_id="allocation-in-step")
    document = shown(window, run_folder, 1_000_000.0, (SUGGESTION, other))
    dialog = FixDialog(loop, document, [0])
    assert not dialog.copy_button.isEnabled()
    assert "Working out the change" in dialog.waiting.text()
    finish()
    assert dialog.waiting.isHidden()
    assert dialog.copy_button.isEnabled()
    assert "+     torch._assert_async(target.max() < 10)" in dialog.diff.toPlainText()
    dialog.deleteLater()
    dialog = FixDialog(loop, document, [1])
    finish()
    assert not dialog.copy_button.isEnabled()
    dialog.deleteLater()


def test_the_dialog_names_the_step_that_its_figures_are_of(window, loop, run_folder):
    """What is saved of a recorded step can be more than the whole step without the profiler."""
    for recorded_ns, slowed in ((1_000_000.0, False), (2_000_000.0, True)):
        document = shown(window, run_folder, recorded_ns)
        dialog = FixDialog(loop, document, (0,))
        finish()
        said = dialog.prediction.text().replace("\u202f", " ")
        now = text.duration(recorded_ns).replace("\u202f", " ")
        assert said.startswith(f"Predicted to save 10 % of the recorded step: 100 µs of {now}.")
        assert ("Without the profiler a step takes 900 µs: expect the share, not the time." in said) is slowed
        dialog.reject()
        window.session.close_document(document)


def test_far_changes_are_shown_with_dots_between():
    before = "\n".join(f"line {i}" for i in range(40))
    after = before.replace("line 2\n", "two\n").replace("line 35", "thirty-five")
    left, right = near_lines(before, after)
    assert "⋯" in left
    assert "two" in right
    assert "line 20" not in left


def test_losses_are_compared(window, loop, run_folder, tmp_path):
    script = tmp_path / "project" / "train.py"
    script.write_text("torch.manual_seed(1)\n")
    folders = [
        make_run(tmp_path / "runs" / f"l{n}", script, values)
        for n, values in enumerate(([1.0, 0.5], [1.0, 0.5], [1.0, 0.7]))
    ]
    rounds = tuple(
        Iteration(n, str(f), 1.0, n - 1 if n else None, figures=Figures(sustained_ns=1000.0 - n))
        for n, f in enumerate(folders)
    )
    loop.project = Project(tmp_path / "p", str(script), rounds)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    across = range(page.model.columnCount())
    heads = [page.model.headerData(c, Qt.Orientation.Horizontal) for c in across]
    at = heads.index("Same losses")
    assert [page.model.index(r, at).data() for r in range(3)] == ["", "equal, 2 steps", "no, from step 1 on"]
    assert "From round" not in heads  # each goes on from the one above it
    assert "The losses differ from step 1 on" in page.words.text()
    assert "Measure round 1 again to know" in page.words.text()
    script.write_text("")
    loop.tell()
    assert "The losses differ from step 1 on" in page.words.text()
    assert "Measure round 1 again" not in page.words.text()  # its code is not there any more
    assert not page.grab().isNull()


def test_a_fix_that_changes_the_losses_is_marked_and_not_ticked(window, loop, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("torch.manual_seed(1)\n")
    states = []
    for name, after in (("same", [1.0, 0.5]), ("other", [1.0, 0.7])):
        first, second = (
            make_run(tmp_path / f"{name}{n}", script, values) for n, values in enumerate(([1.0, 0.5], after))
        )
        found = (
            Iteration(0, str(first), 1.0, figures=Figures(sustained_ns=1000.0)),
            Iteration(
                1,
                str(second),
                2.0,
                0,
                (AppliedFix("rule", "title", "train.py:1", "summary", "", 1.0, "key"),),
                copy=str(tmp_path),
                figures=Figures(sustained_ns=500.0),
            ),
        )
        project = Project(tmp_path / name, str(script), found)
        states.append(loop.own.states(read_run(first), project)["key"])
    assert [suggestion_text.is_proved(state) for state in states] == [True, False]
    words = [suggestion_text.became(state).replace("\u202f", " ") for state in states]
    assert words == [
        "measured in round 1: −50 %",
        "measured in round 1: −50 %, the losses differ from step 1 on",
    ]
    loop.project = project
    window.session.pageRequested.emit("iterations")
    model = window.pages["iterations"].model
    heads = [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]
    colours = [model.data(model.index(r, heads.index("Same losses")), Qt.ItemDataRole.ForegroundRole) for r in range(2)]
    assert colours[0] is None
    assert colours[1].name() == theme.current().wait


def test_a_low_window_lays_nothing_of_the_rounds_over_anything(window, loop, tmp_path, qtbot):
    names = ("as it was", *(f"fix {n}" for n in range(1, 8)))
    rounds = tuple(
        Iteration(n, "", 1.0, n - 1 if n else None, figures=Figures(sustained_ns=1e6 - n)) for n in range(len(names))
    )
    loop.project = Project(tmp_path / "p", "train.py", rounds)
    window.resize(640, 420)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    qtbot.waitUntil(lambda: not page.chart.isVisible())
    qtbot.waitUntil(lambda: page.table.visualRect(page.table.currentIndex()).isValid())
    shown = [page.title, page.words, page.split]
    for above, below in zip(shown, shown[1:], strict=False):
        top = below.mapTo(page, below.rect().topLeft()).y()
        assert above.mapTo(page, above.rect().bottomLeft()).y() < top
    assert page.split.geometry().bottom() <= page.split.parentWidget().height()  # which scrolls
    row = page.table.visualRect(page.table.currentIndex())  # the newest round, which is shown below
    assert page.table.viewport().rect().contains(row.center())
    window.resize(1400, 900)
    qtbot.waitUntil(page.chart.isVisible)


def test_page_without_rounds_says_how_to_get_them(window, loop):
    window.session.pageRequested.emit("iterations")
    assert "Profile a script" in window.pages["iterations"].words.text()


def test_work_is_resumed_after_a_crash(window, loop, tmp_path):
    rounds = (
        Iteration(0, "/r/0", 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "gone"), 2.0, 0, state="running"),
    )
    Project(loop.root() / "a", "/x/train.py", rounds).save()
    Project(loop.root() / "b", "/y/other.py", rounds[:1]).save()
    window.session.ask("rounds")
    page = window.pages["iterations"]
    assert page.scripts.count() == 2
    at = page.scripts.findText("train.py · /x")
    page.scripts.setCurrentIndex(at)
    page.scripts.activated.emit(at)
    assert page.title.text() == "train.py"
    assert page.model.index(1, 0).data() == "(interrupted) as it was"
    loop.project = None  # the next start shows the same script, though the other one was written last
    loop.shown.recall()
    assert loop.project is not None and loop.project.folder.name == "a"


def test_a_round_of_another_window_is_not_called_interrupted(window, loop, tmp_path):
    other = os.getppid()  # any process that lives on
    by = f"{other}-{machine()}-{started_at(other)}"
    rounds = (
        Iteration(0, "/r/0", 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, state="running", by=by),
    )
    kept = Project(loop.root() / "a", "/x/train.py", rounds).save()
    window.session.ask("rounds")
    page = window.pages["iterations"]
    assert page.model.index(1, 0).data() == "(running in another window) as it was"
    assert page.repeat is None and page.take is None  # nothing can be done with it from here
    ended = replace(rounds[1], state="ok", by="")
    kept.with_iteration(ended).save(kept)  # by the other window, which has yet to read the trace
    page._look_elsewhere()
    assert page.model.index(1, 0).data() == "as it was"
    ended = replace(rounds[1], state="failed", by="")
    kept.with_iteration(ended).save(kept)  # by the other window
    page._look_elsewhere()
    assert page.model.index(1, 0).data() == "(the script failed) as it was"
    kept.with_iteration(replace(ended, state="running", by=by[:-1] + "x")).save(loop.project)
    loop.look_again()
    assert page.model.index(1, 0).data() == "(interrupted) as it was"  # that process has ended


def test_a_round_of_a_window_that_is_killed_meanwhile_is_called_interrupted(window, loop, tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    by = f"{other.pid}-{machine()}-{started_at(other.pid)}"
    rounds = (
        Iteration(0, "/r/0", 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, copy=str(tmp_path), state="running", by=by),
    )
    Project(loop.root() / "a", "/x/train.py", rounds).save()
    window.session.ask("rounds")
    page = window.pages["iterations"]
    page._look_elsewhere()
    assert page.model.index(1, 0).data() == "(running in another window) as it was"
    other.kill()
    other.communicate()
    page._look_elsewhere()
    assert page.model.index(1, 0).data() == "(interrupted) as it was"
    assert page.again.text() == "Run it now"


@pytest.mark.parametrize(
    ("after", "cell", "words"),
    [
        ([1.0, 0.5], "equal, 2 steps", "equal to the last digit in all 2 steps"),
        ([1.0, 0.5000001], "within rounding, 2 steps", "same within rounding: in 2 steps they differ by 0.00002"),
        ([1.0, 0.7], "no, from step 1 on", "by up to 29"),
        ([1.0, None], "no, from step 1 on", "not finite"),
        (None, "not recorded", "they were not recorded"),
    ],
)
def test_losses_in_words(window, loop, tmp_path, after, cell, words):
    script = tmp_path / "train.py"
    script.write_text("torch.manual_seed(1)\n")
    folders = [make_run(tmp_path / "runs" / str(n), script, values) for n, values in enumerate(([1.0, 0.5], after))]
    found = tuple(
        Iteration(n, str(f), 1.0, n - 1 if n else None, figures=Figures(sustained_ns=1000.0 - n))
        for n, f in enumerate(folders)
    )
    loop.project = Project(tmp_path / "p", str(script), found)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    heads = [page.model.headerData(c, Qt.Orientation.Horizontal) for c in range(page.model.columnCount())]
    assert page.model.index(1, heads.index("Same losses")).data() == cell
    assert words in page.words.text()


def test_dismissed_suggestions_become_an_allow_file(window, loop, run_folder, tmp_path):
    other = replace(SUGGESTION, rule_id="host-list-index")
    document = shown(window, run_folder, 1_000_000.0, (SUGGESTION, other))
    document.set_suggestion_state(0, DISMISSED, 'the check is "meant"')
    path = tmp_path / "allow.toml"
    path.write_text("# ours\n")
    assert allow_file.append(path, document) == 1
    assert allow_file.append(path, document) == 0
    assert path.read_text().startswith("# ours\n")
    (entry,) = read_allow_file(path)
    assert entry.reason == 'the check is "meant"'
    assert entry.fits(SUGGESTION)
    assert not entry.fits(other)
    path.write_text("x = 1\n")
    with pytest.raises(TraceError):
        allow_file.append(path, document)
    assert path.read_text() == "x = 1\n"
    with pytest.raises(TraceError):
        allow_file.append(tmp_path / "train.py", document)


def test_compare_two_documents(window, loop, run_folder, tmp_path):
    before = shown(window, run_folder, 1_000_000.0)
    folder = make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py", wall_us=500.0)
    (folder / "sources" / "train.py").write_text("x = 2\n")
    after = shown(window, folder, 500_000.0, ())
    window.session.ask("compare_documents", before, after)
    jobs.wait_all()
    settle()
    page = window.pages["compare"]
    assert page.title.text() == "Faster"
    assert "1 vanished, 0 appeared" in page.words.text()
    assert page._tables["operators"].model.rowCount() > 0
    before.zoom_to(100_000, 300_000)
    assert after.viewport.end_ns - after.viewport.start_ns == pytest.approx(200_000)
    page.swap()
    jobs.wait_all()
    settle()
    assert page.title.text() == "Slower"
    other = replace(page._found, after=replace(page._found.after, verdict="input_bound"))
    assert page._rows(other)[-1][1:] == (text.verdict(other.before.verdict), "Input-bound", "")
    noisy = replace(page._found, noise=("spread",), wall_ns=(1e6, 3e6))
    page._verdict(noisy)
    assert page.title.text() == "Unclear"  # as its round is called
    assert page.title.property("role") == "warn"
    assert "contradict" not in page.differs.text()
    page._verdict(replace(noisy, noise=("same_code",)))
    assert page.title.text() == "Unclear"
    assert "they differ by chance" in page.differs.text()
    page._verdict(replace(noisy, wall_ns=(3e6, 1e6)))
    assert "contradict" in page.differs.text()
    assert "differ so much among themselves" in page.differs.text()


def test_comparing_leaves_the_views_of_both_as_they_were(window, loop, run_folder, tmp_path):
    before = shown(window, run_folder, 1_000_000.0)
    after = shown(window, make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py"), 500_000.0, ())
    before.zoom_to(100_000, 900_000)
    after.zoom_to(1_200_000, 1_500_000)
    own = [(d.viewport.start_ns, d.viewport.end_ns) for d in (before, after)]
    window.session.ask("compare_documents", before, after)
    jobs.wait_all()
    settle()
    before.zoom_to(200_000, 300_000)
    compared = (after.viewport.start_ns, after.viewport.end_ns)
    assert compared[1] - compared[0] == pytest.approx(100_000)
    window.session.set_current(None)
    window.session.set_current(before)  # the user goes back to a trace
    settle()
    assert [(d.viewport.start_ns, d.viewport.end_ns) for d in (before, after)] == own
    after.zoom_to(1_300_000, 1_400_000)
    assert (before.viewport.start_ns, before.viewport.end_ns) == own[0]  # they are not tied together any more
    window.session.ask("compare")
    settle()
    assert (after.viewport.start_ns, after.viewport.end_ns) == compared  # back where the comparison was left


def test_compare_needs_two(window, loop, run_folder):
    window.session.pageRequested.emit("compare")
    assert "Open two traces" in window.pages["compare"].words.text()
    document = shown(window, run_folder, 1_000_000.0)
    window.session.close_document(document)
    assert "Open two traces" in window.pages["compare"].words.text()


def test_a_trace_beside_itself_is_said_to_be_that(window, loop, run_folder, tmp_path):
    shown(window, run_folder, 1_000_000.0)
    shown(window, make_run(tmp_path / "runs" / "2", tmp_path / "project" / "train.py"), 900_000.0)
    window.session.pageRequested.emit("compare")
    page = window.pages["compare"]
    page.before.setCurrentIndex(0)
    page.after.setCurrentIndex(0)
    assert "one and the same trace" in page.words.text()
    page.after.setCurrentIndex(1)
    finish()
    assert "one and the same" not in page.words.text()


def test_next_passes_over_what_is_for_later(window, loop, run_folder):
    others = tuple(replace(SUGGESTION, rule_id=rule) for rule in ("host-list-index", "scalar-read-back"))
    document = shown(window, run_folder, 1_000_000.0, (SUGGESTION, *others))
    document.show_suggestion(0)
    document.set_suggestion_state(1, LATER)
    document.step_suggestion(1)
    assert document.current_suggestion == 2
    document.set_suggestion_state(2, DONE)
    document.set_suggestion_state(0, DONE)
    document.step_suggestion(1)
    assert document.current_suggestion in (0, 1, 2)  # nothing is open: all are walked through again


def test_a_change_of_ones_own_file_is_measured_by_another_run_and_undone_from_the_dialog(
    window, loop, run_folder, tmp_path
):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    script = tmp_path / "project" / "train.py"
    loop.apply_to_own_file(document, derived(loop, document, 0).joint)
    loop.run_own(document)
    finish()
    (spec,) = capture.specs
    assert Path(spec.script) == script
    assert loop.fix_state(document, 0).kind == "running"
    make_run(capture.folder, script, wall_us=1200.0)
    shown(window, capture.folder, 1_000_000.0, ())
    row = loop.project.iterations[1]
    assert (row.parent, row.copy, [fix.rule_id for fix in row.fixes]) == (0, "", [SUGGESTION.rule_id])
    marks = [card.mark.text().replace("\u202f", " ") for card in window.pages[document].findChild(PlanPanel)._cards]
    assert marks == ["in your file; measured in round 1: no gain (+33 %)"]
    assert SUGGESTION.key not in document.suggestion_state
    assert "Round 1: slower." in window.pages["iterations"].words.text()
    dialog = FixDialog(loop, document, (0,))
    finish()
    assert dialog.copy_button.isHidden()
    assert dialog.undo_button.text() == "Undo the change of train.py"
    dialog.undo_button.click()
    assert script.read_text() == SCRIPT
    assert loop.fix_state(document, 0).kind == "undone"


def test_a_change_of_ones_own_file_after_a_round_shows_at_once(window, loop, run_folder, tmp_path):
    """A copy was measured; then the fix goes into the user's own file: the open card must offer its undo."""
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    make_run(capture.folder, Path(capture.specs[0].script), wall_us=1200.0)
    shown(window, capture.folder, 1_000_000.0, ())
    window.session.set_current(document)
    document.show_suggestion(0)
    finish()
    card = window.pages[document].findChild(PlanPanel)._cards[0]
    assert "Done" in buttons_of(card)
    assert "Undo the change of train.py" not in buttons_of(card)
    dialog = FixDialog(loop, document, (0,))
    finish()
    said = dialog.prediction.text().replace("\u202f", " ")
    assert said.startswith("Measured already, in round 1, without the profiler: slower, 900 µs → 1.20 ms (+33 %). Pred")
    dialog.file_button.click()
    (question,) = dialog.findChildren(QMessageBox)
    assert [b.text() for b in question.buttons()] == ["Change it and run it again", "Only change it", "Cancel"]
    told = question.informativeText().replace("\u202f", " ")
    assert told.startswith("Round 1: slower, measured +33 % a step. No gain is proved: measure again before")
    assert question.defaultButton() is question.button(QMessageBox.StandardButton.Cancel)  # Enter changes nothing
    next(b for b in question.buttons() if b.text() == "Only change it").click()
    finish()
    assert "_assert_async" in (tmp_path / "project" / "train.py").read_text()
    assert card.mark.text().startswith("in your file; measured in round 1")
    assert "Undo the change of train.py" in buttons_of(card)
    loop.undo_last()
    assert card.mark.text().startswith("measured in round 1")
    assert "Undo the change of train.py" not in buttons_of(card)


def buttons_of(card) -> list[str]:
    """Buttons that an open card shows."""
    return [b.text() for b in card.findChildren(QPushButton) if b.isVisibleTo(card)]


def test_a_round_is_measured_again_as_a_row_of_its_own(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    make_run(capture.folder, Path(capture.specs[0].script), wall_us=812.0)
    shown(window, capture.folder, 905_000.0, ())
    assert document.suggestion_state[SUGGESTION.key] == DONE  # it brought something
    capture.folder = tmp_path / "runs" / "3"
    loop.measure_again(1)
    assert [s.script for s in capture.specs] == [capture.specs[0].script] * 2
    make_run(capture.folder, Path(capture.specs[0].script), wall_us=890.0)
    shown(window, capture.folder, 950_000.0, ())
    assert [(i.number, i.parent, i.figures.wall_ns) for i in loop.project.iterations[1:]] == [
        (1, 0, 812_000.0),
        (2, 0, 890_000.0),
    ]
    page = window.pages["iterations"]
    heads = [page.model.headerData(c, Qt.Orientation.Horizontal) for c in range(page.model.columnCount())]
    column = heads.index("From round")  # the rows do not build on one another
    assert [page.model.index(row, column).data() for row in range(3)] == ["", "0", "0"]
    assert "measured before: 812 µs in round 1" in window.pages["iterations"].words.text().replace("\u202f", " ")


def test_the_first_round_is_measured_again_while_its_files_are_as_they_were(window, loop, run_folder, tmp_path):
    script = tmp_path / "project" / "train.py"
    document = shown(window, run_folder, 1_000_000.0)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    page.choose(0)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    page.repeat.click()
    assert [(s.script, s.name) for s in capture.specs] == [(str(script), "train.py, round 1: round 0 again")]
    make_run(capture.folder, script, wall_us=930.0)
    shown(window, capture.folder, 1_020_000.0)
    finish()
    rows = [(i.number, i.parent, i.again, i.fixes, i.figures.wall_ns) for i in loop.project.iterations]
    assert rows == [(0, None, None, (), 900_000.0), (1, 0, 0, (), 930_000.0)]
    assert page.model.index(1, 0).data() == "as it was, measured again"
    assert page.words.text().startswith("Round 1: the same code again. The step without the profiler went from")
    assert "What differs is chance" in page.words.text()
    script.write_text("print()")
    loop.measure_again(0)
    assert len(capture.specs) == 1
    assert len(loop.project.iterations) == 2
    assert document in window.session.documents


def test_compare_pairs_only_what_is_of_one_program(window, loop, run_folder, tmp_path):
    training().write(tmp_path / "gpu_example.json")
    other = Document(open_trace(tmp_path / "gpu_example.json"))
    window.session.add_document(other)
    other.set_analysis(Analysis(compute_figures(other.trace)))
    own = shown(window, run_folder, 1_000_000.0)
    window.session.pageRequested.emit("compare")
    page = window.pages["compare"]
    assert page.before.currentData() is not page.after.currentData()
    assert page.after.currentIndex() == -1
    window.session.ask("compare_documents", own, other)
    finish()
    assert page.title.text() == "Not the same program or conditions"
    assert "script: train.py and gpu_example.json" in page.differs.text()
    newer = shown(window, make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py"), 500_000.0, ())
    assert page._alike(window.session.documents) == (1, 2)
    assert newer is window.session.documents[2]


def test_the_plan_says_what_the_profiler_adds(window, loop, run_folder):
    document = shown(window, run_folder, 2_000_000.0)  # 900 us without the profiler
    finish()
    panel = window.pages[document].findChild(PlanPanel)
    assert "900 µs without the profiler" in panel.message.text().replace("\u202f", " ")
    assert panel.total.text().endswith("of the recorded step")
    assert "%" in panel._cards[0].saving.text()


def test_a_card_offers_the_undo_of_a_change_that_is_made(window, loop, run_folder, tmp_path):
    document = shown(window, run_folder, 1_000_000.0)
    loop.apply_to_own_file(document, derived(loop, document, 0).joint)
    panel = window.pages[document].findChild(PlanPanel)
    assert panel._cards[0].mark.text() == "in your file, not measured yet"
    actions = {action.text: action for action in panel._bodies.body(0, SUGGESTION).actions}
    assert "Apply to a copy, re-run…" not in actions
    next(b for b in panel._cards[0].findChildren(QPushButton) if b.text() == "Undo the change of train.py").setFocus()
    actions["Undo the change of train.py"].run()
    assert window.focusWidget() is panel._cards[0]
    assert (tmp_path / "project" / "train.py").read_text() == SCRIPT
    assert panel._cards[0].mark.text() == ""
    loop.apply_to_own_file(document, derived(loop, document, 0).joint)
    window.run_command("undo-change")
    assert (tmp_path / "project" / "train.py").read_text() == SCRIPT


def test_a_change_that_was_taken_back_by_hand_does_not_stand_any_more(window, loop, run_folder, tmp_path):
    """As with git: the dialog must not say that the file has it."""
    document, script = shown(window, run_folder, 1_000_000.0), tmp_path / "project" / "train.py"
    made = loop.apply_to_own_file(document, derived(loop, document, 0).joint)
    script.write_text(f"{made.edit.after}# worked on\n")
    loop.ask(document, 0)
    assert loop.applied == [made]  # that is not it
    QApplication.activeModalWidget().reject()
    script.write_text(SCRIPT)
    loop.ask(document, 0)
    finish()
    assert loop.applied == []
    assert window.pages[document].findChild(PlanPanel)._cards[0].mark.text() == ""
    dialog = QApplication.activeModalWidget()
    assert "Change my file…" in buttons_of(dialog)
    dialog.reject()
    assert not made.backup.exists() and not made.note.exists()
    assert script.read_text() == SCRIPT


def test_a_round_is_taken_over_into_the_users_file_and_undone(window, loop, run_folder, tmp_path):
    own = tmp_path / "project" / "train.py"
    old = own.read_text()
    copy = tmp_path / "p" / "copies" / "1"
    copy.mkdir(parents=True)
    (copy / "train.py").write_text(old + "# faster\n")
    rounds = (
        Iteration(0, str(run_folder), 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, copy=str(copy), figures=Figures(sustained_ns=900.0)),
    )
    loop.project = Project(tmp_path / "p", str(own), rounds)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    page.choose(0)
    assert page.take is None
    page.choose(1)
    page.take.click()
    dialog = next(d for d in window.findChildren(TakeOverDialog) if d.isVisible())
    assert dialog.said.text().replace("\u202f", " ") == "Round 1: faster, measured −10 % a step."
    assert dialog.change.property("role") == "primary"
    dialog.change.click()
    assert own.read_text() == old + "# faster\n"
    assert page.take.text() == "Taken over into your file"
    assert not page.take.isEnabled()
    assert page.undo_round.text() == "Undo the change of train.py"
    assert page.undo.isHidden()  # it would be the same button once more
    page.choose(0)
    assert not page.undo.isHidden()
    page.choose(1)
    page.undo_round.setFocus()
    page.undo_round.click()
    assert own.read_text() == old
    assert page.take.isEnabled()
    assert window.focusWidget() is page.take  # not the window's first button
    assert page.take.property("role") == "primary"  # nothing more is suggested, and it brought something
    assert page.undo_round is None
    loop.own.take_over(loop.project, 1)
    page.choose(0)
    page.undo.click()
    assert own.read_text() == old
    own.write_text(old + "# by hand\n")
    errors = []
    window.session.raise_error = errors.append
    loop.own.take_over(loop.project, 1)
    assert own.read_text() == old + "# by hand\n"
    assert "has changed since the run" in str(errors[0])


def test_taking_over_what_is_faster_and_has_other_losses_asks_whether_they_are_meant(tmp_path):
    rounds = (
        Iteration(0, str(tmp_path / "1"), 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, figures=Figures(sustained_ns=500.0)),
    )
    checks = {1: ResultCheck("differs", 40, 3, 0.1)}
    said, is_proved = told_measured(Project(tmp_path / "p", "train.py", rounds), checks, [1])
    assert said.replace("\u202f", " ") == (
        "Round 1: faster, measured −50 % a step. Its losses differ from step 3 on. Make sure that other losses are "
        "meant before your file is changed."
    )
    assert not is_proved
    assert told_measured(Project(tmp_path / "p", "train.py", rounds), {}, [1])[1]


@pytest.mark.parametrize(
    ("measured", "said"), [(1510.0, "slower, measured +51 %"), (998.0, "no gain, measured −0.2 %")]
)
def test_taking_over_what_brought_nothing_says_so(window, loop, run_folder, tmp_path, measured, said):
    own = tmp_path / "project" / "train.py"
    copies = [tmp_path / "p" / "copies" / str(n) for n in (1, 2)]
    for copy in copies:
        copy.mkdir(parents=True)
        (copy / "train.py").write_text(own.read_text() + "# faster\n")
    rounds = (
        Iteration(0, str(run_folder), 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, copy=str(copies[0]), figures=Figures(sustained_ns=measured)),
        Iteration(2, str(tmp_path / "3"), 2.0, 0, copy=str(copies[1]), state="stopped"),
    )
    dialog = TakeOverDialog(loop, Project(tmp_path / "p", str(own), rounds), 1)
    assert dialog.said.text().replace("\u202f", " ") == (
        f"Round 1: {said} a step. No gain is proved: measure again before your file is changed."
    )
    assert (dialog.said.property("role"), dialog.change.property("role")) == ("warn", "")
    other = TakeOverDialog(loop, Project(tmp_path / "p", str(own), rounds), 2)
    assert other.said.text().startswith("Round 2: not measured.")
