"""The tour: a strip above the example's traces that says what to look at, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

import resources
from core.analysis import Analysis
from gui import text, tour_code
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button, heading, label

FOLDER = Path(resources.__file__).resolve().parent / "samples"
translate = QCoreApplication.translate


WAITS = ("constant-copied-each-step", "control-flow-on-device-tensor", "host-list-index")  # of the example's loss


@dataclass(frozen=True)
class Station:
    """One trace of the example: its file, title, what to see, and the rule whose suggestion shows it.

    ``words`` hold for the program whatever was measured; every figure stands in ``told``, a template that
    `values_of` fills from the trace on screen, so that the tour cannot contradict what is shown below it.
    """

    file: str
    title: str
    words: str
    told: str
    rule: str


def _story(stage: int, title: str, words: str, told: str, rule: str) -> Station:
    return Station(f"story_stage{stage}_simulated.json.gz", title, words, told, rule)


def stations() -> tuple[Station, ...]:
    """All stations, in the user's language."""
    return (*_waits(), _illusion(), *_operators())


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
                "stretch.",
            ),
            translate(
                "tour",
                "Alone this fix saves {alone}, because the wait only moves on to the next line that waits. The fixes "
                "of all three waits together save {waits} ({waits_share} of the step).",
            ),
            "constant-copied-each-step",
        ),
        _story(
            1,
            translate("tour", "The wait has moved to an assert"),
            translate(
                "tour",
                "The weights now live on the GPU. The same wait stands at the next line that needs an answer from the "
                "GPU: an assert on a GPU tensor. The check can be made where the labels are made, on the CPU.",
            ),
            translate("tour", "A step takes {sustained}, and the CPU still waits {waited} of it."),
            "control-flow-on-device-tensor",
        ),
        _story(
            2,
            translate("tour", "And once more, to an index"),
            translate(
                "tour",
                "The labels are checked in the data set. Now range() waits: used as an index it is a list of Python "
                "numbers, which has to be copied to the GPU. torch.arange on the device needs no copy. This is the "
                "last wait: no other takes its place.",
            ),
            translate("tour", "So this fix alone saves {alone} ({alone_share} of the step)."),
            "host-list-index",
        ),
        _story(
            3,
            translate("tour", "No wait is left: now the launches count"),
            translate(
                "tour",
                "The CPU no longer stops for the GPU. What the loss still has is many small operators where one would "
                "do: each costs the CPU a launch and the GPU a pass over its data.",
            ),
            translate("tour", "The GPU is busy {busy} of the time. One operator instead saves {alone} a step."),
            "hand-written-composite-op",
        ),
    )


def _illusion() -> Station:
    """The last fix again, where the GPU is the limit."""
    return Station(
        "article_stage3_simulated.json.gz",
        translate("tour", "Do not be fooled: the same fix with a large batch"),
        translate(
            "tour",
            "This is the program of the last station with a large batch of large images. Without waits its host "
            "step is only the time to queue the work: who looks at it alone celebrates too early. With so much "
            "work for the GPU the waits had cost next to nothing.",
        ),
        translate(
            "tour",
            "Queueing a step takes {step}, but a step is done every {sustained}: the GPU needs {ratio} times as "
            "long, and is busy {busy} of the time.",
        ),
        "enqueue-time",
    )


def _operators() -> tuple[Station, ...]:
    """What is left without waits."""
    return (
        _story(
            4,
            translate("tour", "One operator, built anew each time"),
            translate(
                "tour",
                "Back to the small batch: nn.NLLLoss does in one call what the hand-written lines did. But it is made "
                "again in every step, which costs the CPU time and is easily moved to __init__.",
            ),
            translate("tour", "Made once, it saves {alone} a step."),
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
            translate("tour", "It saves {alone} a step."),
            "hand-written-composite-op",
        ),
        _story(
            6,
            translate("tour", "The loss is no longer worth a look"),
            translate(
                "tour",
                "The faults of the loss are gone. What is left to fix is not about the loss but about the batch: how "
                "it is copied, and how often it is read.",
            ),
            translate("tour", "A step takes {sustained} now. Reading the batch once less saves {alone}."),
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
            translate("tour", "A step takes {sustained}."),
            "compile-without-gain",
        ),
    )


def values_of(analysis: Analysis, rule: str) -> dict[str, str]:
    """Figures that a station may speak of, as text; what is unknown is left out."""
    summary, found = analysis.figures.summary, analysis.suggestions
    step_ns = summary.sustained_step_ns
    alone = next((s.saving for s in found if s.rule_id == rule), None)
    waits_ns = sum(s.saving.together_ns or 0 for s in found if s.rule_id in WAITS)
    values: dict[str, str] = {}
    for name, ns in (
        ("step", summary.step_ns),
        ("sustained", step_ns),
        ("waited", summary.sync_wait_ns_per_step),
        ("alone", alone.ns if alone is not None else None),
        ("waits", waits_ns or None),
    ):
        if ns is not None:
            values[name] = text.duration(ns)
    if step_ns:
        values["waits_share"] = text.percent(100 * waits_ns / step_ns)
        if summary.step_ns:
            values["ratio"] = text.count(round(step_ns / summary.step_ns))
    if alone is not None and alone.pct is not None:
        values["alone_share"] = text.percent(alone.pct)
    if summary.gpu_busy_pct is not None:
        values["busy"] = text.percent(summary.gpu_busy_pct)
    return values


def told(station: Station, analysis: Analysis | None) -> str:
    """Sentence with the trace's own figures; empty until all of them are known."""
    values = values_of(analysis, station.rule) if analysis is not None else {}
    try:
        return station.told.format(**values)
    except KeyError:
        return ""


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
        self._station, self._target = station, -1
        number = self.tr("Example, {number} of {count} (simulated)").format(number=self._stage + 1, count=len(every))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(heading(station.title, 1))
        head.addWidget(label(number, "faint"))
        self._add_code(head)
        head.addStretch(1)
        texts.addLayout(head)
        self.words = label(station.words, "dim", wrap=True)
        texts.addWidget(self.words)
        self.show_it = button(self.tr("Show it"), self._show)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 16, 8)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(self.show_it)
        self.back = button(self.tr("Back"), partial(self._go, self._stage - 1))
        self.back.setEnabled(self._stage > 0)  # it keeps its place: what is pressed again and again does not move
        row.addWidget(self.back)
        if self._stage + 1 < len(every):
            self.next = button(self.tr("Next fix"), partial(self._go, self._stage + 1), "primary")
        else:
            self.next = button(self.tr("End tour"), self._end, "primary", self.tr("Close the example"))
        self.next.setMinimumWidth(96)
        row.addWidget(self.next)
        document.analysisChanged.connect(self._enable)
        session.currentChanged.connect(self._arrived)
        session.openingEnded.connect(self._ended)
        self._enable()

    def _add_code(self, row: QHBoxLayout) -> None:
        """Links to the program behind the trace, where its scripts are at hand."""
        here, after = (tour_code.stage_file(self._station.file, offset) for offset in (0, 1))
        if here is not None and after is not None and self._station.rule != "enqueue-time":
            tip = self.tr("The exact lines that change on the way to the next stage.")
            row.addWidget(button(self.tr("What changes next"), partial(self._show_code, here, after), "link", tip))
        if here is not None and self._session.can("capture"):
            tip = self.tr(
                "Records this program on your own machine, so that fixes can be applied and proved. Without a GPU it "
                "shows the faults that a CPU run has."
            )
            row.addWidget(button(self.tr("Run it here"), partial(tour_code.run_here, self._session, here), "link", tip))

    def _show_code(self, before: Path, after: Path) -> None:
        tour_code.StageDialog(before, after, self._station.title, self).open()

    def _index(self) -> int:
        found = self._document.analysis.suggestions if self._document.analysis else ()
        return next((k for k, s in enumerate(found) if s.rule_id == self._station.rule), -1)

    def _enable(self) -> None:
        self.show_it.setEnabled(self._index() >= 0)
        sentences = (self._station.words, told(self._station, self._document.analysis))
        self.words.setText(" ".join(s for s in sentences if s))

    def _show(self) -> None:
        index = self._index()
        if index >= 0:
            self._document.show_suggestion(index)

    def _go(self, stage: int) -> None:
        """Open another station; it takes this one's place once it is there. Until then there is nothing to press."""
        self._target = stage
        for pressed in (self.next, self.back):
            pressed.setEnabled(False)
        self._session.open([sample(stage)])

    def _arrived(self) -> None:
        shown = self._session.current
        if self._target >= 0 and shown is not None and stage_of(shown) == self._target:
            self._target = -1
            QTimer.singleShot(0, self._session, partial(_close, self._session, self._document))

    def _ended(self, path: str) -> None:
        """Opening the other station was called off or failed, or it is there."""
        if self._target >= 0 and Path(path) == sample(self._target):
            self._offer()

    def _offer(self) -> None:
        self.next.setEnabled(True)
        self.back.setEnabled(self._stage > 0)

    def _end(self) -> None:
        """Leave the example for where traces are opened and scripts are profiled."""
        QTimer.singleShot(0, self._session, partial(_close, self._session, self._document))
        self._session.pageRequested.emit("start")


def _close(session: Session, document: Document) -> None:
    if document in session.documents:
        session.close_document(document)


def start(session: Session) -> None:
    """Open the first stage."""
    session.open([sample(0)])


def create(session: Session, document: Document | None) -> QWidget:
    """Make the strip."""
    assert document is not None
    return TourBar(session, document)


PANEL = PanelSpec("tour", "Tour", "band", create)
