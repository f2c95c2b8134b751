"""Pricing beside the rules: the replay, most of its work, needs none of their outcomes.

A fork makes the replay while this process runs the rules, and prices what they found. Where there can be no fork, or
nothing comes of it, pricing is done here, afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from core import beside, memory
from core.analysis import Analysis
from core.figures.model import Figures
from core.pricing import price
from core.replay.replay import Replay
from core.suggestions import RuleResult
from core.trace import Trace

MANY = 30_000  # slices; fewer are replayed before a fork has begun
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class _Priced:
    """What pricing adds to what is known here already."""

    figures: Mapping[str, Any]  # those that differ from the ones it was given
    rest: Mapping[str, Any]


class PricingBeside:
    """Pricing of one trace's suggestions; a context manager that ends its fork.

    Parameters
    ----------
    trace, figures
        The trace and its figures.
    """

    def __init__(self, trace: Trace, figures: Figures) -> None:
        self._trace, self._figures = trace, figures
        self._results: Sequence[RuleResult] = ()
        self._fork: beside.Beside[_Priced] | None = None
        if len(trace.slices) >= MANY:
            self._fork = beside.begin(self._replay_and_price)

    def __enter__(self) -> PricingBeside:
        """Return itself."""
        return self

    def __exit__(self, *details: object) -> None:
        """End what goes on."""
        if self._fork is not None:
            self._fork.end()

    def hand(self, results: Sequence[RuleResult]) -> None:
        """Take the outcomes of the rules, and begin to price them where somebody is there to do it."""
        self._results = results
        if self._fork is not None:
            self._fork.hand(results)

    def price(self, progress: Progress) -> Analysis:
        """Return what the suggestions save; ``progress`` may raise `core.errors.Cancelled`."""
        fork, self._fork = self._fork, None
        if fork is not None:
            try:
                found = fork.result(lambda: progress(0.5, "savings"))
            except beside.Lost:
                pass
            else:
                figures = replace(self._figures, **found.figures) if found.figures else self._figures
                return Analysis(figures, rules=tuple(self._results), **found.rest)
        return price(self._trace, self._figures, self._results, progress)

    def _replay_and_price(self, receive: beside.Receive) -> _Priced:
        """Run in the fork."""
        made: Replay | Exception
        try:
            made = Replay(self._trace, self._figures)
            memory.give_back()
        except Exception as error:  # noqa: BLE001 - raised again where pricing tells what it means
            made = error

        def replay_of(trace: Trace, figures: Figures) -> Replay:
            del trace, figures
            if isinstance(made, Exception):
                raise made
            return made

        found = price(self._trace, self._figures, receive(), replay_of=replay_of)
        figures = {
            field.name: getattr(found.figures, field.name)
            for field in fields(Figures)
            if getattr(found.figures, field.name) is not getattr(self._figures, field.name)
        }
        own = ("figures", "rules")
        return _Priced(figures, {f.name: getattr(found, f.name) for f in fields(Analysis) if f.name not in own})
