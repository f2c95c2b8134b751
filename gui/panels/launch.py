"""Profile a script: which one, with which Python, what to record, and Run."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gui import jobs, text
from gui.errors import as_text
from gui.own_form import STAND_IN, OwnForm
from gui.panels import PanelSpec
from gui.said import spoken
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.gpu_field import GpuField
from gui.widgets.labels import Elided, button, heading, label, named
from gui.widgets.launch_cards import RecordCard, StepsCard, align_labels, beside, centred, form_card
from gui.widgets.python_field import PythonAnswer, PythonField
from gui.widgets.script_hint import ScriptHint
from profiling.errors import ProfilingError
from profiling.interpreters import Interpreter, find_interpreters
from profiling.preflight import Preflight, preflight
from profiling.spec import RunSpec

if TYPE_CHECKING:
    from gui.capture import Capture

WIDTH_PX = 900
LAST_USED = 6
LOOK_MS = 300  # after the last letter of the script's path


class LaunchPage(QWidget):
    """The form that starts a run. Uses ``runChanged`` and the services of ``gui.capture``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._capture: Capture | None = session.ask("capture")
        self._settings = session.ask("capture_settings")
        self._found: Preflight | None = None
        self._own: OwnForm | None = None  # the user's form, while one of the example is shown
        self._picked = False  # the user chose the interpreter: it is not changed with the script
        self._column = column = QWidget()
        self._box = QVBoxLayout(column)
        self._box.setContentsMargins(24, 28, 24, 24)
        self._box.setSpacing(14)
        self._box.addWidget(heading(self.tr("Profile a script"), 8))
        words = self.tr(
            "Nothing in the script has to change: it runs as it would alone, and its steps are found by themselves."
        )
        self._box.addWidget(label(words, "dim", wrap=True))
        self.back = button(self.tr("Back to what I had filled in"), self.restore, "link")
        self.back.hide()
        self._box.addWidget(self.back)
        self._box.addWidget(self._what())
        self.record = RecordCard()
        self.steps = StepsCard()
        for made in (self.record, self.steps):
            made.changed.connect(self._update)
            self._box.addWidget(made)
        self._box.addStretch(1)
        scroll = named(QScrollArea(), self.tr("Profile a script"))
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(centred(column))
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(scroll, 1)
        page.addWidget(self._bottom())
        self._later = self._timer(250, self.check_interpreter)
        self._looking = self._timer(LOOK_MS, self.offer_interpreters)  # while a path is typed
        self.script.textChanged.connect(self._looking.start)
        session.runChanged.connect(self._take_wish)
        session.textSizeChanged.connect(self._timer(0, self._fit).start)  # once their fields have their sizes
        if self._settings is not None:
            self.script.setText(self._settings.get("runs/last_script"))
            self.steps.tick(self._settings.get("runs/step_choices"))
        self._looking.stop()
        self.offer_interpreters()
        self._take_wish()
        self._update()

    def _timer(self, after_ms: int, handler: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(after_ms)
        timer.timeout.connect(handler)
        return timer

    # The form ---------------------------------------------------------------------------------------------------

    def _what(self) -> QFrame:
        card, form = form_card(self.tr("What to run"))
        self._form = form
        self.script, self.module = named(QLineEdit(), self.tr("Script")), named(QLineEdit(), self.tr("Module"))
        self.script.setPlaceholderText(self.tr("train.py"))
        self.module.setPlaceholderText(self.tr("package.train, as python -m takes it"))
        self.as_script, self.as_module = QRadioButton(self.tr("Script")), QRadioButton(self.tr("Module"))
        self._kind = QButtonGroup(card)
        for choice in (self.as_script, self.as_module):
            self._kind.addButton(choice)
        self.as_script.setChecked(True)
        form.addRow(self.as_script, beside(self.script, button(self.tr("Choose…"), self.choose_script)))
        form.addRow(self.as_module, self.module)
        self.hint = ScriptHint()
        self.hint.module_wished.connect(self._use_module)
        self.hint.script_made.connect(self._use_made_script)
        self.hint.failed.connect(self._session.raise_error)
        form.addRow("", self.hint.link)
        self.arguments = QLineEdit()
        self.arguments.setPlaceholderText(
            self.tr('--epochs 1 --out "a folder"   (split like a shell does; nothing is expanded)')
        )
        form.addRow(self.tr("Arguments"), self.arguments)
        self.folder = named(QLineEdit(), self.tr("Working folder"))
        form.addRow(self.tr("Working folder"), beside(self.folder, button(self.tr("Choose…"), self._choose_folder)))
        self.interpreter = PythonField()
        form.addRow(self.tr("Python"), beside(self.interpreter, button(self.tr("Choose…"), self._choose_python)))
        self.gpu = GpuField()
        form.addRow(self.tr("GPU"), self.gpu)
        self.answer = PythonAnswer()
        self.asking = self.answer.asking
        form.addRow("", self.answer)
        form.addRow("", self.hint.remarks)
        self.gpu.currentIndexChanged.connect(self._update)
        for line in (self.script, self.module, self.arguments, self.folder):
            line.textChanged.connect(self._update)
        self._kind.buttonToggled.connect(self._update)
        self.interpreter.currentTextChanged.connect(self._interpreter_changed)
        self.interpreter.picked.connect(self._python_picked)
        return card

    def _bottom(self) -> QFrame:
        bottom = QFrame()
        bottom.setObjectName("status")
        row = QHBoxLayout(bottom)
        row.setContentsMargins(24, 10, 24, 10)
        row.setSpacing(16)
        self.command = Elided("", "faint", mono=True)
        row.addWidget(self.command, 1)
        self.why_not = label("", "warn")
        row.addWidget(self.why_not)
        self.run_button = button(self.tr("Run"), self.run, "primary", self.tr("Start the script under the profiler"))
        self.run_button.setMinimumWidth(120)
        row.addWidget(self.run_button)
        return bottom

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Sizes of fields are known with their style."""
        super().showEvent(event)
        self._fit()

    def _fit(self) -> None:
        self._column.setMaximumWidth(px(WIDTH_PX))
        self.answer.keep_room()
        for form in (self._form, self.record.form, self.steps.form):
            align_labels(form)

    # Filling it -------------------------------------------------------------------------------------------------

    def offer_interpreters(self) -> None:
        """Look for interpreters about the script, off the GUI thread; the choice of the user is kept."""
        last = list(self._settings.get("runs/interpreters")) if self._settings is not None else []
        looking = partial(_look, self.script.text(), last)
        jobs.run(self, looking, self._take_interpreters, self._session.raise_error, key="interpreters")

    def _take_interpreters(self, found: list[Interpreter]) -> None:
        before = self.interpreter.path()
        self.interpreter.offer(found, before if self._picked else "")
        if self.interpreter.path() != before:
            self._interpreter_changed()

    def _interpreter_changed(self) -> None:
        self._found = None
        self.answer.wait(bool(self.interpreter.path()))
        self._later.start()
        self._update()

    def _python_picked(self) -> None:
        self._picked = True

    def check_interpreter(self) -> None:
        """Ask the chosen interpreter, off the GUI thread."""
        path = self.interpreter.path()
        if path:
            asking = partial(preflight, path, runs_root=self._root())
            jobs.run(self, lambda _: asking(), self._checked, self._not_checked, key="preflight")

    def _root(self) -> str:
        """Where runs are kept; empty where that is left to the launcher."""
        from gui.capture import runs_root

        return str(runs_root(self._settings)) if self._settings is not None else ""

    def _checked(self, found: Preflight) -> None:
        if found.interpreter != self.interpreter.path():
            return
        self._found = found
        self.gpu.offer(found.devices)
        worst = found.remarks[0].level if found.remarks else "info"
        words = [f"{spoken(r.text)} {spoken(r.cure)}".strip() for r in found.remarks]
        self.answer.tell(spoken(found.words), words, {"stop": "wait", "warn": "warn"}.get(worst, "dim"))
        self._update()

    def _not_checked(self, error: BaseException) -> None:
        self._found = None
        shown = as_text(error)
        self.answer.tell("", [f"{shown.title} {shown.detail} {shown.hint}" if shown else str(error)], "wait")
        self._update()

    def _take_wish(self) -> None:
        if self._capture is not None and self._capture.wished is not None:
            spec, self._capture.wished = self._capture.wished, None
            if self._capture.aside and self._own is None:
                self._own = self._filled()
            self.fill(spec)
        self.back.setVisible(self._own is not None and self._own.is_filled)
        self._update()

    def _filled(self) -> OwnForm:
        """What the user has filled in, runnable or not: with both targets, or none, or arguments not split yet."""
        rest = self._spec((), script=STAND_IN)
        texts = self.script.text(), self.module.text(), self.arguments.text()
        return OwnForm(rest, *texts, self.as_module.isChecked(), self._picked)

    def restore(self) -> None:
        """Bring back what the user had filled in before a run of the example was proposed."""
        if self._own is None:
            return
        own, self._own = self._own, None
        self.fill(own.rest)
        self.script.setText(own.script)
        self.module.setText(own.module)
        self.arguments.setText(own.arguments)
        (self.as_module if own.as_module else self.as_script).setChecked(True)
        self._picked = own.picked
        self.back.hide()

    def fill(self, spec: RunSpec) -> None:
        """Show a spec in the form."""
        import shlex

        self.as_module.setChecked(bool(spec.module))
        self.as_script.setChecked(not spec.module)
        self.script.setText(os.path.abspath(spec.script) if spec.script else self.script.text())
        self.module.setText(spec.module)
        self.arguments.setText(shlex.join(spec.argv))
        self.folder.setText(spec.cwd)
        self._picked = True
        self.interpreter.setEditText(spec.interpreter)
        self.gpu.choose(spec.gpu)
        self.record.fill(spec)
        self.steps.fill(spec)

    def choose_script(self) -> None:
        """Ask for the script; a user who thinks better of it keeps the form."""
        start = os.path.dirname(self.script.text()) or str(Path.home())
        path, _ = QFileDialog.getOpenFileName(self, self.tr("Choose a script"), start, self.tr("Python (*.py *.ipynb)"))
        if path:
            self.script.setText(path)
            self.as_script.setChecked(True)

    def _choose_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(self, self.tr("Choose the working folder"), self.folder.text())
        if path:
            self.folder.setText(path)

    def _choose_python(self) -> None:
        start = os.path.dirname(self.interpreter.currentText())
        path, _ = QFileDialog.getOpenFileName(self, self.tr("Choose a Python"), start)
        if path:
            self._picked = True
            self.interpreter.setEditText(path)

    def _use_module(self, name: str, folder: str) -> None:
        self.module.setText(name)
        self.folder.setText(folder)
        self.as_module.setChecked(True)

    def _use_made_script(self, path: str, left_out: int) -> None:
        self.script.setText(path)
        words = self.tr("The notebook's code is in {path}; lines that only a notebook understands: {count}.")
        self._session.set_status(words.format(path=path, count=text.count(left_out)))

    # Using it ---------------------------------------------------------------------------------------------------

    def spec(self) -> RunSpec:
        """What the form says.

        Raises
        ------
        ProfilingError
            Where it says something that cannot be run.
        """
        from gui.capture import split_arguments

        try:
            argv = split_arguments(self.arguments.text())
        except ValueError as error:
            words = self.tr("The arguments cannot be split: a quote is not closed.")
            raise ProfilingError(words, str(error)) from error
        kind, field = ("module", self.module) if self.as_module.isChecked() else ("script", self.script)
        return self._spec(argv, **{kind: field.text().strip()})

    def _spec(self, argv: tuple[str, ...], **target: Any) -> RunSpec:
        return RunSpec(
            interpreter=self.interpreter.path(),
            argv=argv,
            cwd=self.folder.text().strip(),
            gpu=self.gpu.value(),
            **self.record.values(),
            **self.steps.values(),
            stdin="pipe",
            runs_root=self._root(),
            **target,
        )

    def run(self) -> None:
        """Start the run that the form describes."""
        if self._capture is None:
            return
        try:
            spec = self.spec()
            spec.check()
        except ProfilingError as error:
            self._session.raise_error(error)
            return
        if self._settings is not None and self._own is None:
            self._settings.set("runs/last_script", spec.script)
            self._settings.set("runs/step_choices", self.steps.ticked())
            used = [spec.interpreter, *(p for p in self._settings.get("runs/interpreters") if p != spec.interpreter)]
            self._settings.set("runs/interpreters", used[:LAST_USED])
        self._capture.start(spec)
        if self._capture.running:
            self.restore()

    def _update(self, *_: object) -> None:
        module = self.as_module.isChecked()
        self.module.setEnabled(module)
        self.script.setEnabled(not module)
        script = self.script.text().strip()
        self.hint.show_for("" if module else script)
        folder = os.path.dirname(os.path.abspath(script)) if script and not module else ""
        self.folder.setPlaceholderText(folder or self.tr("the folder of the script"))
        target = self.module.text().strip() if module else script
        why_not = self._why_not(target)
        self.why_not.setText(why_not)
        self.why_not.setVisible(bool(why_not))
        self.run_button.setEnabled(not why_not)
        try:
            self.command.set_text(" ".join(self.spec().command) if target else "")
        except ProfilingError as error:
            self.command.set_text(spoken(error.title))

    def _why_not(self, target: str) -> str:
        """Why the form cannot be run as it stands, "" where it can."""
        if not target and self.as_module.isChecked():
            return self.tr("Name a module first")
        if not target:
            return self.tr("Choose a script first")
        if not self.interpreter.path():
            return self.tr("Choose a Python first")
        if self._found is not None and not self._found.usable:
            return self.tr("This Python cannot run it, see above")
        if self._capture is not None and self._capture.running:
            return self.tr("A script is running: wait for its end, or stop it")
        return ""


def _look(script: str, last: list[str], _: jobs.Progress) -> list[Interpreter]:
    return find_interpreters(script, last)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return LaunchPage(session)


PANEL = PanelSpec("launch", "Profile a script", "page", create)
