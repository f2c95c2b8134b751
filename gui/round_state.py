"""What became of a round that did not come to its end, in a sentence."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core.moved_run import changed_since
from core.project import Iteration, Project
from core.run_folder import read_run
from gui import text

translate = QCoreApplication.translate
LONGEST_ERROR = 200  # characters


def why_unmeasured(iteration: Iteration) -> str:
    """That a round has no figures, and what became of it."""
    words = {
        "stopped": translate("iterations", "Round {number} was stopped before it was measured. Run it now."),
        "killed": translate("iterations", "Round {number} was stopped before it was measured. Run it now."),
        "interrupted": translate("iterations", "Round {number} was interrupted before it was measured. Run it now."),
        "failed": translate("iterations", "The script failed in round {number} before it was measured."),
        "running": translate("iterations", "Round {number} is running."),
    }.get(iteration.state, translate("iterations", "Round {number} has not been measured."))
    words = words.format(number=iteration.number)
    return f"{words} {why_failed(iteration)}".rstrip() if iteration.state == "failed" else words


def why_failed(iteration: Iteration) -> str:
    """The error that ended a round's script, what to do about it, and that the code before is still there."""
    run = read_run(Path(iteration.run_folder)) if iteration.run_folder else None
    failure = run.failure if run is not None else None
    sentences = []
    if failure is not None and failure.title:
        title = text.elided(failure.title, LONGEST_ERROR)
        sentences.append(title if title.endswith((".", "!", "?", "…")) else f"{title}.")
        sentences.append(failure.hint)
    if iteration.copy and iteration.parent is not None:
        words = translate("iterations", "Your own files are as they were; go on from round {number}.")
        sentences.append(words.format(number=iteration.parent))
    return " ".join(s for s in sentences if s)


def cut_off(iteration: Iteration) -> str:
    """That a round was measured and did not come to its end."""
    words = {
        "stopped": translate("iterations", "Round {number} was stopped before the script's end."),
        "killed": translate("iterations", "Round {number} was stopped before the script's end."),
        "failed": translate("iterations", "In round {number} the script failed after it was measured."),
    }.get(iteration.state, "")
    return words.format(number=iteration.number)


def made_from(iteration: Iteration) -> str:
    """That a round was made from one whose script failed, and is compared with the last one before it that did not."""
    if iteration.made_from is None:
        return ""
    words = translate(
        "iterations",
        "It was made from round {failed}, which was cut off before it was measured: so it is compared with round "
        "{good}, holds the fixes of both, and has no prediction.",
    )
    return words.format(failed=iteration.made_from, good=iteration.parent)


def can_run(project: Project, iteration: Iteration | None) -> bool:
    """Whether the code of a round can be run once more: its copy is there, or the user's files are what it ran."""
    if iteration is None:
        return False
    if not iteration.copy:
        run = read_run(Path(iteration.run_folder)) if iteration.run_folder else None
        return run is not None and not changed_since(run)
    parent = project.get(iteration.parent)
    return Path(iteration.copy).is_dir() and parent is not None and (Path(parent.run_folder) / "run.json").is_file()


def again_words(project: Project, iteration: Iteration) -> str:
    """What is there to measure again where the code of a round and of the one before it cannot both be run; else ""."""
    here = can_run(project, iteration)
    if here and can_run(project, project.get(iteration.parent)):
        return ""
    if here:
        return translate(
            "iterations", "The code before is not there any more: measure this round again while nothing else runs."
        )
    return translate(
        "iterations", "The code of this round is not there any more: profile the script as it is now, at a quiet time."
    )
