"""Places in the user's code: frames, lines worked out from the syntax tree, recorded lines, and consent."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import orjson
import pytest

from core.source import SourceFinder
from core.source_frames import Frame, is_other_library, is_user_frame, parse_frame, parse_old_stack
from core.source_lines import read_line_record
from core.source_syntax import find_function, match
from core.trace import Trace
from tests.trace_builder import TraceBuilder, rows

SCRIPT = """import torch


def guard(x, y, mask, n, model, loss_fn):
    assert y.max() < n
    if n > 3 and len(y) > 2:
        pass
    if mask is None:
        return x
    rows = range(n)
    a = x[rows, y]
    b = x[[0, 1]]
    c = x[mask > 0]
    w = torch.Tensor([0.1] * 10).cuda()
    x = x.to("cuda")
    v = a.sum().item()
    h = b.cpu()
    print(h)
    loss = torch.nn.NLLLoss(w)
    while c.any():
        c = c[1:]

    def inner():
        return x.item()

    return float(v), torch.unique(y)


@torch.no_grad()
def decorated(x):
    return x.tolist()


key = lambda t: t.item()
"""


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("train.py(14): weighted_nll", Frame("train.py", 14, "weighted_nll")),
        ("/home/a (1)/train.py(3): <module>", Frame("/home/a (1)/train.py", 3, "<module>")),
        (r"C:\Users\a (1)\train.py(14): f", Frame(r"C:\Users\a (1)\train.py", 14, "f")),
        ("<string>(1): <lambda>", Frame("<string>", 1, "<lambda>")),
        ("<built-in method item of Tensor object at 0x7f>", None),
        ("nn.Module: Net_0", None),
        ("Python GC", None),
        ("aten::mm", None),
    ],
)
def test_frame_names_of_all_systems_are_read(name: str, frame: Frame | None) -> None:
    assert parse_frame(name) == frame


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("train.py(1): main", True),
        ("models/net.py(1): forward", True),
        ("/home/me/project/train.py(1): main", True),
        (r"C:\work\train.py(1): main", True),
        ("torch/nn/modules/module.py(1501): _call_impl", False),
        ("/usr/lib/python3.11/threading.py(1002): _bootstrap", False),
        ("/opt/venv/lib/python3.11/site-packages/mylib/a.py(3): f", False),
        (r"C:\Python311\Lib\site-packages\torch\nn\modules\module.py(3): f", False),
        (r"C:\Python311\Lib\threading.py(3): run", False),
        ("threading.py(973): _bootstrap", False),
        ("multiprocessing/queues.py(365): get", False),
        ("<frozen importlib._bootstrap>(1053): _handle_fromlist", False),
        ("transformers/models/bert/modeling_bert.py(3): forward", False),
    ],
)
def test_the_users_frames_are_told_from_those_of_libraries(name: str, users: bool) -> None:
    assert is_user_frame(name) is users


def test_other_libraries_are_told_from_torch_and_python() -> None:
    assert is_other_library("transformers/models/bert/modeling_bert.py(3): forward")
    assert not is_other_library("torch/nn/functional.py(3): linear")
    assert not is_other_library("threading.py(3): run")
    assert not is_other_library("train.py(3): run")


def test_stacks_of_old_torch_are_read_innermost_first() -> None:
    text = "/x/lib/python3.7/site-packages/torch/optim/sgd.py(117): step;train.py(51): <module>"
    assert [f.line for f in parse_old_stack(text)] == [117, 51]


@pytest.mark.parametrize(
    ("hint", "lines"),
    [
        ("control-flow", (5, 20)),
        ("host-index", (11, 12)),
        ("mask", (13, 26)),
        ("constant", (14,)),
        ("batch", (14, 15)),
        ("item", (16,)),
        ("read-back", (17,)),
        ("print", (18,)),
        ("construct", (19,)),
        ("call:unique", (26,)),
        ("call:nothing", None),
        ("unknown hint", None),
    ],
)
def test_lines_follow_from_what_was_seen(hint: str, lines: tuple[int, ...] | None) -> None:
    function = find_function(ast.parse(SCRIPT), "guard", 4)
    assert function is not None
    found = match(function, hint)
    assert (found.lines if found else None) == lines
    assert found is None or found.reason


def test_inner_functions_decorators_and_lambdas_are_found_by_their_own_line() -> None:
    tree = ast.parse(SCRIPT)
    inner = find_function(tree, "inner", 23)
    assert inner is not None
    assert (found := match(inner, "item")) is not None
    assert found.lines == (24,)
    assert find_function(tree, "decorated", 29) is not None  # Kineto gives the decorator's line or the def's
    assert find_function(tree, "decorated", 30) is not None
    assert find_function(tree, "<lambda>", 34) is not None
    assert find_function(tree, "<module>", 1) is tree
    assert find_function(tree, "guard", 900) is None


def _trace(file: str = "train.py", line: int = 4) -> Trace:
    builder = TraceBuilder()
    builder.python(f"{file}({line}): guard", 0, 90)
    builder.python("torch/_tensor.py(9): wrapped", 5, 60)
    builder.op("aten::item", 10, 40).copy("DtoH (Device -> Pageable)", 12, 30, 20, 10)
    return builder.build()


def test_the_nearest_frame_of_the_user_is_named_and_its_line_is_not_called_exact() -> None:
    trace = _trace()
    finder = SourceFinder(trace)
    place = finder.of_slice(rows(trace, "aten::item")[0])
    assert place is not None
    assert (place.file, place.line, place.function, place.exact) == ("train.py", 4, "guard", False)
    copy = next(i for i in rows(trace, "Memcpy DtoH (Device -> Pageable)"))
    assert finder.of_slice(copy) == place  # device work by its launch
    assert finder.stack(rows(trace, "aten::item")[0])[0] == "torch/_tensor.py(9): wrapped"


def test_with_the_source_allowed_the_line_is_exact(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    trace = _trace()
    op = rows(trace, "aten::item")[0]
    place = SourceFinder(trace, (tmp_path,)).of_slice(op, "item")
    assert place is not None
    assert (place.line, place.exact, place.candidates) == (16, True, ())
    several = SourceFinder(trace, (tmp_path,)).of_slice(op, "control-flow")
    assert several is not None
    assert (several.line, several.exact, several.candidates) == (5, False, (20,))


def test_a_source_that_has_changed_or_is_damaged_is_not_trusted(tmp_path: Path) -> None:
    trace = _trace(line=3000)
    (tmp_path / "train.py").write_text(SCRIPT)
    place = SourceFinder(trace, (tmp_path,)).of_slice(rows(trace, "aten::item")[0], "item")
    assert place is not None
    assert (place.line, place.exact) == (3000, False)
    assert "changed" in place.reason
    (tmp_path / "train.py").write_text("def (")
    place = SourceFinder(trace, (tmp_path,)).of_slice(rows(trace, "aten::item")[0], "item")
    assert place is not None
    assert not place.exact


@pytest.mark.parametrize(
    "file", ["../secret.py", "/etc/secret.py", "a/../../secret.py", "link.py", "big.py", "binary.py"]
)
def test_no_file_outside_an_allowed_folder_is_opened(tmp_path: Path, file: str) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (tmp_path / "secret.py").write_text(SCRIPT)
    (allowed / "link.py").symlink_to(tmp_path / "secret.py")
    (allowed / "big.py").write_bytes(b"#" * 5_000_000)
    (allowed / "binary.py").write_bytes(b"x = 1\n\0")
    assert SourceFinder(_trace(), (allowed,)).resolve(file) is None


def test_a_path_of_another_machine_is_found_by_its_end(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "net.py").write_text("")
    finder = SourceFinder(_trace(), (tmp_path,))
    assert finder.resolve(r"C:\Users\x\project\pkg\net.py") == tmp_path / "pkg" / "net.py"
    assert finder.resolve("/home/y/pkg/net.py") == tmp_path / "pkg" / "net.py"
    assert SourceFinder(_trace()).resolve("pkg/net.py") is None


def test_on_the_backward_thread_the_forward_op_is_asked() -> None:
    builder = TraceBuilder()
    builder.python("train.py(4): guard", 0, 60).op("aten::mm", 10, 20)
    builder.op("autograd::engine::evaluate_function: MmBackward0", 100, 40, tid=7)
    builder.op("aten::bmm", 110, 20, tid=7)
    builder.autograd(10, 100, 100, 7)
    trace = builder.build()
    place = SourceFinder(trace).of_slice(rows(trace, "aten::bmm")[0])
    assert place is not None
    assert (place.file, place.function) == ("train.py", "guard")


def test_many_slices_at_once_give_what_they_give_one_by_one() -> None:
    """Two threads, frames that ended before, device work with and without a launch, and a backward without frames."""
    b = TraceBuilder()
    b.python("train.py(1): main", 0, 500).python("torch/nn/functional.py(5): f", 20, 60)
    b.python("train.py(9): step", 100, 100, tid=7)
    for at, tid in ((5, 1), (30, 1), (79, 1), (81, 1), (501, 1), (99, 7), (150, 7), (201, 7)):
        b.op("aten::mm", at, 1, tid=tid)
    b.runtime("cudaLaunchKernel", 40, 3, 5).kernel("k", 60, 10, 5).kernel("unlaunched", 90, 10, 6)
    b.op("aten::mul", 300, 5).op("MulBackward0", 600, 20, tid=2).op("aten::mul", 601, 5, tid=2)
    b.autograd(300, 100, 600, 2)
    trace = b.build()
    finder = SourceFinder(trace)
    every = np.arange(len(trace.slices), dtype=np.int32)
    one_by_one = [finder.user_frame(i) for i in every.tolist()]
    assert finder.user_frames(every).tolist() == one_by_one
    assert len(set(one_by_one)) == 3  # main, step, and none
    assert finder.user_frames(every[:0]).tolist() == []


def test_without_stacks_nothing_is_named() -> None:
    trace = TraceBuilder().op("aten::item", 10, 40).build()
    assert SourceFinder(trace).of_slice(0) is None


def test_lines_of_old_stacks_are_those_of_the_calls(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.op("aten::to", 0, 40, Call_stack="torch/nn/module.py(3): f;train.py(44): <module>")
    trace = builder.build(tmp_path / "old.json")
    place = SourceFinder(trace).of_slice(0)
    assert place is not None
    assert (place.file, place.line, place.exact) == ("train.py", 44, True)


def test_a_library_between_is_told() -> None:
    builder = TraceBuilder()
    builder.python("train.py(4): main", 0, 90).python("transformers/modeling.py(7): box", 5, 60)
    builder.op("aten::item", 10, 40)
    trace = builder.build()
    place = SourceFinder(trace).of_slice(rows(trace, "aten::item")[0])
    assert place is not None
    assert place.file == "train.py"
    assert "transformers/modeling.py(7): box" in place.reason


def _record(folder: Path, trace: Trace, function: str) -> None:
    start = trace.meta.origin_ns + 9_000
    calls = {"start_ns": [start], "dur_ns": [50_000], "file": [0], "line": [16], "function": [0], "callee": [0]}
    table = {"format": "steplens.lines/1", "files": ["/home/me/train.py"], "functions": [function], "callees": ["item"]}
    (folder / "lines.json").write_bytes(orjson.dumps({**table, "calls": calls}))
    source = {"file": "/home/me/train.py", "line": 5, "function": "guard"}
    waits = {"format": "steplens.sync-lines/1", "warnings": 3, "calls": [{"source": source, "times": 3, "stack": []}]}
    (folder / "sync_lines.json").write_bytes(orjson.dumps(waits))


def test_recorded_lines_go_before_all_guessing(tmp_path: Path) -> None:
    trace = _trace()
    _record(tmp_path, trace, "guard")
    place = SourceFinder.of_run(trace, tmp_path).of_slice(rows(trace, "aten::item")[0], "control-flow")
    assert place is not None
    assert (place.line, place.exact) == (16, True)
    assert "recorded" in place.reason


def test_a_wait_that_is_no_call_gets_the_line_of_torchs_warning(tmp_path: Path) -> None:
    trace = _trace()
    _record(tmp_path, trace, "train")  # the call found is that of a function further out
    place = SourceFinder.of_run(trace, tmp_path).of_slice(rows(trace, "aten::item")[0], "control-flow")
    assert place is not None
    assert (place.line, place.function, place.exact) == (5, "guard", True)
    assert "warned" in place.reason


def test_a_call_of_an_outer_function_of_the_same_name_gives_no_line(tmp_path: Path) -> None:
    """Every module has a forward: the call `block(x)` in the model's is not where the block's own operators run."""
    builder = TraceBuilder(baseTimeNanoseconds=1_000_000)
    builder.python("net.py(20): forward", 0, 100).python("nn.Module: Block_0", 10, 60)
    builder.python("net.py(4): forward", 20, 40)
    builder.op("aten::softmax", 30, 10)  # `scores @ v` and the like are no calls
    trace = builder.build()
    _record(tmp_path, trace, "forward")  # from 9 to 59 us: the call of the block, in the model's forward
    place = SourceFinder.of_run(trace, tmp_path).of_slice(rows(trace, "aten::softmax")[0])
    assert place is not None
    assert (place.line, place.exact) == (4, False)


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'{"format": "other"}', b'{"format": "steplens.lines/1", "calls": {"start_ns": [1]}}']
)
def test_a_damaged_record_of_lines_is_as_good_as_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "lines.json").write_bytes(text)
    assert read_line_record(tmp_path) is None
