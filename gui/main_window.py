"""The window: top bar, pages, status line. It arranges and dispatches; what is shown lives in the panels."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QByteArray, QCoreApplication, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QStackedWidget, QVBoxLayout, QWidget

from core.words import visible
from gui import commands, errors, jobs, names, panels, quitting, reading_order, recent, store, theme
from gui.document_page import DocumentPage
from gui.early_pages import EarlyPages
from gui.opening import Opener
from gui.session import Document, Session
from gui.settings import Settings
from gui.statusbar import StatusBar
from gui.text_size import px
from gui.topbar import COMPACT_PX, TopBar
from gui.widgets.banner import ErrorBanner, NoticeLine, WorkLine, WorkLines
from gui.widgets.drop_sign import DropSign
from gui.window_actions import WindowActions
from gui.window_tabs import WindowTabs

MIN_SIZE = (900, 600)


class MainWindow(WindowTabs, WindowActions, QMainWindow):
    """One window with a tab per trace and per page. Uses all signals of `Session`.

    Signals
    -------
    closing()
        Everything is still there.
    pageMade(document)
        Its page is there, and about to be shown for the first time.
    """

    closing = Signal()
    pageMade = Signal(object)

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__()
        self.session, self.settings = session, settings
        self.opener = Opener(session, settings, self)
        # Document, or panel id of a page -> widget; one is made when it is first shown
        self.pages: dict[object, QWidget] = {}
        self._tabbed: list[Document] = []  # documents that have a tab
        self.work: dict[str, WorkLine] = {}
        self.setWindowTitle("StepLens")
        self.setAcceptDrops(True)
        self.setMinimumSize(640, 420)
        self._build()
        self._make_commands()
        self._connect()
        self._restore_geometry()
        self.show_page("start")

    def _build(self) -> None:
        self.top = TopBar()
        self.banner, self.notice = ErrorBanner(), NoticeLine()
        self.stack = QStackedWidget()
        self.early = EarlyPages(self.session, self.settings, self.stack)
        self.status = StatusBar(self.session)
        body = QWidget()
        box = QVBoxLayout(body)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.top)
        box.addWidget(self.banner)
        box.addWidget(self.notice)
        box.addWidget(self.stack, 1)
        box.addWidget(self.status)
        self.setCentralWidget(body)
        self.works = WorkLines(body, self.status)
        self.drop_sign = DropSign(body)
        self.top.home.clicked.connect(lambda: self.run_command("start"))
        self.top.add_action("open", self.tr("Open"), partial(self.run_command, "open"))
        self.open_menu = QMenu(self)
        self.top.add_choices(self.tr("Open a file, or a folder of ranks"), self.open_menu)
        self.top.add_action("profile", self.tr("Profile script"), partial(self.run_command, "profile"), primary=True)
        self.top.add_action("compare", self.tr("Compare"), partial(self.run_command, "compare"))
        self.top.add_action("report", self.tr("Report"), partial(self.run_command, "report"))

    def _make_commands(self) -> None:
        menu = QMenu(self)
        self.command_actions: dict[str, QAction] = {}
        submenus: dict[str, QMenu] = {}
        for command in commands.COMMANDS:
            action = QAction(commands.title_of(command), self)
            action.setShortcuts([QKeySequence(k) for k in command.keys])
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
            action.triggered.connect(partial(self._triggered, command.id))
            self.addAction(action)
            self.command_actions[command.id] = action
            if command.menu:
                if command.menu not in submenus:
                    submenus[command.menu] = menu.addMenu(commands.translated(command.menu))
                if command.id in commands.AFTER_A_LINE:
                    submenus[command.menu].addSeparator()
                submenus[command.menu].addAction(action)
        self.menus = submenus
        tabs = submenus["View"].addMenu(self.tr("Views under the timeline"))
        tabs.aboutToShow.connect(partial(self._fill_panels, tabs, "bottom"))
        for place in range(9):
            action = QAction(self)
            action.setShortcut(QKeySequence(f"Alt+{place + 1}"))
            action.triggered.connect(partial(self._tab_key, place))
            self.addAction(action)
        pages = submenus["View"].addMenu(self.tr("Pages"))
        pages.aboutToShow.connect(partial(self._fill_panels, pages, "page"))
        self.recent_menu = QMenu(self.tr("Open recent"), self)
        submenus["File"].insertMenu(self.command_actions["profile"], self.recent_menu)
        self.top.set_menu(menu)
        self.open_menu.addActions([self.command_actions["open"], self.command_actions["open-folder"]])
        self.open_menu.addMenu(self.recent_menu)
        self._offer_services()

    def _connect(self) -> None:
        session = self.session
        session.documentsChanged.connect(self._sync_documents)
        session.currentChanged.connect(self._show_current)
        session.themeChanged.connect(self._apply_theme)
        session.errorRaised.connect(self.show_error)
        session.openRequested.connect(self.banner.clear)
        session.openRequested.connect(self.notice.hide)
        session.pageRequested.connect(self.show_page)
        session.panelRequested.connect(self.show_panel)
        session.recentChanged.connect(self._recent_changed)
        session.servicesChanged.connect(self._enable_commands)
        self.opener.started.connect(self._work_started)
        self.opener.progressed.connect(self._work_progressed)
        self.opener.ended.connect(self._work_ended)
        self.top.tabs.currentChanged.connect(self.banner.clear)
        self.stack.currentChanged.connect(self.status.turn_page)
        self.top.tabs.currentChanged.connect(self._tab_chosen)
        self.top.tabs.tabBarClicked.connect(self._tab_clicked)
        self.top.searched.connect(self.search)
        self.top.search.stepped.connect(self.step_hit)
        self.top.search.left.connect(self.focus_timeline)
        session.runChanged.connect(self._run_changed)
        session.provide("keep_layout", self._keep_layout)
        self._recent_changed()
        self._enable_commands()

    # Commands ------------------------------------------------------------------------------------------------

    def run_command(self, command_id: str) -> None:
        """Run one command of the table, if it can run now."""
        if self.command_actions[command_id].isEnabled():
            commands.by_id(command_id).handler(self)

    def _triggered(self, command_id: str, _checked: bool = False) -> None:
        self.run_command(command_id)

    def _fill_panels(self, menu: QMenu, area: str) -> None:
        """List the panels of an area, when the menu opens: at the start none of them is imported."""
        if menu.isEmpty():
            for place, spec in enumerate(panels.of_area(area)):
                action = menu.addAction(QCoreApplication.translate("panels", spec.title))
                action.triggered.connect(partial(self._panel_chosen, spec.id))
                if area == "bottom" and place < 9:
                    action.setText(action.text() + f"\tAlt+{place + 1}")

    def _tab_key(self, place: int, _checked: bool = False) -> None:
        page = self.current_page()
        if page is not None and place < len(page.panel_ids()):
            self.show_panel(page.panel_ids()[place])

    def _panel_chosen(self, panel_id: str, _checked: bool = False) -> None:
        self.show_panel(panel_id)

    def _enable_commands(self) -> None:
        shown = self.session.current is not None
        lacking = self.tr("This installation lacks the part that does this.")
        for command in commands.COMMANDS:
            self.command_actions[command.id].setEnabled(shown or not command.needs_document)
        for service in ("profile", "compare", "learn", "runs"):
            self.command_actions[service].setEnabled(self.session.can(service))
            if service in self.top.actions_:
                self.top.enable(service, self.session.can(service), lacking)
        self.top.enable("report", shown, self.tr("Open a trace first."))
        self.top.offer_search(shown)

    # Pages and tabs ------------------------------------------------------------------------------------------

    def current_page(self) -> DocumentPage | None:
        """Page of the current document."""
        page = self.pages.get(self.session.current)
        return page if isinstance(page, DocumentPage) else None

    def show_page(self, panel_id: str) -> None:
        """Show a page of the whole app, made when first asked for."""
        if panel_id not in self.pages:
            spec = panels.load(panel_id)
            if spec is None:
                return
            self.pages[panel_id] = spec.create(self.session, None)
            self.stack.addWidget(self.pages[panel_id])
        if panel_id != "start" and self._tab_of(panel_id) < 0:
            self._add_tab(panel_id, QCoreApplication.translate("panels", getattr(panels.load(panel_id), "title", "")))
        if self.stack.currentWidget() is not self.pages[panel_id]:
            self.banner.clear()  # it was about what was shown before
        self.session.set_current(None)
        self.stack.setCurrentWidget(self.pages[panel_id])
        if panel_id == "start":
            self.pages[panel_id].setFocus()
        self._choose_tab(panel_id)
        self._enable_commands()

    def show_panel(self, panel_id: str) -> None:
        """Bring a panel to the front: a tab of the current trace, or a page."""
        page = self.current_page()
        if page is not None and page.show_panel(panel_id):
            page.bottom.show()
        else:
            spec = panels.load(panel_id)
            if spec is not None and spec.area == "page":
                self.show_page(panel_id)

    def _sync_documents(self) -> None:
        for document in self.session.documents:
            if document not in self._tabbed:
                self._tabbed.append(document)
                self._add_tab(document, document.title)
                document.suggestionChanged.connect(partial(store.save, document))
                document.marksChanged.connect(partial(store.save, document))
        for document in [d for d in self._tabbed if d not in self.session.documents]:
            self._tabbed.remove(document)
            self._drop_page(document)
        if self.session.current is None and not self.top.tabs.count():
            self.show_page("start")

    def _page_of(self, document: Document) -> DocumentPage:
        """Page of a document, made when first asked for."""
        page = self.pages.get(document)
        if not isinstance(page, DocumentPage):
            page = self.pages[document] = self.early.take(document)
            self.pageMade.emit(document)
        return page

    def _run_changed(self) -> None:
        if quitting.RUN_PAGE in self.pages and self._tab_of(quitting.RUN_PAGE) < 0:
            quitting.say_ended(self.session)

    def _keep_layout(self, document: Document) -> str:
        """Write down how the tracks of a trace stand; return the view under them that is in front."""
        page = self.pages.get(document)
        if not isinstance(page, DocumentPage):
            return ""
        page.save_layout()
        return page.shown_panel()

    def _drop_page(self, key: object) -> None:
        page = self.pages.pop(key, None)
        if isinstance(page, DocumentPage):
            page.save_layout()
        if isinstance(key, Document):
            self.early.drop(key)
            store.save(key)
        self._hide_tab(key)
        if page is not None:
            self.stack.removeWidget(page)
            page.setParent(None)
            page.deleteLater()

    def _show_current(self) -> None:
        document = self.session.current
        if document is not None:
            self._sync_documents()
            page = self._page_of(document)
            self.stack.setCurrentWidget(page)
            page.lay_out(self.width(), self.stack.height() or self.height())
            self._choose_tab(document)
            self.setWindowTitle(self.tr("{title} – StepLens").format(title=document.title))
            self.top.search.show_query(document.search_query, document.trace)
            self.focus_timeline()
        else:
            self.setWindowTitle("StepLens")
        self._show_hits()
        self._enable_commands()

    # Work, errors, theme -------------------------------------------------------------------------------------

    def _work_started(self, key: str, title: str) -> None:
        line = WorkLine(title, partial(self.opener.cancel, key))
        self.work[key] = line
        self.works.add(line)

    def _work_progressed(self, key: str, fraction: float, note: str) -> None:
        if key in self.work:
            self.work[key].set_progress(fraction, note)

    def _work_ended(self, key: str) -> None:
        line = self.work.pop(key, None)
        if line is not None:
            self.works.remove(line)
        self.session.openingEnded.emit(key)

    def show_error(self, error: BaseException) -> None:
        """Banner for what the user can act on; crash dialog for our faults. What was open stays."""
        shown = errors.as_text(error)
        if shown is None:
            self._show_crash(error)
        else:
            self.banner.show_error(shown.title, shown.detail, shown.hint, shown.again)

    def _show_crash(self, error: BaseException) -> None:
        """One dialog at a time: a fault while painting comes sixty times a second."""
        if not any(dialog.isVisible() for dialog in self.findChildren(errors.CrashDialog)):
            errors.CrashDialog(error, self).show()

    def _apply_theme(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        theme.apply(app, self.session.dark)
        self.top.search.restyle()

    def _recent_changed(self) -> None:
        self.recent_menu.clear()
        for entry in self.session.recent:
            action = self.recent_menu.addAction(visible(names.of_path(entry.path)).replace("&", "&&"))
            action.triggered.connect(partial(self._open_recent, entry.path))
        self.recent_menu.setEnabled(bool(self.session.recent))
        self.settings.set("files/recent", [recent.to_line(r) for r in self.session.recent])

    def _open_recent(self, path: Path, _checked: bool = False) -> None:
        self.session.open([path])

    # Qt's events ---------------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Accept files and folders."""
        if any(u.isLocalFile() for u in event.mimeData().urls()):
            event.acceptProposedAction()
            self._mark_drop(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """Take the mark away."""
        self._mark_drop(False)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Open what was dropped: ranks of one job in one tab, any other file in a tab of its own."""
        self._mark_drop(False)
        paths = [Path(u.toLocalFile()) for u in event.mimeData().urls() if u.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.open_or_profile(paths)

    def _mark_drop(self, over: bool) -> None:
        self.drop_sign.show_over(over)

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802 - Qt's name
        """Tab goes through the window as it is read."""
        return reading_order.step(self, forward)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Give way in a narrow window."""
        super().resizeEvent(event)
        self.top.set_compact(self.width() < px(COMPACT_PX))

    def _restore_geometry(self) -> None:
        saved = self.settings.get("window/geometry")
        if saved.isEmpty() or not self.restoreGeometry(saved):
            screen = QGuiApplication.primaryScreen().availableGeometry()
            width = min(max(MIN_SIZE[0], screen.width() * 9 // 10), 1600)
            self.resize(width, min(max(MIN_SIZE[1], screen.height() * 9 // 10), 1000))

    def quit(self) -> None:
        """Close the window, unless a script runs that the user wants to go on."""
        if quitting.may_close(self, self.session):
            self.close()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Keep the window's state and the users' marks; stop what runs."""
        if event.spontaneous() and not quitting.may_close(self, self.session):  # by its frame, not by a signal
            event.ignore()
            return
        self.closing.emit()
        self.settings.set("window/geometry", QByteArray(self.saveGeometry()))
        for page in self.pages.values():
            if isinstance(page, DocumentPage):
                page.save_layout()
        for document in self.session.documents:
            store.save(document)
        self.settings.sync()
        jobs.cancel_all()
        super().closeEvent(event)
