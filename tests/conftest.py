"""What every test gets: no screen, no settings of the user's, and no warning that passes unnoticed."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_LOGGING_RULES", "qt.qpa.*=false")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the files, begin with those that start other programs: they take longest."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if any(map(item.get_closest_marker, ("launch", "torch", "xvfb")))}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings, caches and data go to a folder of the test's own."""
    home = tmp_path_factory.mktemp("home")
    for variable, name in (
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
    ):
        folder = home / name
        folder.mkdir()
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("HOME", str(home))
    try:
        from PySide6.QtCore import QSettings
    except ImportError:
        return home
    for scope in (QSettings.Scope.UserScope, QSettings.Scope.SystemScope):
        for kind in (QSettings.Format.IniFormat, QSettings.Format.NativeFormat):
            QSettings.setPath(kind, scope, str(home / "config"))
    return home


class _Strict(logging.Handler):
    """Collects what is logged at WARNING or above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def signals_heard() -> Iterator[None]:
    """Programs started meanwhile get their signals, though the tests run under ``nohup`` or in the background.

    An ignored signal is inherited, and neither Python nor the window takes one up that somebody wanted ignored.
    """
    ignored = [number for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)) if is_ignored(number)]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def is_ignored(number: int) -> bool:
    """Whether this process ignores a signal."""
    return signal.getsignal(number) == signal.SIG_IGN


@pytest.fixture(autouse=True)
def no_unexpected_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that logs a warning or an error, unless it looks at its logs itself (uses ``caplog``)."""
    handler = _Strict()
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)
    if handler.records and "caplog" not in request.fixturenames:
        pytest.fail("unexpected log: " + "; ".join(record.getMessage() for record in handler.records))
