"""Errors of profiling that a person can act on."""

from __future__ import annotations

import errno

from profiling.sentences import say


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


def cannot_start(interpreter: str, error: Exception) -> ProfilingError:
    """Why no process of an interpreter could be started: it, or a system that has no room for one more."""
    full = isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM)
    cure = say("cure-processes" if full else "cure-interpreter")
    return ProfilingError(say("interpreter-dead", path=interpreter), str(error), cure)
