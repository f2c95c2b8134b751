"""What can be done with one round: go on from it, compare, run or measure it again, take it over."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame, QPushButton

from core.errors import TraceError
from core.project import Iteration, Project
from core.take_over import base_of
from gui.widgets.flow import FlowLayout
from gui.widgets.labels import button

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.loop import Loop

PLANNED = "planned"  # `gui.loop_rounds.PLANNED`: the copy is made and has not run
CUT_OFF = (PLANNED, "interrupted", "stopped", "killed", "failed")


class RoundButtons(QFrame):
    """``again`` and ``repeat`` are there where the copy can run; ``take`` where its changes can go into the user's."""

    again: QPushButton | None = None
    repeat: QPushButton | None = None
    take: QPushButton | None = None

    def __init__(
        self, loop: Loop, project: Project, iteration: Iteration, compare: Callable[[int, int], object]
    ) -> None:
        super().__init__()
        self._loop, self._project, number = loop, project, iteration.number
        row = FlowLayout(spacing=6)
        self.setLayout(row)
        newest = number == project.iterations[-1].number
        goes_on = newest and bool(iteration.figures.rules)
        words = self.tr("Go on: what its trace suggests next") if goes_on else self.tr("Open its trace")
        if iteration.is_measured or iteration.state != "running":
            row.addWidget(button(words, partial(loop.open_iteration, number), "primary" if goes_on else ""))
        if iteration.parent is not None and iteration.is_measured:
            words = self.tr("Compare with round {number}").format(number=iteration.parent)
            row.addWidget(button(words, partial(compare, iteration.parent, number)))
        there = bool(iteration.copy) and Path(iteration.copy).is_dir()
        if there and iteration.state in CUT_OFF:
            self.again = button(self.tr("Run it now"), partial(loop.run_again, number), "primary")
            row.addWidget(self.again)
        elif iteration.run_folder and iteration.is_measured and (there or not iteration.copy):
            tip = self.tr("Runs the same code once more and adds a row: two runs of the same code differ too.")
            self.repeat = button(self.tr("Measure again"), partial(loop.measure_again, number), tip=tip)
            row.addWidget(self.repeat)
            if there and base_of(project, number) is not None:
                tip = self.tr("Shows what this round and those before it changed, for your own file; then changes it.")
                role = "primary" if newest and not goes_on else ""  # nothing more is suggested
                self.take = button(self.tr("Take over into my file…"), partial(self._take_over, number), role, tip)
                row.addWidget(self.take)

    def _take_over(self, number: int) -> None:
        from gui.take_over_dialog import TakeOverDialog

        try:
            TakeOverDialog(self._loop, self._project, number, self.window()).open()
        except TraceError as error:
            self._loop.raise_error(error)
