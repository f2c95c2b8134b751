"""The tour: a strip above the example's traces that says what to look at, stage by stage."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from gui import tour_code
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.text_size import px
from gui.tour_story import FOLDER, came, card_of, recap, sample, stations, told
from gui.widgets.cut_name import CutText
from gui.widgets.labels import button, heading, label

LOW_PX = 640  # height of the page
OPEN = "tour_words_shown"  # property of the session: the words are wanted on a low page, too


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
        if self._stage < 0:  # shown with the page: without a parent it would be a window of its own for a moment
            self.hide()
            return
        every = stations()
        station = every[self._stage]
        self._station, self._target = station, -1
        self._low = False
        number = self.tr("Example, {number} of {count} (simulated)").format(number=self._stage + 1, count=len(every))
        texts = self._texts = QVBoxLayout()
        texts.setSpacing(2)
        head = QHBoxLayout()
        head.setSpacing(12)
        title = CutText()
        title.setFont(heading("", 1).font())
        title.set_text(station.title)
        counted = CutText("faint")  # gives way before the links do
        counted.set_text(number)
        head.addWidget(title)
        head.addWidget(counted)
        self.fold = button(self.tr("Read"), self._toggle_words, "link", self.tr("What this stage shows, in words."))
        self.fold.hide()
        head.addWidget(self.fold)
        self._links: list[QWidget] = []
        self._add_code(head)
        head.addStretch(1)
        texts.addLayout(head)
        self.words = label(station.words, "dim", wrap=True)
        texts.addWidget(self.words)
        self.show_it = button(self.tr("Show it"), self._show)
        self._outer = QVBoxLayout(self)
        self._outer.setSpacing(4)
        row = self._row = QHBoxLayout()
        self._outer.addLayout(row)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        self.back = button(self.tr("Back"), partial(self._go, self._stage - 1))
        self.back.setEnabled(self._stage > 0)  # it keeps its place: what is pressed again and again does not move
        if self._stage + 1 < len(every):
            fixed = every[self._stage + 1].follows >= 0  # there: else nothing was fixed on the way
            words = self.tr("Next fix") if fixed else self.tr("Next")
            self.next = button(words, partial(self._go, self._stage + 1), "primary")
        else:
            self.next = button(self.tr("End tour"), self._end, "primary", self.tr("Close the example"))
        for pressed in (self.show_it, self.back, self.next):  # at the same place in all stations, whatever they say
            row.addWidget(pressed, 0, Qt.AlignmentFlag.AlignTop)
        document.analysisChanged.connect(self._enable)
        session.currentChanged.connect(self._arrived)
        session.openingEnded.connect(self._ended)
        self._keep_place()
        self._enable()
        self._fit()

    def fit_to(self, height_px: int) -> None:
        """One line on a page of little height, until the user wants to read."""
        if self._stage >= 0 and self._low != (height_px < px(LOW_PX)):
            self._low = not self._low
            self._fit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_row"):
            QTimer.singleShot(0, self, self._fit)  # when its parts have the font, too

    def _toggle_words(self) -> None:
        self._session.setProperty(OPEN, not self._session.property(OPEN))  # the stages that follow stay as this one
        self._fit()

    def _fit(self) -> None:
        """Words and links give way on a low page."""
        shown = not self._low or bool(self._session.property(OPEN))
        self.fold.setVisible(self._low)
        self.fold.setText(self.tr("Fold") if shown else self.tr("Read"))
        self.fold.setMinimumWidth(self.fold.sizeHint().width())
        self.next.setMinimumWidth(self._next_px())
        for widget in (self.words, *self._links):
            widget.setVisible(shown)
        column = self._outer if self._low else self._texts  # on a low page they have the whole width
        if column.indexOf(self.words) < 0:
            self.words.setParent(None)
            column.addWidget(self.words)
            self.words.setVisible(shown)
        margin = 8 if shown else 4
        self._outer.setContentsMargins(16, margin, 16, margin)

    def _next_px(self) -> int:
        """Width of the last button with any of its words."""
        made, own = self.next, self.next.text()
        widths = [px(96)]
        for words in (self.tr("Next fix"), self.tr("Next"), self.tr("End tour"), own):
            made.setText(words)
            widths.append(made.sizeHint().width())
        return max(widths)

    def _add_code(self, row: QHBoxLayout) -> None:
        """Links to the program behind the trace, where its scripts are at hand."""
        here, after = (tour_code.stage_file(self._station.file, offset) for offset in (0, 1))
        if here is not None and after is not None and self._station.rule != "enqueue-time":
            tip = self.tr("The exact lines that change on the way to the next stage.")
            self._links.append(button(self.tr("What changes next"), partial(self._show_code, here, after), "link", tip))
        if here is not None and self._session.can("capture"):
            tip = self.tr(
                "Fills in the page that runs it: press Run there. It records this program on your own machine, so that "
                "fixes can be applied and proved. Without a GPU it shows the faults that a CPU run has."
            )
            run = partial(tour_code.run_here, self._session, here)
            self._links.append(button(self.tr("Set up a run of it…"), run, "link", tip))
        for made in self._links:
            row.addWidget(made)

    def _show_code(self, before: Path, after: Path) -> None:
        tour_code.StageDialog(before, after, self._station.title, self).open()

    def _index(self) -> int:
        found = self._document.analysis.suggestions if self._document.analysis else ()
        return next((k for k, s in enumerate(found) if s.rule_id == self._station.rule), -1)

    def _enable(self) -> None:
        self.show_it.setEnabled(self._index() >= 0)
        analysis = self._document.analysis
        priced = not self._document.analysis_running
        sentences = (
            came(self._stage, analysis) if priced else "",
            self._station.words,
            told(self._station, analysis),
            card_of(self._station, analysis) if priced else "",
            recap() if priced and self._stage == len(stations()) - 1 else "",
        )
        self._session.ask("keep_tour")
        self.words.setText(" ".join(s for s in sentences if s))
        if priced and analysis is not None and self._document.current_suggestion < 0:
            QTimer.singleShot(0, self, self._show)  # the card it speaks of is the one that is open

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

    def _keep_place(self) -> None:
        """The tour goes on here, also after the app was closed."""
        if self._session.current is self._document:
            self._session.ask("leave_tour_at", self._stage)

    def _arrived(self) -> None:
        self._keep_place()
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
        """Leave the example for where traces are opened and scripts are profiled, with what it came to."""
        self._session.ask("leave_tour_at", 0)
        QTimer.singleShot(0, self._session, partial(_close, self._session, self._document))
        self._session.pageRequested.emit("start")
        tour_code.EndDialog(self._session, recap(), self.window()).open()


def _close(session: Session, document: Document) -> None:
    if document in session.documents:
        session.close_document(document)


def left_at(session: Session) -> int:
    """Station to go on with: the one that was shown last, 0 at first and after the end."""
    station = session.ask("tour_left_at") or 0
    return int(station) if 0 <= station < len(stations()) else 0


def start(session: Session, anew: bool = False) -> None:
    """Go on where the tour was left, or begin ``anew``; a station that is open stays the only one."""
    shown = next((d for d in session.documents if stage_of(d) >= 0), None)
    wanted = 0 if anew else stage_of(shown) if shown is not None else left_at(session)
    if shown is not None and stage_of(shown) == wanted:
        session.set_current(shown)
        return
    session.open([sample(wanted)])
    if shown is not None:
        session.close_document(shown)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the strip."""
    assert document is not None
    return TourBar(session, document)


PANEL = PanelSpec("tour", "Tour", "band", create)
