"""All that rounds have changed in copies goes into the user's own files by one edit each."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from core.errors import TraceError
from core.project import AppliedFix, Iteration, Project
from core.take_over import base_of, changes_of, keys_of


@pytest.fixture
def project(tmp_path: Path) -> Project:
    own, run = tmp_path / "own", tmp_path / "runs" / "0"
    (run / "sources").mkdir(parents=True)
    own.mkdir()
    texts = {"train.py": "a = 1\nb = 1\n", "common.py": "c = 1\n"}
    for name, text in texts.items():
        (own / name).write_text(text)
        (run / "sources" / name).write_text(text)
    sources = [{"path": str(own / name), "copy": f"sources/{name}"} for name in texts]
    values = {"format": "steplens.run/1", "state": "ok", "spec": {"script": str(own / "train.py")}, "sources": sources}
    (run / "run.json").write_bytes(orjson.dumps(values))
    rounds = [Iteration(0, str(run), 1.0)]
    for number, text in ((1, "a = 2\nb = 1\n"), (2, "a = 2\nb = 2\n")):
        copy = tmp_path / "p" / "copies" / str(number)
        copy.mkdir(parents=True)
        (copy / "train.py").write_text(text)
        (copy / "common.py").write_text(texts["common.py"])
        fix = AppliedFix("rule", "title", "train.py:1", f"Fix {number}", "", None, f"key {number}")
        rounds.append(Iteration(number, "", 1.0 + number, number - 1, (fix,), None, str(copy)))
    return Project(tmp_path / "p", str(own / "train.py"), tuple(rounds))


def test_the_edit_holds_what_all_rounds_changed(project: Project, tmp_path: Path) -> None:
    base, (edit,) = changes_of(project, 2)
    assert base.folder == tmp_path / "runs" / "0"
    assert (edit.path, edit.before, edit.after) == (
        tmp_path / "own" / "train.py",
        "a = 1\nb = 1\n",
        "a = 2\nb = 2\n",
    )
    assert edit.summary == "Fix 1; Fix 2"
    assert keys_of(project, 2) == ("key 1", "key 2")
    assert changes_of(project, 1)[1][0].after == "a = 2\nb = 1\n"


def test_without_the_first_run_there_is_nothing_to_go_back_to(project: Project, tmp_path: Path) -> None:
    (tmp_path / "runs" / "0" / "run.json").unlink()
    assert base_of(project, 2) is None
    with pytest.raises(TraceError, match="is gone"):
        changes_of(project, 2)
    with pytest.raises(TraceError, match="is gone"):
        changes_of(project, 0)
