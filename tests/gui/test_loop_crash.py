"""The app dies in the middle of a round, at once: nothing is lost, and the round can be taken up again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.importing import open_trace
from core.project import Project, all_projects
from gui import store
from gui.loop_rounds import PLANNED
from gui.session import CHOSEN, Document
from tests.gui.test_loop import FakeCapture, finish, loop, make_run, shown  # noqa: F401 - a fixture
from tests.gui.test_loop_rounds import ASSERT, INDEX, SCRIPT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")

CHILD = """
import os, signal, sys
from pathlib import Path
from PySide6.QtCore import QSettings
import core.fixes.files
from gui.app import make_application, make_window
from gui.session import CHOSEN
from gui.settings import Settings
from tests.gui.test_loop import FakeCapture, finish, shown
from tests.gui.test_loop_rounds import ASSERT, INDEX

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

where, base = sys.argv[1], Path(sys.argv[2])
make_application()
settings = Settings(QSettings(str(base / "settings.ini"), QSettings.Format.IniFormat))
settings.set("runs/folder", str(base / "runs"))
window = make_window(settings, dark=True)
document = shown(window, base / "runs" / "1", 1_000_000.0, (ASSERT, INDEX))
capture = FakeCapture(base / "runs" / "2")
window.session.provide("capture", lambda: capture)
loop = window.session.ask("loop")
for index in (0, 1):
    document.set_suggestion_state(index, CHOSEN)
if where == "in_copy":
    core.fixes.files.write_atomically = die
elif where == "before_run":
    loop.rounds._run = die
elif where == "in_writing":
    replace = os.replace
    os.replace = lambda old, new: die() if Path(new).name == "project.json" else replace(old, new)
loop.run_copy(document, 0, 1)
finish()
die()
"""


def died(where: str, base: Path) -> Project:
    """Let a window die somewhere, and return what is on disk of its project."""
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    make_run(base / "runs" / "1", project / "train.py")
    child = subprocess.run([sys.executable, "-c", CHILD, where, str(base)], cwd=Path(__file__).parents[2], check=False)
    assert child.returncode == -signal.SIGKILL
    (found,) = all_projects(base / "runs" / "projects")
    assert found.iterations[0].figures.sustained_ns == 1_000_000.0
    assert (project / "train.py").read_text() == SCRIPT
    return found


def rows(window) -> list[str]:
    window.session.ask("rounds")
    model = window.pages["iterations"].model
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_between_apply_and_run(window, loop, tmp_path):  # noqa: F811
    kept = died("before_run", tmp_path).iterations[1]
    assert (kept.state, [f.rule_id for f in kept.fixes]) == (PLANNED, [ASSERT.rule_id, INDEX.rule_id])
    assert kept.predicted_ns == 900_000.0
    text = Path(kept.copy, "train.py").read_text()
    assert "_assert_async" in text
    assert "torch.arange" in text
    assert "(not run yet)" in rows(window)[1]
    again = Document(open_trace(tmp_path / "runs" / "1" / "trace.json"))
    store.restore(again)
    assert again.suggestion_state == {ASSERT.key: CHOSEN, INDEX.key: CHOSEN}  # the ticks are kept, too
    page, capture = window.pages["iterations"], FakeCapture(tmp_path / "runs" / "3")
    window.session.provide("capture", lambda: capture)
    page.choose(1)
    page.again.click()
    assert capture.specs[0].script == str(Path(kept.copy, "train.py"))


def test_during_the_run(window, loop, tmp_path):  # noqa: F811
    kept = died("in_run", tmp_path).iterations[1]
    assert (kept.state, kept.run_folder) == ("running", str(tmp_path / "runs" / "2"))
    assert "(interrupted)" in rows(window)[1]
    shown(window, tmp_path / "runs" / "1", 1_000_000.0, (ASSERT, INDEX))  # its trace is opened again
    assert "(interrupted)" in rows(window)[1]
    page, capture = window.pages["iterations"], FakeCapture(tmp_path / "runs" / "3")
    window.session.provide("capture", lambda: capture)
    page.choose(1)
    page.again.click()
    assert len(capture.specs) == 1
    make_run(capture.folder, Path(capture.specs[0].script))
    shown(window, capture.folder, 905_000.0, ())
    assert loop.project.get(1).figures.sustained_ns == 905_000.0  # the same row, now measured
    assert len(loop.project.iterations) == 2


@pytest.mark.parametrize("where", ["in_writing", "in_copy"])
def test_while_a_file_is_written(window, loop, tmp_path, where):  # noqa: F811
    kept = died(where, tmp_path)
    assert len(kept.iterations) == 1  # as it was before, whole
    copies = kept.folder / "copies"
    whole = [path.name for path in copies.iterdir() if not path.name.startswith(".")]
    assert whole == (["1"] if where == "in_writing" else [])  # a copy is there whole or not at all
    loop.tidy()  # as a start does after a while
    finish()
    assert [path.name for path in copies.iterdir()] == whole
    capture = FakeCapture(tmp_path / "runs" / "2")
    window.session.provide("capture", lambda: capture)
    document = shown(window, tmp_path / "runs" / "1", 1_000_000.0, (ASSERT, INDEX))
    loop.run_copy(document, 0, 1)
    finish()
    assert len(capture.specs) == 1
    assert [i.state for i in all_projects(loop.root())[0].iterations] == ["ok", "running"]
