"""One table of commands -> menus, keys, the palette and the page of keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication

if TYPE_CHECKING:
    from gui.main_window import MainWindow


@dataclass(frozen=True)
class Command:
    """One command: stable id, menu it stands in ("" for none), English title, keys, and what it does.

    ``needs_document`` greys it out while no trace is shown.
    """

    id: str
    menu: str
    title: str
    keys: tuple[str, ...]
    handler: Callable[[MainWindow], Any]
    needs_document: bool = False


def QT_TRANSLATE_NOOP(context: str, words: str) -> str:  # lupdate finds the texts by this name
    """Mark a text of the table for translation."""
    return words


COMMANDS = (
    Command("open", "File", QT_TRANSLATE_NOOP("commands", "Open trace…"), ("Ctrl+O",), lambda w: w.open_dialog()),
    Command(
        "open-folder",
        "File",
        QT_TRANSLATE_NOOP("commands", "Open folder of ranks…"),
        ("Ctrl+Shift+O",),
        lambda w: w.open_folder_dialog(),
    ),
    Command(
        "profile",
        "File",
        QT_TRANSLATE_NOOP("commands", "Profile a script…"),
        ("Ctrl+R",),
        lambda w: w.session.ask("profile"),
    ),
    Command("runs", "File", QT_TRANSLATE_NOOP("commands", "Runs…"), ("Ctrl+H",), lambda w: w.session.ask("runs")),
    Command("learn", "File", QT_TRANSLATE_NOOP("commands", "Learn with an example"), (), lambda w: w.learn()),
    Command(
        "compare",
        "File",
        QT_TRANSLATE_NOOP("commands", "Compare two traces…"),
        ("Ctrl+D",),
        lambda w: w.session.ask("compare"),
    ),
    Command(
        "rounds",
        "File",
        QT_TRANSLATE_NOOP("commands", "Rounds of a script…"),
        ("Ctrl+I",),
        lambda w: w.session.ask("rounds"),
    ),
    Command(
        "report", "File", QT_TRANSLATE_NOOP("commands", "Save report…"), ("Ctrl+S",), lambda w: w.save_report(), True
    ),
    Command(
        "allow-file",
        "File",
        QT_TRANSLATE_NOOP("commands", "Save what was dismissed as an allow file…"),
        (),
        lambda w: w.session.ask("save_allow_file"),
        True,
    ),
    Command(
        "undo-change",
        "File",
        QT_TRANSLATE_NOOP("commands", "Undo the last change of my file"),
        (),
        lambda w: w.session.ask("undo_change"),
    ),
    Command(
        "picture",
        "File",
        QT_TRANSLATE_NOOP("commands", "Save picture of the window…"),
        (),
        lambda w: w.save_picture(),
        True,
    ),
    Command(
        "start", "File", QT_TRANSLATE_NOOP("commands", "Start page"), ("Alt+Home",), lambda w: w.show_page("start")
    ),
    Command("close", "File", QT_TRANSLATE_NOOP("commands", "Close tab"), ("Ctrl+W",), lambda w: w.close_tab()),
    Command("settings", "File", QT_TRANSLATE_NOOP("commands", "Settings…"), ("Ctrl+,",), lambda w: w.settings_dialog()),
    Command("quit", "File", QT_TRANSLATE_NOOP("commands", "Quit"), ("Ctrl+Q",), lambda w: w.quit()),
    Command(
        "typical-step",
        "View",
        QT_TRANSLATE_NOOP("commands", "Zoom to one typical step"),
        ("T",),
        lambda w: w.typical_step(),
        True,
    ),
    Command(
        "whole-trace",
        "View",
        QT_TRANSLATE_NOOP("commands", "Zoom to the whole trace"),
        ("Ctrl+0",),
        lambda w: w.whole_trace(),
        True,
    ),
    Command(
        "toggle-plan",
        "View",
        QT_TRANSLATE_NOOP("commands", "Show or hide the plan"),
        ("Ctrl+B",),
        lambda w: w.toggle("side"),
        True,
    ),
    Command(
        "toggle-details",
        "View",
        QT_TRANSLATE_NOOP("commands", "Show or hide the details"),
        ("Q",),
        lambda w: w.toggle("bottom"),
        True,
    ),
    Command(
        "taller-details",
        "View",
        QT_TRANSLATE_NOOP("commands", "Make the details taller, and back"),
        ("Shift+Q",),
        lambda w: w.taller(),
        True,
    ),
    Command(
        "theme",
        "View",
        QT_TRANSLATE_NOOP("commands", "Switch between light and dark theme"),
        ("Ctrl+Shift+L",),
        lambda w: w.toggle_theme(),
    ),
    Command(
        "theme-system",
        "View",
        QT_TRANSLATE_NOOP("commands", "Follow the desktop's theme"),
        (),
        lambda w: w.set_theme("system"),
    ),
    Command(
        "larger-text",
        "View",
        QT_TRANSLATE_NOOP("commands", "Larger text"),
        ("Ctrl+=", "Ctrl++"),
        lambda w: w.step_text_size(1),
    ),
    Command(
        "smaller-text",
        "View",
        QT_TRANSLATE_NOOP("commands", "Smaller text"),
        ("Ctrl+-",),
        lambda w: w.step_text_size(-1),
    ),
    Command(
        "normal-text",
        "View",
        QT_TRANSLATE_NOOP("commands", "Text of normal size"),
        ("Ctrl+Alt+0",),
        lambda w: w.step_text_size(0),
    ),
    Command(
        "next-pane",
        "View",
        QT_TRANSLATE_NOOP("commands", "Next part: timeline, views, plan"),
        ("F6",),
        lambda w: w.step_pane(1),
        True,
    ),
    Command(
        "previous-pane",
        "View",
        QT_TRANSLATE_NOOP("commands", "Previous part"),
        ("Shift+F6",),
        lambda w: w.step_pane(-1),
        True,
    ),
    Command(
        "next-tab",
        "View",
        QT_TRANSLATE_NOOP("commands", "Next tab"),
        ("Ctrl+PgDown", "Ctrl+Tab"),
        lambda w: w.step_tab(1),
    ),
    Command(
        "previous-tab",
        "View",
        QT_TRANSLATE_NOOP("commands", "Previous tab"),
        ("Ctrl+PgUp", "Ctrl+Shift+Tab"),
        lambda w: w.step_tab(-1),
    ),
    Command(
        "next-suggestion",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Next suggestion"),
        ("N",),
        lambda w: w.step_suggestion(1),
        True,
    ),
    Command(
        "previous-suggestion",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Previous suggestion"),
        ("Shift+N", "P"),
        lambda w: w.step_suggestion(-1),
        True,
    ),
    Command(
        "done",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Mark the suggestion as done"),
        ("Ctrl+Return",),
        lambda w: w.mark("done"),
        True,
    ),
    Command(
        "search",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Search slices, ranges, kernels"),
        ("/", "Ctrl+F"),
        lambda w: w.focus_search(),
        True,
    ),
    Command("next-hit", "Go", QT_TRANSLATE_NOOP("commands", "Next hit"), ("F3",), lambda w: w.step_hit(1), True),
    Command(
        "previous-hit",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Previous hit"),
        ("Shift+F3",),
        lambda w: w.step_hit(-1),
        True,
    ),
    Command(
        "track-finder",
        "Go",
        QT_TRANSLATE_NOOP("commands", "Find a track…"),
        ("Ctrl+P",),
        lambda w: w.track_finder(),
        True,
    ),
    Command(
        "palette",
        "Help",
        QT_TRANSLATE_NOOP("commands", "Command palette…"),
        ("Ctrl+Shift+P",),
        lambda w: w.palette_dialog(),
    ),
    Command("keys", "Help", QT_TRANSLATE_NOOP("commands", "Keys"), ("?", "F1"), lambda w: w.show_keys()),
    Command(
        "figures",
        "Help",
        QT_TRANSLATE_NOOP("commands", "What the figures mean"),
        ("Shift+F1",),
        lambda w: w.explain_figures(),
        True,
    ),
    Command("about", "Help", QT_TRANSLATE_NOOP("commands", "About StepLens"), (), lambda w: w.about()),
)
# A line in the menu stands before these.
AFTER_A_LINE = frozenset(
    ("profile", "compare", "report", "start", "settings", "toggle-plan", "theme", "larger-text", "next-pane", "search")
    + ("about",)
)
MENUS = (
    QT_TRANSLATE_NOOP("commands", "File"),
    QT_TRANSLATE_NOOP("commands", "View"),
    QT_TRANSLATE_NOOP("commands", "Go"),
    QT_TRANSLATE_NOOP("commands", "Help"),
)

# Keys that the timeline itself answers while it has the focus.
TIMELINE_KEYS = (
    ("W S", QT_TRANSLATE_NOOP("commands", "Zoom in and out about the pointer")),
    ("A D  ← →", QT_TRANSLATE_NOOP("commands", "Move left and right")),
    ("↑ ↓", QT_TRANSLATE_NOOP("commands", "Scroll through the tracks")),
    ("F", QT_TRANSLATE_NOOP("commands", "Fit the selection; twice: the whole trace")),
    ("R", QT_TRANSLATE_NOOP("commands", "Select the time of the selected slice")),
    (", .", QT_TRANSLATE_NOOP("commands", "Previous and next slice on the row")),
    ("[ ]", QT_TRANSLATE_NOOP("commands", "Follow the arrow back and forward (launch and kernel)")),
    ("J L", QT_TRANSLATE_NOOP("commands", "Previous and next sync point")),
    ("M  Shift+M", QT_TRANSLATE_NOOP("commands", "Mark the selection; keep the mark")),
    ("Backspace  Alt+← →", QT_TRANSLATE_NOOP("commands", "Back and forward through views")),
    ("C", QT_TRANSLATE_NOOP("commands", "Colour by kind or by name")),
    ("G", QT_TRANSLATE_NOOP("commands", "Draw all arrows of the selection")),
    ("K", QT_TRANSLATE_NOOP("commands", "Show or hide the legend")),
    ("Shift+T", QT_TRANSLATE_NOOP("commands", "Filter the tracks by text")),
    ("H", QT_TRANSLATE_NOOP("commands", "Hide tracks without a slice in view, or show them")),
    ("Esc", QT_TRANSLATE_NOOP("commands", "Clear the selection")),
)
MOUSE = (
    (QT_TRANSLATE_NOOP("commands", "Wheel"), QT_TRANSLATE_NOOP("commands", "Zoom about the pointer")),
    (QT_TRANSLATE_NOOP("commands", "Shift+wheel"), QT_TRANSLATE_NOOP("commands", "Move in time")),
    (QT_TRANSLATE_NOOP("commands", "Drag"), QT_TRANSLATE_NOOP("commands", "Move the view")),
    (
        QT_TRANSLATE_NOOP("commands", "Shift+drag"),
        QT_TRANSLATE_NOOP("commands", "Select a stretch of time (also: drag along the time axis)"),
    ),
    (QT_TRANSLATE_NOOP("commands", "Double click"), QT_TRANSLATE_NOOP("commands", "Zoom to a slice")),
    (
        QT_TRANSLATE_NOOP("commands", "Drag a heading"),
        QT_TRANSLATE_NOOP("commands", "Reorder the tracks; its lower border resizes it"),
    ),
    (QT_TRANSLATE_NOOP("commands", "Right click"), QT_TRANSLATE_NOOP("commands", "Copy, export, hide, pin")),
)
SEARCH_KEYS = (
    ("Alt+1 … Alt+9", QT_TRANSLATE_NOOP("commands", "Views under the timeline")),
    ("Enter  Shift+Enter", QT_TRANSLATE_NOOP("commands", "In the search field: next and previous hit")),
    ("Alt+R  Alt+F", QT_TRANSLATE_NOOP("commands", "In the search field: regular expression, filter")),
    ("Ctrl+C", QT_TRANSLATE_NOOP("commands", "Copy all about the selected slice as text")),
    ("Enter  Ctrl+Enter  Esc", QT_TRANSLATE_NOOP("commands", "In the flame graph: zoom in, slowest call, back")),
    ("C", QT_TRANSLATE_NOOP("commands", "In the flame graph: callers and callees")),
)


def translated(text: str) -> str:
    """Translate a text of this table."""
    return QCoreApplication.translate("commands", text)


def title_of(command: Command) -> str:
    """Title of a command in the user's language."""
    return translated(command.title)


def by_id(command_id: str) -> Command:
    """Return one command.

    Raises
    ------
    KeyError
        When there is none of that id.
    """
    for command in COMMANDS:
        if command.id == command_id:
            return command
    raise KeyError(command_id)
