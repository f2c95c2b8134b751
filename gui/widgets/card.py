"""One suggestion as a card: closed, a title, a place and a saving; open, the whole case with its buttons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gui import text
from gui.models.code_context import CodeLine
from gui.text_size import px
from gui.widgets.code import CodeDiff, CodeLines, UnifiedDiff, comments_above
from gui.widgets.flow import FlowLayout
from gui.widgets.labels import Clamped, button, label, restyle
from gui.widgets.wrapped_link import WrappedLink

NARROW_PX = 300  # of a card
TICK_PX = 22
TITLE_LINES = 3  # of a closed card; an open one shows all of its title


@dataclass(frozen=True)
class Link:
    """A line that can be clicked; ``run`` None makes it plain text."""

    text: str
    run: Callable[[], object] | None
    tip: str = ""


@dataclass(frozen=True)
class Action:
    """A button of an open card."""

    text: str
    run: Callable[[], object]
    primary: bool = False
    tip: str = ""
    enabled: bool = True


@dataclass(frozen=True)
class Body:
    """What an open card shows, in this order."""

    why: str = ""
    summary: str = ""
    code: tuple[CodeLine, ...] = ()
    own_diff: str = ""
    why_example: str = ""  # why there is no diff
    deriving: bool = False  # whether there is a diff is not known yet
    before: str = ""
    after: str = ""
    source: tuple[Link, ...] = ()
    evidence: tuple[Link, ...] = ()
    saves: str = ""
    risk: str = ""
    url: str = ""
    actions: tuple[Action, ...] = field(default=())


class Card(QFrame):
    """A suggestion. Enter or a click opens it; the body is built when first opened.

    Signals
    -------
    chosen()
        The user clicked the card or pressed Enter on it.
    """

    chosen = Signal()
    ticked = Signal()

    def __init__(
        self, number: str, title: str, place: str, saving: str, body: Callable[[], Body], basis: str = ""
    ) -> None:
        super().__init__()
        self.setProperty("role", "card")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._make_body, self._number = body, number
        self._body: QWidget | None = None
        self.actions_row: QWidget | None = None  # of the built body
        self.shown_actions: tuple[Action, ...] = ()
        self.state = ""
        tip = self.tr("Tick it: the predicted step counts it as fixed, and what is ticked can be applied in one round.")
        self.tick = button(number, self.ticked.emit, "tick", tip)
        self.tick.setAccessibleName(self.tr("Tick: {title}").format(title=title))
        self.tick.setFixedSize(px(TICK_PX), px(TICK_PX))
        self.title = Clamped(text.breakable(title), TITLE_LINES)
        self.saving = label(saving)
        font = self.saving.font()
        font.setBold(True)
        self.saving.setFont(font)
        self.basis = label(basis, "faint")  # what kind of saving it is, and what it would be alone
        if not basis:
            self.basis.hide()
        self.worth = QWidget()
        worth = QVBoxLayout(self.worth)
        worth.setContentsMargins(0, 0, 0, 0)
        worth.setSpacing(0)
        for line in (self.saving, self.basis):
            worth.addWidget(line, 0, Qt.AlignmentFlag.AlignRight)
        self.place = label(text.breakable(place), "dim", wrap=True)
        self.place.setMinimumWidth(60)
        self.mark = label("", "faint", wrap=True)
        self.mark.setMinimumWidth(60)
        self._grid = grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(1)
        grid.addWidget(self.tick, 0, 0, 4, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.mark, 3, 1, 1, 2)
        grid.setColumnStretch(1, 1)
        self._narrow: bool | None = None
        self._arrange(False)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(10, 8, 12, 8)
        self._box.setSpacing(8)
        self._box.addLayout(grid)
        self.setAccessibleName(f"{title}. {place}. {saving} {basis}".rstrip())

    def _arrange(self, narrow: bool) -> None:
        """The saving beside the title; in a narrow card each has the whole width, one below the other."""
        if narrow == self._narrow:
            return
        self._narrow = narrow
        side = Qt.AlignmentFlag(0) if narrow else Qt.AlignmentFlag.AlignRight
        for widget in (self.title, self.worth, self.place):
            self._grid.removeWidget(widget)
        self._grid.addWidget(self.title, 0, 1, 1, 2 if narrow else 1)
        if narrow:
            self._grid.addWidget(self.worth, 1, 1, 1, 2, Qt.AlignmentFlag.AlignTop | side)
        else:
            self._grid.addWidget(self.worth, 0, 2, Qt.AlignmentFlag.AlignTop | side)
        worth = self.worth.layout()
        assert worth is not None
        for line in (self.saving, self.basis):
            worth.setAlignment(line, side)
            line.setWordWrap(narrow)
        self._grid.addWidget(self.place, 2, 1, 1, 2)  # below the saving as well: a place is long

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "tick"):
            self.tick.setFixedSize(px(TICK_PX), px(TICK_PX))
            self._arrange(self.width() < px(NARROW_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Give the title the whole width where there is little."""
        super().resizeEvent(event)
        self._arrange(event.size().width() < px(NARROW_PX))

    def set_state(self, *, opened: bool, state: str, mark: str, saved: bool, proved: bool = False) -> None:
        """Show the card open or closed, and its state (of `gui.session`); what a run has ``proved`` is green."""
        restyle(self, "open", "true" if opened else "false")
        self.title.set_limit(0 if opened else TITLE_LINES)
        done = state == "done"
        self.state = state
        chosen = state == "chosen"
        aside = state in ("dismissed", "allowed")
        self.tick.setText("✓" if done or chosen else "–" if aside else self._number)
        restyle(self.tick, "state", "done" if done and proved else "current" if opened or done or chosen else "")
        restyle(self.title, "role", "faint" if state in ("done", "dismissed", "allowed") and not opened else "")
        restyle(self.saving, "role", "saved" if saved else "faint")
        self.mark.setText(mark)
        self.mark.setVisible(bool(mark))
        if opened and self._body is None:
            self._body = self._build(self._make_body())
            self._box.addWidget(self._body)
        if self._body is not None:
            self._body.setVisible(opened)

    @property
    def is_built(self) -> bool:
        """Whether there is a body: it was opened once."""
        return self._body is not None

    def rebuild(self) -> None:
        """Build the body anew when it is next shown."""
        if self._body is not None:
            focused = self.window().focusWidget()
            if focused is not None and self._body.isAncestorOf(focused):
                self.setFocus()  # else it goes to the window's first button
            self._box.removeWidget(self._body)
            self._body.hide()
            self._body.setParent(None)
            self._body.deleteLater()
            self._body, self.actions_row, self.shown_actions = None, None, ()

    def _build(self, body: Body) -> QWidget:
        widget = QWidget()
        widget.setCursor(Qt.CursorShape.ArrowCursor)
        box = QVBoxLayout(widget)
        box.setContentsMargins(0, 0, 0, 4)
        box.setSpacing(8)
        for words, role in ((body.why, "dim"), (body.summary, "")):
            if words:
                box.addWidget(label(text.breakable(words), role, wrap=True, select=True))
        for link in body.source:
            box.addWidget(_link(link))
        if body.code:
            box.addWidget(CodeLines(body.code, self.tr("The place in the code")))
        self._add_fix(box, body)
        if body.evidence:
            box.addWidget(label(self.tr("Evidence"), "dim"))
            lines = QVBoxLayout()
            lines.setSpacing(0)
            lines.setContentsMargins(8, 0, 0, 0)
            for link in body.evidence:
                lines.addWidget(_link(link, "→ "))
            box.addLayout(lines)
        if body.saves:
            box.addWidget(label(body.saves, "", wrap=True))
        if body.risk:
            box.addWidget(label(self.tr("What could go wrong: {risk}").format(risk=body.risk), "dim", wrap=True))
        if body.url:
            box.addWidget(button(self.tr("Read more about it"), partial(_browse, body.url), "link", body.url))
        self.actions_row, self.shown_actions = QWidget(), body.actions
        row = FlowLayout(spacing=6)
        self.actions_row.setLayout(row)
        for action in body.actions:
            made = button(action.text, action.run, "primary" if action.primary else "", action.tip, yields=True)
            made.setEnabled(action.enabled)
            row.addWidget(made)
        box.addWidget(self.actions_row)
        return widget

    def _add_fix(self, box: QVBoxLayout, body: Body) -> None:
        """The diff of the user's own code, or an example and why there is no diff."""
        if body.deriving:
            box.addWidget(label(self.tr("Working out the change of your code…"), "dim", wrap=True))
        elif body.own_diff:
            box.addWidget(label(self.tr("The fix in your own code"), "dim", wrap=True))
            box.addWidget(UnifiedDiff(body.own_diff, self.tr("The fix in your own code")))
        elif body.before or body.after:
            if body.why_example:
                words = self.tr("The fix as an example. {reason}").format(reason=body.why_example)
                box.addWidget(label(text.breakable(words), "dim", wrap=True))
            elif body.code:
                box.addWidget(label(self.tr("The fix as an example"), "dim", wrap=True))
            sides = comments_above(body.before), comments_above(body.after)
            box.addWidget(CodeDiff(*sides, self.tr("The fix as code")))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Open."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit()
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter and Space open."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit()
        else:
            super().keyPressEvent(event)


def _browse(url: str) -> None:
    """Open a page of a rule in the browser."""
    if url.startswith("https://"):
        QDesktopServices.openUrl(QUrl(url))


def _link(link: Link, before: str = "") -> QWidget:
    row = QWidget()
    box = QHBoxLayout(row)
    box.setContentsMargins(0, 0, 0, 0)
    words = " ".join((before + link.text).split())
    if link.run is None:
        box.addWidget(label(text.breakable(words), "dim", wrap=True))
        return row
    box.addWidget(WrappedLink(words, link.run, link.tip))
    box.addStretch(1)
    return row
