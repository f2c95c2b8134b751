"""What can be done with one round: go on from it, compare, run or measure it again, take it over."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame, QPushButton

from core.errors import TraceError
from core.judging import judge
from core.project import Iteration, Project
from core.run_folder import read_run
from core.take_over import base_of, taken_over
from gui.round_pace import disturbed_before
from gui.round_state import can_run
from gui.widgets.flow import FlowLayout
from gui.widgets.labels import button

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.fixes.files import AppliedEdit
    from gui.loop import Loop

PLANNED = "planned"  # `gui.loop_rounds.PLANNED`: the copy is made and has not run
CUT_OFF = (PLANNED, "interrupted", "stopped", "killed", "failed")


class RoundButtons(QFrame):
    """``again`` and ``repeat`` are there where the copy can run, ``both`` where its result is unclear; ``take`` where
    its changes can go into the user's, ``undo`` where they are there. ``back`` leads away from one that failed.
    """

    again: QPushButton | None = None
    back: QPushButton | None = None
    both: QPushButton | None = None
    repeat: QPushButton | None = None
    take: QPushButton | None = None
    undo: QPushButton | None = None

    def __init__(
        self, loop: Loop, project: Project, iteration: Iteration, compare: Callable[[int, int], object]
    ) -> None:
        super().__init__()
        self._loop, self._project = loop, project
        self._number = number = iteration.number
        row = FlowLayout(spacing=6)
        self.setLayout(row)
        newest = number == project.iterations[-1].number
        figures, parent = iteration.figures, project.get(iteration.parent)
        goes_on = newest and (bool(figures.rules) if figures.left is None else figures.left > 0)
        words = self.tr("Go on: what its trace suggests next") if goes_on else self.tr("Open its trace")
        run = read_run(Path(iteration.run_folder)) if iteration.run_folder else None
        failed = iteration.state == "failed" and not iteration.is_good
        if run is not None and run.trace is not None and (iteration.is_measured or iteration.state != "running"):
            row.addWidget(button(words, partial(loop.open_iteration, number), "primary" if goes_on else ""))
        if failed and iteration.parent is not None:
            self.back = button(
                self.tr("Go on from round {number}").format(number=iteration.parent),
                partial(loop.open_iteration, iteration.parent),
                "primary",
            )
            row.addWidget(self.back)
        if iteration.parent is not None and iteration.is_good:
            words = self.tr("Compare with round {number}").format(number=iteration.parent)
            row.addWidget(button(words, partial(compare, iteration.parent, number)))
        there = bool(iteration.copy) and Path(iteration.copy).is_dir()
        if there and iteration.state in CUT_OFF and not iteration.is_good:
            self.again = button(self.tr("Run it now"), partial(loop.run_again, number), "" if failed else "primary")
            row.addWidget(self.again)
        elif iteration.run_folder and iteration.is_measured and (there or not iteration.copy):
            tip = self.tr("Runs the same code once more and adds a row: two runs of the same code differ too.")
            self._add_both(row, project, iteration, "primary" if newest and not goes_on else "")
            self.repeat = button(self.tr("Measure again"), partial(loop.measure_again, number), tip=tip)
            row.addWidget(self.repeat)
            if there and base_of(project, number) is not None:
                gain = parent is not None and judge(parent, iteration, project.iterations).is_gain is True
                same = number not in loop.own.parted(project)
                self._add_take(row, "primary" if newest and gain and same and not goes_on else "")

    def _add_both(self, row: FlowLayout, project: Project, iteration: Iteration, role: str) -> None:
        """The cure of a result that the machine left open."""
        parent = project.get(iteration.parent)
        found = judge(parent, iteration, project.iterations) if parent is not None else None
        if found is None or "same_code" in found.reasons:
            return
        if found.is_gain is not None and found.outcome != "unclear" and not disturbed_before(found, project.iterations):
            return
        if not can_run(project, iteration) or not can_run(project, parent):  # as once the user's own file was changed
            return
        words = self.tr("Measure both again")
        tip = self.tr("Runs round {parent} and this one once more, one after the other, and adds a row of each.")
        both = partial(self._loop.measure_both, self._number)
        self.both = button(words, both, role, tip.format(parent=iteration.parent))
        row.addWidget(self.both)

    def _add_take(self, row: FlowLayout, role: str) -> None:
        """The way into the user's own files; where it was gone, that it was, and the way back."""
        made = taken_over(self._project, self._number, self._loop.applied)
        tip = self.tr("Shows what this round and those before it changed, for your own file; then changes it.")
        words = self.tr("Taken over into your file") if made else self.tr("Take over into my file…")
        self.take = button(words, partial(self._take_over, self._number), "" if made else role, tip)
        row.addWidget(self.take)
        if made:
            self.take.setEnabled(False)
            self.take.setToolTip(self.tr("Your file is what this round ran."))
            undo = self.tr("Undo the change of {file}").format(file=made[-1].edit.path.name)
            if len(made) > 1:
                undo = self.tr("Undo the change of {count} files").format(count=len(made))
            self.undo = button(undo, partial(self._undo, made))
            row.addWidget(self.undo)

    def _undo(self, made: tuple[AppliedEdit, ...]) -> None:
        place = self.parentWidget()
        for one in made:
            self._loop.own.undo(one)
        newest = place.findChildren(RoundButtons)[-1] if place is not None else self
        if newest is not self and newest.take is not None:  # the buttons were made anew
            newest.show()
            newest.take.setFocus()

    def _take_over(self, number: int) -> None:
        from gui.take_over_dialog import TakeOverDialog

        try:
            TakeOverDialog(self._loop, self._project, number, self.window()).open()
        except TraceError as error:
            self._loop.raise_error(error)
