"""Filling in templates of texts, with the right form of a word for one thing and for many."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_FORMS = re.compile(r"\{(\w+)\|([^{}|]*)\|([^{}|]*)\}")


def size(value_bytes: float | None) -> str:
    """A size in binary units with three digits: ``40 B``, ``19.1 MiB``; unknown where there is none."""
    if value_bytes is None or math.isnan(value_bytes):
        return "unknown size"
    value, unit = float(value_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            break
        value, unit = value / 1024, larger
    digits = 0 if unit == "B" or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


class _Size(float):
    """A number of bytes that ``{name:size}`` writes in the unit that fits."""

    def __format__(self, spec: str) -> str:
        return size(self) if spec == "size" else super().__format__(spec)


def fill(template: str, values: Mapping[str, Any], shown: Mapping[str, str] | None = None) -> str:
    """Fill named values into a template.

    Parameters
    ----------
    template
        As for `str.format`; ``{count|step takes|steps take}`` is the first form where the value is 1, else the second;
        ``{copied_bytes:size}`` is a number of bytes (its name must end so) in the unit that fits.
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
    sizes = {name: _Size(value) for name, value in values.items() if name.endswith("_bytes")}
    return chosen.format_map({**values, **sizes, **(shown or {})})


def counted(number: int, one: str, many: str = "") -> str:
    """Number and word: ``1 step``, ``2,000 steps``; the plural ends in ``s`` unless it is given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
