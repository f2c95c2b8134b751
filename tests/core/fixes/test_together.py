"""Several fixes in one text: all of them are in it, or it is said which is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from core.fixes import ProposedEdit, apply_to_copy
from core.fixes.line_blocks import line_blocks
from core.fixes.together import join, moved
from core.run_folder import RunRecord, read_run
from core.suggestions import SourceRef, Suggestion

TRAIN = """import torch
from torch.utils.data import DataLoader


def nll(scores, target):
    assert target.max() < 10
    rows = range(target.shape[0])
    return -scores[rows, target].mean()


def train(net, data, device):
    loader = DataLoader(data, batch_size=8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    total = 0.0
    for x, y in loader:
        x = x.to(device)
        loss = nll(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    home = tmp_path / "home"
    home.mkdir()
    (home / "train.py").write_text(TRAIN)
    folder = tmp_path / "run"
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "train.py").write_text(TRAIN)
    values = {
        "format": "steplens.run/1",
        "sources": [{"path": str(home / "train.py"), "copy": "sources/train.py"}],
        "spec": {"script": str(home / "train.py")},
    }
    (folder / "run.json").write_bytes(orjson.dumps(values))
    found = read_run(folder)
    assert found is not None
    return found


def at(rule: str, text: str, function: str) -> Suggestion:
    line = next(n for n, row in enumerate(TRAIN.splitlines(), 1) if text in row)
    return Suggestion(rule, "title", source=SourceRef("train.py", line, function, True))


ASSERT = at("control-flow-on-device-tensor", "assert", "nll")
INDEX = at("host-list-index", "scores[rows", "nll")
COPY = at("pageable-batch-copy", "x.to(device)", "train")
WORKERS = at("loader-without-workers", "DataLoader(data", "train")
TOTAL = at("scalar-read-back", "loss.item()", "train")
FUSED = at("single-tensor-optimizer", "optimizer.step()", "train")


def test_all_are_in_one_text(run: RunRecord, tmp_path: Path) -> None:
    chosen = [ASSERT, INDEX, COPY, WORKERS, TOTAL, FUSED]
    joint = join(run, enumerate(chosen))
    assert joint.conflicts == ()
    assert joint.indices == tuple(range(6))
    (made,) = apply_to_copy([e for _, e in joint.edits], tmp_path / "home", tmp_path / "copy")
    text = made.read_text()
    for part in (
        "_assert_async",
        "torch.arange(",
        "non_blocking=True",
        "pin_memory=True",
        "num_workers=",
        "fused=True",
    ):
        assert part in text
    assert "loss.detach()" in text
    compile(text, "train.py", "exec")


def test_two_changes_of_one_call_are_both_in_it(run: RunRecord) -> None:
    joint = join(run, enumerate([COPY, WORKERS]))
    line = next(row for row in joint.edits[-1][1].after.splitlines() if "DataLoader(data" in row)
    assert "pin_memory=True" in line
    assert "num_workers=" in line


def test_the_same_change_twice_is_made_once(run: RunRecord) -> None:
    joint = join(run, enumerate([COPY, replace(COPY, rule_id="blocking-pinned-copy")]))
    assert [i for i, _ in joint.edits] == [0]
    assert joint.covered == ((1, 0),)
    assert joint.indices == (0, 1)


def test_one_that_cannot_be_derived_is_told(run: RunRecord) -> None:
    joint = join(run, enumerate([ASSERT, replace(ASSERT, rule_id="layout-conversions")]))
    (conflict,) = joint.conflicts
    assert (conflict.index, conflict.other, conflict.kind) == (1, -1, "none")
    assert conflict.reason


def edit(before: str, after: str, rule: str = "x") -> ProposedEdit:
    return ProposedEdit(Path("/home/u/a.py"), rule, before, after, "s.", "r.")


def test_a_change_that_takes_another_away_is_told_with_its_lines() -> None:
    base = "a = f(x)\nb = 2\n"

    def derive(_run, suggestion, texts):
        text = texts.get("/home/u/a.py", base)
        if suggestion.rule_id == "argument":
            return edit(text, text.replace("f(x)", "f(x, fast=True)")), ""
        return edit(text, "a = h()\n" + text.partition("\n")[2]), ""

    chosen = [Suggestion("argument", "t"), Suggestion("whole", "t")]
    joint = join(None, enumerate(chosen), derive)  # type: ignore[arg-type]
    assert [i for i, _ in joint.edits] == [0]
    (conflict,) = joint.conflicts
    assert (conflict.index, conflict.other, conflict.kind, conflict.lines) == (1, 0, "lost", (1,))
    assert "fast=True" in joint.edits[0][1].after


def test_another_order_is_tried_before_a_fix_is_left_out() -> None:
    base = "a = f(x)\nb = 2\n"

    def derive(_run, suggestion, texts):
        text = texts.get("/home/u/a.py", base)
        if suggestion.rule_id == "argument":
            return edit(text, text.replace("b = 2", "b = 2 + a")), ""
        if "b = 2\n" not in text:
            return None, "no b"
        return edit(text, text.replace("a = f(x)", "a = g(x)")), ""

    chosen = [Suggestion("argument", "t"), Suggestion("first", "t")]
    joint = join(None, enumerate(chosen), derive)  # type: ignore[arg-type]
    assert joint.conflicts == ()
    assert [i for i, _ in joint.edits] == [1, 0]


def test_places_move_along() -> None:
    after = TRAIN.replace("import torch\n", "import os\nimport torch\n", 1)
    assert moved(TOTAL, TRAIN, after).source.line == TOTAL.source.line + 1  # type: ignore[union-attr]
    assert moved(replace(TOTAL, source=None), TRAIN, after).source is None


def test_blocks_map_every_line_of_a_long_file() -> None:
    before = [line for k in range(300) for line in (f"def f{k}():", "    return 1", "")]
    after = [*before[:3], "new = 1", *before[3:700], "other = 2", *before[701:]]
    blocks = line_blocks(before, after)
    assert [b for b in blocks if b[0] != "equal"] == [("insert", 3, 3, 3, 4), ("replace", 700, 701, 701, 702)]
    assert sum(b - a for _, a, b, _, _ in blocks) == len(before)
    assert all(before[a:b] == after[c:d] for tag, a, b, c, d in blocks if tag == "equal")
    assert line_blocks(before, before) == [("equal", 0, 900, 0, 900)]
    assert line_blocks([], ["x"]) == [("insert", 0, 0, 0, 1)]
