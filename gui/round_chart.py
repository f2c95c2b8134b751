"""What the chart over the rounds shows: the step of each, what was predicted for it, and what the machine added."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from core.change_range import is_calm, shortest_step
from core.judging import judge
from core.project import Project
from gui.round_words import counts, plain_counts, step

translate = QCoreApplication.translate


def bars(project: Project) -> list[tuple[int, float | None, float | None]]:
    """Number, step and prediction of each round (ns); the step without the profiler where all that count have it.

    A run that was cut off before it was measured has none: its first steps would be compared with those of others.
    A prediction is of the step while recorded, and is carried over as a share of the code before.
    """
    rounds = project.iterations
    if not plain_counts(project):
        return [(i.number, step(i) if counts(project, i) else None, i.predicted_ns) for i in rounds]
    found = []
    for i in rounds:
        parent, predicted = project.get(i.parent), None
        before = judge(parent, i, rounds).before_ns or parent.figures.wall_ns if parent is not None else None
        if parent is not None and before and i.predicted_ns and parent.figures.sustained_ns:
            predicted = before * i.predicted_ns / parent.figures.sustained_ns
        found.append((i.number, i.figures.wall_ns, predicted))
    return found


def least(project: Project) -> dict[int, float]:
    """How short the step of a round may be that other programs disturbed, by its number; others are not in it.

    In ns; 0 where that cannot be told.
    """
    if not plain_counts(project):
        return {}
    known = [(i.number, i.figures) for i in project.iterations if i.figures.wall_ns and not is_calm(i.figures)]
    return {number: shortest_step(figures) or 0.0 for number, figures in known}


def without_bar(project: Project) -> dict[int, str]:
    """What stands in place of the bar of a round that has none, by its number."""
    failed, unknown = translate("iterations", "failed"), translate("iterations", "not measured")
    found = {i.number: failed if i.state == "failed" else unknown for i in project.iterations}
    return {number: found[number] for number, measured, _ in bars(project) if measured is None}


def caption(project: Project, cuts: bool = False) -> str:
    """What the bars are. ``cuts``: some are shorter than their step."""
    if not plain_counts(project):
        return translate(
            "iterations", "Measured sustained step of each round; the green line is what was predicted for it."
        )
    words = translate(
        "iterations", "Measured step of each round without the profiler; the green line is what was predicted for it."
    )
    if least(project):
        words += " " + translate("iterations", "In the pale part of a bar other programs may have had the processor.")
    if cuts:
        words += " " + translate("iterations", "A bar with a gap is longer than there is room for.")
    return words
