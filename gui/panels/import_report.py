"""What to know before trusting a figure: the importer's losses and repairs, and what the doctor found."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QGridLayout, QScrollArea, QVBoxLayout, QWidget

from core.figures.model import DoctorNote
from core.words import fill
from gui import text
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button, heading, label

ROLES = {"error": "wait", "warning": "warn", "info": "faint"}
RANK = {"error": 0, "warning": 1}
Line = tuple[str, str, str, tuple[int, ...]]  # severity, title, advice, slices to show


class ImportReportPanel(QScrollArea):
    """Uses the document's ``analysisChanged``."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._document = document
        self._shown: object = None
        self.setWidgetResizable(True)
        self.setAccessibleName(self.tr("What is odd about this trace"))
        self.setProperty("role", "view")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # to scroll with the keys
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        document.when_analysed(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show importer's notes, and the doctor's when they are there."""
        analysis = self._document.analysis
        doctor = analysis.figures.doctor if analysis is not None else ()
        if doctor is self._shown:
            return
        self._shown = doctor
        inner = QWidget()
        inner.setObjectName("scrolled")
        box = QVBoxLayout(inner)
        box.setContentsMargins(16, 10, 16, 12)
        box.setSpacing(8)
        report = self._document.trace.report
        words = self.tr("{read} events read, {kept} kept.").format(
            read=text.count(report.events_read), kept=text.count(report.events_kept)
        )
        box.addWidget(label(words, "dim"))
        lines = self._lines(doctor)
        notes = [line for line in lines if line[0] == "info"]
        odd = sorted((line for line in lines if line[0] != "info"), key=lambda line: RANK.get(line[0], len(RANK)))
        if not lines:
            box.addWidget(label(self.tr("Nothing is odd about this trace.")))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(10)
        grid.setColumnStretch(1, 1)
        for few, title in (  # as the status bar counts them
            (odd, text.counted(self.tr("{count} {count|thing|things} to know about this trace"), len(odd))),
            (notes, text.counted(self.tr("{count} {count|note|notes}"), len(notes))),
        ):
            if few:
                grid.addWidget(heading(title, 1), grid.rowCount(), 0, 1, 2)
                for line in few:
                    self._add(grid, *line)
        box.addLayout(grid)
        box.addStretch(1)
        self.setWidget(inner)

    def _lines(self, doctor: tuple[DoctorNote, ...]) -> list[Line]:
        """What there is to say, once each."""
        report = self._document.trace.report
        # What the importer found odd the doctor judges, too: once is enough, with what the doctor knows of it.
        twins = {d.title: d for d in doctor}
        lines: list[Line] = []
        for n in report.notes:
            twin = twins.pop(n.headline, None)
            advice = self._advice(n.advice, n.example)
            parts = [_texts(twin)[1] if twin else "", advice]
            slices = twin.slices if twin else ()
            lines.append((n.severity, self._title(n.title, n.count), " ".join(p for p in parts if p), slices))
        for d in doctor:
            if d.title in twins:
                title, consequence, cure = _texts(d)
                lines.append((d.severity, title, " ".join(p for p in (consequence, cure) if p), d.slices))
        return lines

    def _title(self, title: str, count: int) -> str:
        return fill(_rules(title), {"count": count}, {"count": text.count(count)})

    def _advice(self, advice: str, example: str) -> str:
        if not example:
            return _rules(advice)
        words = self.tr("{advice} Example: {example}")
        return words.format(advice=_rules(advice), example=text.elided(example, 200))

    def _add(self, grid: QGridLayout, severity: str, title: str, advice: str, slices: tuple[int, ...]) -> None:
        row = grid.rowCount()
        name = {
            "error": self.tr("error"),
            "warning": self.tr("careful"),
            "info": self.tr("note"),
        }.get(severity, severity)
        grid.addWidget(label(name, ROLES.get(severity, "faint")), row, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(1)
        made = heading(title, 0, wrap=True)
        texts.addWidget(made)
        if advice:
            texts.addWidget(label(advice, "dim", wrap=True, select=True))
        if slices:
            show = partial(self._document.show_slices, slices)
            texts.addWidget(button(self.tr("Show where"), show, "link"), 0, Qt.AlignmentFlag.AlignLeft)
        grid.addLayout(texts, row, 1)


def _texts(note: DoctorNote) -> list[str]:
    """Title, consequence and cure in the user's language."""
    plain = (note.title, note.consequence, note.cure)
    return [text.filled(t, note.values) if t else p for t, p in zip(note.templates, plain, strict=True)]


def _rules(words: str) -> str:
    return QCoreApplication.translate("rules", words)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return ImportReportPanel(session, document)


PANEL = PanelSpec(
    "import_report", "Doctor", "bottom", create, tip="What is odd about this trace, and what it was recorded without"
)
