"""Errors of profiling that a person can act on."""

from __future__ import annotations


class ProfilingError(Exception):
    """A run cannot be started, or did not end as wished.

    Parameters
    ----------
    title
        One sentence: what is wrong.
    detail
        What exactly was found; may be empty.
    hint
        What to do about it; may be empty.
    """

    def __init__(self, title: str, detail: str = "", hint: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.detail, self.hint) if part)
