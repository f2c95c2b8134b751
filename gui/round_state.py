"""What became of a round that did not come to its end, in a sentence."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from core.project import Iteration

translate = QCoreApplication.translate


def why_unmeasured(iteration: Iteration) -> str:
    """That a round has no figures, and what became of it."""
    words = {
        "stopped": translate("iterations", "Round {number} was stopped before it was measured. Run it now."),
        "killed": translate("iterations", "Round {number} was stopped before it was measured. Run it now."),
        "interrupted": translate("iterations", "Round {number} was interrupted before it was measured. Run it now."),
        "failed": translate("iterations", "The script failed in round {number} before it was measured."),
        "running": translate("iterations", "Round {number} is running."),
    }.get(iteration.state, translate("iterations", "Round {number} has not been measured."))
    return words.format(number=iteration.number)


def cut_off(iteration: Iteration) -> str:
    """That a round was measured and did not come to its end."""
    words = {
        "stopped": translate("iterations", "Round {number} was stopped before the script's end."),
        "killed": translate("iterations", "Round {number} was stopped before the script's end."),
        "failed": translate("iterations", "In round {number} the script failed after it was measured."),
    }.get(iteration.state, "")
    return words.format(number=iteration.number)
