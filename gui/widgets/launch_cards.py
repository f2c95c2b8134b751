"""Two cards of the launch page: what to record, and which steps."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from gui.widgets.calm import CalmCombo, CalmSpin
from gui.widgets.flow import FlowLayout
from gui.widgets.labels import form_text, heading, label, named, plain_tip
from gui.widgets.wrapping_check import WrappingCheck
from profiling.spec import Options, RunSpec, Schedule


class _Card(QFrame):
    """A titled card with a form in it; ``changed`` tells that the user changed something."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._heading, self.form = _fill(self)

    def _changed(self, _checked: bool = False) -> None:
        self.changed.emit()


class RecordCard(_Card):
    """Which things torch records beside names and times, each with its cost."""

    def __init__(self) -> None:
        super().__init__()
        self._heading.setText(self.tr("What to record"))
        form = self.form
        self.options: dict[str, QCheckBox] = {}
        default = Options()
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(6)
        for row, (name, title, cost) in enumerate(
            (
                (
                    "stacks",
                    self.tr("Python stacks"),
                    self.tr(
                        "name the line of code; cost the most: steps often take 1.3 to 2 times as long, and most of a "
                        "large trace is theirs"
                    ),
                ),
                ("shapes", self.tr("Shapes of tensors"), self.tr("needed by the advice about sizes; a few percent")),
                ("memory", self.tr("Memory"), self.tr("every allocation; a few percent, and a larger file")),
                (
                    "flops",
                    self.tr("Operations counted (FLOPs)"),
                    self.tr("of matrix products and convolutions, among their arguments; little, with shapes"),
                ),
                (
                    "modules",
                    self.tr("Module names"),
                    self.tr("of TorchScript models only: stacks name the modules of all others"),
                ),
                ("cuda_sync_events", self.tr("CUDA synchronisation events"), self.tr("newer torch only; little")),
            )
        ):
            box = WrappingCheck(title)
            box.setChecked(getattr(default, name))
            box.toggled.connect(self._changed)
            self.options[name] = box
            grid.addWidget(box, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(label(cost, "faint", wrap=True), row, 1)
        grid.setColumnStretch(1, 1)
        form.addRow(grid)
        self.lines = WrappingCheck(self.tr("Mark every statement of these functions"))
        self.line_patterns = named(QLineEdit(), self.tr("Functions whose statements are marked"))
        self.line_patterns.setPlaceholderText(self.tr("train.py:Loss.forward, * for all of your own"))
        self.line_patterns.setMinimumHeight(28)
        self.lines.toggled.connect(self._changed)
        self.lines.toggled.connect(self.line_patterns.setEnabled)
        self.line_patterns.setEnabled(False)
        grid.addWidget(self.lines, 6, 0, 1, 2)  # alone in its line: the words of the others stand near their boxes
        grid.addWidget(self.line_patterns, 7, 1)

    def fill(self, spec: RunSpec) -> None:
        """Show what a spec says."""
        for name, box in self.options.items():
            box.setChecked(getattr(spec.options, name))
        self.lines.setChecked(bool(spec.line_ranges))
        self.line_patterns.setText(", ".join(spec.line_ranges))

    def values(self) -> dict[str, Any]:
        """Fields of a ``RunSpec``."""
        patterns = tuple(p.strip() for p in self.line_patterns.text().split(",") if p.strip()) or ("*",)
        return {
            "options": Options(**{name: box.isChecked() for name, box in self.options.items()}),
            "line_ranges": patterns if self.lines.isChecked() else (),
        }


class StepsCard(_Card):
    """What a step is, and which of them are recorded."""

    def __init__(self) -> None:
        super().__init__()
        self._heading.setText(self.tr("Which steps"))
        form = self.form
        self.source = CalmCombo()
        for key, title in (
            ("auto", self.tr("Found from the training loop")),
            ("optimizer", self.tr("Each step of the optimizers")),
            ("loader", self.tr("Each batch of the data loader")),
            ("module", self.tr("Each call of the outermost module")),
            ("whole", self.tr("No steps: the whole run, as far as it is short")),
        ):
            self.source.addItem(title, key)
        form.addRow(self.tr("A step is"), self.source)
        self._add_numbers(form)
        self.wall = WrappingCheck(self.tr("Time a few steps without the profiler first: the true step time"))
        self.wall.setChecked(True)
        form.addRow("", self.wall)
        self.stop_after = WrappingCheck(
            self.tr("End the script once the chosen steps are recorded (its finally and atexit still run)")
        )
        form.addRow("", self.stop_after)
        self._add_results(form)

    def _add_numbers(self, form: QFormLayout) -> None:
        """How many steps are skipped, warm up and are recorded."""
        self.numbers: dict[str, QSpinBox] = {}
        row = FlowLayout(10)
        default = Schedule()
        for name, title, low, tip in (
            ("skip", self.tr("skip"), 0, self.tr("Steps at the beginning that run as if nothing watched them.")),
            (
                "warmup",
                self.tr("warm up"),
                0,
                self.tr("Steps in which the profiler is on but keeps nothing: its own start would distort them."),
            ),
            ("active", self.tr("record"), 1, self.tr("Steps that are recorded. Five or six are enough.")),
            (
                "repeat",
                self.tr("times"),
                1,
                self.tr("How many windows are recorded: skipping, warming up and recording begin again after each."),
            ),
        ):
            box = CalmSpin()
            box.setRange(low, 1000)
            box.setValue(getattr(default, name))
            box.setAccessibleName(title)
            box.setAccessibleDescription(tip)
            box.setToolTip(plain_tip(tip))
            box.setAlignment(Qt.AlignmentFlag.AlignCenter)
            box.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            self.numbers[name] = box
            shown = label(title, "dim")
            shown.setToolTip(plain_tip(tip))
            pair = QWidget()  # a number stays beside its name
            inner = beside(shown, box)
            inner.setContentsMargins(0, 0, 0, 0)
            pair.setLayout(inner)
            row.addWidget(pair)
        form.addRow(self.tr("Steps"), row)
        hint = self.tr("An evaluation every so many steps is seen only where its step is recorded: skip those before.")
        told = form_text("faint")
        told.setText(hint)
        form.addRow("", told)

    def _add_results(self, form: QFormLayout) -> None:
        """What is kept to compare results by."""
        self.parameters = WrappingCheck(self.tr("Keep sums of the parameters at the end, to compare results by"))
        self.parameters.setToolTip(
            plain_tip(
                self.tr(
                    "Adds up each parameter of the model when the script ends, and after a step of your choice, and "
                    "keeps the losses of the recorded steps too, so that the run of a fix can be compared with this "
                    "one: equal sums mean that it learnt the same."
                )
            )
        )
        form.addRow("", self.parameters)
        self.after = CalmSpin()
        self.after.setRange(0, 1_000_000)
        self.after.setSpecialValueText(self.tr("no step"))
        self.after.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.after.setSuffix(self.tr(" steps"))
        self.after.setAccessibleName(self.tr("Sums of the parameters after"))
        self.after.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.setContentsMargins(26, 0, 0, 0)  # it belongs to the box above
        row.addWidget(label(self.tr("and also after"), "dim"))
        row.addWidget(self.after)
        row.addStretch(1)
        form.addRow("", row)
        self.after.setEnabled(False)
        self.parameters.toggled.connect(self.after.setEnabled)

    def fill(self, spec: RunSpec) -> None:
        """Show what a spec says."""
        for name, number in self.numbers.items():
            number.setValue(getattr(spec.schedule, name))
        self.source.setCurrentIndex(max(0, self.source.findData(spec.step_source)))
        self.wall.setChecked(spec.measure_wall)
        self.stop_after.setChecked(spec.stop_after_window)
        self.parameters.setChecked(spec.parameters)
        self.after.setValue(spec.parameters_after)

    def ticked(self) -> list[str]:
        """Names of the choices that are ticked, to be kept for the next run."""
        return [name for name, box in self._choices() if box.isChecked()]

    def tick(self, names: list[str]) -> None:
        """Tick what was ticked before."""
        for name, box in self._choices():
            box.setChecked(name in names)

    def _choices(self) -> tuple[tuple[str, QCheckBox], ...]:
        return (
            ("measure_wall", self.wall),
            ("stop_after_window", self.stop_after),
            ("parameters", self.parameters),
        )

    def values(self) -> dict[str, Any]:
        """Fields of a ``RunSpec``."""
        return {
            "schedule": Schedule(**{name: box.value() for name, box in self.numbers.items()}),
            "step_source": self.source.currentData(),
            "measure_wall": self.wall.isChecked(),
            "stop_after_window": self.stop_after.isChecked(),
            "parameters": self.parameters.isChecked(),
            "parameters_after": self.after.value() if self.parameters.isChecked() else 0,
        }


def _fill(card: QFrame) -> tuple[QLabel, QFormLayout]:
    card.setProperty("role", "card")
    box = QVBoxLayout(card)
    box.setContentsMargins(16, 14, 16, 14)
    box.setSpacing(10)
    title = heading("", 1)
    box.addWidget(title)
    form = QFormLayout()
    form.setHorizontalSpacing(14)
    form.setVerticalSpacing(8)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    box.addLayout(form)
    return title, form


def align_labels(form: QFormLayout) -> None:
    """Make each label as high as its field, so that their texts stand on one line."""
    for row in range(form.rowCount()):
        name = form.itemAt(row, QFormLayout.ItemRole.LabelRole)
        field = form.itemAt(row, QFormLayout.ItemRole.FieldRole)
        widget = name.widget() if name is not None else None
        if widget is not None and field is not None:
            if isinstance(widget, QLabel):  # it keeps a least height in its size hint until its text changes
                words = widget.text()
                widget.setMinimumHeight(0)
                widget.setText("")
                widget.setText(words)
                if not words:  # nothing to stand on a line with what has more lines in another width
                    continue
            widget.setMinimumHeight(field.sizeHint().height())


def beside(field: QWidget, *more: QWidget) -> QHBoxLayout:
    """A field that takes the room which the widgets beside it leave."""
    row = QHBoxLayout()
    row.setSpacing(8)
    row.addWidget(field, 1)
    for widget in more:
        row.addWidget(widget)
    return row


def centred(column: QWidget) -> QWidget:
    """A column in the middle of what is scrolled, as wide as it may be."""
    inner = QWidget()
    inner.setObjectName("scrolled")
    row = QHBoxLayout(inner)
    row.setContentsMargins(0, 0, 0, 0)
    row.addStretch(1)
    row.addWidget(column, 100)
    row.addStretch(1)
    return inner


def form_card(title: str) -> tuple[QFrame, QFormLayout]:
    """Make a card with a title and an empty form."""
    card = QFrame()
    shown, form = _fill(card)
    shown.setText(title)
    return card, form
