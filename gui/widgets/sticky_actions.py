"""The buttons of an open card, at the bottom edge of the list while the card's own are out of sight."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QMenu, QPushButton, QScrollArea, QWidget
from shiboken6 import isValid

from gui.text_size import px
from gui.widgets.card import Action, Card
from gui.widgets.labels import button

EDGE_PX, GAP_PX = 10, 6
CUT_PX = 110  # room in which the beginning and the end of a button's words can still be read


UNLIMITED_PX = 16_777_215  # QWIDGETSIZE_MAX


class StickyActions(QFrame):
    """Lies over the lower edge of a list of cards, so that nothing moves when it comes and goes.

    What does not fit into one line is in the menu of its last button.
    """

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area, self._card = area, None
        self._shown: tuple[Action, ...] = ()
        self._buttons: list[QPushButton] = []
        self.setProperty("role", "sticky")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(EDGE_PX, GAP_PX, EDGE_PX, GAP_PX)
        self._row.setSpacing(GAP_PX)
        self.more = button(self.tr("More"), None, "", self.tr("What else can be done with this card"))
        self.menu = QMenu(self.more)
        self.more.setMenu(self.menu)
        self._row.addWidget(self.more)
        self._row.addStretch(1)
        self._later = QTimer(self, singleShot=True, interval=0)  # once the layout has its places
        self._later.timeout.connect(self._place)
        bar = area.verticalScrollBar()
        bar.valueChanged.connect(self._place)
        bar.rangeChanged.connect(self._later.start)
        area.viewport().installEventFilter(self)
        self.hide()
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._uncover)

    _card: Card | None

    def follow(self, card: Card | None) -> None:
        """Show the actions of this open card, where its own cannot be seen."""
        self._card = card
        self._later.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Keep to the lower edge."""
        if event.type() == QEvent.Type.Resize:
            self._later.start()
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """What has the keyboard is not covered."""
        super().showEvent(event)
        self._uncover(None, QApplication.focusWidget())

    def _uncover(self, _before: QWidget | None, focused: QWidget | None) -> None:
        """Move what has the keyboard out from under these buttons."""
        inner, view = self._area.widget(), self._area.viewport()
        if focused is None or inner is None or not self.isVisible() or not inner.isAncestorOf(focused):
            return
        bottom = focused.mapTo(view, QPoint(0, focused.height())).y()
        covered = bottom - (view.height() - self.height() - GAP_PX)
        if covered > 0 and focused.height() < view.height() - self.height():  # a card is higher: its head counts
            bar = self._area.verticalScrollBar()
            bar.setValue(bar.value() + covered)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "_later"):
            self._later.start()

    def _place(self) -> None:
        if self._card is not None and not isValid(self._card):
            self._card = None  # the list was made anew
        card, view = self._card, self._area.viewport()
        own = card.actions_row if card is not None else None
        hidden = False
        if card is not None and own is not None and card.shown_actions:
            top = card.mapTo(view, QPoint(0, 0)).y()
            bottom = own.mapTo(view, QPoint(0, own.height())).y()
            hidden = bottom > view.height() and top < view.height() - px(60)  # some of the card is in view
        if hidden and card is not None:
            self._show(card.shown_actions, view)
        self.setVisible(hidden)

    def _show(self, actions: tuple[Action, ...], view: QWidget) -> None:
        usable = sorted(actions, key=lambda action: not action.enabled)  # what can be done now comes first
        if actions is not self._shown:
            self._shown = actions
            had_focus = self.window().focusWidget() in self._buttons
            for old in self._buttons:
                self._row.removeWidget(old)
                old.hide()
                old.deleteLater()
            self._buttons = []
            for at, action in enumerate(usable):
                made = button(action.text, action.run, "primary" if action.primary else "", action.tip, yields=True)
                made.setEnabled(action.enabled)
                self._row.insertWidget(at, made)
                self._buttons.append(made)
            if had_focus and self._buttons:
                self._buttons[0].setFocus()
        room = view.width() - 2 * EDGE_PX
        for made in self._buttons:
            made.setMinimumWidth(0)
            made.setMaximumWidth(UNLIMITED_PX)
        widths = [made.sizeHint().width() + GAP_PX for made in self._buttons]
        fitting = len(widths)
        if sum(widths) > room + GAP_PX:
            room -= self.more.sizeHint().width() + GAP_PX
            fitting = next((n for n in range(len(widths), 0, -1) if sum(widths[:n]) <= room), 1)
            left = room - sum(widths[:fitting])
            for made, width in zip(self._buttons, widths, strict=True):
                made.setMinimumWidth(width - GAP_PX if fitting > 1 or left >= 0 else 0)
            if fitting < len(widths) and left >= px(CUT_PX):  # as "Undo the change of FILE": it is better cut than away
                self._buttons[fitting].setMinimumWidth(left - GAP_PX)
                self._buttons[fitting].setMaximumWidth(left - GAP_PX)
                fitting += 1
        for at, made in enumerate(self._buttons):
            made.setVisible(at < fitting)
        self._fill_menu(usable[fitting:])
        height = self.sizeHint().height()
        self.setGeometry(view.x(), view.y() + view.height() - height, view.width(), height)
        self.raise_()

    def _fill_menu(self, rest: Sequence[Action]) -> None:
        self.more.setVisible(bool(rest))
        self.menu.clear()
        for action in rest:
            made = self.menu.addAction(action.text.replace("&", "&&"), action.run)
            made.setEnabled(action.enabled)
