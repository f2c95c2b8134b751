"""The plan: what to fix, best first, with the predicted step time falling from card to card."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget
from shiboken6 import isValid

from core.analysis import Analysis
from core.project import predicted_step
from core.suggestions import Suggestion
from gui import plan_order, suggestion_text, text
from gui.panels import PanelSpec
from gui.plan_lead import LeadLine, is_priced
from gui.plan_ticked import TickedRow
from gui.session import CHOSEN, DONE, LATER, SET_ASIDE, Document, Session
from gui.suggestion_body import BodyMaker
from gui.text_size import px
from gui.widgets.card import Card
from gui.widgets.chain import Chain
from gui.widgets.charts import FallingBars
from gui.widgets.cpu_time_view import CpuTimeView
from gui.widgets.cut_name import CutText
from gui.widgets.fold import Fold
from gui.widgets.labels import button, heading, label, named, restyle
from gui.widgets.outcomes import OutcomeList
from gui.widgets.sticky_actions import StickyActions

OPEN_MS = 20  # from the shown plan to its first open card
LOW_PX = 300  # of the panel: with the bars, less than a card would be seen
LEAD_PX = 50  # more, with words above the cards
SPARE_PX = 440  # with the words under the bars, little of the first card would be seen


class PlanPanel(QWidget):
    """Uses the document's ``analysisChanged`` and ``suggestionChanged``, the session's ``servicesChanged``."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._cards: list[Card] = []
        self._chains: list[Chain] = []
        self._fix_states: list[object] = []  # what became of each card's fix, as it shows it
        self._bodies = BodyMaker(session, document, self)
        self._shown: tuple[Suggestion, ...] | None = None
        self._source: tuple[object, ...] = ()  # where the code comes from, as the open bodies show it
        self._first = -1  # the card that is open until one is chosen
        self._cramped = (False, False)
        self._priced: tuple[int, ...] = ()  # what the caption's prediction is of
        self._in_turn = True  # whether what is ticked has no card between that is not
        self.total = CutText()
        font = self.total.font()
        font.setBold(True)
        self.total.setFont(font)
        self.bars = FallingBars()
        self.bars.picked.connect(self._choose)
        self.caption = label("", "faint", wrap=True)
        self.message = label("", "dim", wrap=True)
        self.lead = LeadLine(self._choose)
        self._column = QVBoxLayout()
        self._column.setSpacing(8)
        self._small, self._notes = Fold(), Fold()
        self._small.toggled.connect(self._toggle_small)
        self._outcomes = OutcomeList()
        self._build()
        document.when_analysed(self.show_all)
        document.suggestionChanged.connect(self.show_states)
        document.fixDerived.connect(self._rebuild)
        session.servicesChanged.connect(self._rebuild_bodies)
        session.themeChanged.connect(self._rebuild_bodies)
        self.show_all()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.addWidget(heading(self.tr("Plan"), 2))
        head.addStretch(1)
        head.addWidget(self.total)
        inner = QWidget()
        inner.setObjectName("scrolled")
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 2, 12, 12)
        column.setSpacing(8)
        column.addWidget(self.lead)
        column.addLayout(self._column)
        column.addWidget(self._small)
        column.addWidget(self._notes)
        column.addWidget(self._outcomes)
        column.addWidget(CpuTimeView(self._session, self._document))
        column.addStretch(1)
        self.area = named(QScrollArea(), self.tr("Plan"))
        self.area.setProperty("role", "below")  # a line above it: what is scrolled under the head is cut there
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inner)
        self.previous = button(self.tr("← Previous"), partial(self._document.step_suggestion, -1), "flat", yields=True)
        self.previous.setToolTip(self.tr("Previous suggestion (P or Shift+N)"))
        self.next = button(self.tr("Next →"), partial(self._document.step_suggestion, 1), "flat")
        self.next.setToolTip(self.tr("Next suggestion (N)"))
        self.at = label("", "dim")
        self.ticked = TickedRow(self._session, self._document, self._ticked_at)
        self.apply = self.ticked.apply
        self.sticky = StickyActions(self.area)
        foot = QHBoxLayout()
        foot.setContentsMargins(10, 4, 10, 6)
        foot.addWidget(self.previous)
        foot.addStretch(1)
        foot.addWidget(self.at)
        foot.addStretch(1)
        foot.addWidget(self.next)
        top = QVBoxLayout()
        top.setContentsMargins(16, 12, 16, 4)
        top.setSpacing(6)
        top.addLayout(head)
        top.addWidget(self.bars)
        top.addWidget(self.caption)
        top.addWidget(self.message)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addLayout(top)
        box.addWidget(self.area, 1)
        box.addWidget(self.ticked)
        box.addLayout(foot)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """In a low window the bars give way to the cards."""
        super().resizeEvent(event)
        if self._is_cramped() != self._cramped:
            QTimer.singleShot(0, self, self._show_plan)  # not while the layout is at work

    def _is_cramped(self) -> tuple[bool, bool]:
        """Whether there is no room for the bars, and none for the words under them: the cards are what counts."""
        lead_px = 0 if self.lead.isHidden() else LEAD_PX
        return self.height() < px(LOW_PX + lead_px), self.height() < px(SPARE_PX)

    # What is there -------------------------------------------------------------------------------------------

    def show_all(self) -> None:
        """Show plan, cards and outcomes of the analysis as far as it is there."""
        analysis = self._document.analysis
        found = analysis.suggestions if analysis else ()
        if found is not self._shown:
            self._shown, self._first = found, -1
            self._make_cards(found)
        source = (self._document.run, self._document.run_folder, self._document.finder)
        if len(source) != len(self._source) or any(a is not b for a, b in zip(source, self._source, strict=True)):
            self._source = source
            for card in self._cards:
                card.rebuild()
        if is_priced(self._document):
            QTimer.singleShot(OPEN_MS, self, self._open_first)  # in a turn of its own: the code is read for it
        self._show_message()
        self._outcomes.show_results(analysis.rules if analysis else ())
        self.show_states()

    def _open_first(self) -> None:
        """Open the best card, and leave the view where it is: nothing was chosen yet."""
        analysis, document = self._document.analysis, self._document
        if self._first >= 0 or analysis is None or not is_priced(document) or document.current_suggestion >= 0:
            return
        still = [i for i in analysis.headlined() if not self._state(analysis.suggestions[i])]
        if still and analysis.suggestions is self._shown:
            self._first = still[0]
            self._show_card(self._first)

    def _make_cards(self, found: tuple[Suggestion, ...]) -> None:
        for old in (*self._cards, *self._chains):
            for column in (self._column, self._small.column, self._notes.column):
                column.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._cards, self._chains, self._fix_states = [], [], [None] * len(found)
        self.sticky.follow(None)
        analysis = self._document.analysis
        assert analysis is not None or not found
        slower = suggestion_text.slowed_plan(self._session, self._document)
        whole_ns, numbers = slower.recorded_ns if slower else None, analysis.numbers() if analysis else {}
        headings = plan_order.headings(analysis, whole_ns) if analysis else {}
        for index, suggestion in enumerate(found):
            card = Card(
                "i" if suggestion.informational else str(numbers.get(index, "–")),
                text.filled(suggestion.title, suggestion.values),
                suggestion_text.place(suggestion),
                suggestion_text.saving(analysis, index, suggestion, whole_ns),
                partial(self._bodies.body, index, suggestion),
                suggestion_text.basis(analysis, index, suggestion, whole_ns),
            )
            card.chosen.connect(partial(self._choose, index))
            card.ticked.connect(partial(self._tick, index))
            self._cards.append(card)
            if suggestion.informational:
                self._notes.column.addWidget(card)
            elif analysis is not None and analysis.is_small(index):
                self._small.column.addWidget(card)
            else:
                self._column_under(headings.get(index, "")).addWidget(card)
        small, notes = self._small.column.count(), self._notes.column.count()
        self._small.set_words(plan_order.small_words(analysis, small) if analysis and small else "")
        if small and self._document.small_shown and not self._small.opened:
            self._small.open()
        self._notes.set_words(self.tr("Good to know: {count}").format(count=notes) if notes else "")

    def _column_under(self, heading: str) -> QVBoxLayout:
        """Where a card goes: under the heading that it shares with its neighbours, if it has one."""
        if not heading:
            return self._column
        if not self._chains or self._chains[-1].words.text() != heading:
            self._chains.append(Chain(heading))
            self._column.addWidget(self._chains[-1])
        return self._chains[-1].column

    def _toggle_small(self, opened: bool) -> None:
        self._document.small_shown = opened
        self.show_states()

    def _choose(self, index: int) -> None:
        if self._document.current_suggestion != index:
            self._document.show_suggestion(index)

    def _tick(self, index: int) -> None:
        """Choose a fix for the next round; one that cannot be applied from here is done by hand."""
        suggestion, document = self._document.suggestion(index), self._document
        if suggestion is None:
            return
        if self._state(suggestion) in (DONE, CHOSEN):
            document.set_suggestion_state(index, "")
        else:
            can = self._session.can("apply_fixes")
            can = can and self._session.ask("can_apply_fix", document, index) is not False  # None: not known yet
            document.set_suggestion_state(index, CHOSEN if can else DONE)
            if can:
                self._session.ask("when_fix_known", document, index, partial(self._settle_tick, suggestion))

    def _settle_tick(self, suggestion: Suggestion, can: bool) -> None:
        """What was ticked before its change was derived turns out to be for doing by hand."""
        document = self._document
        found = document.analysis.suggestions if document.analysis else ()
        if can or not isValid(self) or self._state(suggestion) != CHOSEN:
            return
        for index in [i for i, s in enumerate(found) if s.key == suggestion.key]:
            document.set_suggestion_state(index, DONE)

    def _ticked_at(self, *states: str) -> list[int]:
        found = self._document.analysis.suggestions if self._document.analysis else ()
        return [index for index, suggestion in enumerate(found) if self._state(suggestion) in states]

    def _show_message(self) -> None:
        words = suggestion_text.message(self._session, self._document)
        self.message.setText(words)
        self.message.setVisible(bool(words))
        self.lead.show_lead(self._document)

    def _show_plan(self) -> None:
        analysis = self._document.analysis
        now = analysis.figures.summary.sustained_step_ns if analysis else None
        plan = analysis.plan if analysis else ()
        states = [[self._state(s) for i in step.suggestions if (s := self._document.suggestion(i))] for step in plan]
        aside = [any(state in SET_ASIDE for state in of_step) for of_step in states]
        known = now is not None and not all(aside)  # else nothing is left to foretell
        self.total.setVisible(known)
        low, spare = self._cramped = self._is_cramped()
        self.bars.setVisible(known and not low)
        told = not spare or bool(self._ticked_at(DONE, CHOSEN))  # what ticks lead to stands nowhere else
        self.caption.setVisible(known and not low and told)
        if not known:
            return
        assert now is not None
        assert analysis is not None
        values = suggestion_text.falling(now, analysis, aside)
        kept = [of_step for of_step, is_out in zip(states, aside, strict=True) if not is_out]
        done, self._in_turn = plan_order.ticked_bars([all(s in (DONE, CHOSEN) for s in of_step) for of_step in kept])
        slower = suggestion_text.slowed_plan(self._session, self._document)  # the times are the profiler's as well
        words = self.tr("{change} of the recorded step") if slower else self.tr("{now} → {end} ({change})")
        change, end = text.change(100 * (values[-1] - now) / now), values[-1]
        self.total.setText(words.format(now=text.duration(now), end=text.duration(end), change=change))
        self.total.set_short(change)
        hidden = suggestion_text.within(analysis, 100 * (now - end) / now)  # by what the steps differ among themselves
        restyle(self.total, "role", "saved" if end < now and not hidden else "dim")
        self.bars.show_values(values, done, plan_order.bars(analysis, aside), plan_order.bar_groups(analysis, aside))
        self._show_caption(analysis, now)

    def _show_caption(self, analysis: Analysis, now: float) -> None:
        """What the bars are; with ticks, the step time that they lead to together."""
        ticked = self._ticked_at(DONE, CHOSEN)
        self._priced = tuple(ticked)
        self.caption.setText(plan_order.caption(analysis, now))
        if not ticked:
            return
        if words := suggestion_text.measured([self._session.ask("fix_state", self._document, i) for i in ticked]):
            self.caption.setText(words)
            return
        known = predicted_step(analysis, ticked)
        if known is not None:
            self._show_ticked(self._priced, known)
        else:
            self._session.ask("predict_fixes", self._document, ticked, partial(self._show_ticked, self._priced))

    def _show_ticked(self, ticked: tuple[int, ...], after_ns: float | None) -> None:
        """The joint prediction came in; savings of single fixes do not add up."""
        if not isValid(self) or ticked != self._priced:
            return
        if after_ns is None:
            self.caption.setText(self.tr("With those ticked: unknown until they have run."))
        else:
            words = self.tr("With those ticked: {time}, predicted.")
            if not self._in_turn:
                words += " " + self.tr("A bar counts every card above it, too.")
            self.caption.setText(words.format(time=text.duration(after_ns)))

    # States --------------------------------------------------------------------------------------------------

    def _state(self, suggestion: Suggestion) -> str:
        return self._document.suggestion_state.get(suggestion.key, "")

    def show_states(self) -> None:
        """Show which card is open and what the user made of each."""
        document = self._document
        if self._first in self._ticked_at(LATER, *SET_ASIDE):  # the next one is open in its stead
            self._first = -1
            QTimer.singleShot(0, self, self._open_first)
        for index, card in enumerate(self._cards):
            self._show_card(index)
            if index == document.current_suggestion:
                self._unfold(card)
                QTimer.singleShot(0, card, partial(self._scroll_to, card))
        counted, at = self._counted(), document.current_suggestion
        number = counted.index(at) + 1 if at in counted else 0
        self.at.setText(self.tr("{number} of {count}").format(number=number, count=len(counted)) if number else "")
        for arrow in (self.previous, self.next):
            arrow.setEnabled(bool(self._cards))
            arrow.setVisible(bool(counted) or document.analysis_running)
        self.ticked.show_count()
        self._show_plan()

    def _show_card(self, index: int) -> None:
        document, card = self._document, self._cards[index]
        suggestion, chosen = document.suggestion(index), document.current_suggestion
        if suggestion is None:
            return
        state, became = self._state(suggestion), self._session.ask("fix_state", document, index)
        mark = suggestion_text.mark(state, document.dismiss_reason.get(suggestion.key, ""), became)
        if card.state != state or card.mark.text() != mark or self._fix_states[index] != became:
            self._fix_states[index] = became
            card.rebuild()
        analysis = document.analysis
        saved = state not in SET_ASIDE and suggestion_text.is_promise(analysis, index, suggestion)
        opened = index == (chosen if chosen >= 0 else self._first)
        card.set_state(opened=opened, state=state, mark=mark, saved=saved, proved=suggestion_text.is_proved(became))
        if opened:
            self.sticky.follow(card)

    def _counted(self) -> list[int]:
        """Cards that are part of the list: notes and what is set aside never are, small ones while they are shown."""
        analysis = self._document.analysis
        if analysis is None or len(analysis.suggestions) != len(self._cards):
            return []
        found = enumerate(analysis.suggestions)
        every = [i for i, s in found if not s.informational and self._state(s) not in SET_ASIDE]
        return every if self._small.opened else [i for i in every if not analysis.is_small(i)]

    def _unfold(self, card: Card) -> None:
        for fold in (self._small, self._notes):
            if fold.column.indexOf(card) >= 0:
                fold.open()

    def _scroll_to(self, card: Card) -> None:
        """Show a card from its top, and as much of it as fits."""
        bar, room = self.area.verticalScrollBar(), self.area.viewport().height()
        inner = self.area.widget()
        assert inner is not None
        y = card.mapTo(inner, QPoint(0, 0)).y()
        top, bottom = y - 8, y + card.sizeHint().height() + 8
        if top < bar.value() or bottom - top > room:
            bar.setValue(top)
        elif bottom > bar.value() + room:
            bar.setValue(bottom - room)

    def _rebuild_bodies(self) -> None:
        for card in self._cards:
            card.rebuild()
        self.show_states()

    def _rebuild(self, index: int) -> None:
        """The change of one suggestion's code was derived: its card shows it, where the reader is."""
        if 0 <= index < len(self._cards) and self._cards[index].is_built:
            self._cards[index].rebuild()
            self._show_card(index)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return PlanPanel(session, document)


PANEL = PanelSpec("plan", "Plan", "side", create)
