"""Whether the rounds of a project came to the results of the rounds before, as far as chance lets them be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from core.judging import is_same_code
from core.project import Project
from core.results import ResultCheck, compare_results
from core.run_folder import RunRecord, read_run

SEEDS = re.compile(r"seed", re.IGNORECASE)  # manual_seed, seed_everything, set_seed, random.seed, generator seeds


def checks_of(project: Project) -> dict[int, ResultCheck]:
    """Losses of each round, by its number, beside those of the round that it was made from.

    Where they differ and the script draws other numbers in every run, `ResultCheck.chance` says how that is known: no
    source of either run names a seed, or two runs of the same code differ too. Where the code before ran twice and
    came to the same losses, `ResultCheck.repeated` names these runs: then it is the fix that changed them.
    """
    runs = {i.number: read_run(Path(i.run_folder)) if i.run_folder else None for i in project.iterations}
    found = {
        i.number: compare_results(runs.get(i.parent) if i.parent is not None else None, runs[i.number])
        for i in project.iterations
    }
    if not any(check.status == "differs" for check in found.values()):
        return found
    pair = _of_the_same_code(project, runs, "differs")
    for i in project.iterations:
        check = found[i.number]
        if check.status != "differs" or i.parent is None:
            continue
        if sets_no_seed(runs.get(i.parent)) and sets_no_seed(runs[i.number]):
            found[i.number] = replace(check, chance="no_seed")
        elif pair:
            found[i.number] = replace(check, chance="repeated", repeated=pair)
        else:
            found[i.number] = replace(check, repeated=_of_the_same_code(project, runs, "same", i.parent))
    return found


def _of_the_same_code(
    project: Project, runs: Mapping[int, RunRecord | None], status: str, number: int | None = None
) -> tuple[int, int] | None:
    """Numbers of two rounds of the same code whose losses compare like that; None where there are none.

    With ``number`` of the code of that round.
    """
    one = project.get(number)
    rounds = [i for i in project.iterations if one is None or is_same_code(i, one)]
    for at, later in enumerate(rounds):
        for earlier in rounds[:at]:
            if not is_same_code(earlier, later):
                continue
            if compare_results(runs[earlier.number], runs[later.number]).status == status:
                return earlier.number, later.number
    return None


def sets_no_seed(run: RunRecord | None) -> bool:
    """Whether none of a run's own sources names anything that sets a seed; False where that is not known."""
    if run is None or not run.sources:
        return False
    return not any(SEEDS.search(words) for words in map(_text_of, run.sources.values()))


def _text_of(copy: Path) -> str:
    """A source's text; one that cannot be read may set a seed."""
    try:
        return copy.read_text("utf-8", "replace")
    except OSError:
        return "seed"
