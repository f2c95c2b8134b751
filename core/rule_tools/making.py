"""The place at which the code makes what a rule has seen at work."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from core.suggestions import RuleContext, Suggestion


def called_name(call: ast.Call) -> str:
    """Last part of what is called: ``Conv2d`` of ``nn.Conv2d(3, 8, 3)``; "" where it has no name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def where_made(
    ctx: RuleContext,
    found: Suggestion,
    seen: int,
    wanted: Callable[[ast.Call], bool],
    most: int = 1,
    *,
    sure: bool = True,
    reason: str = "",
) -> Suggestion:
    """A suggestion with the line that makes what it is about, where the source is at hand and says it.

    Parameters
    ----------
    ctx, found
        What was looked at, and what was found in it; its identity stays that of the place where it was ``seen``.
    seen
        Slice at which it was seen at work.
    wanted
        Tells the calls that make such things.
    most
        How many were seen: more lines than these are candidates only.
    sure
        Whether candidates are left alone: the place at which it was seen says more then.
    reason
        Words for how the line was found, where it makes nothing.
    """
    made = ctx.source.of_constructor(seen, wanted, most)
    if made is None or found.source is None or (sure and not made.exact):
        return found
    made = replace(made, reason=reason or made.reason)
    return replace(found, source=made, values={**found.values, "seen_in": found.source.function})
