"""What measurements cannot tell is said where the figure stands: on the plan, in the dialog of a fix, under rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from PySide6.QtWidgets import QPushButton

from core.figures.model import DoctorNote
from core.judging import judge
from core.project import Figures, Iteration, Project
from core.results import ResultCheck
from core.round_checks import checks_of
from gui import round_chart, round_parameters, round_words, text, theme
from gui.fix_dialog import FixDialog
from gui.panels.iterations import IterationsPage
from gui.panels.plan import PlanPanel
from gui.widgets.step_chart import BAR_GAP_PX, BAR_PX, StepChart
from tests.gui.test_loop import SUGGESTION, FakeCapture, finish, loop, make_run, run_folder, shown  # noqa: F401 - fixtures

UNEVEN = DoctorNote("uneven-steps", "warning", "", "", "", values={"low_ms": 0.5, "high_ms": 4.0, "share": 82.0})


def plain(words: str) -> str:
    return words.replace("\u202f", " ")


def test_a_saving_within_what_the_steps_differ_by_is_not_green(window, loop, run_folder):  # noqa: F811
    priced = replace(SUGGESTION, saving=replace(SUGGESTION.saving, together_ns=100_000))
    document = shown(window, run_folder, 1_000_000.0, (priced,))
    panel = window.pages[document].findChild(PlanPanel)
    assert panel.total.property("role") == "saved"
    assert panel._cards[0].saving.property("role") == "saved"
    analysis = document.analysis
    document.set_analysis(replace(analysis, figures=replace(analysis.figures, doctor=(UNEVEN,))))
    finish()
    assert panel.total.property("role") == "dim"
    assert panel._cards[0].saving.property("role") == "faint"  # the card says the same
    told = "The recorded steps differ by 82 % among themselves: 10 % is within that."
    assert told in plain(panel.message.text())
    dialog = FixDialog(loop, document, (0,))
    finish()
    assert told in plain(dialog.prediction.text())
    dialog.reject()


@pytest.mark.parametrize(("wall_us", "told"), [(1500.0, True), (900.0, False)])
def test_a_step_that_is_longer_without_the_profiler_is_told_on_the_plan(window, loop, tmp_path, wall_us, told):  # noqa: F811
    script = tmp_path / "train.py"
    script.write_text("print()\n")
    document = shown(window, make_run(tmp_path / "runs" / "1", script, wall_us=wall_us), 1_000_000.0)
    finish()
    said = plain(window.pages[document].findChild(PlanPanel).message.text())
    assert ("A step takes 1.50 ms without the profiler and 1.00 ms with it" in said) is told


def rounds(folder: Path, *walls: float) -> Project:
    first = Iteration(0, "", 1.0, figures=Figures(sustained_ns=2e6, wall_ns=walls[0] * 1e6, host_ns=2e6))
    fixed = Iteration(1, "", 2.0, 0, copy="/copies/1", predicted_ns=1.8e6, figures=replace(first.figures, wall_ns=1e6))
    again = Iteration(2, "", 3.0, 0, figures=replace(first.figures, wall_ns=walls[1] * 1e6), again=0)
    return Project(folder, "train.py", (first, fixed, again))


def said_of(project: Project, number: int) -> str:
    return plain(round_words.verdict(project, checks_of(project), number))


def test_a_round_is_compared_with_all_runs_of_the_code_before(tmp_path):
    said = said_of(rounds(tmp_path, 2.0, 0.8), 1)
    assert said.startswith(
        "Round 1: unclear whether it is faster. "
        "The step without the profiler went from 1.40 ms, the mean of rounds 0 and 2, to 1.00 ms"
    )
    assert "The same code differed by a factor of 2.5 between two runs: this change is within that." in said
    assert "With round 0 alone it was −50 %: the same code was measured again since." in said
    assert "alone" not in said_of(rounds(tmp_path, 2.0, 2.0), 1)  # nothing moved
    said = said_of(rounds(tmp_path, 2.0, 1.9), 1)
    assert said.startswith("Round 1: faster.")
    assert "The same code differed by 5.0 % between two runs." in said


def test_the_starting_point_is_told_in_the_figure_of_its_bar(tmp_path):
    assert said_of(rounds(tmp_path, 1.5, 1.5), 0).startswith("The starting point: 1.50 ms a step without the profiler.")
    healthy = rounds(tmp_path, 1.5, 1.5)
    assert "Choose a suggestion" in said_of(healthy, 0)
    none = replace(healthy.iterations[0], figures=replace(healthy.iterations[0].figures, left=0))
    assert "Choose a suggestion" not in said_of(healthy.with_iteration(none), 0)
    busy = said_of(rounds(tmp_path, 4.0, 1.5), 0)
    assert "other programs were busy" in busy


def test_what_was_not_faster_is_not_urged_on(window, loop, run_folder, tmp_path):  # noqa: F811
    copy = tmp_path / "p" / "copies" / "1"
    copy.mkdir(parents=True)
    (copy / "train.py").write_text("print()\n")
    first = Iteration(0, str(run_folder), 1.0, figures=Figures(sustained_ns=1000.0, rules=("small",), left=0))
    fixed = Iteration(1, str(tmp_path / "2"), 2.0, 0, copy=str(copy), figures=Figures(sustained_ns=900.0, left=0))
    again = Iteration(2, str(tmp_path / "3"), 3.0, 0, again=0, figures=Figures(sustained_ns=800.0))

    def shown_of(*rounds: Iteration) -> IterationsPage:
        loop.show_project(Project(tmp_path / "p", str(tmp_path / "project" / "train.py"), rounds))
        window.session.pageRequested.emit("iterations")
        page = window.pages["iterations"]
        page.choose(1 if len(rounds) > 1 else 0)
        return page

    page = shown_of(first)
    urged = [b.text() for b in page.findChildren(QPushButton) if b.property("role") == "primary" and b.isVisible()]
    assert urged == []  # there is no plan to go on with
    assert shown_of(first, fixed).take.property("role") == "primary"
    assert shown_of(first, replace(again, number=1), replace(fixed, number=2)).repeat is not None
    page.choose(2)
    assert page.take.property("role") != "primary"


def disturbed(number: int, wall: float, waited: float, **others) -> Iteration:
    figures = Figures(sustained_ns=wall, wall_ns=wall, host_ns=wall, waited_pct=waited, loop_ns=70_000.0)
    return Iteration(number, f"/runs/{number}", 1.0 + number, figures=figures, **others)


def test_what_the_machine_did_is_told_with_its_cure_and_no_prediction_is_blamed(tmp_path):
    first = disturbed(0, 5.6e6, 3.0)
    fixed = disturbed(1, 8.7e6, 45.0, parent=0, copy="/copies/1", predicted_ns=6.1e6)
    said = said_of(Project(tmp_path, "train.py", (first, fixed)), 1)
    assert said.startswith("Round 1: unclear whether it is faster.")
    assert "whether it held cannot be told" in said
    assert "Other programs had the processor for 3.0 % of the time while steps were timed before, and 45 % now." in said
    assert "the change lies between −15 % and +60 %. Measure both again." in said
    calm = replace(fixed, figures=replace(fixed.figures, waited_pct=2.0))
    said = said_of(Project(tmp_path, "train.py", (first, calm)), 1)
    assert "it brought less, by 46 points" in said
    assert "Other programs" not in said
    slower = replace(calm, figures=replace(calm.figures, loop_ns=105_000.0))
    assert "a fixed piece of work took +50 %" in said_of(Project(tmp_path, "train.py", (first, slower)), 1)
    busy = Project(tmp_path, "train.py", (disturbed(0, 5.6e6, 40.0),))
    assert "so the step may be as short as 3.36 ms. Measure it again." in said_of(busy, 0)


def test_a_prediction_that_failed_is_not_mixed_up_with_a_round_that_is_unclear(tmp_path):
    first = disturbed(0, 5.6e6, 3.0)
    fixed = disturbed(1, 5.5e6, 8.0, parent=0, copy="/copies/1", predicted_ns=3.0e6)
    found = judge(first, fixed, (first, fixed))
    assert (found.is_gain, found.outcome) == (None, "worse")
    said = said_of(Project(tmp_path, "train.py", (first, fixed)), 1)
    assert said.startswith("Round 1: unclear whether it is faster.")
    assert "Predicted was −46 %: too high by 45 points, whether it is faster or not." in said


def test_measure_both_again_is_said_once_where_both_sides_were_disturbed(tmp_path):
    first, again = disturbed(0, 5.6e6, 40.0), disturbed(2, 5.0e6, 45.0, parent=0, again=0)
    for waited in (45.0, 80.0):
        fixed = disturbed(1, 4.7e6, waited, parent=0, copy="/copies/1", predicted_ns=4.5e6)
        said = said_of(Project(tmp_path, "train.py", (first, again, fixed)), 1)
        assert "Both runs of the code before were disturbed" in said
        assert "pace" in judge(first, fixed, (first, again, fixed)).reasons
        assert said.count("Measure both again") == 1


@pytest.mark.parametrize("waited", [51.0, 100.0, 130.0])  # it is summed over threads
def test_a_timing_that_was_too_disturbed_gives_no_bound(tmp_path, waited):
    busy = disturbed(0, 181e6, waited)
    said = said_of(Project(tmp_path, "train.py", (busy,)), 0)
    assert "Disturbed: while it was timed other programs kept its threads waiting" in said
    assert "%" not in said
    assert "as short as" not in said
    fixed = disturbed(1, 150e6, 5.0, parent=0, copy="/copies/1", predicted_ns=150e6)
    project = Project(tmp_path, "train.py", (busy, fixed))
    said = said_of(project, 1)
    assert "other programs kept the run before waiting for a processor, too long to tell the change." in said
    assert "lies between" not in said
    assert round_chart.least(project) == {0: 0.0}  # all of the bar is pale
    scattered = replace(busy, figures=replace(busy.figures, waited_pct=12.0, wall_error_pct=30.0))
    assert "as short as" not in said_of(Project(tmp_path, "train.py", (scattered,)), 0)


def test_a_round_that_was_not_measured_is_not_told_as_if_it_were_another(tmp_path):
    first = disturbed(0, 5.6e6, 3.0)
    cut = Iteration(1, "", 2.0, 0, copy="/copies/1", state="interrupted")
    said = said_of(Project(tmp_path, "train.py", (first, cut)), 1)
    assert said == "Round 1 was interrupted before it was measured. Run it now."  # what others measured is theirs
    said = said_of(Project(tmp_path, "train.py", (first, replace(cut, state="planned"))), 1)
    assert said == "Round 1 has not been measured."


def test_a_round_that_was_stopped_and_is_unclear_has_the_cure_that_is_named(window, loop, run_folder, tmp_path):  # noqa: F811
    copy = tmp_path / "p" / "copies" / "1"
    copy.mkdir(parents=True)
    first = replace(disturbed(0, 5.6e6, 3.0), run_folder=str(run_folder))
    fixed = disturbed(1, 6.5e6, 60.0, parent=0, copy=str(copy), predicted_ns=5.5e6, state="stopped")
    project = Project(tmp_path / "p", str(tmp_path / "project" / "train.py"), (first, fixed))
    said = said_of(project, 1)
    assert said.startswith("Round 1 was stopped before the script's end. Round 1: unclear whether it is faster.")
    assert "Measure both again." in said
    loop.show_project(project)
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    page.choose(1)
    assert (page.both is not None, page.repeat is not None, page.again) == (True, True, None)
    assert page._name(fixed).startswith("(stopped)")


@pytest.mark.parametrize("own", [True, False])
def test_both_are_proposed_again_only_while_both_codes_are_there(window, loop, run_folder, tmp_path, own):  # noqa: F811
    script = tmp_path / "project" / "train.py"
    script.write_text(script.read_text() + "# changed\n")
    later = make_run(tmp_path / "runs" / "2", script)
    copy = tmp_path / "p" / "copies" / "1"
    copy.mkdir(parents=True)
    first = replace(disturbed(0, 5.6e6, 3.0), run_folder=str(run_folder))
    fixed = replace(disturbed(1, 6.5e6, 60.0, parent=0, copy="" if own else str(copy)), run_folder=str(later))
    loop.show_project(Project(tmp_path / "p", str(script), (first, fixed)))
    window.session.pageRequested.emit("iterations")
    page = window.pages["iterations"]
    page.choose(1)
    assert (page.both, page.repeat is not None) == (None, True)
    assert "Measure both again" not in page.words.text()
    assert "The code before is not there any more: measure this round again" in page.words.text()
    script.write_text("")
    copy.rmdir()
    loop.tell()
    page.choose(1)
    assert page.both is None
    assert "profile the script as it is now" in page.words.text()


class Running(FakeCapture):
    """Runs from its start on."""

    def start(self, spec: object) -> None:
        super().start(spec)
        self.running = True

    def end(self, folder: Path) -> None:
        self.result = SimpleNamespace(outcome="ok", trace=folder)
        self.running = False
        self.ended.emit()


def test_both_are_measured_again_one_after_the_other(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    capture = Running(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    copy = Path(capture.specs[0].script)
    make_run(capture.folder, copy, wall_us=880.0, waited_pct=60.0)
    capture.end(capture.folder)
    shown(window, capture.folder, 905_000.0, ())
    page = window.pages["iterations"]
    assert page.both.property("role") == "primary"
    capture.folder = tmp_path / "runs" / "3"
    page.both.click()
    assert Path(capture.specs[-1].script).parent == tmp_path / "project"
    make_run(capture.folder, tmp_path / "project" / "train.py", wall_us=900.0)
    capture.end(capture.folder)
    done, capture.folder = capture.folder, tmp_path / "runs" / "4"
    shown(window, done, 1_000_000.0)
    assert [Path(s.script) for s in capture.specs[1:]] == [tmp_path / "project" / "train.py", copy]
    make_run(capture.folder, copy, wall_us=600.0)
    capture.end(capture.folder)
    shown(window, capture.folder, 700_000.0, ())
    assert [(i.parent, i.figures.wall_ns) for i in loop.project.iterations[2:]] == [(0, 900_000.0), (0, 600_000.0)]
    assert len(capture.specs) == 3
    page.choose(3)
    assert plain(page.words.text()).startswith("Round 3: faster.")
    assert page.both is None


def test_a_run_that_fails_takes_the_other_with_it(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0)
    capture = Running(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    make_run(capture.folder, Path(capture.specs[0].script), wall_us=880.0, waited_pct=60.0)
    capture.end(capture.folder)
    shown(window, capture.folder, 905_000.0, ())
    capture.folder = tmp_path / "runs" / "3"
    loop.measure_both(1)
    capture.running, capture.result = False, SimpleNamespace(outcome="stopped", trace=None)
    capture.ended.emit()
    loop.rounds.go_on()
    assert len(capture.specs) == 2


def test_by_how_much_parameters_differ_is_told():
    small, without = (round_parameters._share(ResultCheck("differs", 2, 0, by)) for by in (0.006, float("inf")))
    assert (plain(small), without) == ("0.6 %", "∞")


def test_a_failed_run_has_no_bar_and_takes_the_figure_of_no_other(tmp_path, qtbot):
    failed = disturbed(0, 1e6, 0.0, state="failed")
    failed = replace(failed, figures=Figures(sustained_ns=692e6, host_ns=692e6))  # its first steps
    first = disturbed(1, 128e6, 50.0)
    fixed = disturbed(2, 583e6, 50.0, parent=1, copy="/copies/2")
    project = Project(tmp_path, "train.py", (failed, first, fixed))
    assert round_chart.bars(project) == [(0, None, None), (1, 128e6, None), (2, 583e6, None)]
    assert round_chart.without_bar(project) == {0: "failed"}
    assert "without the profiler" in round_chart.caption(project)
    assert set(round_chart.least(project)) == {1, 2}
    told = plain(round_words.verdict(project, checks_of(project), 0))
    assert told == "Round 0 was cut off: only its first steps are known, 692 ms a step."  # no starting point
    slow = tuple(replace(i, figures=replace(i.figures, wall_ns=None)) for i in (first, fixed))
    recorded = Project(tmp_path, "train.py", (failed, *slow))
    assert [measured for _, measured, _ in round_chart.bars(recorded)] == [None, 128e6, 583e6]
    alone = Project(tmp_path, "train.py", (failed,))
    assert round_chart.bars(alone) == [(0, 692e6, None)]  # all that is known
    chart = StepChart()
    qtbot.addWidget(chart)
    chart.show_rounds(round_chart.bars(project), round_chart.least(project), round_chart.without_bar(project))
    assert chart.accessibleName().startswith("Step time of each round: failed, ")


def test_the_chart_shows_what_other_programs_may_have_taken(tmp_path, qtbot):
    first = disturbed(0, 5.6e6, 3.0)
    fixed = disturbed(1, 8.0e6, 50.0, parent=0, copy="/copies/1", predicted_ns=5.04e6)
    project = Project(tmp_path, "train.py", (first, fixed))
    assert round_chart.bars(project) == [(0, 5.6e6, None), (1, 8.0e6, pytest.approx(5.04e6))]
    assert round_chart.least(project) == {1: pytest.approx(4.0e6)}
    assert "pale part" in round_chart.caption(project)
    assert "pale part" not in round_chart.caption(Project(tmp_path, "train.py", (first,)))
    chart = StepChart()
    qtbot.addWidget(chart)
    chart.resize(200, 150)
    chart.show_rounds(round_chart.bars(project), round_chart.least(project))
    image, x = chart.grab().toImage(), BAR_GAP_PX + (BAR_PX + BAR_GAP_PX) + 5
    tones = {image.pixelColor(x, y).name() for y in (60, 120)}  # above and below half of the second bar
    assert len(tones) == 2
    chart.show_rounds(round_chart.bars(project))
    image = chart.grab().toImage()
    assert len({image.pixelColor(x, y).name() for y in (60, 120)}) == 1


def test_a_run_that_was_disturbed_makes_no_bars_tiny(tmp_path, qtbot):
    rounds = [(0, 28e6, None), (1, 25e6, 26e6), (2, 528e6, None)]
    chart = StepChart()
    qtbot.addWidget(chart)
    chart.resize(300, 150)
    chart.show_rounds(rounds)
    assert not chart.cuts
    assert chart.bars()[1].height() < 10
    chart.show_rounds(rounds, {2: 5e6})
    first, second, third = chart.bars()
    assert chart.cuts
    assert second.height() > 50
    assert third.height() == pytest.approx(1.5 * first.height(), abs=1)
    assert [words for _, _, words in chart.labels()][-1] == text.duration(528e6)
    image, x = chart.grab().toImage(), round(third.center().x())
    column = [image.pixelColor(x, y).name() for y in range(round(third.top()) + 2, round(third.bottom()) - 2)]
    assert theme.current().window in column  # the gap
    chart.show_rounds(rounds, {0: 9e6, 1: 8e6, 2: 300e6})
    assert not chart.cuts  # it may well be so long
    assert "A bar with a gap" in round_chart.caption(Project(tmp_path, "train.py", (disturbed(0, 5.6e6, 3.0),)), True)


@pytest.mark.parametrize("width", [900, 400, 200, 90])
def test_words_over_two_rounds_never_touch(qtbot, width):
    chart = StepChart()
    qtbot.addWidget(chart)
    chart.resize(width, 150)
    words = {4: "not measured", 5: "not measured", 6: "failed", 7: "not measured"}
    rows = [(k, None if k in words else 1e6 * (123.4 + k), 1e8 if k % 3 else None) for k in range(10)]
    chart.show_rounds(rows, None, words)
    placed = chart.labels()
    for (_, left, _), (_, right, _) in zip(placed, placed[1:], strict=False):
        assert left.right() + 4 < right.left() or not left.intersects(right)
    told = {number: words for number, _, words in placed}
    assert 9 in told or width < 400  # there is none over a narrow bar
    if width == 900:
        assert told[5] == "not measured" and 4 not in told  # both have the same, once
        assert set(told) == {0, 1, 2, 3, 5, 6, 7, 8, 9}


@pytest.mark.parametrize(
    ("first_us", "wall_ms", "told"),
    [
        (16.4e6, 1.0, "It is made up for after about 16 000 steps."),
        (16.4e6, 2.2, "Each start of the script pays for it."),
        (1.9e6, 1.0, ""),
        (None, 1.0, ""),
    ],
)
def test_a_first_step_that_compiles_is_told_with_what_it_costs(tmp_path, first_us, wall_ms, told):
    found = rounds(tmp_path, 2.0, 2.0)
    folders = [tmp_path / "runs" / name for name in ("0", "1")]
    for folder, us in zip(folders, (400_000.0, first_us), strict=True):
        folder.mkdir(parents=True)
        timings = [{"step": 0, "phase": "early", "us": us}, {"step": 1, "phase": "early", "us": 1000.0}]
        steps = {"timings": timings if us else timings[1:]}
        (folder / "run.json").write_bytes(orjson.dumps({"format": "steplens.run/1", "steps": steps}))
    first, fixed, _ = found.iterations
    fixed = replace(fixed, run_folder=str(folders[1]), figures=replace(fixed.figures, wall_ns=wall_ms * 1e6))
    said = said_of(Project(tmp_path, "train.py", (replace(first, run_folder=str(folders[0])), fixed)), 1)
    if told:
        assert "Its first step took 16.4 s (before: 400 ms), as where code is compiled; no step time counts" in said
        assert told in said
    else:
        assert "first step" not in said


@pytest.mark.parametrize(
    ("count", "spec", "told"),
    [
        (12, {}, "the script made 12 steps, and it takes 13 to time some and record 5 after that. Let it make more"),
        (1, {}, "the script made 1 step, and it takes 13"),
        (60, {"measure_wall": False}, "it was not to be timed."),
        (60, {}, ""),  # why is not known
    ],
)
def test_why_a_step_was_not_timed_is_told_with_the_cure(tmp_path, count, spec, told):
    found = rounds(tmp_path, 2.0, 2.0)
    spec = {"schedule": {"skip": 1, "warmup": 3, "active": 5, "repeat": 1}, "measure_wall": True, **spec}
    record = {"format": "steplens.run/1", "steps": {"count": count}, "spec": spec}
    (tmp_path / "run.json").write_bytes(orjson.dumps(record))
    first, fixed, _ = (
        replace(i, run_folder=str(tmp_path), figures=replace(i.figures, wall_ns=None)) for i in found.iterations
    )
    for project, number in ((Project(tmp_path, "train.py", (first,)), 0), (Project(tmp_path, "a", (first, fixed)), 1)):
        said = said_of(project, number)
        assert said.count("the step without the profiler is unknown:") == (1 if told else 0)
        assert told in said
    timed = replace(first, figures=replace(first.figures, wall_ns=2e6))
    assert "unknown" not in said_of(Project(tmp_path, "train.py", (timed,)), 0)


def test_where_no_run_of_the_code_before_was_left_alone_that_is_told_with_the_cure(
    window,
    loop,  # noqa: F811
    run_folder,  # noqa: F811
    tmp_path,
):
    first, again = disturbed(0, 5.6e6, 40.0), disturbed(2, 6.2e6, 30.0, parent=0, again=0)
    fixed = disturbed(1, 3.0e6, 2.0, parent=0, copy=str(tmp_path), predicted_ns=3.0e6)
    said = said_of(Project(tmp_path, "train.py", (first, fixed, again)), 1)
    assert "5.90 ms, the mean of rounds 0 and 2, to 3.00 ms" in said
    assert (
        "Both runs of the code before were disturbed by other programs, so that their mean counts. Measure both" in said
    )
    first, fixed = replace(first, run_folder=str(run_folder)), replace(fixed, run_folder=str(tmp_path))
    loop.show_project(Project(tmp_path, "train.py", (first, fixed, again)))
    window.session.pageRequested.emit("iterations")
    window.pages["iterations"].choose(1)
    assert window.pages["iterations"].both is not None
    quiet = disturbed(3, 5.0e6, 1.0, parent=0, again=0)
    said = said_of(Project(tmp_path, "train.py", (first, fixed, again, quiet)), 1)
    assert "went from 5.00 ms in round 3 to 3.00 ms" in said
    assert "were disturbed" not in said
    assert "their mean" not in said_of(Project(tmp_path, "train.py", (first, fixed)), 1)
