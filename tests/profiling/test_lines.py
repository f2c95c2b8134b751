"""Statements get their ranges, and the code means what it meant."""

from __future__ import annotations

import ast
import asyncio
import builtins
import traceback
from pathlib import Path
from typing import Any

import pytest

from profiling import _child_lines
from tests.profiling.runs import Seen

SOURCE = '''
"""A module."""
from __future__ import annotations
import functools


def plain(x):
    """Docs stay."""
    y = x + 1
    if y > 1:
        y = y * 2
    elif y == 0:
        return "zero"
    while y > 100:
        y -= 50
        if y % 7 == 0:
            break
    for i in range(3):
        if i == 1:
            continue
        y += i
    try:
        assert y < 1000, y
    except AssertionError:
        return "big"
    finally:
        y += 1
    return y


class Box:
    __secret = 3
    size: int = 0

    def __init__(self, value):
        super().__init__()
        self.__value = value

    def value(self):
        return self.__value + self.__secret

    @property
    def double(self):
        return 2 * self.value()


def outer(n):
    total = 0

    def inner(k):
        nonlocal total
        total += k
        return total

    return [inner(i) for i in range(n)]


def gen(n):
    for i in range(n):
        got = yield i
        x = got or 0
        if x:
            return x


async def later(x):
    await asyncio.sleep(0)
    y = x + 1
    return y


@functools.lru_cache(None)
def cached(x):
    return x * x


def fails(x):
    a = 1
    return a / x


def jit(f):
    return f


@jit
def compiled(x):
    return x + 1
'''


class Recorded:
    """Stands in for ``record_function`` and notes what is entered."""

    names: list[str] = []
    open_now = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Recorded:
        Recorded.names.append(self.name)
        Recorded.open_now += 1
        return self

    def __exit__(self, *unused: object) -> None:
        Recorded.open_now -= 1


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """The module as it is, the marked one, and what marked it."""
    monkeypatch.setattr(builtins, _child_lines.NAME, Recorded, raising=False)
    Recorded.names.clear()
    Recorded.open_now = 0
    path = str(tmp_path / "mod.py")
    ranges = _child_lines.Ranges(["*"], lambda name: name)
    tree = ranges.transform(SOURCE, path)
    assert tree is not None
    plain: dict[str, Any] = {"__name__": "mod", "asyncio": asyncio}
    marked: dict[str, Any] = {"__name__": "mod", "asyncio": asyncio}
    exec(compile(SOURCE, path, "exec", dont_inherit=True), plain)
    exec(compile(tree, path, "exec", dont_inherit=True), marked)
    return plain, marked, ranges


def test_results_are_the_same(modules: Any) -> None:
    plain, marked, _ = modules
    for x in (-1, 0, 3, 70, 5000):
        assert marked["plain"](x) == plain["plain"](x)
    assert marked["plain"].__doc__ == "Docs stay."
    assert marked["Box"](4).double == plain["Box"](4).double == 14
    assert marked["outer"](4) == plain["outer"](4)
    assert list(marked["gen"](3)) == [0, 1, 2]
    assert asyncio.run(marked["later"](1)) == 2
    assert marked["cached"](5) == 25
    assert Recorded.open_now == 0


def test_ranges_name_file_line_and_function(modules: Any) -> None:
    _, marked, ranges = modules
    Recorded.names.clear()
    marked["plain"](3)
    assert "line: mod.py:9 (plain)" in Recorded.names  # y = x + 1
    assert "line: mod.py:10 (plain)" in Recorded.names  # the test of `if`
    assert "line: mod.py:14 (plain)" in Recorded.names  # the test of `while`
    assert "line: mod.py:23 (plain)" in Recorded.names  # assert
    assert ranges.files == {"mod.py": next(iter(ranges.files.values()))}


def test_a_traceback_shows_the_source_line(modules: Any) -> None:
    _, marked, _ = modules
    with pytest.raises(ZeroDivisionError) as caught:
        marked["fails"](0)
    assert [frame.lineno for frame in traceback.extract_tb(caught.tb)][-1] == SOURCE.splitlines().index(
        "    return a / x"
    ) + 1
    assert Recorded.open_now == 0


def test_what_is_left_alone_is_told(modules: Any) -> None:
    _, marked, ranges = modules
    Recorded.names.clear()
    assert marked["compiled"](1) == 2
    assert Recorded.names == []
    why = {row["function"]: row["why"] for row in ranges.skipped}
    assert why["compiled"] == "compiled by its decorator (jit)"
    assert why["gen"] == "yields or awaits"


def test_patterns_choose_functions(tmp_path: Path) -> None:
    ranges = _child_lines.Ranges(["mod.py:Box.value"], lambda name: name)
    tree = ranges.transform(SOURCE, str(tmp_path / "mod.py"))
    assert tree is not None
    assert ranges.functions == 1
    assert isinstance(tree, ast.Module)
    assert _child_lines.Ranges(["other.py:*"], lambda name: name).transform(SOURCE, str(tmp_path / "mod.py")) is None


LOSSES = "import torch\n\ndef loss(p, t):\n    assert t.max() < 10\n    return p[range(len(t)), t].sum()\n"
TRAIN = (
    "import torch\nfrom losses import loss\n"
    "w = torch.nn.Parameter(torch.randn(8, 10))\no = torch.optim.SGD([w], lr=0.1)\n"
    "for i in range(6):\n    o.zero_grad(); loss(w * 2, torch.arange(8)).backward(); o.step()\n"
)


@pytest.mark.torch
@pytest.mark.launch(text=TRAIN, files={"losses.py": LOSSES}, line_ranges=("losses.py:loss",))
def test_a_run_with_ranges(seen: Seen) -> None:
    assert seen.count("line: losses.py:4 (loss)") == 6
    assert seen.count("line: losses.py:5 (loss)") == 6
    assert list(seen.result.manifest["line_ranges"]["files"]) == ["losses.py"]
    assert len(seen.steps) == 6


COMPILED = """
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
def loss(w):
    y = w * 2
    return y.sum()
fast = torch.compile(loss, backend="eager")
for i in range(4):
    o.zero_grad()
    fast(w).backward()
    o.step()
print(type(__steplens_range__("x")).__name__)
"""


@pytest.mark.torch
@pytest.mark.launch(text=COMPILED, line_ranges=("train.py:loss", "train.py:<module>"), whole_torch=True)
def test_where_the_script_compiles_the_marks_are_ones_that_a_compiler_looks_through(seen: Seen) -> None:
    assert seen.result.script_exit == 0, seen.stderr
    assert seen.stdout == "record_function\n"
    assert seen.count("line: train.py:10 (<module>)") == 3  # of 4: what compiles in the first is not recorded
    assert seen.result.manifest["line_ranges"]["cost_ratio"] is None
    assert [n.key for n in seen.result.notices if n.key.startswith("marks")] == ["marks-unknown"]


@pytest.mark.parametrize("deep", ["-" * 30000 + "x", "x" + ".a" * 1500])
def test_code_nested_too_deeply_runs_unmarked(tmp_path: Path, deep: str) -> None:
    ranges = _child_lines.Ranges(["mod.py:*"], lambda name: name)
    assert ranges.transform(f"def f(x):\n    y = {deep}\n    return y\n", str(tmp_path / "mod.py")) is None
    assert ranges.summary()["statements"] == 0
