"""What stands before or behind a trace, and compressed data that is damaged: the report and the refusal are true."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
import zstandard

from core.errors import TraceError
from core.figures.compute import compute_figures
from core.importing import open_trace
from tests.trace_builder import TraceBuilder


def _trace(first: int, count: int = 40) -> bytes:
    builder = TraceBuilder()
    for i in range(first, first + count):
        builder.op(f"aten::op{i}", 100 * i, 50)
    return builder.to_json()


ONE, TWO = _trace(0), _trace(100)
LIST = ONE[ONE.index(b"[", ONE.index(b'"traceEvents"')) : ONE.rindex(b"]") + 1]
TAIL = b'{"schemaVersion":1,"traceEvents":' + LIST


@pytest.mark.parametrize(
    "data",
    [
        ONE + b"\n" + TWO,
        gzip.compress(ONE) + gzip.compress(TWO),
        LIST + b"\n" + LIST,
        TAIL + b',"traceEvents":' + LIST + b"}",
        ONE.replace(b'"name":"aten::op9"', b'}, "name":"aten::op9"'),
    ],
    ids=["documents", "members", "lists", "keys", "brace"],
)
def test_events_behind_the_end_are_never_left_out_in_silence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    trace = open_trace(path)
    assert "second-trace" in trace.report.repaired
    assert not {"trailing-text", "brackets-missing"} & set(trace.report.repaired)
    (note,) = [note for note in compute_figures(trace).doctor if note.code == "second-trace"]
    assert note.severity == "warning"


def test_a_log_behind_the_end_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(ONE + b"\nTraceback (most recent call last):\n")
    assert set(open_trace(path).report.repaired) == {"trailing-text"}


def _refusal(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    with pytest.raises(TraceError) as refused:
        open_trace(path)
    return str(refused.value)


@pytest.mark.parametrize("before", [b"[W125 12:00:00] Warning: late\n", b"// exported\n", b"Warning: late\n"])
def test_text_before_a_trace_is_named(tmp_path: Path, before: bytes) -> None:
    said = _refusal(tmp_path, before + ONE)
    assert "it begins with other text" in said
    assert before[:9].decode() in said
    assert "plain text" in _refusal(tmp_path, before)


def test_compressed_data_without_content_is_not_called_empty(tmp_path: Path) -> None:
    for data in (zstandard.compress(ONE)[:-30], gzip.compress(b"")):
        said = _refusal(tmp_path, data)
        assert f"It is {len(data):,} bytes long" in said
        assert "is empty." not in said


def test_what_stands_before_the_damage_of_a_small_file_is_shown(tmp_path: Path) -> None:
    text = _trace(0, 4000)[:300_000]
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    path = tmp_path / "t.json.gz"
    path.write_bytes(whole + b"\xff" * 64)  # a block of the reserved type
    trace = open_trace(path)
    assert len(trace.slices) > 0.95 * text.count(b'"ph"')
    assert trace.report.is_cut_off


@pytest.mark.parametrize("members", [1, 2])
def test_all_that_stands_before_the_damage_of_a_large_file_is_shown(tmp_path: Path, members: int) -> None:
    """What the inflater had made when it met the damage went with it: that much is read again."""
    events = [
        b'{"ph":"X","cat":"cpu_op","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":1}' % (i, 2 * i) for i in range(60_000)
    ]
    text = b'{"traceEvents":[' + b",\n".join(events) + b",\n "
    packed = b""
    for number in range(members):
        part = text[number * len(text) // members : (number + 1) * len(text) // members]
        packer = zlib.compressobj(0, wbits=31)  # stored: more compressed data than is kept in memory
        packed += packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH if number == members - 1 else zlib.Z_FINISH)
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed + b"\xff" * 64 + b"x" * 600_000)
    assert len(packed) > 3 << 20
    trace = open_trace(path)
    assert len(trace.slices) == len(events)
    assert trace.report.is_cut_off


@pytest.mark.parametrize("raw", [True, False])
def test_a_path_in_the_footer_may_end_in_a_backslash(tmp_path: Path, raw: bool) -> None:
    """Such a path seems to escape its quotation mark: the object is closed all the same."""
    path = tmp_path / "t.json"
    text = TAIL.replace(b'"aten::op3"', rb'"C:\odd\x.py"') if raw else TAIL
    path.write_bytes(text + rb', "traceName": "C:\x\", "with_flops": 1}' + b"\n")
    report = open_trace(path).report
    assert set(report.repaired) == ({"backslashes-repaired"} if raw else set())
    path.write_bytes(text + rb', "traceName": "C:\x\", "with_flops": 1')
    assert "brackets-missing" in open_trace(path).report.repaired
