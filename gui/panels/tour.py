"""The tour: a strip above the example's traces that says what to look at, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

import resources
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button, heading, label

FOLDER = Path(resources.__file__).resolve().parent / "samples"
translate = QCoreApplication.translate


@dataclass(frozen=True)
class Station:
    """One stage of the example: its title, what to see, and the rule whose suggestion shows it ("" none)."""

    title: str
    words: str
    rule: str


def stations() -> tuple[Station, ...]:
    """All stations, in the user's language."""
    return (
        Station(
            translate("tour", "A small copy, a long wait"),
            translate(
                "tour",
                "The loss makes its class weights on the CPU and copies them to the GPU in every step. A copy from "
                "ordinary memory makes the CPU wait until the GPU is through with all that was queued before: the red "
                "stretch. Look at what the card says it saves, though: almost nothing. The wait will only move on.",
            ),
            "constant-copied-each-step",
        ),
        Station(
            translate("tour", "The wait has moved to an assert"),
            translate(
                "tour",
                "The weights now live on the GPU. The same wait stands at the next line that needs an answer from the "
                "GPU: an assert on a GPU tensor. The check can be made where the labels are made, on the CPU.",
            ),
            "control-flow-on-device-tensor",
        ),
        Station(
            translate("tour", "And once more, to an index"),
            translate(
                "tour",
                "The labels are checked in the data set. Now range() waits: used as an index it is a list of Python "
                "numbers, which has to be copied to the GPU. torch.arange on the device needs no copy.",
            ),
            "host-list-index",
        ),
        Station(
            translate("tour", "No wait is left, and the step looks a hundred times faster"),
            translate(
                "tour",
                "Compare the host step with the sustained step. The CPU runs ahead now, so the host step is only "
                "the time to queue the work; the GPU needs as long as before. Who looks at the host step alone "
                "celebrates too early. What the loss still has is many small operators where one would do.",
            ),
            "hand-written-composite-op",
        ),
        Station(
            translate("tour", "One operator, built anew each time"),
            translate(
                "tour",
                "nn.NLLLoss does in one call what the hand-written lines did. It is made again in every step, "
                "which costs the CPU a little each time and is easily moved to __init__.",
            ),
            "object-built-in-step",
        ),
        Station(
            translate("tour", "Half of the loss is still written by hand"),
            translate(
                "tour",
                "Log-softmax is written out, and the loss reads its result back from memory. nn.CrossEntropyLoss does "
                "both at once, and with fewer rounding errors.",
            ),
            "unfused-cross-entropy",
        ),
        Station(
            translate("tour", "The loss is no longer worth a look"),
            translate(
                "tour",
                "All seven faults of the loss are gone. What is left is the work of the GPU itself. The first card of "
                "the plan has stood there from the start: it is not about the loss, and saves more than all of them.",
            ),
            "float-batch-copied",
        ),
        Station(
            translate("tour", "Not every tool helps everywhere"),
            translate(
                "tour",
                "torch.compile on so small a function gains nothing, and the app says so. This is the end of the tour: "
                "open a trace of your own, or let the app profile your script.",
            ),
            "compile-without-gain",
        ),
    )


def sample(stage: int) -> Path:
    """Trace of one stage."""
    return FOLDER / f"story_stage{stage}_simulated.json.gz"


def stage_of(document: Document) -> int:
    """Stage that a document shows, -1 when it is no part of the example."""
    if not document.trace.sources:
        return -1
    path = document.trace.path.resolve()
    return next((k for k in range(len(stations())) if path == sample(k)), -1)


class TourBar(QFrame):
    """Hidden for every trace but the example's. Uses the document's ``analysisChanged``."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self.setObjectName("band")
        self._stage = stage_of(document)
        self.setVisible(self._stage >= 0)
        if self._stage < 0:
            return
        every = stations()
        station = every[self._stage]
        self._rule = station.rule
        number = self.tr("Example, {number} of {count} (simulated)").format(number=self._stage + 1, count=len(every))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(heading(station.title, 1))
        head.addWidget(label(number, "faint"))
        head.addStretch(1)
        texts.addLayout(head)
        texts.addWidget(label(station.words, "dim", wrap=True))
        self.show_it = button(self.tr("Show it"), self._show)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 16, 8)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(self.show_it)
        if self._stage > 0:
            row.addWidget(button(self.tr("Back"), partial(self._go, self._stage - 1)))
        if self._stage + 1 < len(every):
            self.next = button(self.tr("Next fix"), partial(self._go, self._stage + 1), "primary")
            row.addWidget(self.next)
        document.analysisChanged.connect(self._enable)
        self._enable()

    def _index(self) -> int:
        found = self._document.analysis.suggestions if self._document.analysis else ()
        return next((k for k, s in enumerate(found) if s.rule_id == self._rule), -1)

    def _enable(self) -> None:
        self.show_it.setEnabled(self._index() >= 0)

    def _show(self) -> None:
        index = self._index()
        if index >= 0:
            self._document.show_suggestion(index)

    def _go(self, stage: int) -> None:
        self._session.open([sample(stage)])


def start(session: Session) -> None:
    """Open the first stage."""
    session.open([sample(0)])


def create(session: Session, document: Document | None) -> QWidget:
    """Make the strip."""
    assert document is not None
    return TourBar(session, document)


PANEL = PanelSpec("tour", "Tour", "band", create)
