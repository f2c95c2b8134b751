"""What the commands do to the window: a mixin of `MainWindow`, which holds the parts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QAction, QCursor, QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMainWindow, QMessageBox, QWidget

from core.words import visible
from gui import commands, dialogs, jobs, names, panels, reading_order, scripts, text, text_size, theme
from gui.models.query import Fault, Query, find
from gui.models.thread_titles import track_words
from gui.session import Document
from gui.widgets.labels import plain_tip, restyle

if TYPE_CHECKING:
    from gui.document_page import DocumentPage
    from gui.session import Session
    from gui.settings import Settings
    from gui.topbar import TopBar
    from gui.widgets.banner import NoticeLine

    class _Base(QMainWindow):
        """What the window itself brings."""

        def current_page(self) -> DocumentPage | None:
            """Page of the current document."""

        def show_panel(self, panel_id: str) -> None:
            """Bring a panel to the front."""

        def shown_page(self) -> str:
            """Id of the page that is shown."""

        def run_command(self, command_id: str) -> None:
            """Run one command of the table, if it can run now."""

else:
    _Base = object

NO_HITS = np.empty(0, np.int32)
FILTER = "*.json *.json.gz *.json.zst *.zip *.gz"


class WindowActions(_Base):
    """Handlers of `gui.commands.COMMANDS`."""

    session: Session
    settings: Settings
    top: TopBar
    notice: NoticeLine
    pages: dict[object, QWidget]
    command_actions: dict[str, QAction]
    _awaited: tuple[Query | None, int] = None, 0  # what is searched for, and the step to take when it is found

    def _offer_services(self) -> None:
        """Let panels ask for what the window does."""
        self.session.provide("open", self.open_dialog)
        self.session.provide("open_folder", self.open_folder_dialog)
        self.session.provide("choose_script", partial(scripts.choose, self.session, self.pages))
        self.session.provide("shown_page", self.shown_page)
        self.session.provide("save_report", self.save_report)
        self.session.provide("palette", self.palette_dialog)
        from gui import tour_story
        from gui.panels import tour

        if tour_story.sample(0).exists():
            self.session.provide("learn", partial(tour.start, self.session))
            self.session.provide("tour_stations", lambda: len(tour_story.stations()))
            self.session.provide("tour_left_at", partial(self.settings.get, "tour/station"))
            self.session.provide("leave_tour_at", partial(self.settings.set, "tour/station"))
            self.session.provide("keep_tour", lambda: self.settings.set("tour/measured", tour_story.kept()))
            tour_story.take_back(self.settings.get("tour/measured"))
        for service, panel_id in (("profile", "launch"), ("compare", "compare"), ("runs", "runs")):
            if panels.exists(panel_id):
                self.session.provide(service, partial(self.session.pageRequested.emit, panel_id))

    # Files ---------------------------------------------------------------------------------------------------

    def open_dialog(self) -> None:
        """Ask for traces and open them."""
        folder = self._where_traces_are()
        names = self.tr("Traces ({patterns});;Scripts to profile ({scripts});;All files (*)").format(
            patterns=FILTER, scripts=" ".join(f"*{suffix}" for suffix in scripts.SUFFIXES)
        )
        chosen, _ = QFileDialog.getOpenFileNames(self, self.tr("Open traces"), folder, names)
        if chosen:
            self.settings.set("files/last_folder", str(Path(chosen[0]).parent))
            self.open_or_profile([Path(c) for c in chosen])

    def _where_traces_are(self) -> str:
        """Folder of the trace opened last, from the command line, too; else the one that was last chosen from."""
        newest = self.session.recent[0].path.parent if self.session.recent else None
        return str(newest) if newest is not None and newest.is_dir() else self.settings.get("files/last_folder")

    def open_or_profile(self, paths: list[Path]) -> None:
        """Open traces; a script is no trace, but can be profiled."""
        scripts.open_or_profile(self.session, self.pages, paths)

    def open_folder_dialog(self) -> None:
        """Ask for a folder of ranks and open it as one trace."""
        folder = self._where_traces_are()
        chosen = QFileDialog.getExistingDirectory(self, self.tr("Open a folder with one trace per rank"), folder)
        if chosen:
            self.settings.set("files/last_folder", chosen)
            self.session.open([Path(chosen)])

    def learn(self) -> None:
        """Start the tour."""
        self.session.ask("learn")

    def save_report(self) -> None:
        """Ask where, and write the report of the current trace."""
        document = self.session.current
        if document is None:
            return
        if document.analysis is None:
            self.session.set_status(self.tr("The diagnosis is not finished yet."))
            return
        from gui.suggestion_text import set_aside

        proposed = _beside(self.session, document, ".html")
        name, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save report"), str(proposed), self.tr("Web page ({pattern})").format(pattern="*.html")
        )
        if name:
            jobs.run(
                document,
                partial(_write_report, document.trace, document.analysis, set_aside(document), Path(name)),
                partial(self._saved, Path(name)),
                self.session.raise_error,
                key="report",
            )

    def save_picture(self) -> None:
        """Ask where, and write the window as it is shown."""
        document = self.session.current
        if document is None:
            return
        name, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save picture"), str(_beside(self.session, document, ".png")), "PNG (*.png)"
        )
        if name:
            from gui.screenshot import write_pixmap

            try:
                write_pixmap(self.grab(), Path(name))
            except OSError as error:
                self.session.raise_error(error)
            else:
                self._saved(Path(name), None)

    def _saved(self, path: Path, _result: Any) -> None:
        self.session.set_status(self.tr("Saved {name}").format(name=path.name))
        url = QUrl.fromLocalFile(str(path.absolute()))
        words = self.tr("Saved as {path}").format(path=path.absolute())
        self.notice.say(words, self.tr("Open"), partial(QDesktopServices.openUrl, url))

    # View ----------------------------------------------------------------------------------------------------

    def typical_step(self) -> None:
        """Zoom to one typical step."""
        document = self.session.current
        if document is not None:
            document.show_typical_step()

    def whole_trace(self) -> None:
        """Zoom out to everything."""
        document = self.session.current
        if document is not None:
            document.zoom_to(document.viewport.first_ns, document.viewport.last_ns)

    def toggle(self, part: str) -> None:
        """Show or hide the plan ("side") or the tabs under the timeline ("bottom")."""
        page = self.current_page()
        if page is not None:
            widget: QWidget = getattr(page, part)
            widget.setVisible(widget.isHidden())
            if part == "bottom" and widget.isVisible():
                page.grow()

    def taller(self) -> None:
        """Give the tabs under the timeline most of the height, or what they had before."""
        page = self.current_page()
        if page is not None:
            page.toggle_tall()

    def toggle_theme(self) -> None:
        """Light to dark and back."""
        self.set_theme("light" if self.session.dark else "dark")

    def set_theme(self, choice: str) -> None:
        """Choose ``light``, ``dark`` or ``system``."""
        self.settings.set("appearance/theme", choice)
        self.session.set_dark(theme.system_is_dark() if choice == "system" else choice == "dark")

    def step_text_size(self, offset: int) -> None:
        """Make all texts larger (1) or smaller (-1), or as large as the desktop has them (0)."""
        percent = text_size.next_of(text_size.chosen(self.settings), offset) if offset else 0
        percent = text_size.choose(self.session, self.settings, percent)
        self.session.set_status(self.tr("Text size: {percent}").format(percent=text.percent(percent)))

    # Going about ---------------------------------------------------------------------------------------------

    def step_suggestion(self, offset: int) -> None:
        """Next or previous suggestion."""
        if self.session.current is not None:
            self.session.current.step_suggestion(offset)

    def mark(self, state: str) -> None:
        """Mark the current suggestion."""
        document = self.session.current
        if document is not None and document.current_suggestion >= 0:
            document.set_suggestion_state(document.current_suggestion, state)

    def focus_search(self) -> None:
        """Type a name."""
        self.top.search.setFocus()
        self.top.search.selectAll()

    def step_pane(self, offset: int) -> None:
        """Keys go to the next part: timeline, views under it, plan."""
        page = self.current_page()
        if page is not None:
            reading_order.step_pane([page.timeline, page.bottom, page.side], self.focusWidget(), offset)

    def focus_timeline(self) -> None:
        """Keys go to the timeline."""
        page = self.current_page()
        if page is not None:
            page.timeline.setFocus()

    def search(self, query: Query) -> None:
        """Look for a name off the GUI thread; the newest search wins."""
        document = self.session.current
        if document is None or query == document.search_query:
            return
        document.search_query, self._awaited = query, (query, 0)
        work, came = partial(find, document.trace, query), partial(self._found, document)
        jobs.run(document, work, came, self._not_searched, key="search")

    def _not_searched(self, error: BaseException) -> None:
        self._awaited = None, 0
        self.session.raise_error(error)

    def _found(self, document: Document, found: tuple[Query, Any]) -> None:
        query, hits = found
        document.search_fault = hits if isinstance(hits, Fault) else None
        document.set_search(query.text or ("*" if query.filtered else ""), NO_HITS if document.search_fault else hits)
        (_, offset), self._awaited = self._awaited, (None, 0)
        if offset and document is self.session.current:
            document.go_to_hit(offset)
        self._show_hits()

    def step_hit(self, offset: int) -> None:
        """Next or previous search hit; while it is still being searched for, as soon as it is found."""
        self.top.flush_search()
        document, (awaited, _) = self.session.current, self._awaited
        if document is not None and awaited is not None and awaited is document.search_query:
            self._awaited = awaited, offset
        elif document is not None:
            document.go_to_hit(offset)
            self._show_hits()

    def _show_hits(self) -> None:
        document, shown = self.session.current, self.top.hits
        wrong: Fault | None = document.search_fault if document is not None and document.search_text else None
        restyle(shown, "role", "warn" if wrong else "dim")
        shown.setToolTip(plain_tip(wrong.why if wrong else ""))
        if document is None or not document.search_text:
            self.top.say_hits("")
            return
        if wrong:
            self.top.say_hits(wrong.short)
            return
        count, at = len(document.search_hits), document.search_at
        words = text.counted(self.tr("{count} {count|hit|hits}"), count)
        if at >= 0:
            words = self.tr("{number} of {count}").format(number=text.count(at + 1), count=text.count(count))
        self.top.say_hits(words)

    def track_finder(self) -> None:
        """Find a track by name and bring it into view."""
        document = self.session.current
        if document is None:
            return
        trace, choices = document.trace, []
        for track in range(len(trace.tracks)):
            first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
            name, kind = track_words(trace, track)
            note = text.counted(self.tr("{kind} · {count} {count|slice|slices}"), end - first, kind=kind)
            choices.append(dialogs.Choice(name, note, partial(self._show_track, document, track)))
        dialogs.Finder(self.tr("Find a track"), choices, self).open()

    def _show_track(self, document: Document, track: int) -> None:
        page = self.current_page()
        reveal = getattr(page.timeline, "reveal_track", None) if page is not None else None
        if reveal is not None:
            reveal(track)
        elif document.trace.tracks.end_id[track] > document.trace.tracks.first_id[track]:
            document.go_to_slice(int(document.trace.tracks.first_id[track]))

    def palette_dialog(self) -> None:
        """All commands by name."""
        choices = []
        for command in commands.COMMANDS:
            if self.command_actions[command.id].isEnabled() and command.id != "palette":
                run = partial(self.run_command, command.id)
                choices.append(dialogs.Choice(commands.title_of(command), dialogs.keys_text(command.keys), run))
        choices += self._view_choices() + self._timeline_choices()
        for entry in self.session.recent:
            words = self.tr("Open {name}").format(name=visible(entry.path.name))
            choices.append(dialogs.Choice(words, str(entry.path.parent), partial(self.session.open, [entry.path])))
        dialogs.Finder(self.tr("Command palette"), choices, self).open()

    def _view_choices(self) -> list[dialogs.Choice]:
        """Views under the timeline, and pages, for the palette."""
        page, choices = self.current_page(), []
        for place, panel_id in enumerate(page.panel_ids() if page is not None else ()):
            title = QCoreApplication.translate("panels", getattr(panels.load(panel_id), "title", panel_id))
            keys = dialogs.keys_text((f"Alt+{place + 1}",)) if place < 9 else ""
            words = self.tr("Show {view}").format(view=title)
            choices.append(dialogs.Choice(words, keys, partial(self.show_panel, panel_id)))
        return choices

    def _timeline_choices(self) -> list[dialogs.Choice]:
        """What the timeline can do, for the palette."""
        page = self.current_page()
        offered = getattr(page.timeline, "offers", None) if page is not None else None
        return [
            dialogs.Choice(words, dialogs.keys_text((keys,)) if keys else "", run)
            for words, keys, run in (offered() if offered is not None else ())
        ]

    def explain_figures(self) -> None:
        """Page that defines the figures on top."""
        page = self.current_page()
        explain = getattr(page.band("verdict"), "explain", None) if page is not None else None
        if explain is not None:
            explain()

    def show_keys(self) -> None:
        """Page of keys."""
        dialogs.KeysPage(self).open()

    def settings_dialog(self) -> None:
        """Let the user choose."""
        from gui.settings_dialog import SettingsDialog

        dialog = SettingsDialog(self.settings, self)

        def kept() -> None:
            self.set_theme(self.settings.get("appearance/theme"))
            text_size.choose(self.session, self.settings, self.settings.get(text_size.KEY))
            if dialog.consent_changed:
                self.session.ask("renew_sources")

        dialog.accepted.connect(kept)
        dialog.open()

    def about(self) -> None:
        """Version and licence."""
        from gui.errors import versions

        words = self.tr("StepLens shows why a PyTorch training step is slow, and what a fix would save.\n\n{versions}")
        box = QMessageBox(QMessageBox.Icon.NoIcon, self.tr("About StepLens"), words.format(versions=versions()))
        box.setParent(self, box.windowFlags())
        box.move(QCursor.pos())
        box.open()


def _beside(session: Session, document: Document, suffix: str) -> Path:
    """File to propose for what is written of a trace: beside the script that ran, else beside the trace."""
    from gui.allow_file import beside_script

    path = document.trace.path if document.trace.sources else None
    script = beside_script(session, document)  # a run's own folder is a hidden one
    words = names.short(document.title, path).replace(", ", "_").replace(":", "-")
    name = re.sub(r"[^\w.,-]+", "-", words).strip("-.")
    beside = script or path
    return (beside.parent if beside is not None else Path()) / f"{name or 'report'}{suffix}"


def _write_report(trace: Any, analysis: Any, words: dict[str, str], path: Path, progress: jobs.Progress) -> None:
    from core.files import write_atomically
    from core.reporting import html
    from core.set_aside import set_aside

    rest, aside = set_aside(trace, analysis, words)
    write_atomically(path, html.page(trace, rest, aside=aside).encode("utf-8", "replace"))
