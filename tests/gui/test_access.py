"""Everything can be reached from the keyboard, is named for readers of the screen, and can be read."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QHelpEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QMenu, QTabBar, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from core.errors import TraceError
from core.kinds import GapCause, SliceKind
from gui import dialogs, panels, reading_order, theme
from gui.commands import COMMANDS
from gui.main_window import MainWindow
from gui.session import Document
from gui.widgets.budget_bar import BudgetBar, Part, contrast, ink_on

QTS_OWN = ("qt_", "ScrollLeftButton", "ScrollRightButton")  # parts of a control of Qt's, not controls of ours


def focusable(root: QWidget) -> list[QWidget]:
    """All that is seen and that Tab or a click can give the focus."""
    return [
        w
        for w in root.findChildren(QWidget)
        if w.isVisible()
        and not (isinstance(w, QLabel) and not w.text())
        and w.focusPolicy() != Qt.FocusPolicy.NoFocus
        and not w.objectName().startswith(QTS_OWN)
        and w.focusProxy() is None
    ]


def named(widget: QWidget) -> bool:
    """A reader of the screen has something to say: a name, or the words on it (a sign alone is no word)."""
    reader = QAccessible.queryAccessibleInterface(widget)
    words = reader.text(QAccessible.Text.Name) if reader is not None else widget.accessibleName()
    return any(c.isalpha() for c in words)


def inner_part(widget: QWidget) -> bool:
    """The inside of a control that is named itself: the field of a spin box, the list of a choice."""
    at = widget.parentWidget()
    while at is not None and not isinstance(at, MainWindow):
        if at.accessibleName() and at.focusPolicy() != Qt.FocusPolicy.NoFocus:
            return True
        at = at.parentWidget()
    return False


def nameless(root: QWidget) -> list[str]:
    """Controls of which a reader of the screen could only say that they are there."""
    found = (w for w in focusable(root) if not named(w) and not inner_part(w))
    return [f"{type(w).__name__} in {type(w.parentWidget()).__name__}" for w in found]


def test_every_control_of_a_window_with_a_trace_has_a_name(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    document.show_suggestion(0)
    document.select(3)
    window.show_error(TraceError("It is no trace", "line 1", "Open another one."))
    for panel_id in page.panel_ids():
        page.show_panel(panel_id)
        QApplication.processEvents()
        assert not nameless(window), panel_id


@pytest.mark.parametrize("page_id", ["start", "launch", "runs", "compare", "iterations"])
def test_every_control_of_a_page_has_a_name(window: MainWindow, page_id: str) -> None:
    window.show_page(page_id)
    assert not nameless(window.pages[page_id])


def test_every_action_has_keys_or_stands_in_the_palette(window: MainWindow, document: Document) -> None:
    window.palette_dialog()
    finder = window.findChildren(dialogs.Finder)[-1]
    offered = {choice.text for choice in finder._choices}
    finder.close()
    listed = [c.id for c in COMMANDS if window.command_actions[c.id].isEnabled() and c.id != "palette"]
    titles = {window.command_actions[c].text() for c in listed}
    assert titles <= offered
    known = {id(a) for a in window.command_actions.values()}
    menus = {id(m.menuAction()) for m in window.findChildren(QMenu)}
    for action in window.actions():
        if id(action) not in known and id(action) not in menus:
            assert action.shortcut().toString(), action.text()
    for title in (spec.title for spec in panels.of_area("bottom")):
        assert f"Show {title}" in offered


def test_menus_have_no_dead_entry(window: MainWindow, document: Document) -> None:
    for menu in window.menus.values():
        for action in menu.actions():
            lives = action.isSeparator() or action.menu() is not None or action in window.command_actions.values()
            assert lives, action.text()
        separators = [a.isSeparator() for a in menu.actions()]
        assert not separators[0]
        assert not separators[-1]
        assert not any(a and b for a, b in itertools.pairwise(separators))


def test_every_view_says_what_it_is(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    for index in range(page.bottom.count()):
        assert len(page.bottom.tabToolTip(index)) > 20, page.bottom.tabText(index)
    corner = page.bottom.cornerWidget()
    assert corner is not None
    for made in corner.findChildren(QAbstractButton):
        assert made.toolTip()


@pytest.mark.parametrize("dark", [True, False])
def test_texts_keep_their_contrast_on_every_ground(dark: bool) -> None:
    t = theme.theme(dark)
    grounds = ("window", "panel", "card")
    pairs = [(ink, ground) for ink in ("text", "dim", "faint", "wait", "saved", "warn", "accent") for ground in grounds]
    pairs += [("text", "raised"), ("faint", "raised"), ("text", "selection"), ("accent", "selection")]
    pairs += [("wait", "selection"), ("saved", "selection"), ("warn", "selection")]
    pairs += [("on_accent", "accent"), ("on_accent", "saved"), ("warn", "chip"), ("text", "added"), ("text", "removed")]
    low = {f"{a} on {b}": round(contrast(getattr(t, a), getattr(t, b)), 2) for a, b in pairs}
    assert {k: v for k, v in low.items() if v < 4.5} == {}


@pytest.mark.parametrize("dark", [True, False])
def test_names_in_the_budget_can_be_read(dark: bool) -> None:
    grounds = [theme.gap_color(cause, dark) for cause in GapCause] + [theme.slice_color(k, dark) for k in SliceKind]
    assert min(contrast(ink_on(ground), ground) for ground in grounds) >= 4.5


def test_a_known_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("width_px", [120, 300, 700, 1400])
def test_every_part_of_the_budget_is_named_inside_or_below(qapp: QApplication, width_px: int) -> None:
    bar = BudgetBar()
    parts = [
        Part("busy", 60, "#3fa37c"),
        Part("idle: launches", 25, "#5b8fd6", "launches"),
        Part("idle: copy", 1, "#aaa"),
    ]
    bar.show_parts(parts, 86)
    bar.resize(width_px, bar.height())
    below = {part.name for part, _ in bar.legend()}
    for part, words in zip(parts, bar.labels(), strict=True):
        whole = part.name in words or (part.short and part.short in words)
        assert whole or part.name in below or width_px < 300, part.name
    assert bar.height() == (36 if below else 18)


def test_every_figure_on_top_is_defined_and_fits(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    page = window.current_page()
    assert page is not None
    band = page.band("verdict")
    assert band is not None

    def fits(width: int) -> None:
        assert band.width() == width
        shown = [m for m in band._metrics if m.isVisible()]
        assert len(shown) >= 6
        for metric in shown:
            assert len(metric.toolTip()) > 40
            assert metric.width() >= metric.sizeHint().width()
            assert band.rect().contains(metric.geometry())
        for one, other in itertools.pairwise(shown):
            assert not one.geometry().intersects(other.geometry())

    for width in (900, 1280, 1600):
        window.resize(width, 700)
        qtbot.waitUntil(partial(fits, width))
    window.run_command("figures")
    from gui.widgets.glossary import FiguresPage

    explained = window.findChildren(FiguresPage)
    assert len(explained) == 1
    explained[0].close()


def test_the_budget_tells_the_part_under_the_pointer(qapp: QApplication) -> None:
    bar = BudgetBar()
    bar.resize(400, 18)
    bar.show_parts([Part("busy", 50, "#3fa37c"), Part("idle", 50, "#5b8fd6")], 100, "One step:")
    bar.show()
    at = QPoint(300, 5)
    QApplication.sendEvent(bar, QHelpEvent(QEvent.Type.ToolTip, at, bar.mapToGlobal(at)))
    assert "▸ idle" in QToolTip.text()
    assert "▸ busy" not in QToolTip.text()
    QToolTip.hideText()
    bar.close()


def test_tab_bars_are_named(window: MainWindow, document: Document) -> None:
    for bar in window.findChildren(QTabBar):
        assert bar.accessibleName()


def test_tab_goes_through_the_window_as_it_is_read(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    page.show_panel("operators")
    document.show_suggestion(0)
    QApplication.processEvents()
    order = reading_order.stops(window)
    table = page.panel("operators")
    assert table is not None

    def part(widget: QWidget) -> int:
        parts = (window.top, page.timeline, page.bottom, page.side, window.status)
        return next(k for k, p in enumerate(parts) if p is widget or p.isAncestorOf(widget))

    parts = [part(w) for w in order if not any(b.isAncestorOf(w) for b in page._bands.values())]
    assert parts == sorted(parts)
    assert {0, 1, 2, 3} <= set(parts)
    window.activateWindow()
    window.top.menu_button.setFocus()
    for _ in range(len(order)):
        assert window.focusNextPrevChild(True)
    assert window.focusWidget() is window.top.menu_button  # once around
    window.focusNextPrevChild(False)
    assert window.focusWidget() is order[-1]


def test_f6_goes_from_part_to_part(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    window.focus_timeline()
    for _ in range(2):
        window.run_command("next-pane")
        assert page.bottom.isAncestorOf(window.focusWidget())
        window.run_command("next-pane")
        assert page.side.isAncestorOf(window.focusWidget())
        window.run_command("next-pane")
        assert window.focusWidget() is page.timeline
    window.run_command("previous-pane")
    assert page.side.isAncestorOf(window.focusWidget())


@pytest.mark.parametrize("command_id", ["palette", "track-finder", "keys", "figures", "settings"])
def test_every_control_of_a_dialog_has_a_name(window: MainWindow, document: Document, command_id: str) -> None:
    window.run_command(command_id)
    QApplication.processEvents()
    shown = [d for d in window.findChildren(QDialog) if d.isVisible()]
    assert len(shown) == 1
    assert shown[0].windowTitle()
    assert focusable(shown[0])
    assert not nameless(shown[0])
    shown[0].close()
