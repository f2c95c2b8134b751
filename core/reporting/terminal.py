"""A terminal, or the pipe in its place: progress on stderr, results on stdout."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.errors import TraceError
from core.words import THIN

if TYPE_CHECKING:
    from core.reporting.text import Page


class Progress:
    """One line on stderr, rewritten in place; silent where stderr is no terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr is not None and sys.stderr.isatty()
        self.last = ""

    def part(self, start: float, end: float) -> Callable[[float, str], None]:
        """Progress of one stage, as a stretch of the whole."""

        def report(fraction: float, text: str = "") -> None:
            self(start + (end - start) * min(max(fraction, 0.0), 1.0), text)

        return report

    def __call__(self, fraction: float | None, text: str = "") -> None:
        """Show how far the work has come (0..1, None where no end is known) and what is being done."""
        if not self.shown:
            return
        share = "      " if fraction is None else f"{100 * fraction:3.0f} % "
        line = f"{share}{text}"[: shutil.get_terminal_size().columns - 1]
        if line != self.last:
            self.last = line
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self.shown and self.last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.last = ""


def say(text: str) -> None:
    """One line on stderr; what a terminal would obey (names of files and of events may hold it) is shown, not sent."""
    if sys.stderr is not None:
        shown = "".join(c if c.isprintable() or c == THIN else "\ufffd" for c in text)
        with contextlib.suppress(OSError, ValueError):  # nobody listens
            print(f"steplens: {shown}", file=sys.stderr, flush=True)


def write(data: bytes) -> None:
    """Result to stdout, whatever its encoding.

    Raises
    ------
    TraceError
        When it cannot be written: the output is closed, or its disk is full.
    BrokenPipeError
        When its reader has seen enough.
    """
    if sys.stdout is None:
        raise TraceError("The result cannot be written: standard output is closed.")
    try:
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", None)
        if stream is None:
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            stream.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise TraceError(f"The result cannot be written: {error.strerror or error}.") from error


def drop_output() -> None:
    """Send what stdout still holds nowhere, so that the interpreter does not stumble over it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def page() -> Page:
    """Width and colour that suit stdout."""
    from core.reporting.text import Page

    terminal = sys.stdout is not None and sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((100, 24)).columns if terminal or "COLUMNS" in os.environ else 100
    return Page(min(max(columns, 40), 160), colour)
