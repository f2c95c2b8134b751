"""What torch and Kineto say of a GPU that they cannot reach, or that makes the host wait, is understood."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiling import _child_sync
from profiling._child_checks import PIECE_BYTES, Checks, tells_of_gpu
from profiling.events import Gathered
from profiling.outcome import hint_for
from profiling.result import build_result
from profiling.spec import RunSpec


def said_by_kineto(error: str) -> str:
    """As ``libkineto/src/init.cpp`` writes it, whatever the error was: the last line always names the same one."""
    begin = "2024-12-19 06:36:11 2047:2047 init.cpp"
    return (
        f"WARNING:{begin}:174] function cbapi->getCuptiStatus() failed with error {error}\n"
        f"WARNING:{begin}:175] CUPTI initialization failed - CUDA profiler activities will be missing\n"
        f"INFO:{begin}:177] If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to https://developer.nvidia.com/\n"
    )


ERRORS = {
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)": "hint-privileges",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES (40)": "hint-privileges",
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)": "hint-subscriber",
    "CUPTI_ERROR_NOT_INITIALIZED (15)": "hint-cupti",
    "CUPTI_ERROR_INVALID_DEVICE (2)": "hint-cupti",
}


@pytest.mark.parametrize("error", ERRORS)
def test_the_reason_is_the_error_and_not_the_advice_that_follows_it(error: str) -> None:
    hint = hint_for("", "epoch 1\n" + said_by_kineto(error) + "epoch 2\n")
    assert hint is not None
    assert hint.key == ERRORS[error]


def test_the_reason_is_found_before_all_that_was_printed_after_it(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text(
        "hello\n" + said_by_kineto("CUPTI_ERROR_NOT_INITIALIZED (15)") + "x\n" * 50_000
    )
    gathered = Gathered(torch_version="2.13.0", device_build="12.6", finished=True)
    gathered.take({"ev": "notice", "key": "gpu-unrecorded", "values": {}})
    spec = RunSpec("python", script="train.py")
    result = build_result(
        spec, tmp_path, gathered, exit_status=0, tail="x\n", errors="", stopped=False, killed=False, seconds=1.0
    )
    assert [n.key for n in result.notices if n.key in ("gpu-unrecorded", "hint-cupti")] == [
        "gpu-unrecorded",
        "hint-cupti",
    ]


@pytest.mark.parametrize("category", ["kernel", "gpu_memcpy", "cuda_runtime", "cuda_driver"])
def test_a_trace_with_work_of_the_gpu_raises_no_doubt(tmp_path: Path, category: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b" " * (PIECE_BYTES - 12) + b'{"ph": "X", "cat": "%s"}' % category.encode())
    assert tells_of_gpu(str(path))


def test_a_gpu_that_left_nothing_in_the_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"ph": "X", "cat": "cpu_op", "name": "kernel"}')
    told: list[str] = []
    report = SimpleNamespace(notice=lambda key, **values: told.append(key))
    Checks(SimpleNamespace(), report).on_trace([], str(path))
    assert told == []
    Checks(SimpleNamespace(), report).on_trace(["cuda"], str(path))
    assert told == ["gpu-unrecorded"]
    assert tells_of_gpu(str(tmp_path / "none.json"))


class Cuda:
    """Says what ``torch.cuda`` says: once that the mode is a prototype, and in it each time that something waits."""

    def __init__(self) -> None:
        self.mode: Any = 0
        self.said = False

    def get_sync_debug_mode(self) -> int:
        """The mode as a number."""
        return int(self.mode)

    def set_sync_debug_mode(self, mode: int | str) -> None:
        """As ``THCPModule_cudaSetSyncDebugMode`` does."""
        if not self.said:
            self.said = True
            self._warn(
                "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing "
                "operations",
                "torch/csrc/cuda/Module.cpp:1082",
            )
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(str(mode), mode)

    def item(self) -> None:
        """An operator that waits."""
        if self.mode == 1:
            self._warn("called a synchronizing CUDA operation", "../c10/cuda/CUDAFunctions.cpp:152")

    def _warn(self, text: str, where: str) -> None:
        warnings.warn(f"{text} (Triggered internally at {where}.)", stacklevel=3)


@pytest.fixture
def strict() -> Iterator[list[str]]:
    """A program that takes warnings for errors and shows them in a way of its own."""
    shown: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.showwarning = lambda message, *rest, **more: shown.append(str(message))
        yield shown


def test_the_lines_that_wait_are_found_and_the_script_hears_nothing_of_it(tmp_path: Path, strict: list[str]) -> None:
    cuda = Cuda()
    watch = _child_sync.SyncWatch(SimpleNamespace(cuda=cuda), lambda name: name if name == __file__ else "")
    watch.start()
    for _ in range(3):
        cuda.item()  # this line
    watch.stop()
    cuda.item()
    assert (cuda.mode, strict) == (0, [])
    with pytest.raises(UserWarning):
        warnings.warn("as before", stacklevel=1)
    watch.save(str(tmp_path / "sync_lines.json"))
    content = json.loads((tmp_path / "sync_lines.json").read_text())
    assert (content["warnings"], len(content["calls"])) == (3, 1)
    lines = Path(__file__).read_text().splitlines()
    made = [lines[frame["line"] - 1].strip() for frame in content["calls"][0]["stack"] if frame["file"] == __file__]
    assert made[2] == "cuda.item()  # this line"
    assert [path.name for path in tmp_path.iterdir()] == ["sync_lines.json"]
