"""A plan without what was allowed or dismissed: what the rest saves, and what was taken out, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from core.analysis import Analysis
from core.suggestions import Suggestion
from core.trace import Trace

SetAside = tuple[tuple[Suggestion, str], ...]  # with what is said of each: "allowed: the loss is shown on purpose"


def set_aside(trace: Trace, analysis: Analysis, words: Mapping[str, str]) -> tuple[Analysis, SetAside]:
    """Take suggestions out of an analysis, and price the others anew: one of a group can be worth more without it.

    Parameters
    ----------
    trace, analysis
        A trace and its finished analysis.
    words
        Key of each suggestion to take out -> what to say of it.

    Returns
    -------
    tuple
        The analysis of the others, its figures and outcomes of rules unchanged, and what was taken out, in its order.
    """
    gone = tuple((s, words[s.key]) for s in analysis.suggestions if s.key in words)
    if not gone:
        return analysis, ()
    from core.pricing import price

    results = [replace(r, suggestions=tuple(s for s in r.suggestions if s.key not in words)) for r in analysis.rules]
    fresh = price(trace, analysis.figures, results)
    return replace(fresh, figures=analysis.figures, rules=analysis.rules), gone


def priced_without(trace: Trace, analysis: Analysis, keys: Collection[str]) -> Analysis:
    """Price an analysis as `set_aside` does, and keep what is set aside in it: last, and without a place in the plan.

    Parameters
    ----------
    trace, analysis
        A trace and its finished analysis, or what this function made of it.
    keys
        Keys of what is set aside now; of none, all are priced together again.

    Returns
    -------
    Analysis
        Figures and outcomes of rules unchanged; ``aside`` holds the keys.
    """
    from core.pricing import price

    results = [replace(r, suggestions=tuple(s for s in r.suggestions if s.key not in keys)) for r in analysis.rules]
    fresh = price(trace, analysis.figures, results)
    gone = tuple(replace(s, saving=replace(s.saving, together_ns=None)) for s in analysis.suggestions if s.key in keys)
    return replace(
        fresh,
        figures=analysis.figures,
        suggestions=fresh.suggestions + gone,
        rules=analysis.rules,
        aside=frozenset(s.key for s in gone),
    )
