"""Texts of Python sources in the encodings that they declare."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

from core.errors import TraceError


def read_source(path: Path) -> str:
    """Return a Python file's text in its own encoding, with its own line ends.

    Raises
    ------
    TraceError
        When it cannot be read or decoded.
    """
    try:
        data = path.read_bytes()
        return data.decode(encoding_of(data))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise TraceError(f"{path} is no Python source: {error}.") from error


def encoding_of(data: bytes) -> str:
    """Encoding that a source declares; UTF-8 otherwise. A byte order mark is kept in the text."""
    encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    return "utf-8" if encoding == "utf-8-sig" else encoding


def encoded(text: str, like: Path) -> bytes:
    """A text in the encoding of a file.

    Raises
    ------
    TraceError
        When that has no such character, or declares an encoding that there is not.
    """
    try:
        encoding = encoding_of(like.read_bytes())
        return text.encode(encoding)
    except SyntaxError as error:
        raise TraceError(f"{like} is no Python source: {error}.") from error
    except UnicodeEncodeError as error:
        no = f"{like} is in {encoding}, which has no {text[error.start]!r}."
        raise TraceError(no, hint="Save it as UTF-8 first.") from error
