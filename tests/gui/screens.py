"""A virtual screen for the tests that open a real window: each has one of its own, with a number of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
XVFB = shutil.which("Xvfb")

needs_screen = pytest.mark.skipif(XVFB is None, reason="Xvfb is not installed: no virtual screen to open a window on")


@contextmanager
def screen() -> Iterator[dict[str, str]]:
    """Start a screen of 1600 x 1000; yields the variables for a program that opens its windows there."""
    reading, writing = os.pipe()
    command = [str(XVFB), "-displayfd", str(writing), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]
    with (
        open(reading) as number,
        subprocess.Popen(command, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server,
    ):
        os.close(writing)
        try:
            found = number.readline().strip()  # the server chooses one when it is ready
            assert found, f"Xvfb ended with {server.poll()}"
            taken = {name: value for name, value in os.environ.items() if name not in ("WAYLAND_DISPLAY", "XAUTHORITY")}
            yield {
                **taken,
                "DISPLAY": f":{found}",
                "QT_QPA_PLATFORM": "xcb",
                "QT_QUICK_BACKEND": "software",
                "PYTHONPATH": str(ROOT),
            }
        finally:
            server.terminate()


def run(command: list[str], timeout_s: float, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on a screen of its own; skips the test where the system libraries of a real window are missing."""
    with screen() as environment:
        done = subprocess.run(
            command, env={**environment, **variables}, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    if "could not connect to display" in done.stderr or 'load the Qt platform plugin "xcb"' in done.stderr:
        pytest.skip("the system libraries of a real window are missing: " + done.stderr.strip().splitlines()[-1])
    return done
