"""What the rounds of a script measured, in sentences for a report of one of its runs."""

from __future__ import annotations

from collections.abc import Iterator

from core.judging import GAIN_PCT, Judgement, judge
from core.project import Iteration, Project
from core.reporting.units import percent
from core.run_folder import RunRecord
from core.same_program import project_of
from core.words import cut

MOST_TOLD = 6  # rounds of one run; more are counted


def rounds_told(run: RunRecord | None) -> list[str]:
    """What was measured of a run that is a round itself, and of the rounds that went on from it; newest last."""
    project = project_of(run) if run is not None else None
    here = project.find(run.folder) if project is not None and run is not None else None
    return list(_told(project, here)) if project is not None and here is not None else []


def _told(project: Project, here: Iteration) -> Iterator[str]:
    parent = project.get(here.parent)
    if parent is not None and here.fixes and here.is_measured:
        measured = _measured(judge(parent, here, project.iterations))
        of = f" of {project.script}" if project.script else ""  # the run's own paths are of the copy
        yield f"This run is round {here.number}{of}, with {_fixed(here)}: {measured}."
    rows = [i for i in project.iterations if i.parent == here.number and i.fixes and i.is_measured]
    for row in rows[-MOST_TOLD:]:
        measured = _measured(judge(here, row, project.iterations))
        yield f"Measured in round {row.number}, with {_fixed(row)}: {measured}."
    if len(rows) > MOST_TOLD:
        yield f"{len(rows) - MOST_TOLD} earlier rounds that went on from this run are not listed."


def _fixed(iteration: Iteration) -> str:
    """What a round changed, in a few words."""
    first = cut(iteration.fixes[0].title)
    return f"“{first}” fixed" if len(iteration.fixes) == 1 else f"{len(iteration.fixes)} fixes (“{first}” the first)"


def _measured(found: Judgement) -> str:
    """How the step changed, what was predicted, and whether the measurements can tell."""
    if found.measured_pct is None:
        return "no step time is known in both runs"
    change = f"{_signed(found.measured_pct)} a step"
    said = "unclear" if found.is_gain is None else "faster" if found.is_gain else ""
    said = said or ("slower" if found.measured_pct >= GAIN_PCT else "no gain")
    predicted = f", predicted {_signed(found.predicted_pct)}" if found.predicted_pct is not None else ""
    return f"{said} ({change}{predicted})"


def _signed(pct: float) -> str:
    return f"{'−' if pct < 0 else '+'}{percent(abs(pct))}"
