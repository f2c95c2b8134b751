"""Of all that a failing script prints, the error that matters is shown, at the user's line."""

from __future__ import annotations

import pytest

from profiling.outcome import read_crash, read_traceback
from tests.profiling.runs import Seen

LIBRARY = (
    '  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return f(x)\n'
)
RANKS = "".join(
    f"[rank{rank}]: {line}\n"
    for line in ("Traceback (most recent call last):", '  File "/home/me/ddp.py", line 8, in train', "    m(x)")
    for rank in (1, 0)
)
RANKS += "[rank1]: RuntimeError: of one\n[rank0]: RuntimeError: of nought\n"
LAUNCHER = (
    "Traceback (most recent call last):\n"
    + LIBRARY
    + "torch.distributed.elastic.ChildFailedError:\n=====\nddp.py FAILED\n"
)


def test_an_error_of_a_rank_is_shown_and_not_that_of_its_launcher() -> None:
    failure = read_traceback(RANKS + LAUNCHER)
    assert failure is not None
    assert failure.title == "RuntimeError: of nought"
    assert failure.users_frame is not None
    assert (failure.users_frame.line, failure.users_frame.code) == (8, "m(x)")
    alone = read_traceback(LAUNCHER)
    assert alone is not None
    assert alone.title.startswith("torch.distributed.elastic")


GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/home/me/train.py", line 9, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/me/train.py", line 4, in one
    |     raise ValueError("no such batch")
    | ValueError: no such batch
    +------------------------------------
"""


def test_the_error_within_an_exception_group_is_shown() -> None:
    failure = read_traceback(GROUP)
    assert failure is not None
    assert failure.title == "ValueError: no such batch"
    assert [(f.line, f.function) for f in failure.frames] == [(4, "one")]


CRASH = """Fatal Python error: Segmentation fault

Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/x.py", line 3 in call
  File "/home/me/train.py", line 9 in step
  File "/home/me/train.py", line 20 in <module>
  File "/opt/steplens/profiling/_child.py", line 230 in run_script

Extension modules: numpy
"""


def test_a_crash_is_located_without_our_frames() -> None:
    failure = read_crash(CRASH)
    assert failure is not None
    assert failure.title == ""
    assert [frame.line for frame in failure.frames] == [20, 9, 3]
    assert failure.users_frame is not None
    assert failure.users_frame.line == 9
    assert read_crash("") is None
    assert read_crash("Fatal Python error: Segmentation fault\n") is None


CRASHES = """
import ctypes, sys
print("Traceback (most recent call last):\\n  File 'x', line 1\\nValueError: handled long ago", file=sys.stderr)
def crash():
    ctypes.string_at(0)
crash()
"""


@pytest.mark.launch(text=CRASHES)
def test_a_script_that_crashes_says_where(seen: Seen) -> None:
    assert "signal 11" in seen.result.words
    assert "handled" not in seen.result.words
    failure = seen.result.failure
    assert failure is not None
    assert failure.users_frame is not None
    assert (failure.users_frame.line, failure.users_frame.code) == (5, "ctypes.string_at(0)")
    assert "Run it alone" in failure.hint
    assert "Fatal Python error" not in seen.stderr  # what the script prints stays as it would be
    assert "Segmentation fault" in (seen.result.folder / "crash.txt").read_text()


@pytest.mark.launch(text="print('fine')")
def test_a_script_that_ends_well_leaves_no_report_of_a_crash(seen: Seen) -> None:
    assert seen.result.outcome == "ok"
    assert not (seen.result.folder / "crash.txt").exists()


STRANGE = {"torch.py": "import types\n__version__ = '99.0'\nversion = types.SimpleNamespace(cuda=None)\n"}


@pytest.mark.launch(text="import torch\nprint('ran', torch.__version__)", files=STRANGE)
def test_a_torch_that_nothing_can_be_hung_into_runs_all_the_same(seen: Seen) -> None:
    assert (seen.result.outcome, seen.stdout, seen.stderr) == ("ok", "ran 99.0\n", "")
    assert [notice.key for notice in seen.result.notices] == ["recording"]
    assert seen.result.traces == ()


def test_what_steers_a_terminal_is_no_part_of_an_error():
    text = 'Traceback (most recent call last):\n  File "/home/u/a.py", line 1, in f\n    g()\n'
    failure = read_traceback(text + "RuntimeError: \x1b[31mbad\x1b[0m \x1b]0;title\x07shape\x9b2J \x08é\n")
    assert failure.title == "RuntimeError: bad shape\ufffd2J \ufffdé"
