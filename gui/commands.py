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


def _tr(text: str) -> str:
    """Mark a text for translation; `title_of` translates it."""
    return text


COMMANDS = (
    Command("open", "File", _tr("Open trace…"), ("Ctrl+O",), lambda w: w.open_dialog()),
    Command("open-folder", "File", _tr("Open folder of ranks…"), ("Ctrl+Shift+O",), lambda w: w.open_folder_dialog()),
    Command("profile", "File", _tr("Profile a script…"), ("Ctrl+R",), lambda w: w.session.ask("profile")),
    Command("learn", "File", _tr("Learn with an example"), (), lambda w: w.learn()),
    Command("compare", "File", _tr("Compare two traces…"), ("Ctrl+D",), lambda w: w.session.ask("compare")),
    Command("report", "File", _tr("Save report…"), ("Ctrl+S",), lambda w: w.save_report(), True),
    Command("picture", "File", _tr("Save picture of the window…"), (), lambda w: w.save_picture(), True),
    Command("close", "File", _tr("Close trace"), ("Ctrl+W",), lambda w: w.close_current(), True),
    Command("quit", "File", _tr("Quit"), ("Ctrl+Q",), lambda w: w.close()),
    Command("typical-step", "View", _tr("Zoom to one typical step"), ("T",), lambda w: w.typical_step(), True),
    Command("whole-trace", "View", _tr("Zoom to the whole trace"), ("Ctrl+0",), lambda w: w.whole_trace(), True),
    Command("toggle-plan", "View", _tr("Show or hide the plan"), ("Ctrl+B",), lambda w: w.toggle("side"), True),
    Command("toggle-details", "View", _tr("Show or hide the details"), ("Q",), lambda w: w.toggle("bottom"), True),
    Command("theme", "View", _tr("Switch between light and dark"), ("Ctrl+Shift+L",), lambda w: w.toggle_theme()),
    Command("theme-system", "View", _tr("Follow the desktop's theme"), (), lambda w: w.set_theme("system")),
    Command("next-tab", "View", _tr("Next tab"), ("Ctrl+PgDown", "Ctrl+Tab"), lambda w: w.step_tab(1)),
    Command("previous-tab", "View", _tr("Previous tab"), ("Ctrl+PgUp", "Ctrl+Shift+Tab"), lambda w: w.step_tab(-1)),
    Command("next-suggestion", "Go", _tr("Next suggestion"), ("N",), lambda w: w.step_suggestion(1), True),
    Command(
        "previous-suggestion", "Go", _tr("Previous suggestion"), ("Shift+N", "P"), lambda w: w.step_suggestion(-1), True
    ),
    Command("done", "Go", _tr("Mark the suggestion as done"), ("Ctrl+Return",), lambda w: w.mark("done"), True),
    Command("search", "Go", _tr("Search slices, ranges, kernels"), ("/", "Ctrl+F"), lambda w: w.focus_search(), True),
    Command("next-hit", "Go", _tr("Next hit"), ("F3",), lambda w: w.step_hit(1), True),
    Command("previous-hit", "Go", _tr("Previous hit"), ("Shift+F3",), lambda w: w.step_hit(-1), True),
    Command("track-finder", "Go", _tr("Find a track…"), ("Ctrl+P",), lambda w: w.track_finder(), True),
    Command("palette", "Help", _tr("Command palette…"), ("Ctrl+Shift+P",), lambda w: w.palette_dialog()),
    Command("keys", "Help", _tr("Keys"), ("?", "F1"), lambda w: w.show_keys()),
    Command("about", "Help", _tr("About StepLens"), (), lambda w: w.about()),
)
MENUS = (_tr("File"), _tr("View"), _tr("Go"), _tr("Help"))

# Keys that the timeline itself answers while it has the focus.
TIMELINE_KEYS = (
    ("W S", _tr("Zoom in and out about the pointer")),
    ("A D", _tr("Move left and right")),
    ("F", _tr("Fit the selection; twice: the whole trace")),
    ("R", _tr("Select the time of the selected slice")),
    (", .", _tr("Previous and next slice on the row")),
    ("[ ]", _tr("Follow the arrow back and forward (launch and kernel)")),
    ("J L", _tr("Previous and next sync point")),
    ("M  Shift+M", _tr("Mark the selection; keep the mark")),
    ("Backspace  Alt+← →", _tr("Back and forward through views")),
    ("Esc", _tr("Clear the selection")),
)
SEARCH_KEYS = (("Enter  Shift+Enter", _tr("In the search field: next and previous hit")),)


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
