"""The compiled library stays within its memory whatever it is given: run under the compiler's sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.core.importing.test_scanned import EVENTS, _text

FUZZ = Path(__file__).with_name("native_fuzz.c")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def test_damaged_events_are_read_within_bounds(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    program, text = tmp_path / "fuzz", tmp_path / "events"
    built = subprocess.run([compiler, *SANITIZED, "-o", str(program), str(FUZZ)], capture_output=True, text=True)
    if built.returncode and "sanit" in built.stderr or "lasan" in built.stderr or "lubsan" in built.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert not built.returncode, built.stderr
    text.write_bytes(_text(EVENTS, separators=(",", ":")))
    leaks_aside = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # looking for them needs rights that not all have
    done = subprocess.run([str(program), str(text), "20000"], capture_output=True, text=True, env=leaks_aside)
    assert not done.returncode, done.stderr
    taken, left, nested = map(int, done.stdout.split())
    assert min(taken, left, nested) > 1000
