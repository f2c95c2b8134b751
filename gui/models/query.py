"""What a person searches for: the text, how it is read, and which slices come into question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from core.kinds import SliceKind
from core.tables import I32
from core.trace import Trace

# Groups of kinds that a person tells apart, each with its name (context "search").
KIND_GROUPS: dict[str, tuple[Any, tuple[SliceKind, ...]]] = {
    "": (QT_TRANSLATE_NOOP("search", "Any kind"), ()),
    "ops": (QT_TRANSLATE_NOOP("search", "Operators"), (SliceKind.CPU_OP,)),
    "kernels": (QT_TRANSLATE_NOOP("search", "Kernels"), (SliceKind.KERNEL,)),
    "copies": (QT_TRANSLATE_NOOP("search", "Copies and memsets"), (SliceKind.MEMCPY, SliceKind.MEMSET)),
    "calls": (QT_TRANSLATE_NOOP("search", "Runtime and driver calls"), (SliceKind.RUNTIME, SliceKind.DRIVER)),
    "ranges": (
        QT_TRANSLATE_NOOP("search", "Ranges and steps"),
        (SliceKind.RANGE, SliceKind.STEP, SliceKind.DEVICE_RANGE),
    ),
    "python": (QT_TRANSLATE_NOOP("search", "Python and modules"), (SliceKind.PYTHON, SliceKind.GC)),
}


@dataclass(frozen=True)
class Query:
    """A search. Durations in ns, None without a bound; ``tracks`` empty means all."""

    text: str = ""
    regex: bool = False
    kinds: str = ""  # key of `KIND_GROUPS`
    tracks: tuple[int, ...] = ()
    min_dur_ns: int | None = None
    max_dur_ns: int | None = None

    @property
    def filtered(self) -> bool:
        """Something else than the text restricts it."""
        return bool(self.kinds or self.tracks or self.min_dur_ns is not None or self.max_dur_ns is not None)

    def with_text(self, text: str) -> Query:
        """Return the same search for another text; ``/.../`` is read as a regular expression whatever the switch."""
        return replace(self, text=text.strip())

    def run(self, trace: Trace, tick: Callable[[], object] = lambda: None) -> I32:
        """Slices in time order: int32[k]; ``tick`` is called where this takes long, and may raise.

        Raises
        ------
        TraceError
            When the regular expression is not one, takes too long, or no process can look for it.
        """
        from core.search import search
        from gui.models import pattern_beside

        text, regex = self.text, self.regex
        if len(text) > 2 and text.startswith("/") and text.endswith("/"):
            text, regex = text[1:-1], True
        if not text and self.filtered:
            text = "*"
        regex = regex and text != "*"
        beside = partial(pattern_beside.fitting, tick=tick) if regex and pattern_beside.may_go_on(text) else None
        return search(
            trace,
            text,
            regex=regex,
            fitting=beside,
            kinds=KIND_GROUPS[self.kinds][1] or None,
            tracks=self.tracks or None,
            min_dur_ns=self.min_dur_ns,
            max_dur_ns=self.max_dur_ns,
        )


@dataclass(frozen=True)
class Fault:
    """Why a search found nothing it could show.

    Parameters
    ----------
    short
        A few words beside the search field.
    why
        A sentence.
    """

    short: str
    why: str


def find(trace: Trace, query: Query, progress: Any) -> tuple[Query, I32 | Fault]:
    """Run a search in a worker thread; a `Fault` says why it could not be run."""
    from core.errors import TraceError
    from gui.models.pattern_beside import NotSearched

    tr = QCoreApplication.translate
    try:
        return query, query.run(trace, lambda: progress(0.0, ""))
    except TraceError as error:
        short = tr("search", "not searched") if isinstance(error, NotSearched) else tr("search", "not a pattern")
        return query, Fault(short, " ".join(part for part in (error.title, error.detail) if part))
