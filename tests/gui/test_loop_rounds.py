"""Several fixes in one round: ticked on their cards, applied to one copy, one row of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from core.fixes import ProposedEdit, apply_to_file
from core.project import Figures, Iteration, Project, load_project
from core.suggestions import Saving, SourceRef, Suggestion
from gui.elsewhere import mark
from gui.fix_dialog import FixDialog
from gui.loop_rounds import PLANNED
from gui.panels.plan import PlanPanel
from gui.session import CHOSEN, DONE
from tests.gui.test_loop import FakeCapture, derived, finish, loop, make_run, shown  # noqa: F401 - a fixture

SCRIPT = """import torch


def nll(pred, target):
    assert target.max() < 10
    return -pred[range(target.shape[0]), target].mean()


for step in range(3):
    nll(torch.zeros(3, 4), torch.zeros(3, dtype=torch.long))
"""


def at(rule: str, line: int) -> Suggestion:
    source = SourceRef("train.py", line, "nll", True)
    saving = Saving(100_000, 10.0, "replayed")
    return Suggestion(rule, f"The fault {rule}", occurrences=3, steps=(0, 1, 2), source=source, saving=saving)


ASSERT, INDEX = at("control-flow-on-device-tensor", 5), at("host-list-index", 6)
BY_HAND = replace(ASSERT, rule_id="many-tiny-kernels")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return make_run(tmp_path / "runs" / "1", project / "train.py")


def plan_of(window) -> PlanPanel:
    found = window.current_page().findChild(PlanPanel)
    assert found is not None
    return found


def test_ticked_cards_go_into_one_copy_and_one_row(window, loop, run_folder, tmp_path):  # noqa: F811 - a fixture
    document = shown(window, run_folder, 1_000_000.0, (ASSERT, INDEX, BY_HAND))
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    panel = plan_of(window)
    assert panel.ticked.isHidden()
    for card in panel._cards:
        card.tick.click()
    finish()
    states = [document.suggestion_state[s.key] for s in (ASSERT, INDEX, BY_HAND)]
    assert states == [CHOSEN, CHOSEN, DONE]  # the last has no change of the code: whoever ticks it did it by hand
    assert "2 ticked" in panel.apply.text()
    panel.apply.click()
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, FixDialog))
    assert dialog.parent() is window  # else it does not hold the window up, and can lie behind it
    assert dialog.isModal()
    finish()
    assert "+     torch._assert_async(target.max() < 10)" in dialog.diff.toPlainText()
    assert "torch.arange(" in dialog.diff.toPlainText()
    finish()
    dialog.copy_button.click()
    finish()
    (spec,) = capture.specs
    text = Path(spec.script).read_text()
    assert "_assert_async" in text
    assert "torch.arange(" in text
    make_run(capture.folder, Path(spec.script), wall_us=730.0)
    shown(window, capture.folder, 805_000.0, ())
    _, fixed = loop.project.iterations
    assert [f.rule_id for f in fixed.fixes] == [ASSERT.rule_id, INDEX.rule_id]
    assert fixed.predicted_ns == 900_000.0  # the plan's figure after both
    name = window.pages["iterations"].model.index(1, 0).data()
    assert "train.py:5" in name
    assert "train.py:6" in name
    assert [document.suggestion_state[s.key] for s in (ASSERT, INDEX)] == [DONE, DONE]
    assert panel.ticked.isHidden()


def test_what_does_not_fit_is_named_before_anything_is_made(window, loop, run_folder):  # noqa: F811
    twin = replace(INDEX, rule_id="layout-conversions", title="Another fault")
    document = shown(window, run_folder, 1_000_000.0, (ASSERT, INDEX, twin))
    dialog = FixDialog(loop, document, [0, 1, 2])
    finish()
    words = " ".join(label.text() for label in dialog.findChildren(type(dialog.prediction)))
    assert "Left out: “Another fault”" in words
    assert dialog.indices == (0, 1)
    assert "2 fixes in one round" in words
    finish()
    dialog.deleteLater()


def test_both_are_made_in_the_users_file_and_come_back(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (ASSERT, INDEX))
    script = tmp_path / "project" / "train.py"
    assert loop.apply_to_own_file(document, derived(loop, document, 0, 1).joint) is not None
    assert "_assert_async" in script.read_text()
    assert "torch.arange(" in script.read_text()
    loop.undo_last()  # one click takes back what one click did
    assert script.read_text() == SCRIPT


def test_an_undo_goes_on_past_what_was_worked_on(window, loop, tmp_path):  # noqa: F811
    """Of three files that one click changed, one was edited since: its text stays, and it can be undone later."""
    made = []
    for name in "abc":
        (tmp_path / name).write_text("old = 1\n")
        edit = ProposedEdit(tmp_path / name, "rule", "old = 1\n", "new = 1\n", "", "")
        made.append(apply_to_file(edit, tmp_path / "backups"))
    loop.own.applied, loop.own._together = list(made), [1, 2]
    (tmp_path / "c").write_text("mine = 1\n")
    loop.undo_last()
    assert [(tmp_path / name).read_text() for name in "abc"] == ["new = 1\n", "old = 1\n", "mine = 1\n"]
    assert window.banner.isVisible()
    assert loop.own.last_count() == 1
    (tmp_path / "c").write_text("new = 1\n")
    loop.undo_last()
    loop.undo_last()
    assert [(tmp_path / name).read_text() for name in "abc"] == ["old = 1\n"] * 3
    assert not loop.own.applied


def test_a_copy_that_never_ran_can_be_run_later(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (ASSERT,))
    capture = FakeCapture(tmp_path / "runs" / "2")
    capture.own = False  # it is only shown: the user may leave it at that
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    kept = load_project(loop.project.folder).iterations[1]
    assert (kept.state, kept.run_folder) == (PLANNED, "")
    assert Path(kept.copy, "train.py").exists()
    window.session.ask("rounds")
    page = window.pages["iterations"]
    assert "(not run yet)" in page.model.index(1, 0).data()
    page.choose(1)
    capture.own = True
    page.again.click()
    assert len(capture.specs) == 1
    running = load_project(loop.project.folder).iterations[1]
    assert (running.state, running.run_folder) == ("running", str(capture.folder))


def test_a_copy_that_is_gone_is_said_and_leaves_no_round(window, loop, run_folder, tmp_path):  # noqa: F811
    rounds = (
        Iteration(0, str(run_folder), 1.0, figures=Figures(sustained_ns=1000.0)),
        Iteration(1, str(tmp_path / "2"), 2.0, 0, copy=str(tmp_path / "gone"), figures=Figures(sustained_ns=900.0)),
    )
    window.session.provide("capture", lambda: FakeCapture(tmp_path / "runs" / "2"))
    loop.project = Project(tmp_path / "p", str(tmp_path / "project" / "train.py"), rounds)
    loop.measure_again(1)
    assert "is gone" in window.banner.title.text()
    assert loop.project.iterations == rounds


def test_a_round_that_another_window_began_a_moment_ago_has_its_number_in_both(window, loop, run_folder, tmp_path):  # noqa: F811
    document = shown(window, run_folder, 1_000_000.0, (ASSERT,))
    mine = loop.project
    other = mine.with_iteration(Iteration(1, "/runs/x", 77.0, 0, state="running", by=mark())).save(mine)
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    loop.run_copy(document, 0)
    finish()
    (spec,) = capture.specs
    assert spec.name == "train.py, round 2"
    assert [(i.number, i.created_s == 77.0) for i in loop.project.iterations] == [(0, False), (1, True), (2, False)]
    assert [i.number for i in other.with_others(other).iterations] == [0, 1, 2]
    assert other.with_others(other).get(2).run_folder == str(capture.folder)
