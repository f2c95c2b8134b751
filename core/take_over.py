"""What a round's copy would make of the user's own files: all that its rounds have changed, one edit for each file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from core.errors import TraceError
from core.fixes.encodings import read_source
from core.fixes.files import AppliedEdit
from core.fixes.propose import ProposedEdit
from core.moved_run import source_root
from core.project import AppliedFix, Iteration, Project
from core.run_folder import RunRecord, read_run

RULE = "rounds"  # stands for a rule in the names of backups


def base_of(project: Project, number: int) -> RunRecord | None:
    """The run of the user's own files that a round's copy goes back to; None where that is not known any more."""
    iteration: Iteration | None = project.get(number)
    seen: set[int] = set()
    while iteration is not None and iteration.copy and iteration.number not in seen:
        seen.add(iteration.number)
        iteration = project.get(iteration.parent)
    if iteration is None or iteration.copy or not iteration.run_folder:
        return None
    return read_run(Path(iteration.run_folder))


def changes_of(project: Project, number: int) -> tuple[RunRecord, tuple[ProposedEdit, ...]]:
    """Changes of the user's files that make them what a round's copy is.

    Parameters
    ----------
    project, number
        A project and the number of a round of it that has a changed copy.

    Returns
    -------
    tuple
        The run whose files are changed, and one edit for each file that differs; ``before`` is what that run used.

    Raises
    ------
    TraceError
        Where the run, the copy or a source of it is gone.
    """
    iteration, base = project.get(number), base_of(project, number)
    root = source_root(base) if base is not None else None
    if iteration is None or not iteration.copy or base is None or root is None:
        raise TraceError("The copy of this round, or the run it came from, is gone.")
    words, copy = "; ".join(fix.summary for fix in _fixes(project, iteration)), Path(iteration.copy)
    edits = []
    for original, kept in sorted(base.sources.items()):
        path = Path(original)
        changed = copy / path.relative_to(root) if path.is_relative_to(root) else None
        if changed is None or not changed.is_file():
            continue
        try:
            before, after = read_source(kept), read_source(changed)
        except OSError as error:
            raise TraceError(f"{changed} cannot be read: {error.strerror or error}.") from error
        if before != after:
            edits.append(ProposedEdit(path, RULE, before, after, words, ""))
    return base, tuple(edits)


def taken_over(project: Project, number: int, made: Iterable[AppliedEdit]) -> tuple[AppliedEdit, ...]:
    """The changes of the user's files that made them what a round's copy is; none where not all of it stands there."""
    of_rounds = {a.edit.path: a for a in made if a.edit.rule_id == RULE}
    try:
        wanted = changes_of(project, number)[1] if of_rounds else ()
    except TraceError:
        return ()
    stands = all(e.path in of_rounds and of_rounds[e.path].edit.after == e.after for e in wanted)
    return tuple(of_rounds[e.path] for e in wanted) if stands else ()


def keys_of(project: Project, number: int) -> tuple[str, ...]:
    """Keys of the suggestions whose fixes a round's copy holds."""
    iteration = project.get(number)
    return tuple(fix.key for fix in _fixes(project, iteration) if fix.key) if iteration is not None else ()


def rounds_in(project: Project, number: int) -> list[Iteration]:
    """The rounds whose changes a round's copy holds, oldest first, itself last."""
    found: list[Iteration] = []
    at = project.get(number)
    while at is not None and at.copy and at not in found:
        found.insert(0, at)
        at = project.get(at.parent)
    return found


def _fixes(project: Project, iteration: Iteration) -> list[AppliedFix]:
    return [fix for one in rounds_in(project, iteration.number) for fix in one.fixes]
