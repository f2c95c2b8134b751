"""The line that makes what a loop goes over, followed through the names of one file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.fixes.propose import attempt
from core.source_walked import made_for_loop
from core.suggestions import SourceRef, Suggestion
from tests.core.rules.kit import built, run_rule, steps

HELPED = """import os
from torch.utils.data import DataLoader

class Data:
    def train(self):
        return DataLoader(self.pictures, batch_size=32)

    def valid(self):
        return DataLoader(self.others, batch_size=32)

def fit(model, batches):
    for images, labels in enumerate(batches):
        model(images)

def check(model, batches):
    for images, labels in batches:
        model(images)

data = Data()
fit(model, data.train())
check(model, batches=data.valid())
"""
PLAIN = """train_loader = DataLoader(a)
valid_loader = DataLoader(b)
def train(model, loader):
    for x, y in tqdm(loader):
        model(x)
def valid(model, loader):
    for x, y in loader:
        model(x)
train(net, train_loader)
valid(net, valid_loader)
"""
OWNED = """class Trainer:
    def __init__(self, data):
        self.other = DataLoader(
            data)
        self.batches, self.size = DataLoader(data), 3
    def fit(self):
        return [self.step(x) for x in self.batches]
"""
FEW = """from data import batches, DataLoader
valid = DataLoader(b)
for x in batches:
    net(x)
while more:
    net(valid)
"""
BOTH = """def loaders():
    return DataLoader(a), DataLoader(b)
train, valid = loaders()
for x in train:
    net(x)
for x in DataLoader(c):
    net(x)
"""


def _makes(call: ast.Call) -> bool:
    return getattr(call.func, "id", "") == "DataLoader"


@pytest.mark.parametrize(
    ("code", "loop", "made"),
    [
        (HELPED, 12, ((6, "train"),)),  # through a parameter and a method
        (HELPED, 16, ((9, "valid"),)),  # passed by name
        (PLAIN, 4, ((1, "<module>"),)),
        (PLAIN, 7, ((2, "<module>"),)),
        (PLAIN, 9, ()),  # without a loop, either could be meant
        (OWNED, 7, ((5, "__init__"),)),  # an attribute, among others
        (FEW, 3, ()),  # imported: the file's own loader is another one
        (FEW, 5, ((2, "<module>"),)),  # no loop that says it, and one loader
        (BOTH, 4, ((2, "loaders"),)),
        (BOTH, 6, ((6, "<module>"),)),
    ],
)
def test_what_a_loop_goes_over_is_found_where_it_is_made(
    code: str, loop: int, made: tuple[tuple[int, str], ...]
) -> None:
    assert made_for_loop(ast.parse(code), SourceRef("train.py", loop, "", True), _makes) == made


@pytest.mark.parametrize(
    ("code", "line", "function", "made"),
    [(PLAIN, 3, "train", ((1, "<module>"),)), (BOTH, 1, "<module>", ()), (FEW, 1, "<module>", ())],
)
def test_without_an_exact_line_all_loops_of_the_function_are_looked_at(
    code: str, line: int, function: str, made: tuple[tuple[int, str], ...]
) -> None:
    found = made_for_loop(ast.parse(code), SourceRef("train.py", line, function), _makes)
    assert (found if len(found) == 1 else ()) == made


def test_names_that_go_round_in_circles_end() -> None:
    code = "def a(x):\n    return b(x)\ndef b(x):\n    x = a(x)\n    return x\nfor y in a(1):\n"
    code += "    DataLoader()\n    DataLoader()\n"
    assert made_for_loop(ast.parse(code), SourceRef("train.py", 6, "<module>", True), _makes) == ()


def _slow(folder: Path, iterator: str = "_SingleProcessDataLoaderIter", roots: bool = True) -> Suggestion:
    (folder / "train.py").write_text(HELPED)
    builder = steps(3, 10_000.0, deviceProperties=[]).python("train.py(11): fit", 0, 30_000)
    for number in range(3):
        at = number * 10_000.0 + 10
        builder.range(f"enumerate(DataLoader)#{iterator}.__next__", at, 6_000)
        builder.op("aten::linear", at + 6_100, 3_000)
    rule = "loader-without-workers" if "Single" in iterator else "loader-starves-step"
    (found,) = run_rule(rule, built(builder), roots=(folder,) if roots else ()).suggestions
    return found


@pytest.mark.parametrize("iterator", ["_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"])
def test_a_loader_is_named_where_it_is_made(tmp_path: Path, iterator: str) -> None:
    made, seen = _slow(tmp_path, iterator), _slow(tmp_path, iterator, roots=False)
    assert made.source is not None
    assert (made.source.line, made.source.function, made.source.exact) == (6, "train", True)
    assert made.key == seen.key


def test_the_fix_of_a_loader_named_where_it_is_made_leaves_the_others_alone(tmp_path: Path) -> None:
    edit, why = attempt(HELPED, _slow(tmp_path), "train.py")
    assert edit is not None, why
    assert "DataLoader(self.pictures, batch_size=32, num_workers=" in edit.after
    assert "DataLoader(self.others, batch_size=32)" in edit.after
