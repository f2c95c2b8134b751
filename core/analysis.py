"""Everything computed from a trace, in the order in which the window needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.figures.model import Figures
from core.suggestions import PlanStep, RuleResult, Suggestion

Progress = Callable[[float, str], None]  # fraction 0..1, what is being done; raises Cancelled to stop


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of `analyze`: figures, the priced suggestions best first, the plan, and every rule's outcome."""

    figures: Figures
    suggestions: tuple[Suggestion, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
