"""Start page: open a trace, profile a script, recent files, a place to drop files, and a way to learn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QDateTime, QLocale, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from gui.panels import PanelSpec
from gui.session import Document, Recent, Session
from gui.widgets.labels import Elided, button, heading, label, plain_tip

WIDTH_PX = 860


class StartPage(QScrollArea):
    """What one can do without a trace. Uses ``recentChanged`` and ``servicesChanged``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        inner.setObjectName("scrolled")
        column = QWidget()
        column.setMaximumWidth(WIDTH_PX)
        column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        box = QVBoxLayout(column)
        box.setContentsMargins(24, 40, 24, 24)
        box.setSpacing(16)
        box.addWidget(heading(self.tr("See why a training step is slow"), 9))
        box.addWidget(
            label(
                self.tr(
                    "Open a trace of torch.profiler, or let StepLens profile your script. It shows where CPU and GPU "
                    "wait for each other, names the line of code, and says what each fix would save."
                ),
                "dim",
                wrap=True,
            )
        )
        box.addWidget(self._drop_area())
        box.addLayout(self._choices())
        self._recent_title = heading(self.tr("Recent traces"), 1)
        box.addWidget(self._recent_title)
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        box.addLayout(self._recent)
        box.addStretch(1)
        row = QHBoxLayout(inner)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(column, 100)
        row.addStretch(1)
        self.setWidget(inner)
        session.recentChanged.connect(self.show_recent)
        session.servicesChanged.connect(self._enable)
        self.show_recent()
        self._enable()
        self.setFocusProxy(self.open_button)

    def _drop_area(self) -> QWidget:
        area = QFrame()
        area.setProperty("role", "drop")
        area.setMinimumHeight(132)
        box = QVBoxLayout(area)
        box.setContentsMargins(24, 20, 24, 20)
        box.setSpacing(4)
        box.addStretch(1)
        for made in (
            heading(self.tr("Drop traces here"), 2),
            label(self.tr("One or several .json, .json.gz or .zip files, or a folder with one file per rank"), "dim"),
        ):
            made.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            made.setWordWrap(True)
            box.addWidget(made)
        box.addSpacing(8)
        self.open_button = button(
            self.tr("Open trace…"), lambda: self._session.ask("open"), "primary", self.tr("Ctrl+O")
        )
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.open_button)
        row.addStretch(1)
        box.addLayout(row)
        box.addStretch(1)
        return area

    def _choices(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setSpacing(12)
        self.profile_card, self.profile_button = self._card(
            self.tr("Profile a script"),
            self.tr("Pick a training script and its Python; nothing in it has to change."),
            self.tr("Choose script…"),
            "profile",
        )
        self.learn_card, self.learn_button = self._card(
            self.tr("Learn with an example"),
            self.tr("Walk through a slow classifier, one fault after the other, with explanations."),
            self.tr("Start the tour"),
            "learn",
        )
        grid.addWidget(self.profile_card, 0, 0)
        grid.addWidget(self.learn_card, 0, 1)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        return grid

    def _card(self, title: str, words: str, action: str, service: str) -> tuple[QFrame, QWidget]:
        card = QFrame()
        card.setProperty("role", "card")
        box = QVBoxLayout(card)
        box.setContentsMargins(16, 14, 16, 14)
        box.setSpacing(6)
        box.addWidget(heading(title, 1))
        box.addWidget(label(words, "dim", wrap=True), 1)
        made = button(action, partial(self._session.ask, service))
        row = QHBoxLayout()
        row.addWidget(made)
        row.addStretch(1)
        box.addLayout(row)
        return card, made

    def _enable(self) -> None:
        for service, made in (("profile", self.profile_button), ("learn", self.learn_button)):
            can = self._session.can(service)
            made.setEnabled(can)
            made.setToolTip("" if can else self.tr("This installation lacks the part that does this."))

    def show_recent(self) -> None:
        """List the recent files; those that are gone are greyed out."""
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self._recent_title.setVisible(bool(self._session.recent))
        for entry in self._session.recent:
            self._recent.addWidget(self._recent_row(entry))

    def _recent_row(self, entry: Recent) -> QWidget:
        there = entry.path.exists()
        row = QWidget()
        box = QHBoxLayout(row)
        box.setContentsMargins(0, 1, 0, 1)
        box.setSpacing(12)
        opener = button(entry.path.name, partial(self._session.open, [entry.path]), "link")
        opener.setEnabled(there)
        opener.setToolTip(plain_tip(str(entry.path) if there else self.tr("This file is no longer there.")))
        box.addWidget(opener)
        box.addWidget(Elided(_short(entry.path.parent), "faint"), 1)
        when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(entry.opened_at)), QLocale.FormatType.ShortFormat)
        box.addWidget(label(when if there else self.tr("not there any more"), "faint"))
        return row


def _short(path: Path) -> str:
    try:
        return "~/" + str(path.relative_to(Path.home()))
    except ValueError:
        return str(path)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return StartPage(session)


PANEL = PanelSpec("start", "Start", "page", create)
