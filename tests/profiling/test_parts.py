"""The parts that need no run: words for endings, manifests, interpreters, processes, and what runs in old Pythons."""

from __future__ import annotations

import ast
import contextlib
import errno
import json
import os
import select
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiling import _child_sync, manifest
from profiling import preflight as preflight_module
from profiling.errors import ProfilingError, cannot_start
from profiling.events import Gathered, Tail
from profiling.interpreters import find_interpreters, has_torch, torch_version
from profiling.outcome import exit_in_words, hint_for, read_traceback
from profiling.preflight import preflight
from profiling.processes import Tree, _listed, descendants
from profiling.reading import _KINETO_NOISE
from profiling.runs import list_runs, rename
from profiling.spec import package_module

CHILD_FILES = sorted(Path(manifest.__file__).parent.glob("_child*.py"))


@pytest.mark.parametrize("path", CHILD_FILES, ids=lambda p: p.name)
def test_what_runs_in_the_users_python_is_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 8))
    imported = {a.name.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {str(n.module).partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names) | {"torch"}


TRACEBACK = """noise
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    main()
  File "/home/me/train.py", line 9, in main
    model(x)
    ~~~~~^^^
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1518, in _call_impl
    return forward_call(*args, **kwargs)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


def test_a_traceback_is_read() -> None:
    failure = read_traceback(TRACEBACK)
    assert failure is not None
    assert failure.title.startswith("torch.OutOfMemoryError")
    assert [f.line for f in failure.frames] == [12, 9, 1518]
    assert failure.users_frame is not None
    assert (failure.users_frame.line, failure.users_frame.code) == (9, "model(x)")
    assert "smaller batch" in (hint_for(failure.title, TRACEBACK) or "")
    assert read_traceback("all is well") is None


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("ModuleNotFoundError: No module named 'timm.models'", "has no module timm"),
        ("RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("EOFError: EOF when reading a line", "asks for input"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ValueError: something of the user's own", ""),
    ],
)
def test_errors_have_cures(title: str, words: str) -> None:
    hint = hint_for(title) or ""
    assert words in hint
    assert bool(hint) == bool(words)


def test_endings_in_words() -> None:
    assert exit_in_words(0) == "The script ended normally."
    assert exit_in_words(7) == "The script ended with exit status 7."
    assert "signal 9 (SIGKILL)" in exit_in_words(-9)
    assert "memory" in exit_in_words(-9)
    assert "segmentation fault" in exit_in_words(-11)
    assert "signal 250" in exit_in_words(-250)


def test_run_folders_never_collide(tmp_path: Path) -> None:
    made = {manifest.new_run_folder(tmp_path, "a b/c:d.py") for _ in range(3)}
    assert len(made) == 3
    assert all(folder.is_dir() and folder.parent == tmp_path for folder in made)


def test_sources_keep_their_places(tmp_path: Path) -> None:
    for name in ("project/train.py", "project/pkg/model.py", "project/pkg/sub/model.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    run = tmp_path / "run"
    run.mkdir()
    rows = manifest.copy_sources([str(p) for p in sorted((tmp_path / "project").rglob("*.py"))], run)
    assert len(rows) == 3
    for row in rows:
        assert (run / row["copy"]).read_text() == Path(row["path"]).read_text()
    assert (run / "sources" / "pkg" / "sub" / "model.py").is_file()


def test_the_environment_keeps_no_secrets() -> None:
    kept = manifest.environment(
        {"CUDA_VISIBLE_DEVICES": "0", "WANDB_API_KEY": "s", "HF_TOKEN": "s", "OMP_NUM_THREADS": "4"}
    )
    assert kept["variables"] == {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "4"}


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    for when, name in ((1.0, "old"), (2.0, "new")):
        folder = manifest.new_run_folder(tmp_path, name)
        traces = [{"path": "../../etc/passwd"}, {"path": "trace.json"}]
        manifest.write(
            folder, {"format": manifest.FORMAT, "name": name, "created": when, "state": "ok", "traces": traces}
        )
        (folder / "trace.json").write_text("{}")
    (tmp_path / "not a run").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    found = list_runs(tmp_path)
    assert [run.name for run in found] == ["new", "old"]
    assert found[0].traces == [found[0].folder / "trace.json"]
    rename(found[0].folder, "  better ")
    assert list_runs(tmp_path)[0].name == "better"
    with pytest.raises(ProfilingError):
        rename(found[0].folder, " ")


def test_events_come_in_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    path.write_bytes(b'{"ev": "a"}\n{"ev"')
    assert [e["ev"] for e in tail.read()] == ["a"]
    path.write_bytes(b'{"ev": "a"}\n{"ev": "b"}\nnot json\n[1]\n')
    assert [e["ev"] for e in tail.read()] == ["b"]


def test_progress_is_that_of_one_process() -> None:
    gathered = Gathered()
    gathered.take({"ev": "started", "pid": 1})
    assert gathered.take({"ev": "step", "pid": 2, "phase": "early", "step": 1, "done": 1, "total": 4})
    assert not gathered.take({"ev": "step", "pid": 3, "phase": "early", "step": 9, "done": 1, "total": 4})
    assert gathered.progress.step == 1


def make_environment(folder: Path, *, torch: bool) -> Path:
    """A virtual environment as far as its folders tell."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    if torch:
        (packages / "torch").mkdir()
        (packages / "torch" / "version.py").write_text("")
    return python


def test_environments_beside_the_script_come_first(tmp_path: Path) -> None:
    near = make_environment(tmp_path / "project" / ".venv", torch=True)
    bare = make_environment(tmp_path / "venv", torch=False)
    script = tmp_path / "project" / "sub" / "train.py"
    script.parent.mkdir()
    script.write_text("")
    found = find_interpreters(str(script), [str(bare), "/gone/python"])
    assert found[0].path == str(near)
    assert found[0].has_torch is True
    assert [i.has_torch for i in found if i.path == str(bare)] == [False]
    assert "/gone/python" not in [i.path for i in found]
    assert has_torch(str(bare)) is False


def test_a_torch_that_is_built_from_its_source_is_found(tmp_path: Path) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    source = tmp_path / "pytorch"
    for folder in (packages, source / "torch"):
        folder.mkdir(parents=True)
    (source / "torch" / "version.py").write_text("__version__ = '2.9.0a0+git1'\n")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    python = str(tmp_path / "venv" / "bin" / "python")
    (packages / "setup.pth").write_text("import other\n# torch\n")
    assert torch_version(python) is None
    (packages / "easy-install.pth").write_text(f"import other\n{source}\n")
    assert torch_version(python) == "2.9.0a0"


def test_what_has_torch_comes_before_an_environment_that_lacks_it(tmp_path: Path, monkeypatch: Any) -> None:
    bare = make_environment(tmp_path / "project" / ".venv", torch=False)
    good = make_environment(tmp_path / "here" / "venv", torch=True)
    torch = good.parent.parent / "lib" / "python3.11" / "site-packages" / "torch"
    (torch / "version.py").write_text("__all__ = []\n__version__ = '2.13.0+cpu'\ndebug = False\n")
    script = tmp_path / "project" / "train.py"
    script.write_text("")
    monkeypatch.chdir(tmp_path / "here")
    found = find_interpreters(str(script))
    assert (found[0].path, found[0].torch_version) == (str(good), "2.13.0")
    assert found[0].origin == "in this folder"
    bare_at = [i.path for i in found].index(str(bare))
    assert all(i.has_torch for i in found[:bare_at])


def test_an_environment_that_sees_the_systems_packages_has_their_torch(tmp_path: Path) -> None:
    base = make_environment(tmp_path / "base", torch=True)
    (base.parent.parent / "pyvenv.cfg").unlink()
    python = make_environment(tmp_path / "env", torch=False)
    config = python.parent.parent / "pyvenv.cfg"
    config.write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    assert (has_torch(str(python)), torch_version(str(python))) == (False, None)
    config.write_text(f"home = {base.parent}\ninclude-system-site-packages = true\n")
    assert (has_torch(str(python)), torch_version(str(python))) == (True, "")


def test_a_file_in_a_package_has_a_module_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/__init__.py", "a/b/__init__.py", "a/b/run.py", "a/b/__main__.py", "lone.py"):
        (tmp_path / name).write_text("")
    assert package_module(str(tmp_path / "a" / "b" / "run.py")) == ("a.b.run", str(tmp_path))
    assert package_module(str(tmp_path / "a" / "b" / "__main__.py")) == ("a.b", str(tmp_path))
    assert package_module(str(tmp_path / "lone.py")) is None


@pytest.mark.parametrize(("number", "cure"), [(errno.EAGAIN, "other programs"), (errno.ENOENT, "another interpreter")])
def test_a_system_without_room_for_a_process_is_no_fault_of_the_interpreter(number: int, cure: str) -> None:
    assert cure in cannot_start("python", OSError(number, "no")).hint


def test_preflight_of_what_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(ProfilingError, match="cannot be started"):
        preflight(str(tmp_path / "gone"))
    liar = tmp_path / "python"
    liar.write_text("#!/bin/sh\necho hello\n")
    liar.chmod(0o755)
    with pytest.raises(ProfilingError, match="no usable Python"):
        preflight(str(liar))


def answering(tmp_path: Path, **changes: Any) -> str:
    """An interpreter that gives a prepared answer."""
    answer = {
        "python": "3.11.7", "executable": "x", "prefix": "x", "torch": "2.5.1", "torch_error": "", "cuda_build": "12.4",
        "hip_build": None, "devices": [], "cuda_error": "", "kineto": True,
    } | changes  # fmt: skip
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat '{tmp_path}/answer.json'\n")
    python.chmod(0o755)
    return str(python)


GPU = {"index": 0, "name": "NVIDIA L4", "free_bytes": 20 * 2**30, "total_bytes": 24 * 2**30}


def test_preflight_words(tmp_path: Path) -> None:
    found = preflight(answering(tmp_path, devices=[GPU]))
    assert found.usable
    assert found.words == "Python 3.11.7, torch 2.5.1, NVIDIA L4 (20.0 of 24.0 GiB free)"
    for changes, words, usable in (
        ({"torch": None}, "has no torch", False),
        ({"torch": "1.13.1"}, "too old", False),
        ({"torch_error": "OSError: libcudart"}, "libcudart", False),
        ({"cuda_error": "driver too old"}, "driver too old", True),
        ({"cuda_error": "CUDA initialization: Found no NVIDIA driver on your system"}, "is no NVIDIA driver", True),
        ({"cuda_build": None}, "CPU build", True),
        ({}, "No GPU is visible", True),
    ):
        found = preflight(answering(tmp_path, **changes))
        assert any(words in remark.text for remark in found.remarks), changes
        assert found.usable == usable


def test_what_torch_advises_about_the_driver_is_left_to_the_cure(tmp_path: Path) -> None:
    (remark,) = preflight(answering(tmp_path, cuda_error="too old (version 11040). Please update it from URL")).remarks
    assert remark.text.endswith("GPU: too old (version 11040).")
    assert "update the driver" in remark.cure


def test_preflight_sees_what_spoils_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "params"
    driver.write_text("RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(preflight_module, "RESTRICTION_FILE", driver)
    monkeypatch.setattr(preflight_module.os, "geteuid", lambda: 1000)
    env = {"CUDA_LAUNCH_BLOCKING": "1", "NSYS_PROFILING_SESSION_ID": "7"}

    def told(**changes: Any) -> list[str]:
        return [
            str(getattr(remark.text, "key", "")) for remark in preflight(answering(tmp_path, **changes), env).remarks
        ]

    assert told(devices=[GPU]) == ["blocking-set", "attached", "restricted"]
    assert (told(), told(cuda_build=None)) == (["gpu-unseen"], ["build-cpu"])  # no GPU: none of them matters


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_whole_tree_is_killed() -> None:
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'], " \
        "start_new_session=True); print('up', flush=True); time.sleep(99)"  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    tree = Tree(process)
    tree.look()
    assert len(tree.alive()) == 1
    listed = _listed(process.pid)
    assert listed in (None, descendants(process.pid))  # the cheap way and the thorough one see the same
    tree.kill()
    process.wait(60)
    process.stdout.close()
    for (
        number
    ) in tree.alive():  # a kill is asked for; the grandchild's end comes a moment later, and not through wait()
        with contextlib.suppress(ProcessLookupError):
            watched = os.pidfd_open(number)
            assert select.select([watched], [], [], 30)[0], f"process {number} outlived SIGKILL"
            os.close(watched)
    assert tree.alive() == []
    assert descendants(process.pid) == set()


def test_sync_warnings_are_kept_with_their_stacks(tmp_path: Path) -> None:
    mode = SimpleNamespace(now=0)
    cuda = SimpleNamespace(
        get_sync_debug_mode=lambda: mode.now, set_sync_debug_mode=lambda value: setattr(mode, "now", value)
    )
    watch = _child_sync.SyncWatch(SimpleNamespace(cuda=cuda), lambda name: name if name == __file__ else "")

    def loss() -> None:
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)

    shown = warnings.showwarning
    watch.start()
    assert mode.now == "warn"
    loss()
    loss()
    watch.stop()
    assert mode.now == 0
    assert warnings.showwarning is shown
    watch.save(str(tmp_path / "sync_lines.json"))
    content = json.loads((tmp_path / "sync_lines.json").read_text())
    assert content["warnings"] == 2
    assert len(content["calls"]) == 2  # from two lines
    assert content["calls"][0]["source"]["function"].endswith("loss")
    assert content["calls"][0]["source"]["file"] == __file__


def test_an_interrupt_waits_until_the_trace_is_whole() -> None:
    import signal

    from profiling._child_report import Undisturbed

    done = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    try:
        with pytest.raises(KeyboardInterrupt), Undisturbed():
            signal.raise_signal(signal.SIGINT)
            done.append("saved")
        assert done == ["saved"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    with Undisturbed():
        done.append("again")
    assert done == ["saved", "again"]


NOISE = (
    b"USDT:2026-01-02 03:04:05 123:456 Some.cpp:12] profiler_start\n",
    b"STAGE:2026-01-02 03:04:05 123:456 ActivityProfilerController.cpp:314] Completed Stage: Warm Up\n",
    b"ERROR:2026-11-30 14:43:54 24630:24630 CudaDeviceProperties.cpp:27] cudaGetDeviceCount failed with code 35\n",
    b"[W1130 12:03:39.235480025 CPUAllocator.cpp:245] Memory block of unknown size was allocated before the profiling "
    b"started, profiler results will not include the deallocation event\n",
    b"[rank1]:[W1130 12:03:39.235480025 CPUAllocator.cpp:245] Memory block of unknown size was allocated before the "
    b"profiling started, profiler results will not include the deallocation event\n",
    b"[W CPUAllocator.cpp:219] Memory block of unknown size was allocated before the profiling started, results\n",
    b"ERROR:2026-11-30 20:55:21 9936:9936 DeviceProperties.cpp:47] gpuGetDeviceCount failed with code 35\n",
)


@pytest.mark.parametrize("noise", NOISE)
def test_what_the_profiler_writes_is_taken_out_of_the_output(noise: bytes) -> None:
    assert _KINETO_NOISE.sub(b"", b"one\n" + noise + b"two\n") == b"one\ntwo\n"


def test_a_progress_bar_is_not_broken_by_the_profilers_warning() -> None:
    assert _KINETO_NOISE.sub(b"", b"\r 20%|##   |" + NOISE[3] + b"\r 40%|###  |") == b"\r 20%|##   |\r 40%|###  |"
    own = b"[W1130 12:03:39.2 Other.cpp:1] a warning of the script's own\nUSDT: mine\n"
    assert _KINETO_NOISE.sub(b"", own) == own
