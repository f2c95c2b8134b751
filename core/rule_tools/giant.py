"""The only marked step of a recording that holds several iterations: what is said of a step is of all of them."""

from __future__ import annotations

from dataclasses import replace

from core.figures.model import Figures
from core.suggestions import Suggestion

SENTENCE = (
    "The only step that is marked holds about {in_step} iterations: what is said of a step is of all of them together."
)
# Labels of times per step, as they are where that step is no iteration: a reader would take them for those of one.
IN_THE_STEP = {
    "Time in the loader per step": "Time in the loader in all of the step",
    "Wait per step": "Wait in all of the step",
    "GPU idle for the loader, per step": "GPU idle for the loader in all of the step",
    "GPU idle during them, per step": "GPU idle during them in all of the step",
    "Time per step with no computation beside them": "Time in all of the step with no computation beside them",
    "Time per step in which only they ran": "Time in all of the step in which only they ran",
    "Time in them per step": "Time in them in all of the step",
    "Time outside operators per step": "Time outside operators in all of the step",
}


def iterations_in_step(figures: Figures) -> int:
    """About how many iterations the only marked step holds, as the notes on the recording say; 0 where it is one."""
    if len(figures.steps) != 1 or figures.steps.inferred.any():
        return 0
    counts = (note.values.get("count", 0) for note in figures.doctor if note.code == "no-steps-marked")
    return int(next(counts, 0))


def with_iterations(found: Suggestion, figures: Figures) -> Suggestion:
    """Say so of a suggestion that is more than a note."""
    inside = iterations_in_step(figures)
    if not inside or found.informational:
        return found
    shown = tuple(replace(one, label=IN_THE_STEP.get(one.label, one.label)) for one in found.evidence)
    return replace(found, values={**found.values, "in_step": inside}, more=(*found.more, SENTENCE), evidence=shown)
