"""The search field: a name, a switch for regular expressions, and a filter by kind, track and duration."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFont, QIcon, QKeyEvent, QPainter, QPixmap
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QFrame, QGridLayout, QLineEdit, QWidget

from core.trace import Trace
from gui import theme
from gui.models.query import KIND_GROUPS, Query
from gui.models.thread_titles import track_words
from gui.widgets.calm import CalmCombo, CalmDoubleSpin
from gui.widgets.labels import button, label, plain_tip

ICON_PX = 18
LONGEST_US = 1e9


def _sign(text: str, on: bool, size_px: int = 12) -> QIcon:
    """A small sign drawn as text, in the accent colour while it is on."""
    pixmap = QPixmap(ICON_PX * 2, ICON_PX * 2)
    pixmap.setDevicePixelRatio(2)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    font = QFont(theme.mono_font())
    font.setPixelSize(size_px)
    font.setBold(True)
    painter.setFont(font)
    painter.setPen(QColor(theme.current().accent if on else theme.current().dim))
    painter.drawText(QRectF(0, 0, ICON_PX, ICON_PX), int(Qt.AlignmentFlag.AlignCenter), text)
    painter.end()
    return QIcon(pixmap)


class FilterBox(QFrame):
    """Kind, track and duration, in a box that drops from the field.

    Signals
    -------
    changed()
        After every change.
    """

    changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("filterbox")
        self.setProperty("role", "card")
        self.kinds, self.track = CalmCombo(), CalmCombo()
        self.least, self.most = self._duration(), self._duration()
        for key, (title, _) in KIND_GROUPS.items():
            self.kinds.addItem(QCoreApplication.translate("search", title), key)
        self.track.setMaxVisibleItems(20)
        self.track.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.track.setMinimumContentsLength(24)
        grid = QGridLayout(self)
        grid.setContentsMargins(14, 12, 14, 12)
        for place, (words, widget) in enumerate(
            (
                (self.tr("Kind"), self.kinds),
                (self.tr("Track"), self.track),
                (self.tr("At least"), self.least),
                (self.tr("At most"), self.most),
            )
        ):
            name = label(words, "dim")
            name.setBuddy(widget)
            widget.setAccessibleName(words)
            grid.addWidget(name, place, 0)
            grid.addWidget(widget, place, 1)
        grid.addWidget(button(self.tr("Without a filter"), self.clear, "flat"), 4, 1, Qt.AlignmentFlag.AlignRight)
        self.kinds.currentIndexChanged.connect(self.changed)
        self.track.currentIndexChanged.connect(self.changed)
        self.least.valueChanged.connect(self.changed)
        self.most.valueChanged.connect(self.changed)

    def _duration(self) -> QDoubleSpinBox:
        box = CalmDoubleSpin()
        box.setRange(0.0, LONGEST_US)
        box.setDecimals(1)
        box.setSuffix(" µs")
        box.setSpecialValueText(self.tr("any duration"))
        return box

    def set_trace(self, trace: Trace | None) -> None:
        """Offer the tracks of a trace."""
        self.track.blockSignals(True)
        self.track.clear()
        self.track.addItem(self.tr("All tracks"), -1)
        for track in range(len(trace.tracks)) if trace is not None else ():
            assert trace is not None
            name, holds = track_words(trace, track)
            self.track.addItem(f"{name} · {holds}", track)
        self.track.blockSignals(False)

    def clear(self) -> None:
        """Take every restriction away."""
        for box in (self.kinds, self.track):
            box.setCurrentIndex(0)
        for duration in (self.least, self.most):
            duration.setValue(0.0)

    def query(self, text: str, regex: bool) -> Query:
        """Return the search for a text under this filter."""
        track = self.track.currentData()
        least, most = self.least.value(), self.most.value()
        return Query(
            text.strip(),
            regex,
            str(self.kinds.currentData() or ""),
            () if track is None or track < 0 else (int(track),),
            round(least * 1000) if least else None,
            round(most * 1000) if most else None,
        )


class SearchField(QLineEdit):
    """Search by name: Enter next, Shift+Enter previous, Esc back to the timeline, Alt+R and Alt+F for its switches.

    Signals
    -------
    stepped(offset), left()
        Next or previous hit; back to the timeline.
    changed()
        Text, switch or filter changed.
    """

    stepped = Signal(int)
    left = Signal()
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setPlaceholderText(self.tr("Search slices, ranges, kernels   ( / )"))
        self.setAccessibleName(self.tr("Search slices, ranges and kernels by name"))
        self.setAccessibleDescription(
            self.tr("Words in any order, or a pattern with * and ?. Enter: next hit, Shift and Enter: previous.")
        )
        self.setToolTip(
            plain_tip(
                self.tr(
                    "Words in any order, anywhere in a name. * stands for any characters, ? for one; a pattern may "
                    "begin with ^ (start of the name) and end with $ (its end). copy finds Memcpy as "
                    "well, h2d finds HtoD."
                )
            )
        )
        self.setAcceptDrops(False)  # files dropped on it are for the window
        self.filter = FilterBox(self)
        trailing = QLineEdit.ActionPosition.TrailingPosition
        self.filter_action = self.addAction(QIcon(), trailing)
        self.regex_action = self.addAction(QIcon(), trailing)
        self.regex_action.setCheckable(True)
        self._name(self.regex_action, self.tr("Regular expression (Alt+R)"))
        self._name(self.filter_action, self.tr("Filter by kind, track and duration (Alt+F)"))
        self.regex_action.toggled.connect(self._switched)
        self.filter_action.triggered.connect(self.open_filter)
        self.filter.changed.connect(self._switched)
        self.textChanged.connect(self.changed)
        self.restyle()

    def _name(self, action: QAction, words: str) -> None:
        action.setText(words)
        action.setToolTip(words)

    def restyle(self) -> None:
        """Draw the signs in the colours of the theme."""
        self.regex_action.setIcon(_sign(".*", self.regex_action.isChecked()))
        self.filter_action.setIcon(_sign("▾", self.query().filtered, 20))

    def query(self) -> Query:
        """What is searched for now."""
        return self.filter.query(self.text(), self.regex_action.isChecked())

    def show_query(self, query: Query | None, trace: Trace | None) -> None:
        """Show the search of another document."""
        self.blockSignals(True)
        self.filter.blockSignals(True)
        self.regex_action.blockSignals(True)
        query = query or Query()
        self.filter.set_trace(trace)
        self.filter.kinds.setCurrentIndex(max(self.filter.kinds.findData(query.kinds), 0))
        self.filter.track.setCurrentIndex(max(self.filter.track.findData(query.tracks[0]), 0) if query.tracks else 0)
        self.filter.least.setValue((query.min_dur_ns or 0) / 1000)
        self.filter.most.setValue((query.max_dur_ns or 0) / 1000)
        self.regex_action.setChecked(query.regex)
        self.setText(query.text)
        self.regex_action.blockSignals(False)
        self.filter.blockSignals(False)
        self.blockSignals(False)
        self.restyle()

    def open_filter(self) -> None:
        """Drop the filter from the field."""
        self.filter.adjustSize()
        corner = self.mapToGlobal(QPoint(self.width() - self.filter.width(), self.height() + 4))
        self.filter.move(corner)
        self.filter.show()
        self.filter.kinds.setFocus()

    def _switched(self) -> None:
        self.restyle()
        self.changed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Keys of the field."""
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.filter.clear()
            self.left.emit()
        elif alt and event.key() == Qt.Key.Key_R:
            self.regex_action.toggle()
        elif alt and event.key() == Qt.Key.Key_F:
            self.open_filter()
        else:
            super().keyPressEvent(event)
