"""The change that a fix makes to the user's code: shown first, then made in a copy, or in the file when asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QMessageBox, QScrollArea, QVBoxLayout, QWidget
from shiboken6 import isValid

from core.fixes import ProposedEdit
from core.fixes.files import AppliedEdit
from core.fixes.together import Conflict, Joint
from core.round_checks import checks_of
from core.suggestions import Suggestion
from core.unprofiled import slowed
from gui import jobs, text
from gui.loop_fixes import Derived, near_lines
from gui.round_words import result
from gui.session import Document
from gui.suggestion_text import within
from gui.take_over_dialog import measured
from gui.widgets.code import CodeDiff
from gui.widgets.labels import button, heading, label, restyle

if TYPE_CHECKING:
    from gui.loop import Loop


class FixDialog(QDialog):
    """Diff, risk, prediction, and three ways on; of one fix, or of several in one text.

    What changes is derived in a worker thread; until it is there, the dialog says so and can be closed.

    Parameters
    ----------
    loop, document
        The loop, and the trace that the suggestions are of.
    indices
        Positions of the suggestions.
    """

    def __init__(self, loop: Loop, document: Document, indices: Sequence[int], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loop, self._document = loop, document
        self._chosen = {i: s for i in indices if (s := document.suggestion(i)) is not None}
        self.joint, self.indices = Joint(), tuple(self._chosen)
        self._made = self._made_already()
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Apply a fix") if len(self._chosen) == 1 else self.tr("Apply several fixes"))
        self.resize(920, 620)  # lines of code are wide
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        self.title = heading(self._title(), 2, wrap=True)
        box.addWidget(self.title)
        inner = QWidget()
        inner.setObjectName("scrolled")
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(8)
        self.waiting = label(self.tr("Working out the change of your code…"), "dim", wrap=True)
        self._column.addWidget(self.waiting)
        self._column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        box.addWidget(area, 1)
        self.prediction = label("", "dim", wrap=True)
        box.addWidget(self.prediction)
        box.addLayout(self._buttons())
        self._job: jobs.Job | None = loop.fixes.derive(self, document, self._chosen, self._derived, self._at_work)
        self.finished.connect(self._let_go)

    def _at_work(self, fraction: float, _what: str) -> None:
        if len(self._chosen) > 1 and fraction > 0:
            words = self.tr("Working out the changes of your code together… {share}")
            self.waiting.setText(words.format(share=text.percent(100 * fraction)))

    def _let_go(self) -> None:
        """Nobody waits for the changes any more."""
        if self._job is not None:
            self._job.cancel()

    def _derived(self, found: Derived) -> None:
        """The changes came in."""
        self._job = None
        self.joint, self.indices = found.joint, found.joint.indices
        self.title.setText(self._title())
        self.waiting.hide()
        self._column.takeAt(self._column.count() - 1)
        if self._made is not None:
            self._show_made(self._made)
        elif not self.joint.edits:
            self._show_example(found.reason)
        elif len(self._chosen) == 1:
            self._show_one(self.joint.edits[0][1], found)
        else:
            self._show_several(found)
        self._column.addStretch(1)
        if self._made is None and self.joint.edits:
            self._predict()
            self.copy_button.setEnabled(True)
            self.file_button.setEnabled(not self._loop.is_copy(self._document))
            if not self.file_button.isEnabled():
                tip = self.tr("This is a copy's run. Take its round over into your file on the Rounds page.")
                self.file_button.setToolTip(tip)

    def _title(self) -> str:
        if len(self._chosen) == 1:
            (suggestion,) = self._chosen.values()
            return text.filled(suggestion.title, suggestion.values)
        return self.tr("{count} fixes in one round").format(count=len(self.indices))

    def _name(self, index: int) -> str:
        suggestion = self._chosen[index]
        return text.filled(suggestion.title, suggestion.values)

    def _made_already(self) -> AppliedEdit | None:
        """The change, where it stands in the user's own file."""
        if len(self._chosen) != 1:
            return None
        state = self._loop.fix_state(self._document, next(iter(self._chosen)))
        return state.made if state is not None else None

    # What is shown ------------------------------------------------------------------------------------------------

    def _show_example(self, reason: str) -> None:
        suggestion = next(iter(self._chosen.values()))
        self._column.addWidget(label(reason, "warn", wrap=True))
        self._column.addWidget(label(self.tr("The fix as an example:"), "dim"))
        self._add_diff(suggestion.fix.before, suggestion.fix.after)

    def _show_one(self, edit: ProposedEdit, found: Derived) -> None:
        self._column.addWidget(label(edit.summary, wrap=True))
        self._column.addWidget(label(str(edit.path), "faint", mono=True, select=True))
        self._add_diff(*found.sides[0][1:])
        self._column.addWidget(label(self.tr("Risk: {risk}").format(risk=edit.risk), "dim", wrap=True))

    def _show_made(self, made: AppliedEdit) -> None:
        words = self.tr("Your file has this change already. Undo brings back the text before it.")
        self._column.addWidget(label(words, wrap=True))
        self._column.addWidget(label(str(made.edit.path), "faint", mono=True, select=True))
        self._add_diff(*near_lines(made.edit.before, made.edit.after))

    def _show_several(self, found: Derived) -> None:
        """What is left out first, then the fixes with their risks, then one diff of each file."""
        for conflict in self.joint.conflicts:
            self._column.addWidget(label(self._left_out(conflict), "warn", wrap=True))
        covered = {twin: index for index, twin in self.joint.covered}
        for number, (index, edit) in enumerate(self.joint.edits, 1):
            words = self.tr("{number}. {summary}").format(number=number, summary=edit.summary)
            source = self._chosen[index].source
            if source is not None:
                place = text.place(source.file, source.line)
                words = self.tr("{number}. {summary} ({place})").format(
                    number=number, summary=edit.summary.rstrip("."), place=place
                )
            self._column.addWidget(label(words, wrap=True))
            if index in covered:
                same = self.tr("This is the change for “{title}” as well.")
                self._column.addWidget(label(same.format(title=self._name(covered[index])), "dim", wrap=True))
            self._column.addWidget(label(self.tr("Risk: {risk}").format(risk=edit.risk), "dim", wrap=True))
        for path, before, after in found.sides:
            self._column.addWidget(label(str(path), "faint", mono=True, select=True))
            self._add_diff(before, after)

    def _add_diff(self, before: str, after: str) -> None:
        self.diff = CodeDiff(before, after, self.tr("Change of the code"))
        self._column.addWidget(self.diff)

    def _left_out(self, conflict: Conflict) -> str:
        """Why a fix is not among those that are made, with the lines that two of them want."""
        title = self._name(conflict.index)
        if conflict.other < 0:
            words = self.tr("Left out: “{title}”. Its change cannot be derived from the code: {reason}.")
            return words.format(title=title, reason=conflict.reason or text.unknown())
        lines = ", ".join(str(line) for line in conflict.lines)
        if conflict.kind == "lost":
            words = self.tr(
                "Left out: “{title}”. It changes what “{other}” writes (line {lines}). Apply it in a round after this."
            )
        elif lines:
            words = self.tr(
                "Left out: “{title}”. After “{other}” its change no longer fits (line {lines}). Apply it in a round "
                "after this."
            )
        else:
            words = self.tr(
                "Left out: “{title}”. After “{other}” its change no longer fits. Apply it in a round after this."
            )
        return words.format(title=title, other=self._name(conflict.other), lines=lines)

    # Prediction ---------------------------------------------------------------------------------------------------

    def _predict(self) -> None:
        if len(self._chosen) == 1:
            alone = next(iter(self._chosen.values()))
            self.prediction.setText(self._doubted(self._alone(alone), alone.saving.pct))
            self._add_wall()
            self._say_measured()
            return
        self.prediction.setText(self.tr("Working out what they save together…"))
        self._loop.predict(self._document, self.indices, self._predicted, "joint-dialog")

    def _predicted(self, after_ns: float | None) -> None:
        if not isValid(self.prediction):
            return
        analysis = self._document.analysis
        now = analysis.figures.summary.sustained_step_ns if analysis is not None else None
        if after_ns is None or not now:
            self.prediction.setText(self.tr("What they save together is unknown until they have run."))
            return
        words = self.tr("Predicted together: a recorded step of {before} falls to {after} ({share} less).")
        pct = 100 * (now - after_ns) / now
        words = words.format(before=text.duration(now), after=text.duration(after_ns), share=text.percent(pct))
        self.prediction.setText(self._doubted(words, pct))
        self._add_wall()

    def _alone(self, suggestion: Suggestion) -> str:
        analysis = self._document.analysis
        now = analysis.figures.summary.sustained_step_ns if analysis is not None else None
        if suggestion.saving.ns is None:
            return self.tr("What it saves is unknown until it has run.")
        words = self.tr("Predicted to save {share} of the recorded step: {time} of {now}.")
        if not now:
            words = self.tr("Predicted to save {time} of a step ({share}).")
        return words.format(
            time=text.duration(suggestion.saving.ns), share=text.percent(suggestion.saving.pct), now=text.duration(now)
        )

    def _doubted(self, words: str, saving_pct: float | None) -> str:
        """A prediction, with what is said where the recorded steps differ by more than it saves."""
        analysis = self._document.analysis
        doubt = within(analysis, saving_pct) if analysis is not None and saving_pct else ""
        return f"{words} {doubt}" if doubt else words

    def _add_wall(self) -> None:
        """Say what a step takes without the profiler, where that is much less than what the prediction is of."""
        document = self._document
        if document.analysis is None:
            return
        found = slowed(document.trace, document.analysis, self._loop.wall_step_ns(document))
        if found is not None:
            words = self.tr("{predicted} Without the profiler a step takes {wall}: expect the share, not the time.")
            self.prediction.setText(
                words.format(predicted=self.prediction.text(), wall=text.duration(found.wall_ns)),
            )

    def _say_measured(self) -> None:
        """What a run has shown stands before what was predicted."""
        state = self._loop.fix_state(self._document, next(iter(self._chosen)))
        judged = state.judged if state is not None else None
        if state is None or judged is None or judged.before_ns is None or judged.after_ns is None:
            return
        words = {
            "wall": self.tr(
                "Measured already, in round {number}, without the profiler: {result}, {before} → {after} ({change}). "
                "{predicted}"
            ),
            "sustained": self.tr(
                "Measured already, in round {number}, while recorded: {result}, {before} → {after} ({change}). "
                "{predicted}"
            ),
        }.get(
            judged.measure,
            self.tr("Measured already, in round {number}: {result}, {before} → {after} ({change}). {predicted}"),
        )
        restyle(self.prediction, "role", "warn" if not judged.is_gain else "saved")
        self.prediction.setText(
            words.format(
                number=state.number,
                result=result(judged),
                before=text.duration(judged.before_ns),
                after=text.duration(judged.after_ns),
                change=text.change(judged.measured_pct or 0.0),
                predicted=self.prediction.text(),
            )
        )

    # Ways on ------------------------------------------------------------------------------------------------------

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        if self._made is not None:
            self._add_made_buttons(row, self._made)
        self.copy_button = button(
            self.tr("Apply to a copy, re-run"),
            self._run_copy,
            "primary",
            self.tr("The copy lies in a folder of its own and runs with the same options; your file is not touched."),
        )
        self.file_button = button(
            self.tr("Change my file…"),
            self._change_file,
            tip=self.tr("Only if it is still what was run; the old text is kept, and one click brings it back."),
        )
        for made in (self.copy_button, self.file_button):
            made.setEnabled(False)
            made.setVisible(self._made is None)
            row.addWidget(made)
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        return row

    def _add_made_buttons(self, row: QHBoxLayout, made: AppliedEdit) -> None:
        """What can be done with a change that is made: measure it, or take it back."""
        undo = self.tr("Undo the change of {file}").format(file=made.edit.path.name)
        self.again_button = button(self.tr("Run it again now"), self._run_own, "primary")
        self.undo_button = button(undo, self._undo)
        row.addWidget(self.again_button)
        row.addWidget(self.undo_button)

    def _run_own(self) -> None:
        self.accept()
        self._loop.run_own(self._document)

    def _undo(self) -> None:
        self.accept()
        self._loop.undo_fix(self._document, next(iter(self._chosen)))

    def _run_copy(self) -> None:
        self.accept()
        self._loop.run_joint(self._document, self.joint)

    def _change_file(self) -> None:
        files = list(dict.fromkeys(str(edit.path) for _, edit in self.joint.edits))
        if not files:
            return
        question = QMessageBox(self)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setWindowTitle(self.tr("Change your file?"))
        question.setText(self.tr("{file} will be changed.").format(file=", ".join(files)))
        said, is_proved = self._proof()
        kept = self.tr(
            "Its old text is kept in the run's folder. “Undo the change” brings it back: on the card, in the File "
            "menu and under the rounds."
        )
        question.setInformativeText(f"{said}\n\n{kept}")
        run = question.addButton(self.tr("Change it and run it again"), QMessageBox.ButtonRole.AcceptRole)
        run.clicked.connect(self._confirmed_run)
        only = question.addButton(self.tr("Only change it"), QMessageBox.ButtonRole.AcceptRole)
        only.clicked.connect(self._confirmed)
        cancel = question.addButton(QMessageBox.StandardButton.Cancel)
        question.setDefaultButton(only if is_proved else cancel)
        question.setEscapeButton(cancel)
        question.open()

    def _proof(self) -> tuple[str, bool]:
        """What the newest rounds with these fixes measured, and whether a gain of all of them is proved."""
        run = self._loop.run_of(self._document)
        states = [self._loop.fix_state(self._document, index) for index in self._chosen]
        numbers = sorted({s.number for s in states if s is not None and s.judged is not None and s.number is not None})
        if run is None or not numbers:
            return self.tr("What this brings has not been measured yet: a run of a copy shows it first."), False
        project = self._loop.project_of(run)
        said, is_proved = measured(project, checks_of(project), numbers)
        if any(s is None or s.judged is None for s in states):
            return f"{said} {self.tr('Not all of these fixes have been measured.')}", False
        return said, is_proved

    def _confirmed(self) -> None:
        self.accept()
        self._loop.apply_to_own_file(self._document, self.joint)

    def _confirmed_run(self) -> None:
        self.accept()
        if self._loop.apply_to_own_file(self._document, self.joint) is not None:
            self._loop.run_own(self._document)
