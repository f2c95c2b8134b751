"""Which traces are of one program, and what is named where they are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.project import project_folder
from core.run_folder import RunRecord
from core.same_program import Condition, copy_of, differing, differing_recording, file_family, is_same_program
from tests.core.reporting.cases import training
from tests.trace_builder import TraceBuilder


def run(script: str, **spec: object) -> RunRecord:
    return RunRecord(Path("/runs/1"), Path(script).name, "ok", None, None, None, {"script": script, **spec})


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


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("--steps 16 --batch 8", "--steps 40 --batch 8", ("--steps 16", "--steps 40")),
        ("--batch 8 --steps 16", "--batch 8 --steps 16 --amp", ("", "--amp")),
        ("--lr 1 --fast", "--lr 1 --slow", ("--fast", "--slow")),
        ("--batch=8 small", "--batch=32 small", ("--batch=8", "--batch=32")),
        ("data 3 3", "data 3", ("3", "")),
        ("", "--batch 8", ("", "--batch 8")),
        ("--batch 8", "--batch 8", None),
    ],
)
def test_arguments_are_told_by_what_differs_in_them(trace, before, after, told):
    pair = tuple(run("/home/u/train.py", argv=words.split()) for words in (before, after))
    found = differing(trace, trace, pair)
    assert [(d.code, d.before, d.after) for d in found] == ([("arguments", *told)] if told else [])


def test_variables_and_what_ends_a_step_are_told(trace):
    pair = (
        replace(run("/home/u/train.py", env=["OMP_NUM_THREADS", "A"]), steps_from="iterations of the data loader"),
        replace(run("/home/u/train.py", env=["A"]), steps_from="calls of the optimizer"),
    )
    assert [(d.code, d.before, d.after) for d in differing(trace, trace, pair)] == [
        ("environment", "A OMP_NUM_THREADS", "A"),
        ("steps", "iterations of the data loader", "calls of the optimizer"),
    ]
    assert differing(trace, trace, (pair[0], replace(pair[0], steps_from=""))) == ()  # not said by an older run


def test_what_only_one_of_two_recorded_is_told(tmp_path):
    whole = training().op("aten::relu", 30.0, 2, **{"Input Dims": [[1]]}).build(tmp_path / "whole.json")
    bare = TraceBuilder().step(0, 0, 900).op("aten::mm", 10, 5).build(tmp_path / "bare.json")
    found = differing_recording(whole, bare, (None, None))
    assert (found.code, found.before, found.after) == ("recording", "stacks, shapes", "")
    assert differing_recording(whole, whole, (None, None)) is None
    pair = (run("/home/u/train.py", options={"flops": True, "modules": False}), run("/home/u/train.py", options={}))
    assert differing_recording(bare, bare, pair) == Condition("recording", "flops", "")
    assert differing_recording(bare, bare, (pair[0], None)) is None


def test_a_device_without_recorded_work_is_told_apart_from_one_with(tmp_path):
    idle = TraceBuilder().step(0, 0, 900).op("aten::mm", 10, 5).build(tmp_path / "idle.json")
    busy = (
        TraceBuilder().step(0, 0, 900).op("aten::mm", 10, 5).launch("gemm", 11, 2, 20, 5).build(tmp_path / "busy.json")
    )
    (found,) = differing(idle, busy, (None, None))
    assert (found.code, found.before) == ("device", f"{found.after} (no work of it recorded)")
