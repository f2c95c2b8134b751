"""Start page: open a trace, profile a script, or learn with an example; recent traces; how to record one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QDateTime, QLocale, Qt
from PySide6.QtGui import QAction, QGuiApplication, QMouseEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpacerItem,
    QVBoxLayout,
    QWidget,
)

from core.words import visible
from gui import names, recent
from gui.panels import PanelSpec
from gui.session import Document, Recent, Session
from gui.text_size import px
from gui.widgets.close_button import CloseButton
from gui.widgets.flow import FlowLayout
from gui.widgets.fold import Fold
from gui.widgets.labels import Elided, button, heading, label, plain_tip
from gui.widgets.pictures import Pictogram, WaitPicture

WIDTH_PX = 980
ABOVE_SHARE = 0.08  # of the page's height, above what it says
NARROW_PX = 760  # of the page: the ways in stand under each other
RECORDING = """\
from torch.profiler import ProfilerActivity, profile, schedule

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=1, warmup=2, active=6),
    with_stack=True, record_shapes=True,
    on_trace_ready=lambda p: p.export_chrome_trace("trace.json.gz"),
) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()
"""


class WayIn(QFrame):
    """A card of which any place does what its button does."""

    def __init__(self, action: QPushButton) -> None:
        super().__init__()
        self._action = action
        self.setProperty("role", "card")
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Press the button."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._action.click()


class StartPage(QScrollArea):
    """What one can do without a trace. Uses ``recentChanged`` and ``servicesChanged``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.setWidgetResizable(True)
        self.setAccessibleName(self.tr("Start page"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        inner.setObjectName("scrolled")
        self._column = column = QWidget()
        column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._box = box = QVBoxLayout(column)
        box.setContentsMargins(24, 32, 24, 24)
        box.setSpacing(20)
        self._above = QSpacerItem(0, 0)  # of the page's height alone: what is folded open moves nothing above it
        box.addItem(self._above)
        box.addLayout(self._welcome())
        box.addLayout(self._ways())
        self._recent_title = heading(self.tr("Recent traces"), 1)
        self._recent = QVBoxLayout()
        self._rows: dict[Recent, QWidget] = {}
        self._recent.setSpacing(0)
        recent = QVBoxLayout()
        recent.setSpacing(6)
        recent.addWidget(self._recent_title)
        recent.addLayout(self._recent)
        box.addLayout(recent)
        self._fold = self._recording()
        box.addWidget(self._fold)
        box.addStretch(1)
        row = QHBoxLayout(inner)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(column, 100)
        row.addStretch(1)
        self.setWidget(inner)
        session.recentChanged.connect(self._recent_changed)
        session.servicesChanged.connect(self._enable)
        session.textSizeChanged.connect(self._text_size_changed)
        self.show_recent()
        self._enable()
        self.setFocusProxy(self.open_button)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """The ways in beside or under each other."""
        super().resizeEvent(event)
        self._fit()

    def _text_size_changed(self) -> None:
        self._fit()
        self.show_recent()  # their buttons follow too

    def _fit(self) -> None:
        """Lay out for the page's size and the size of its texts."""
        self._column.setMaximumWidth(px(WIDTH_PX))
        self._above.changeSize(0, int(ABOVE_SHARE * self.viewport().height()))
        self._box.invalidate()
        narrow = self.viewport().width() < px(NARROW_PX)
        direction = QBoxLayout.Direction
        self._cards.setDirection(direction.TopToBottom if narrow else direction.LeftToRight)
        self._picture.setVisible(not narrow)

    def _welcome(self) -> QHBoxLayout:
        words = self.tr(
            "StepLens draws a recording of torch.profiler, marks where CPU and GPU wait for each other, names the line "
            "of code, and says what each fix would save."
        )
        said = QVBoxLayout()
        said.setSpacing(8)
        said.addStretch(1)
        title = heading(self.tr("See why a training step is slow"), 9, wrap=True)
        said.addWidget(title)
        said.addWidget(label(words, "dim", wrap=True))
        said.addStretch(1)
        self._picture = WaitPicture()
        row = QHBoxLayout()
        row.setSpacing(40)
        row.addLayout(said, 3)
        row.addWidget(self._picture, 2)
        return row

    def _ways(self) -> QBoxLayout:
        ask = self._session.ask
        opened, self.open_button = self._card(
            "open",
            self.tr("Open a trace"),
            self.tr("Drop it anywhere on this window: .json, .json.gz or .zip, or a folder with one file per rank."),
            button(self.tr("Open trace…"), partial(ask, "open"), "primary", self.tr("Ctrl+O")),
            button(self.tr("Open a folder…"), partial(ask, "open_folder"), "", self.tr("One trace per rank")),
        )
        opened.setProperty("role", "drop")
        profiled, self.profile_button = self._card(
            "profile",
            self.tr("Profile a script"),
            self.tr("Pick a training script and its Python. It runs as it is; nothing in it has to change."),
            button(self.tr("Choose script…"), partial(ask, "choose_script")),
        )
        learnt, self.learn_button = self._card(
            "learn",
            self.tr("Learn with an example"),
            self.tr("Walk through a slow classifier, one fault after the other. No GPU is needed."),
            button("", partial(ask, "learn")),
            again := button(self.tr("From the start"), partial(ask, "learn", True)),
        )
        self.learn_again_button = again
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._cards.setSpacing(12)
        for card in (opened, profiled, learnt):
            self._cards.addWidget(card, 1)
        return self._cards

    def _card(
        self, sign: str, title: str, words: str, action: QPushButton, *more: QPushButton
    ) -> tuple[QFrame, QPushButton]:
        card = WayIn(action)
        box = QVBoxLayout(card)
        box.setContentsMargins(18, 16, 18, 16)
        box.setSpacing(8)
        top = QHBoxLayout()
        top.setSpacing(12)
        top.addWidget(Pictogram(sign))
        named = heading(title, 2, wrap=True)
        top.addWidget(named, 1)
        box.addLayout(top)
        said = label(words, "dim", wrap=True)
        said.setAlignment(Qt.AlignmentFlag.AlignTop)
        box.addWidget(said, 1)
        row = FlowLayout()
        for pressed in (action, *more):
            row.addWidget(pressed)
        box.addLayout(row)
        return card, action

    def _recording(self) -> Fold:
        fold = Fold()
        fold.set_words(self.tr("How do I record a trace myself?"))
        words = self.tr(
            "Wrap the training loop, and open the file that it writes. It is enough to record six steps; the three "
            "before them are left out: one is skipped, and two warm up."
        )
        fold.column.addWidget(label(words, "dim", wrap=True))
        frame = QFrame()
        frame.setProperty("role", "code")
        lines = QVBoxLayout(frame)
        lines.setContentsMargins(14, 10, 14, 10)
        code = label(RECORDING.rstrip(), mono=True, select=True)
        code.setAccessibleName(self.tr("Code that records a trace"))
        lines.addWidget(code)
        fold.column.addWidget(frame)
        copied = button(self.tr("Copy the code"), self._copy_code)
        fold.column.addWidget(copied, 0, Qt.AlignmentFlag.AlignLeft)
        return fold

    def _copy_code(self) -> None:
        QGuiApplication.clipboard().setText(RECORDING)
        self._session.set_status(self.tr("The code is on the clipboard."))

    def _enable(self) -> None:
        for service, made in (("profile", self.profile_button), ("learn", self.learn_button)):
            can = self._session.can(service)
            made.setEnabled(can)
            if not can:
                made.setToolTip(self.tr("This installation lacks the part that does this."))
        self._show_tour()

    def _show_tour(self) -> None:
        """Where the tour goes on."""
        at, count = self._session.ask("tour_left_at") or 0, self._session.ask("tour_stations") or 0
        words = self.tr("Go on at {number} of {count}").format(number=at + 1, count=count)
        self.learn_button.setText(words if 0 < at < count else self.tr("Start the tour"))
        self.learn_again_button.setVisible(0 < at < count)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """List what was opened meanwhile."""
        super().showEvent(event)
        self._show_tour()
        if list(self._rows) != self._session.recent:
            self.show_recent()

    def show_recent(self) -> None:
        """List the recent files; those that are gone are greyed out."""
        self._show_rows({})

    def _recent_changed(self) -> None:
        """Traces that are opened together change the list one by one, most of them behind another page."""
        if self.isVisible():
            self._show_rows(self._rows)

    def _show_rows(self, kept: dict[Recent, QWidget]) -> None:
        """Fill the list with rows, those of ``kept`` as they are."""
        rows = {entry: kept.get(entry) or self._recent_row(entry) for entry in self._session.recent}
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None and widget not in rows.values():
                widget.hide()
                widget.deleteLater()
        self._rows = rows
        self._recent_title.setVisible(bool(rows))
        for row in rows.values():
            self._recent.addWidget(row)

    def _recent_row(self, entry: Recent) -> QWidget:
        there = recent.is_there(entry)
        row = QFrame()
        row.setProperty("role", "recent")
        box = QHBoxLayout(row)
        box.setContentsMargins(0, 1, 0, 1)
        box.setSpacing(12)
        opener = button(visible(names.of_path(entry.path)), partial(self._session.open, [entry.path]), "link")
        opener.setEnabled(there)
        opener.setToolTip(plain_tip(recent.paths_of(entry) if there else self.tr("This file is no longer there.")))
        box.addWidget(opener)
        box.addWidget(Elided(_short(entry.path.parent), "faint"), 1)
        box.addWidget(label(self._when(entry) if there else self.tr("not there any more"), "faint"))
        name = self.tr("Take {name} off this list").format(name=visible(entry.path.name))
        box.addWidget(CloseButton(partial(self._forget, entry), self.tr("Take it off this list"), name))
        copy = QAction(self.tr("Copy the path"), row)
        copy.triggered.connect(partial(self._copy_path, entry))
        row.addAction(copy)
        row.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        return row

    def _when(self, entry: Recent) -> str:
        moment, now = QDateTime.fromSecsSinceEpoch(int(entry.opened_at)), QDateTime.currentDateTime()
        days = moment.date().daysTo(now.date())
        time = QLocale().toString(moment.time(), QLocale.FormatType.ShortFormat)
        if days == 0:
            return self.tr("today, {time}").format(time=time)
        if days == 1:
            return self.tr("yesterday, {time}").format(time=time)
        return QLocale().toString(moment.date(), QLocale.FormatType.ShortFormat)

    def _forget(self, entry: Recent) -> None:
        self._session.set_recent([r for r in self._session.recent if r.path != entry.path])

    def _copy_path(self, entry: Recent, _checked: bool = False) -> None:
        QGuiApplication.clipboard().setText(recent.paths_of(entry))


def _short(path: Path) -> str:
    try:
        return "~/" + str(path.relative_to(Path.home()))
    except ValueError:
        return str(path)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return StartPage(session)


PANEL = PanelSpec("start", "Start", "page", create)
