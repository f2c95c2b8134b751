"""Which traces are of one program, and what is named where they are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.project import project_folder
from core.run_folder import RunRecord
from core.same_program import copy_of, differing, file_family, is_same_program
from tests.core.reporting.cases import training


def run(script: str) -> RunRecord:
    return RunRecord(Path("/runs/1"), Path(script).name, "ok", None, None, None, {"script": script})


@pytest.fixture
def trace(tmp_path):
    return training().build(tmp_path / "story_stage0.json")


def test_a_changed_copy_is_of_its_script(trace):
    copy = str(project_folder(Path("/data/projects"), "/home/u/train.py") / "copies" / "2" / "train.py")
    pair = (run("/home/u/train.py"), run(copy))
    assert is_same_program(trace, trace, pair)
    assert is_same_program(trace, trace, pair[::-1])
    assert differing(trace, trace, pair) == ()
    assert [copy_of(str(r.spec["script"])) for r in pair] == ["", str(Path(copy).parent)]
    other = (pair[0], run("/home/u/evaluate.py"))
    assert not is_same_program(trace, trace, other)
    assert [d.code for d in differing(trace, trace, other)] == ["script"]


def test_files_of_one_family_and_of_none(trace, tmp_path):
    assert file_family(Path("story_stage0.json.gz")) == file_family(Path("story_stage12.json"))
    assert is_same_program(trace, training().build(tmp_path / "story_stage3.json"), (None, None))
    assert not is_same_program(trace, training().build(tmp_path / "resnet.json"), (None, None))
    assert not is_same_program(trace, trace, (run("/home/u/train.py"), None))


def test_conditions_that_both_state_are_named(trace):
    newer = replace(trace, meta=replace(trace.meta, torch_version="2.9", rank=3))
    older = replace(trace, meta=replace(trace.meta, torch_version="2.1", rank=None))
    found = differing(older, newer, (None, None))
    assert [(d.code, d.before, d.after) for d in found] == [("torch", "2.1", "2.9")]


def test_shapes_of_the_middle_step_are_compared(tmp_path):
    sides = []
    for name, batch in (("a", 16), ("b", 64)):
        made = training()
        for step in range(4):
            made.op("aten::addmm", step * 1000.0 + 10, 5, **{"Input Dims": [[batch, 8], [8, 4]]})
        sides.append(made.build(tmp_path / f"{name}.json"))
    (found,) = differing(*sides, (None, None))
    assert (found.code, found.before, found.after) == ("shapes", "[[16, 8], [8, 4]]", "[[64, 8], [8, 4]]")
