"""Colours and type, light and dark: one colour means one thing (red is waiting, green is saved, blue is chosen)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from core.kinds import GapCause, SliceKind
from gui import asleep


@dataclass(frozen=True)
class Theme:
    """Named colours, as ``#rrggbb``. Texts keep 4.5:1 contrast on ``window``, ``panel`` and ``card``."""

    dark: bool
    window: str  # behind everything, and the timeline's ground
    panel: str  # side bar, verdict band
    card: str  # cards, fields
    raised: str  # buttons, hover
    border: str
    grid: str  # hairlines inside the timeline
    text: str
    dim: str  # labels
    faint: str  # notes; still readable
    accent: str
    on_accent: str
    wait: str  # waiting, wherever it stands
    saved: str  # savings, done
    warn: str  # odd, to know about
    chip: str  # ground of the "things to know" chip
    added: str  # ground of added lines in a diff
    removed: str  # ground of removed lines in a diff
    selection: str  # ground of selected rows


DARK = Theme(
    dark=True,
    window="#171b21",
    panel="#1d2229",
    card="#242a33",
    raised="#2c333d",
    border="#333b46",
    grid="#262c35",
    text="#e8ebef",
    dim="#aab3be",
    faint="#949eab",
    accent="#5aa9ff",
    on_accent="#08131f",
    wait="#ff6b66",
    saved="#4fc98f",
    warn="#e5b04d",
    chip="#4a3a16",
    added="#1d3a2c",
    removed="#47262a",
    selection="#21344a",
)
LIGHT = Theme(
    dark=False,
    window="#ffffff",
    panel="#f3f5f8",
    card="#ffffff",
    raised="#e9edf2",
    border="#d5dbe3",
    grid="#e8ebf0",
    text="#15191f",
    dim="#4a5462",
    faint="#626c7a",
    accent="#1463cc",
    on_accent="#ffffff",
    wait="#c4302b",
    saved="#137547",
    warn="#8a5a00",
    chip="#fbe9c6",
    added="#dcf1e4",
    removed="#fbdfe0",
    selection="#dceafc",
)

# Calm and far from red; (dark, light) per kind of slice.
_SLICES: dict[int, tuple[str, str]] = {
    SliceKind.CPU_OP: ("#3f7cb5", "#9bbcdc"),
    SliceKind.RANGE: ("#8a72c9", "#b7a6e2"),
    SliceKind.STEP: ("#3a4350", "#d9dfe7"),
    SliceKind.PYTHON: ("#6d5a8e", "#cabfdd"),
    SliceKind.RUNTIME: ("#c9803a", "#ecc294"),
    SliceKind.DRIVER: ("#b58a3a", "#e6cd92"),
    SliceKind.KERNEL: ("#3fa37c", "#93d3b9"),
    SliceKind.MEMCPY: ("#c9a63c", "#ecd68c"),
    SliceKind.MEMSET: ("#8fa04a", "#cfd998"),
    SliceKind.DEVICE_RANGE: ("#5d6f9c", "#bcc7e2"),
    SliceKind.DEVICE_SYNC: ("#7a818c", "#c6cbd3"),
    SliceKind.OVERHEAD: ("#6c6f78", "#cfd2d8"),
    SliceKind.GC: ("#a85f8d", "#e3b8d3"),
    SliceKind.OTHER: ("#59626e", "#cfd5dd"),
}
# GPU idle time by its cause: one hue family beside red, so that the budget bar can be read.
_GAPS: dict[int, tuple[str, str]] = {
    GapCause.LOADER: ("#d08a3e", "#d98b2b"),
    GapCause.SYNC: ("#ff6b66", "#d2453f"),
    GapCause.LAUNCH: ("#5b8fd6", "#4d83cc"),
    GapCause.PYTHON: ("#9079c4", "#8369bd"),
    GapCause.COPY: ("#c9a63c", "#b8912a"),
    GapCause.COMPILE: ("#57a3a8", "#3f8f94"),
    GapCause.COLLECTOR: ("#a85f8d", "#b0588f"),
    GapCause.COMMUNICATION: ("#6f9f3f", "#618f33"),
    GapCause.ALLOC: ("#b06a55", "#a8604b"),
    GapCause.QUEUED: ("#8b95a3", "#7d8794"),
    GapCause.UNKNOWN: ("#6c7583", "#9aa3b0"),
}
_BUSY = {
    "busy": ("#3fa37c", "#58b98f"),
    "computing": ("#3fa37c", "#58b98f"),
    "communication_only": ("#a0568f", "#c58bb8"),
    "copies_only": ("#86963a", "#aeb95f"),
}


_ICONS = (Path(__file__).resolve().parent.parent / "resources" / "icons").as_posix()


_STYLED = "steplens_styled"


def theme(dark: bool) -> Theme:
    """Return the light or the dark theme."""
    return DARK if dark else LIGHT


def slice_color(kind: int, dark: bool) -> str:
    """Colour of a kind of slice (`core.kinds.SliceKind`)."""
    pair = _SLICES.get(kind, _SLICES[SliceKind.OTHER])
    return pair[0] if dark else pair[1]


def gap_color(cause: int, dark: bool) -> str:
    """Colour of device idle time by its cause (`core.kinds.GapCause`)."""
    pair = _GAPS.get(cause, _GAPS[GapCause.UNKNOWN])
    return pair[0] if dark else pair[1]


def busy_color(part: str, dark: bool) -> str:
    """Colour of a part of the device's busy time (`core.figures.busy_parts`)."""
    pair = _BUSY[part]
    return pair[0] if dark else pair[1]


def system_is_dark() -> bool:
    """What the desktop asks for; light where it does not say."""
    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


@cache
def _mono_family() -> str:
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()


def mono_font(point_delta: float = 0.0) -> QFont:
    """Monospace for code and names of calls, as large as the interface's font plus ``point_delta``."""
    font = QFont(_mono_family())
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setPointSizeF(max(7.0, QApplication.font().pointSizeF() + point_delta))
    return font


def apply(app: QApplication, dark: bool) -> Theme:
    """Give the application its palette and style sheet."""
    t = theme(dark)
    if app.property(_STYLED) is None:  # under a style sheet it has another name; setting it anew restyles everything
        app.setProperty(_STYLED, True)
        app.setStyle(QStyleFactory.create("Fusion"))
    sheet = _sheet(t)
    if app.styleSheet() != sheet:
        restyle_all(app, sheet, lambda: app.setPalette(_palette(t)))
    return t


def restyle_all(app: QApplication, sheet: str, change: Callable[[], object], *, larger: float = 1.0) -> None:
    """Change palette or font and set a style sheet; fonts of a size of their own become ``larger`` times as large.

    Over an old sheet Qt restyles every widget once for each of its ancestors, and tells none of a new font; over no
    sheet, once each. But with the old sheet it takes back the sizes that fonts were given since.
    """
    asleep.lay_down(app)
    own = [(w, w.font().pointSizeF()) for w in app.allWidgets() if w.font().resolveMask() & asleep.SIZE]
    app.setStyleSheet("")
    change()
    app.setStyleSheet(sheet)
    for widget, points in own:
        font = QFont(widget.font())
        if points > 0 and font.pointSizeF() != points * larger:
            font.setPointSizeF(points * larger)
            widget.setFont(font)


def current() -> Theme:
    """Return the theme that the application shows now."""
    app = cast("QApplication", QApplication.instance())
    return theme(app.palette().color(QPalette.ColorRole.Window).lightness() < 128)


def _palette(t: Theme) -> QPalette:
    p = QPalette()
    role = QPalette.ColorRole
    for key, value in (
        (role.Window, t.window),
        (role.Base, t.window),
        (role.AlternateBase, t.panel),
        (role.Button, t.raised),
        (role.WindowText, t.text),
        (role.Text, t.text),
        (role.ButtonText, t.text),
        (role.BrightText, t.wait),
        (role.ToolTipBase, t.card),
        (role.ToolTipText, t.text),
        (role.PlaceholderText, t.faint),
        (role.Highlight, t.accent),
        (role.HighlightedText, t.on_accent),
        (role.Link, t.accent),
        (role.LinkVisited, t.accent),
        (role.Mid, t.border),
        (role.Dark, t.border),
        (role.Light, t.raised),
    ):
        p.setColor(key, QColor(value))
    for key in (role.WindowText, role.Text, role.ButtonText):
        p.setColor(QPalette.ColorGroup.Disabled, key, QColor(t.faint))
    return p


_SHEET = """
QWidget { color: @text; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QToolTip { background: @card; color: @text; border: 1px solid @border; padding: 6px 8px; }
QFrame#topbar { background: @panel; border: none; border-bottom: 1px solid @border; }
QFrame#band { background: @panel; border: none; border-bottom: 1px solid @border; }
QFrame#side { background: @panel; border: none; }
QFrame#status { background: @panel; border: none; border-top: 1px solid @border; }
QFrame#bottom { background: @window; border: none; }
QLabel#dim, QLabel[role="dim"] { color: @dim; }
QLabel[role="faint"] { color: @faint; }
QLabel[role="main"] { font-weight: bold; }
QLabel[role="unknown"] { color: @faint; font-weight: normal; }
QLabel[role="wait"] { color: @wait; }
QLabel[role="saved"] { color: @saved; }
QLabel[role="warn"] { color: @warn; }
QFrame[role="card"] { background: @card; border: 1px solid @border; border-radius: 8px; }
QFrame[role="card"][open="true"] { border: 1px solid @accent; }
QFrame[role="card"]:hover { border: 1px solid @accent; }
QFrame[role="chain"] { border: none; border-left: 2px solid @wait; }
QFrame[role="sticky"] { background: @card; border: none; border-top: 1px solid @border; }
QFrame[role="code"] { background: @window; border: 1px solid @border; border-radius: 6px; }
QFrame[role="banner"] { background: @removed; border: none; border-bottom: 1px solid @wait; }
QFrame[role="drop"] { background: @panel; border: 2px dashed @faint; border-radius: 8px; }
QFrame[role="drop"]:hover { border-color: @accent; }
QFrame[role="recent"] { border-radius: 4px; }
QFrame[role="recent"]:hover { background: @card; }
QPushButton { background: @raised; border: 1px solid @border; border-radius: 6px; padding: 5px 12px; outline: 0; }
QPushButton:hover { border-color: @accent; }
QPushButton:focus { border-color: @accent; }
QPushButton:pressed { background: @border; }
QPushButton:disabled { color: @faint; background: @panel; }
QPushButton[role="primary"] { background: @accent; color: @on_accent; border-color: @accent; font-weight: 600; }
QPushButton[role="primary"]:hover { border-color: @text; }
QPushButton[role="primary"]:focus { border-color: @text; }
QPushButton[role="primary"]:disabled { background: @raised; color: @faint; border-color: @border; }
QPushButton[role="flat"] { background: transparent; border: 1px solid transparent; padding: 5px 10px; }
QPushButton[role="flat"]:hover { background: @raised; }
QPushButton[role="flat"]:focus { border-color: @accent; }
QPushButton[role="flat"]:disabled { color: @faint; }
QPushButton[role="link"] { background: transparent; border: none; border-radius: 2px; color: @accent; padding: 1px 0;
  text-align: left; }
QPushButton[role="link"][library="true"] { color: @dim; }
QPushButton[role="link"]:hover { text-decoration: underline; }
QPushButton[role="link"]:focus { text-decoration: underline; background: @selection; }
QPushButton[role="link"]:disabled { color: @faint; }
QPushButton[role="chip"] { background: @chip; color: @warn; border: none; border-radius: 8px; padding: 0 10px; }
QPushButton[role="chip"]:focus { border: 1px solid @warn; }
QPushButton[role="tick"] { background: @raised; border: 1px solid @border; border-radius: 11px; padding: 0;
  font-weight: 600; }
QPushButton[role="tick"]:hover { border: 2px solid @accent; }
QPushButton[role="tick"][state="done"] { background: @saved; color: @on_accent; border-color: @saved; }
QPushButton[role="tick"][state="current"] { background: @accent; color: @on_accent; border-color: @accent; }
QPushButton[role="tick"]:focus { border: 2px solid @accent; }
QPushButton::menu-indicator { image: none; width: 0; }
QLineEdit, QComboBox, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox { background: @card;
  border: 1px solid @border; border-radius: 6px; padding: 4px 8px; selection-background-color: @accent;
  selection-color: @on_accent; }
QLineEdit:focus, QComboBox:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus {
  border-color: @accent; }
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button { width: 0;
  border: none; }
QComboBox::drop-down { border: none; width: 24px; }
QComboBox::down-arrow { image: url(@icons/down-@name.svg); width: 12px; height: 12px; }
QComboBox QAbstractItemView { background: @card; border: 1px solid @border; selection-background-color: @selection;
  selection-color: @text; outline: 0; }
QCheckBox, QRadioButton { spacing: 8px; }
QCheckBox::indicator, QRadioButton::indicator { width: 14px; height: 14px; border: 1px solid @faint;
  background: @window; }
QCheckBox::indicator { border-radius: 4px; }
QRadioButton::indicator { border-radius: 8px; }
QCheckBox::indicator:checked { background: @accent; border-color: @accent; image: url(@icons/check-@name.svg); }
QRadioButton::indicator:checked { border: 5px solid @accent; width: 6px; height: 6px; background: @on_accent; }
QCheckBox::indicator:focus, QRadioButton::indicator:focus, QCheckBox::indicator:hover, QRadioButton::indicator:hover {
  border-color: @accent; }
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled { border-color: @border; background: @panel; }
QTabBar { background: transparent; qproperty-drawBase: 0; }
QTabBar::tab { background: transparent; color: @dim; padding: 7px 14px; border: none;
  border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: @text; border-bottom: 2px solid @accent; }
QTabBar::tab:hover { color: @text; }
QTabBar::tab:focus { color: @accent; }
QTabWidget#bottom QTabBar::tab { padding: 7px 11px; }
QTabBar#documents::tab { padding: 8px 14px; border-radius: 6px; border-bottom: none; margin: 4px 2px; }
QTabBar#documents::tab:selected { background: @window; border-bottom: none; }
QTabBar::scroller { width: 40px; }
QTabBar QToolButton { background: @panel; border: none; border-radius: 4px; margin: 4px 1px; }
QTabBar QToolButton:hover { background: @raised; }
QTabBar#documents[none="true"]::tab:selected { background: transparent; color: @dim; }
QTabWidget::pane { border: none; }
QTableView, QTreeView, QListView { background: @window; alternate-background-color: @panel;
  border: 1px solid transparent; gridline-color: @grid; selection-background-color: @selection; selection-color: @text;
  outline: 0; }
QTableView:focus, QTreeView:focus, QScrollArea[role="view"]:focus { border: 1px solid @accent; }
QTableView::item { padding: 0 8px; }
QListView::item { padding: 4px 8px; border-radius: 4px; color: @text; }
QListView::item:selected { background: @selection; color: @text; }
QHeaderView { background: @window; border: none; border-bottom: 1px solid @border; }
QHeaderView::section { background: @window; color: @dim; border: none; padding: 4px 8px 4px 10px; }
QSplitter::handle { background: @border; }
QSplitter::handle:hover { background: @accent; }
QScrollArea { border: 1px solid transparent; background: transparent; }
QScrollArea > QWidget > QWidget#scrolled { background: transparent; }
QScrollArea[role="below"] { border-top: 1px solid @border; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: @border; border-radius: 4px; min-height: 24px; min-width: 24px; margin: 1px; }
QScrollBar::handle:hover { background: @faint; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QMenu { background: @card; border: 1px solid @border; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 12px; border-radius: 4px; }
QMenu::item:selected { background: @selection; }
QMenu::item:disabled { color: @faint; }
QMenu::separator { height: 1px; background: @border; margin: 4px 8px; }
QProgressBar { background: @raised; border: none; border-radius: 3px; max-height: 6px; min-height: 6px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
QDialog { background: @panel; }
"""


def _sheet(t: Theme) -> str:
    sheet = _SHEET.replace("@icons", _ICONS).replace("@name", "dark" if t.dark else "light")
    names = [name for name in Theme.__dataclass_fields__ if name != "dark"]
    for name in sorted(names, key=len, reverse=True):  # longest first: @window before @w...
        sheet = sheet.replace("@" + name, getattr(t, name))
    return sheet
