"""Which functions to mark for a suggestion, and which suggestion of the new trace is the one that was searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gui import text

if TYPE_CHECKING:
    from core.source import SourceFinder
    from core.suggestions import SourceRef, Suggestion
    from core.trace import Trace

MOST_FUNCTIONS = 6
MOST_LOOKED_AT = 200  # slices of evidence


@dataclass(frozen=True)
class Sought:
    """A suggestion whose line is searched: its rule, its key in the first trace, and ``(file, function)`` if known."""

    rule: str
    key: str
    function: tuple[str, str]


def function_of(suggestion: Suggestion) -> tuple[str, str]:
    """Base name of the file and function of a suggestion; empty where it has no place."""
    source = suggestion.source
    return (_base(source.file), source.function.rsplit(".", 1)[-1]) if source and source.file else ("", "")


def patterns(suggestion: Suggestion, trace: Trace, finder: SourceFinder | None) -> tuple[str, ...]:
    """Functions to mark, as ``FILE:FUNCTION``: the suggestion's own, else those about its evidence, else all."""
    found: dict[str, None] = {}
    if suggestion.source is not None and suggestion.source.file:
        found[_pattern(suggestion.source)] = None
    elif finder is not None:
        slices = [at for e in suggestion.evidence for at in e.slices][:MOST_LOOKED_AT]
        for at in slices:
            place = finder.of_slice(at) if 0 <= at < len(trace.slices) else None
            if place is not None and place.file and len(found) < MOST_FUNCTIONS:
                found[_pattern(place)] = None
    return tuple(found) or ("*",)


def needs_the_user(spec: Mapping[str, Any]) -> bool:
    """Whether the first run had variables set: their values are not kept, so it cannot be run again as it was."""
    return bool(spec.get("env"))


def best(sought: Sought, suggestions: Sequence[Suggestion]) -> int:
    """Position of the suggestion that was searched, -1 where it did not come up again."""
    ranked = [
        (s.key == sought.key, function_of(s) == sought.function, bool(s.source and s.source.exact), -at)
        for at, s in enumerate(suggestions)
        if s.rule_id == sought.rule
    ]
    return -max(ranked)[3] if ranked else -1


def outcome_words(suggestion: Suggestion) -> str:
    """What was found, as a sentence."""
    source = suggestion.source
    if source is None or not source.exact:
        return text.translate("capture", "The line was not found: what was recorded does not name it.")
    return text.translate("capture", "The line is {file}:{line}.").format(file=_base(source.file), line=source.line)


def _pattern(source: SourceRef) -> str:
    return f"{_base(source.file)}:{source.function or '*'}"


def _base(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name
