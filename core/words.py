"""Filling in templates of texts, with the right form of a word for one thing and for many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FORMS = re.compile(r"\{(\w+)\|([^{}|]*)\|([^{}|]*)\}")


def fill(template: str, values: Mapping[str, Any], shown: Mapping[str, str] | None = None) -> str:
    """Fill named values into a template.

    Parameters
    ----------
    template
        As for `str.format`; ``{count|step takes|steps take}`` is the first form where the value is 1, else the second.
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
    return chosen.format_map({**values, **(shown or {})})


def counted(number: int, one: str, many: str = "") -> str:
    """Number and word: ``1 step``, ``2,000 steps``; the plural ends in ``s`` unless it is given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
