"""Filling in templates of texts, with the right form of a word for one thing and for many."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

THIN = "\u202f"  # narrow no-break space between thousands
# What acts on a text instead of standing in it: control characters, and those that turn its direction (U+202E and kin).
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BREAKS = re.compile("[ \t]*[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\t][\\s\x85]*")
LONGEST_NAME = 400  # characters shown of a name in a text; templates of C++ can be a thousand times as long
_BUILT_IN = re.compile(r"<built-in (?:method|function) (\w+)(?: of (?:[^<>]|<[^<>]*>){0,400})?>")
_FORMS = re.compile(r"\{(\w+)\|([^{}|]*)\|([^{}|]*)\}")


def visible(text: str) -> str:
    """A name that someone else wrote, as one line that shows what it holds.

    Breaks and tabs become a blank, with the blanks around them; other control characters, and those that turn the
    direction of what follows, become U+FFFD.
    """
    if text.isprintable() or not _ACTING.search(text):
        return text
    return _ACTING.sub("\N{REPLACEMENT CHARACTER}", _BREAKS.sub(" ", text))


def visible_code(text: str) -> str:
    """Code as `visible` shows names; lines and indents stay, and each character keeps its place."""
    return _ACTING.sub(lambda found: found[0] if found[0] in "\n\t" else "\N{REPLACEMENT CHARACTER}", text)


def plain_name(text: str) -> str:
    """Built-in functions by their names alone: what they are of, and at which address, is Python's own business."""
    return _BUILT_IN.sub(r"\1", text) if "<built-in " in text else text


def cut(text: str, most: int = LONGEST_NAME) -> str:
    """A name of at most that many characters, both ends kept: names of templates differ at either."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def size(value_bytes: float | None) -> str:
    """A size in binary units with three digits: ``40 B``, ``19.1 MiB``; unknown where there is none."""
    if value_bytes is None or math.isnan(value_bytes):
        return "unknown size"
    value, unit = float(value_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{significant(value)} {unit}"


def grouped(value: float, digits: int = 0) -> str:
    """Return a number with so many decimals, its thousands apart, the same in the window and all reports."""
    return f"{value:,.{digits}f}".replace(",", THIN)


def significant(value: float, digits: int = 3) -> str:
    """Return a number with that many significant digits, without exponent, thousands separated."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole >= digits:
        return grouped(round(value))
    if whole:
        text = grouped(value, digits - whole)
    else:
        text = f"{value:.{digits}g}"
        if "e" in text:
            text = f"{value:.12f}".rstrip("0")
    return text.rstrip("0").rstrip(".") if "." in text else text


def time(time_ns: float) -> str:
    """A time with three digits in the unit that fits: ``412 ns``, ``4.64 µs``, ``34.5 ms``, ``1.2 s``."""
    if math.isnan(time_ns):
        return "unknown time"
    value, unit = float(time_ns), "ns"
    for larger, factor in (("µs", 1e3), ("ms", 1e3), ("s", 1e3)):
        if float(f"{abs(value):.3g}") < 1000:
            break
        value, unit = value / factor, larger
    return f"{significant(value)} {unit}"


_NS_BY_ENDING = {"_ns": 1.0, "_us": 1e3, "_ms": 1e6}


class _Time(float):
    """A time in ns that ``{name:time}`` writes in the unit that fits; other formats see the number as it was given."""

    def __new__(cls, value: float, ns: float) -> _Time:
        made = super().__new__(cls, value)
        made.ns = ns
        return made

    ns: float

    def __format__(self, spec: str) -> str:
        return time(self * self.ns) if spec == "time" else super().__format__(spec)


class _Size(float):
    """A number of bytes that ``{name:size}`` writes in the unit that fits."""

    def __format__(self, spec: str) -> str:
        return size(self) if spec == "size" else super().__format__(spec)


class _Count(float):
    """A number of things, whose thousands stand apart; formats that ask for decimals see it as it is."""

    def __format__(self, spec: str) -> str:
        whole = spec == ".0f" or (spec in ("", "d") and self.is_integer())
        return grouped(float(self)) if whole else float(self).__format__(spec)


# Names that end so are numbers of something, not how many there are.
_NUMBERING = ("line", "number", "step", "device", "rank", "pid", "thread", "stream", "port", "id", "index", "code")


def _measured(name: str, value: Any) -> Any:
    """Return a number with the formats that the ending of its name allows; of a text, what a sentence has room for."""
    if not isinstance(value, Real):
        return cut(plain_name(value)) if isinstance(value, str) else value
    if abs(float(value)) >= 1000 and name[-3:] not in _NS_BY_ENDING and not name.endswith(("_bytes", *_NUMBERING)):
        return _Count(value)
    if name.endswith("_bytes"):
        return _Size(value)
    return _Time(float(value), _NS_BY_ENDING[name[-3:]]) if name[-3:] in _NS_BY_ENDING else value


class _Filling(dict[str, Any]):
    """Named values as a template writes them, each worked out when it is asked for."""

    def __init__(self, shown: Mapping[str, str], values: Mapping[str, Any]) -> None:
        super().__init__(shown)
        self._values = values

    def __missing__(self, name: str) -> Any:
        return _measured(name, self._values[name])


def fill(template: str, values: Mapping[str, Any], shown: Mapping[str, str] | None = None) -> str:
    """Fill named values into a template.

    Parameters
    ----------
    template
        As for `str.format`; ``{count|step takes|steps take}`` is the first form where the value is 1, else the second;
        ``{copied_bytes:size}`` is a number of bytes and ``{host_ms:time}`` a time (names end so: ``_bytes``; ``_ns``,
        ``_us``, ``_ms``) in the unit that fits.
    values
        Named values, of which the forms are chosen.
    shown
        What to write instead of some of the values (numbers as the window writes them).

    Raises
    ------
    KeyError, ValueError
        As `str.format_map` does.
    """
    chosen = _FORMS.sub(lambda found: found[2] if values[found[1]] == 1 else found[3], template)
    return chosen.format_map(_Filling(shown or {}, values))


def counted(number: int, one: str, many: str = "") -> str:
    """Number and word: ``1 step``, ``2 000 steps``; the plural ends in ``s`` unless it is given."""
    return f"{grouped(number)} {one if number == 1 else many or one + 's'}"
