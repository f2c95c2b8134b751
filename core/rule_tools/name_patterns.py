"""Regular expressions over the names of a trace: what a name must hold to match is looked for first.

Most rules ask for names that are in few traces. Looking for a word in all names at once takes a microsecond, asking
the expression about each of a hundred names ten to a hundred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_LEAST = 3  # characters: shorter words are in every trace
_QUANTIFIERS = "?*+{"
_CLASSES = "dDwWsSbBAZ"  # after a backslash: classes and places, no character of their own


def matching(pattern: str, names: Sequence[str], together: str) -> list[int]:
    """Positions of the names in which a pattern is found; ``together`` is all of them, with a break between any two."""
    words = required_words(pattern)
    search = re.compile(pattern).search
    if words is None:
        return [at for at, name in enumerate(names) if search(name)]
    held = [word for word in words if word in together]
    if not held:
        return []
    if len(held) == 1:
        word = held[0]
        return [at for at, name in enumerate(names) if word in name and search(name)]
    return [at for at, name in enumerate(names) if search(name)]


@lru_cache(maxsize=1024)
def required_words(pattern: str) -> tuple[str, ...] | None:
    """Words of which a text holds at least one if the pattern is found in it; None where that cannot be told.

    Understands what our rules write: of each alternative the longest run of plain characters outside of groups.
    """
    if "(?" in pattern.replace("(?:", "(") or "\n" in pattern:
        return None  # flags and assertions
    words: list[str] = []
    for part in _alternatives(pattern):
        inner = _group(part)
        found = required_words(inner) if inner is not None else _longest(part)
        if found is None:
            return None
        words += found
    return tuple(words)


def _alternatives(pattern: str) -> list[str]:
    """Split at the bars that stand in no group and no set of characters."""
    parts, first, depth, at = [], 0, 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _end_of_set(pattern, at)
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and not depth:
            parts.append(pattern[first:at])
            first = at + 1
        at += 1
    return [*parts, pattern[first:]]


def _end_of_set(pattern: str, at: int) -> int:
    """Position of the bracket that ends a set of characters."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at


def _end_of_group(pattern: str, at: int) -> int:
    """Position of the parenthesis that ends the group that begins here."""
    depth = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _end_of_set(pattern, at)
        elif char in "()":
            depth += 1 if char == "(" else -1
            if not depth:
                return at
        at += 1
    return at


def _group(part: str) -> str | None:
    """What is in the group that is all of this part; None where it is something else."""
    if not part.startswith("(") or _end_of_group(part, 0) != len(part) - 1:
        return None
    return part[1:-1].removeprefix("?:")


def _longest(part: str) -> tuple[str, ...] | None:
    """Longest run of plain characters of an alternative, if it is long enough."""
    runs, at = [""], 0
    while at < len(part):
        char = part[at]
        plain = ""
        if char == "\\" and not part[at + 1 : at + 2].isalnum():
            at += 1
            plain = part[at : at + 1]
        elif char == "\\" and part[at + 1] not in _CLASSES:
            return None
        elif char == "\\":
            at += 1
        elif char == "[":
            at = _end_of_set(part, at)
        elif char == "(":
            at = _end_of_group(part, at)
        elif char == "{":
            at = part.index("}", at)
        elif char not in ".^$?*+":
            plain = char
        at += 1
        if plain and not part.startswith(tuple(_QUANTIFIERS), at):
            runs[-1] += plain
        elif runs[-1]:
            runs.append("")
    word = max(runs, key=len)
    return (word,) if len(word) >= _LEAST else None
