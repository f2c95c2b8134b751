"""Runs scripts in the background while other tests run: a run is mostly the time that ``import torch`` takes."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.profiling import light
from tests.profiling.runs import Seen, run_script
from tests.shared import CASES

_pool = ThreadPoolExecutor(2, thread_name_prefix="launch")
_folder = tempfile.TemporaryDirectory(prefix="steplens-runs-")
_quick = light.write(Path(_folder.name))
_wanted: dict[Path, list[pytest.Item]] = {}  # by the file of tests
_futures: dict[str, Future[Seen]] = {}
_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "launch(case=, name=, text=, files=, argv=, whole_torch=, stop=, answers=, port=, **spec): run this; the "
        "fixture `seen` has the result. `stop` asks it to stop once a trace is there, `answers` maps prompts to lines, "
        "`port` names the variable that gets a free port",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what the chosen tests will ask for; one of several processes (pytest-xdist) learns its files one by one."""
    if session.config.option.collectonly:
        return
    for item in session.items:
        marker = item.get_closest_marker("launch")
        if marker is not None and not (marker.kwargs.get("case") and not CASES.is_dir()):
            _wanted.setdefault(item.path, []).append(item)
    if not hasattr(session.config, "workerinput"):
        for path in tuple(_wanted):
            _start(path)


def _start(path: Path) -> None:
    """Start what the tests of a file will ask for, once."""
    for item in _wanted.pop(path, ()):
        marker = item.get_closest_marker("launch")
        assert marker is not None
        _futures[item.nodeid] = _pool.submit(_launch, next(_numbers), dict(marker.kwargs))


def pytest_sessionfinish() -> None:
    """Start no more of them."""
    _pool.shutdown(wait=False, cancel_futures=True)
    _folder.cleanup()


def _free_port() -> str:
    """A port that nobody listens on, and of a range that no outgoing connection gets."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)
    raise AssertionError("no free port among a hundred")


def _launch(number: int, wishes: dict[str, Any]) -> Seen:
    folder = Path(_folder.name) / str(number)
    folder.mkdir()
    script = Path()
    if "case" in wishes:
        base = next(CASES.glob(wishes.pop("case") + "-*"))
        name = wishes.pop("name", "")
        found = sorted(base.glob(name)) if name else []
        script = found[0] if found else base / name
        wishes["cwd"] = str(base) if "module" in wishes else ""
    for name, text in wishes.pop("files", {}).items():
        (folder / name).write_text(text)
    if "text" in wishes:
        script = folder / "train.py"
        script.write_text(wishes.pop("text"))
    argv = wishes.pop("argv", ())
    if "port" in wishes:
        wishes["env"] = {wishes.pop("port"): _free_port()}
    if not wishes.pop("whole_torch", False):
        wishes["env"] = {**_quick, **wishes.get("env", {})}
    return run_script(script, folder / "runs", *argv, **wishes)


@pytest.fixture
def seen(request: pytest.FixtureRequest) -> Seen:
    """The run of the test's ``launch`` marker, ended."""
    _start(request.node.path)
    return _futures.pop(request.node.nodeid).result()
