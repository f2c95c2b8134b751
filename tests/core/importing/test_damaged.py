"""Packed files with damage in the middle: all that lies before it is opened, however the text is wrapped."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
import zlib

import pytest
import zstandard

from core.importing import open_trace
from core.importing.streams import Text

_EVENTS = 16_000


def _text() -> bytes:
    """A trace that cannot be packed into less than 1 MB."""
    draw = random.Random(7)
    events = (
        b'{"ph":"X","cat":"cpu_op","name":"%0128x","ts":%d,"dur":1,"pid":1,"tid":1}'
        % (draw.getrandbits(512), 2 * number)
        for number in range(_EVENTS)
    )
    return b'{"traceEvents":[\n' + b",\n".join(events) + b"\n]}\n"


TEXT = _text()
GOOD = TEXT[: TEXT.index(b'"ts":27002,') + 5]  # what lies before the damage


@pytest.fixture(scope="module")
def deflated() -> bytes:
    """A block of an unknown type where `GOOD` ends."""
    maker = zlib.compressobj(6, wbits=-15)
    before = maker.compress(GOOD) + maker.flush(zlib.Z_FULL_FLUSH)
    assert len(before) > 1 << 20
    return before + b"\xff" + (maker.compress(TEXT[len(GOOD) :]) + maker.flush())[1:]


def _check(path) -> None:
    with Text(path) as text:
        found = b"".join(iter(text.read, b""))
    assert found in (GOOD, GOOD[:-1])  # the call that gives the last byte may meet the damage
    trace = open_trace(path)
    assert len(trace.slices) == GOOD.count(b"},\n") == 13_501
    assert trace.report.repaired["gzip-truncated"] == 1
    assert trace.report.is_cut_off


@pytest.mark.parametrize("outer", ["none", "gzip", "zstd", "zip"])
def test_gzip(tmp_path, deflated, outer):
    packed = b"\x1f\x8b\x08" + bytes(7) + deflated + bytes(8)
    path = tmp_path / "trace.json.gz"
    if outer == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("trace.json.gz", packed)
    else:
        wrap = {"none": bytes, "gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}[outer]
        path.write_bytes(wrap(packed))
    _check(path)


@pytest.mark.parametrize("outer", ["none", "gzip"])
def test_zstd(tmp_path, outer):
    maker = zstandard.ZstdCompressor().compressobj()
    before = maker.compress(GOOD) + maker.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    packed = before + b"\xff" + (maker.compress(TEXT[len(GOOD) :]) + maker.flush())[1:]
    path = tmp_path / "trace.json.zst"
    path.write_bytes(packed if outer == "none" else gzip.compress(packed))
    _check(path)


def test_zip(tmp_path, monkeypatch, deflated):
    class Deflated:
        def compress(self, data: bytes) -> bytes:
            return b""

        def flush(self) -> bytes:
            return deflated

    monkeypatch.setattr(zipfile, "_get_compressor", lambda *_: Deflated())
    path = tmp_path / "trace.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"not at the end"
        archive.writestr("trace.json", TEXT)
    _check(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_zip_whose_checksum_alone_is_wrong_is_whole(tmp_path, method):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("trace.json", TEXT)
    path = tmp_path / "trace.zip"
    path.write_bytes(made.getvalue().replace(zlib.crc32(TEXT).to_bytes(4, "little"), bytes(4)))
    trace = open_trace(path)
    assert len(trace.slices) == _EVENTS
    assert trace.report.repaired == {"gzip-checksum": 1}
