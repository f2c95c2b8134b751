"""Files that lie beside traces and are none: each is called what it is, with what to do."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sqlite3
import tarfile
from pathlib import Path

import pytest

from core.errors import TraceError
from core.importing import open_trace

NODES = [{"id": number, "name": "x" * 4000, "inputs": {}} for number in range(3000)]


def _tar() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        info = tarfile.TarInfo("trace.json")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"{}"))
    return held.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("et.json", json.dumps({"schema": "1.1", "pid": 1, "nodes": NODES}).encode(), "an execution trace"),
        ("small.json", b'{"schema": "1.1", "nodes": []}', "an execution trace"),
        ("memory.pickle", pickle.dumps({"segments": []}, protocol=4), "a Python pickle"),
        ("trace.json.bz2", b"BZh91AY&SY", "compressed with bzip2"),
        ("trace.json.xz", b"\xfd7zXZ\x00", "compressed with xz"),
        ("trace.tar.gz", _tar(), "a tar archive"),
        (
            "twice.gz",
            gzip.compress(b'{"format": "steplens.analysis/1", "trace": {}}', mtime=0),
            "a report that StepLens wrote",
        ),
        ("train.ipynb", b'{"cells": [], "nbformat": 4}', "a notebook"),
        ("pyproject.toml", b'[build-system]\nrequires = ["setuptools"]\n', "plain text, not JSON"),
        ("tools.toml", b'[[tool.one]]\nname = "x"\n', "plain text, not JSON"),
    ],
)
def test_what_lies_beside_traces(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TraceError) as found:
        open_trace(tmp_path / name)
    assert found.value.title.startswith(f"{name} is not a PyTorch trace: it is {what}")
    assert found.value.hint


def test_a_script_is_shown_in_words_and_called_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import math\nimport torch\n\n\nfor step in range(3):\n    pass\n")
    with pytest.raises(TraceError) as found:
        open_trace(tmp_path / "train.py")
    assert "“import math import torch for step in" in found.value.detail
    assert "profile it" in found.value.hint


def test_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "report.sqlite") as database:
        database.execute("create table kernels (start integer)")
    with pytest.raises(TraceError, match="an SQLite database"):
        open_trace(tmp_path / "report.sqlite")


def test_what_is_found_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text('{"Type": 48}\n{"Type": 49}\n')
    with pytest.raises(TraceError) as found:
        open_trace(tmp_path / "lines.json")
    assert "“" in str(found.value) or "Its keys are" in str(found.value)


def test_times_that_are_nanoseconds_are_called_too_large(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.7e18, "dur": 5}
    (tmp_path / "ns.json").write_text(json.dumps({"traceEvents": [event]}))
    notes = {note.code: note for note in open_trace(tmp_path / "ns.json").report.notes}
    assert "nanoseconds" in notes["no-time"].advice
    assert "no-usable-events" in notes
    assert "no-events" not in notes
