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
    """One trace of the example: its file, title, what to see, and the rule whose suggestion shows it."""

    file: str
    title: str
    words: str
    rule: str


def _story(stage: int, title: str, words: str, rule: str) -> Station:
    return Station(f"story_stage{stage}_simulated.json.gz", title, words, rule)


def stations() -> tuple[Station, ...]:
    """All stations, in the user's language."""
    return (*_waits(), *_operators())


def _waits() -> tuple[Station, ...]:
    """From three waits to none."""
    return (
        _story(
            0,
            translate("tour", "A small copy, a long wait"),
            translate(
                "tour",
                "The loss makes its class weights on the CPU and copies them to the GPU in every step. A copy from "
                "ordinary memory makes the CPU wait until the GPU is through with all that was queued before: the red "
                "stretch. Look at what the card says it saves: alone next to nothing, because the wait only moves on "
                "to the next line that waits. Together the fixes of all three waits save a quarter of the step.",
            ),
            "constant-copied-each-step",
        ),
        _story(
            1,
            translate("tour", "The wait has moved to an assert"),
            translate(
                "tour",
                "The weights now live on the GPU, and the step is hardly shorter, as the card had said. The same wait "
                "stands at the next line that needs an answer from the GPU: an assert on a GPU tensor. The check can "
                "be made where the labels are made, on the CPU.",
            ),
            "control-flow-on-device-tensor",
        ),
        _story(
            2,
            translate("tour", "And once more, to an index"),
            translate(
                "tour",
                "The labels are checked in the data set. Now range() waits: used as an index it is a list of Python "
                "numbers, which has to be copied to the GPU. torch.arange on the device needs no copy. This is the "
                "last wait, so this fix gets what all three of them promised.",
            ),
            "host-list-index",
        ),
        _story(
            3,
            translate("tour", "No wait is left: the CPU runs ahead"),
            translate(
                "tour",
                "The CPU queues one step while the GPU still works on the one before. What the loss still has is many "
                "small operators where one would do: each costs the CPU a launch and the GPU a pass over its data.",
            ),
            "hand-written-composite-op",
        ),
    )


def _operators() -> tuple[Station, ...]:
    """An illusion, and what is left without waits."""
    return (
        Station(
            "article_stage3_simulated.json.gz",
            translate("tour", "Do not be fooled: the same fix with a large batch"),
            translate(
                "tour",
                "This is the program of the last station with a thousand large images. Without waits its host step is "
                "sixty times shorter than with them, and that is no speed: it is only the time to queue the work. "
                "Compare it with the sustained step above: the GPU needs as long as before. Who looks at the host "
                "step alone celebrates too early. With so much work for the GPU the waits had cost nothing.",
            ),
            "enqueue-time",
        ),
        _story(
            4,
            translate("tour", "One operator, built anew each time"),
            translate(
                "tour",
                "Back to the small batch: nn.NLLLoss does in one call what the hand-written lines did. But it is made "
                "again in every step, which costs the CPU a little each time and is easily moved to __init__.",
            ),
            "object-built-in-step",
        ),
        _story(
            5,
            translate("tour", "Half of the loss is still written by hand"),
            translate(
                "tour",
                "Log-softmax is written out, and the loss reads its result back from memory. nn.CrossEntropyLoss does "
                "both at once, and with fewer rounding errors.",
            ),
            "hand-written-composite-op",
        ),
        _story(
            6,
            translate("tour", "The loss is no longer worth a look"),
            translate(
                "tour",
                "All seven faults of the loss are gone, and the step takes a third less time than at the start. What "
                "is left is not about the loss but about the batch: how it is copied, and how often it is read.",
            ),
            "float-batch-copied",
        ),
        _story(
            7,
            translate("tour", "Not every tool helps everywhere"),
            translate(
                "tour",
                "torch.compile on so small a function gains nothing, and the app says so. This is the end of the tour: "
                "open a trace of your own, or let the app profile your script.",
            ),
            "compile-without-gain",
        ),
    )


def sample(number: int) -> Path:
    """Trace of one station."""
    return FOLDER / stations()[number].file


def stage_of(document: Document) -> int:
    """Station that a document shows, -1 when it is no part of the example."""
    if not document.trace.sources:
        return -1
    path = document.trace.path.resolve()
    return next((k for k, station in enumerate(stations()) if path == FOLDER / station.file), -1)


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
