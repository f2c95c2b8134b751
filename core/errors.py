"""Errors that a person can act on."""

from __future__ import annotations


class TraceError(Exception):
    """The input cannot be used.

    Parameters
    ----------
    title
        One sentence: what is wrong (names the file).
    detail
        Where in the file and what was found there; may be empty.
    hint
        What to do about it; may be empty.
    offset_bytes
        Byte offset in the uncompressed text where the fault starts, or None where it has no place.
    """

    def __init__(self, title: str, detail: str = "", hint: str = "", offset_bytes: int | None = None) -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.hint = hint
        self.offset_bytes = offset_bytes

    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.detail, self.hint) if part)


class Cancelled(Exception):
    """The user called off a long computation; nothing was changed."""
