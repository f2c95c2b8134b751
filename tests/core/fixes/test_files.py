"""Edits in a copy of the sources and in the user's file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import TraceError
from core.fixes import ProposedEdit, apply_to_copy, apply_to_file, files, read_source
from core.fixes.files import applied_in, clear_spent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "data" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".venv").mkdir()
    (root / "train.py").write_bytes(b"# -*- coding: latin-1 -*-\r\nx = '\xe9'\r\n")
    (root / "pkg" / "__init__.py").write_text("")
    (root / "data" / "deep" / "numbers.bin").write_bytes(b"1" * 100)
    (root / ".git" / "HEAD").write_text("ref")
    return root


def edit_of(root: Path, name: str = "train.py") -> ProposedEdit:
    text = read_source(root / name)
    return ProposedEdit(root / name, "some-rule", text, text + "y = 2\r\n", "Adds y.", "None.")


def test_copy_leaves_the_original_alone(project, tmp_path):
    before = (project / "train.py").read_bytes()
    (made,) = apply_to_copy([edit_of(project)], project, tmp_path / "run" / "source")
    assert made == tmp_path / "run" / "source" / "train.py"
    assert made.read_bytes() == before + b"y = 2\r\n"
    assert (project / "train.py").read_bytes() == before
    copy = made.parent
    assert (copy / "pkg" / "__init__.py").is_file()
    assert (copy / "data" / "deep" / "numbers.bin").read_bytes() == b"1" * 100
    assert not (copy / ".git").exists()
    assert not (copy / ".venv").exists()


def test_two_edits_of_one_file_build_on_one_another(project, tmp_path):
    first = edit_of(project)
    second = ProposedEdit(first.path, "other", first.after, first.after + "z = 3\r\n", "Adds z.", "None.")
    (made,) = apply_to_copy([first, second], project, tmp_path / "copy")
    assert made.read_bytes().endswith(b"y = 2\r\nz = 3\r\n")


def test_copy_inside_the_tree_does_not_copy_itself(project):
    apply_to_copy([edit_of(project)], project, project / "runs" / "1")
    assert (project / "runs" / "1" / "train.py").exists()
    assert not (project / "runs" / "1" / "runs").exists()


def test_copy_refuses(project, tmp_path):
    edit = edit_of(project)
    (tmp_path / "there").mkdir()
    with pytest.raises(TraceError, match="exists already"):
        apply_to_copy([edit], project, tmp_path / "there")
    with pytest.raises(TraceError, match="not below"):
        apply_to_copy([edit], project / "pkg", tmp_path / "new")
    (project / "train.py").write_text("other = 1\n")
    with pytest.raises(TraceError, match="has changed since the run"):
        apply_to_copy([edit], project, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_users_file_with_backup_and_undo(project):
    before = (project / "train.py").read_bytes()
    applied = apply_to_file(edit_of(project))
    assert (project / "train.py").read_bytes() == before + b"y = 2\r\n"
    assert applied.backup.read_bytes() == before
    applied.undo()
    assert (project / "train.py").read_bytes() == before
    assert not applied.backup.exists()


def test_a_change_can_be_undone_in_a_later_session(project, tmp_path):
    before = (project / "train.py").read_bytes()
    made = apply_to_file(edit_of(project), tmp_path / "backups")
    (found,) = applied_in(tmp_path / "backups")
    assert found == made
    found.undo()
    assert (project / "train.py").read_bytes() == before
    assert applied_in(tmp_path / "backups") == []
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_change_that_was_worked_on_is_not_offered_for_undo(project, tmp_path):
    apply_to_file(edit_of(project), tmp_path / "backups")
    (project / "train.py").write_text("my own work\n")
    assert applied_in(tmp_path / "backups") == []
    for note in (tmp_path / "backups").glob("*.json"):
        note.write_text("{")
    assert applied_in(tmp_path / "backups") == []


def test_undo_does_not_destroy_later_work(project, tmp_path):
    applied = apply_to_file(edit_of(project), tmp_path / "backups")
    (project / "train.py").write_text("my own work\n")
    with pytest.raises(TraceError, match="changed since the fix"):
        applied.undo()
    assert (project / "train.py").read_text() == "my own work\n"
    assert applied.backup.exists()


def test_file_that_changed_is_not_touched(project):
    edit = edit_of(project)
    (project / "train.py").write_text("new = 1\n")
    with pytest.raises(TraceError, match="has changed"):
        apply_to_file(edit)
    assert (project / "train.py").read_text() == "new = 1\n"
    assert sorted(p.name for p in project.iterdir() if p.is_file()) == ["train.py"]


def test_no_source(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(TraceError, match="no Python source"):
        read_source(tmp_path / "a.py")
    with pytest.raises(TraceError, match="cannot be read"):
        read_source(tmp_path / "missing.py")


def test_links_in_the_tree_lead_to_what_was_edited(tmp_path):
    """Else the script would run what it ran before, and the fix would seem to bring nothing."""
    root = tmp_path / "project"
    (root / "src" / "pkg").mkdir(parents=True)
    (root / "src" / "real.py").write_text("x = 1\n")
    (root / "src" / "pkg" / "model.py").write_text("x = 1\n")
    (root / "train.py").symlink_to("src/real.py")
    (root / "pkg").symlink_to(root / "src" / "pkg", target_is_directory=True)
    edits = [ProposedEdit(root / name, "r", "x = 1\n", "x = 2\n", "", "") for name in ("train.py", "pkg/model.py")]
    apply_to_copy(edits, root, tmp_path / "copy")
    for name in ("train.py", "pkg/model.py", "src/real.py", "src/pkg/model.py"):
        assert (tmp_path / "copy" / name).read_text() == "x = 2\n"
        assert (root / name).read_text() == "x = 1\n"


def test_a_file_that_is_write_protected_stays_as_it_is(project):
    edit = edit_of(project)
    before = edit.path.read_bytes()
    edit.path.chmod(0o444)
    with pytest.raises(TraceError, match="write-protected"):
        apply_to_file(edit)
    assert edit.path.read_bytes() == before
    assert not list(project.glob("*.before-*"))


def test_a_link_stays_a_link_where_its_file_is_changed(project):
    (project / "link.py").symlink_to("train.py")
    applied = apply_to_file(edit_of(project, "link.py"), project / "kept")
    assert (project / "link.py").is_symlink()
    assert (project / "train.py").read_bytes().endswith(b"y = 2\r\n")
    applied.undo()
    assert (project / "train.py").read_bytes().endswith(b"'\xe9'\r\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_in_the_tree_is_passed_over(project, tmp_path):
    (project / "round").symlink_to(project / "round")
    (project / "nowhere.py").symlink_to("/nowhere/at/all.py")
    os.mkfifo(project / "pipe.py")
    (made,) = apply_to_copy([edit_of(project)], project, tmp_path / "copy")
    assert sorted(path.name for path in made.parent.iterdir()) == ["data", "pkg", "train.py"]


def test_a_text_that_its_encoding_cannot_hold_changes_nothing(project, tmp_path):
    text = read_source(project / "train.py")
    edit = ProposedEdit(project / "train.py", "r", text, text + "größe = '\u20ac'\r\n", "", "")
    before = (project / "train.py").read_bytes()
    for act in (lambda: apply_to_file(edit, tmp_path / "kept"), lambda: apply_to_copy([edit], project, tmp_path / "c")):
        with pytest.raises(TraceError, match=r"iso-8859-1, which has no '\u20ac'"):
            act()
    assert (project / "train.py").read_bytes() == before
    assert not (tmp_path / "kept").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfimport torch\r\nx = '\xc3\xa9'", b"a = 1\r\nb = 2\nc = 3"])
def test_a_mark_mixed_lines_and_a_missing_end_come_back(tmp_path, data):
    file = tmp_path / "train.py"
    file.write_bytes(data)
    text = read_source(file)
    apply_to_file(ProposedEdit(file, "r", text, text + "\ny = 1", "", ""))
    assert file.read_bytes() == data + b"\ny = 1"
    (again,) = applied_in(tmp_path)
    again.undo()
    assert file.read_bytes() == data
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_change_that_cannot_be_written_leaves_no_backup(project, tmp_path, monkeypatch):
    edit = edit_of(project)
    real = files.write_atomically

    def full(path: Path, data: bytes) -> None:
        if path == edit.path:
            raise TraceError("disk full")
        real(path, data)

    monkeypatch.setattr(files, "write_atomically", full)
    with pytest.raises(TraceError, match="disk full"):
        apply_to_file(edit, tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_disk_that_fills_up_in_between_leaves_no_backup_without_its_note(project, tmp_path, monkeypatch):
    real = files.write_atomically

    def fail(path, data):
        if path.name.endswith(files.NOTE_END):
            raise TraceError(f"{path}: cannot be written: No space left on device.")
        real(path, data)

    monkeypatch.setattr(files, "write_atomically", fail)
    edit = edit_of(project)
    with pytest.raises(TraceError, match="No space left"):
        apply_to_file(edit, tmp_path / "backups")
    assert read_source(edit.path) == edit.before
    assert list((tmp_path / "backups").iterdir()) == []


def test_undo_does_without_the_backup_and_twice_is_once(project, tmp_path):
    """The run's folder was deleted, or another window has undone it."""
    script = project / "train.py"
    old = script.read_bytes()
    first = apply_to_file(edit_of(project), tmp_path / "run")
    first.backup.unlink()
    first.undo()
    assert script.read_bytes() == old
    first.undo()
    assert script.read_bytes() == old
    script.write_text("mine = 1\n")
    with pytest.raises(TraceError, match="has been changed since"):
        first.undo()
    assert script.read_text() == "mine = 1\n"
    script.unlink()
    with pytest.raises(TraceError, match="has been changed since"):
        first.undo()
    assert not script.exists()


def test_what_was_undone_counts_where_the_backup_cannot_be_removed(project, tmp_path, monkeypatch):
    script = project / "train.py"
    old = script.read_bytes()
    made = apply_to_file(edit_of(project), tmp_path / "run")

    def refuse(_path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    made.undo()
    assert script.read_bytes() == old


KILLED = """
import os, signal, sys
from pathlib import Path
from core.fixes import ProposedEdit, apply_to_file, read_source
from core.fixes.files import applied_in

where, name, path = sys.argv[1], sys.argv[2], Path(sys.argv[3])
backups, die = path.parent.parent / "backups", lambda: os.kill(os.getpid(), signal.SIGKILL)
replace, unlink = os.replace, Path.unlink
if where == "before":
    os.replace = lambda old, new: die() if Path(new).name == name else replace(old, new)
elif where == "after":
    os.replace = lambda old, new: (replace(old, new), Path(new).name == name and die())
elif where == "unlink":
    Path.unlink = lambda self, **how: (unlink(self, **how), self.name == name and die())
text = read_source(path)
if sys.argv[4] == "apply":
    apply_to_file(ProposedEdit(path, "some-rule", text, text + "y = 2\\r\\n", "Adds y.", "None."), backups)
else:
    applied_in(backups)[0].undo()
"""
BACKUP = "train.py.before-some-rule"


def killed(path: Path, where: str, name: str, what: str) -> None:
    command = [sys.executable, "-c", KILLED, where, name, str(path), what]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
@pytest.mark.parametrize(
    ("where", "name"),
    [("after", f"{BACKUP}.applied.json"), ("before", BACKUP), ("after", BACKUP), ("before", "train.py")],
)
def test_a_change_that_is_killed_in_the_middle_leaves_the_file_and_is_tidied(project, where, name):
    path, backups = project / "train.py", project.parent / "backups"
    before, others = path.read_bytes(), sorted(os.listdir(project))
    killed(path, where, name, "apply")
    assert path.read_bytes() == before
    assert applied_in(backups) == []
    clear_spent(backups)
    assert sorted(os.listdir(project)) == others
    assert os.listdir(backups) == []


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
@pytest.mark.parametrize(("where", "name"), [("before", "train.py"), ("after", "train.py"), ("unlink", BACKUP)])
def test_an_undo_that_is_killed_in_the_middle_can_be_done_or_is_tidied(project, where, name):
    path, backups = project / "train.py", project.parent / "backups"
    before, others = path.read_bytes(), sorted(os.listdir(project))
    apply_to_file(edit_of(project), backups)
    killed(path, where, name, "undo")
    clear_spent(backups, time.time() + 3600)
    assert sorted(os.listdir(project)) == others  # no unfinished file lies beside the user's
    stands = applied_in(backups)
    assert len(stands) == (where == "before")
    for applied in stands:
        applied.undo()
    assert path.read_bytes() == before
    assert os.listdir(backups) == []


def test_what_is_being_made_is_not_tidied_nor_what_is_not_ours(project):
    path, backups = project / "train.py", project.parent / "backups"
    applied = apply_to_file(edit_of(project), backups)
    theirs = project / ".train.py.abcd1234.part"  # does not say who made it
    theirs.write_text("x")
    assert clear_spent(backups, time.time() + 3600) == 0  # it stands
    after = path.read_bytes()
    path.write_bytes(applied.backup.read_bytes())
    assert clear_spent(backups) == 0  # as if it was being made: its maker lives
    assert applied.backup.exists()
    path.write_bytes(after)
    assert len(applied_in(backups)) == 1
    assert theirs.exists()


@pytest.mark.parametrize("note", [b"[" * 100_000, b'{"format":' * 5000, b"null", b"\xff\xfe"])
def test_a_damaged_note_is_no_change(project, note):
    backups = project.parent / "backups"
    apply_to_file(edit_of(project), backups).note.write_bytes(note)
    assert clear_spent(backups, time.time() + 3600) == 0
    assert applied_in(backups) == []


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, "gone.py"])
def test_a_note_of_a_file_that_there_cannot_be_is_no_change(project, path):
    backups = project.parent / "backups"
    applied = apply_to_file(edit_of(project), backups)
    applied.note.write_text(json.dumps({**json.loads(applied.note.read_text()), "path": path}))
    assert clear_spent(backups, time.time() + 3600) == 0
    assert applied_in(backups) == []


@pytest.mark.parametrize("damaged", [b"# coding: nonsense\n", b"", b"# -*- coding: latin-1 -*-\r\nx ="])
def test_a_damaged_backup_is_never_put_in_the_place_of_the_file(project, damaged):
    path, backups = project / "pkg" / "train.py", project.parent / "backups"
    path.write_bytes(b"x = 1\r\n")
    applied = apply_to_file(edit_of(project, "pkg/train.py"), backups)
    applied.backup.write_bytes(damaged)
    assert not applied.is_taken_back
    assert clear_spent(backups, time.time() + 3600) == 0
    applied.undo()
    assert path.read_bytes() == b"x = 1\r\n"
