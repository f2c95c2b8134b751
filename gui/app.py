"""Composition root: application, session, window, and the hooks that keep the app up."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QLocale, QObject, Qt, QTimer, QTranslator
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from gui import binding, errors, helpers, jobs, recent, text_size, theme, warmup
from gui.editor import Editor
from gui.main_window import MainWindow
from gui.resume import Resume
from gui.session import Session
from gui.settings import Settings

WARM_UP_MS = 60  # after the first paint


NO_SCREEN = 3


def no_screen() -> bool:
    """Whether a window could not be seen by anybody (on Linux, without X or Wayland, and no platform chosen)."""
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("QT_QPA_PLATFORM")
    return sys.platform.startswith("linux") and not display


def make_application() -> QApplication:
    """Return the one QApplication, made if there is none; without a screen on Linux it draws into memory."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    app = QApplication(sys.argv[:1])
    app.setApplicationName("StepLens")
    app.setOrganizationName("StepLens")
    app.setDesktopFileName("steplens")
    icon = Path(__file__).resolve().parent.parent / "resources" / "icons" / "steplens.svg"
    if icon.exists():
        app.setWindowIcon(QIcon(str(icon)))
    _translate(app)
    return app


def _translate(app: QApplication) -> None:
    """Install our texts and Qt's own in the user's language, where there are any."""
    folder = Path(__file__).resolve().parent.parent / "resources" / "translations"
    qt_folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    for name, where in (("steplens", str(folder)), ("qtbase", qt_folder)):
        translator = QTranslator(app)
        if translator.load(QLocale(), name, "_", where):
            app.installTranslator(translator)


def make_window(settings: Settings | None = None, *, dark: bool | None = None, height_px: int = 0) -> MainWindow:
    """Build session and window (not shown yet).

    Parameters
    ----------
    dark
        Theme whatever the settings say; None takes the user's choice.
    height_px
        Of a picture to be made: texts suit it; 0 stands for the screen.
    """
    app = make_application()
    settings = settings or Settings()
    session = Session()
    choice = settings.get("appearance/theme")
    if dark is None:
        dark = theme.system_is_dark() if choice == "system" else choice == "dark"
    session.dark = dark
    theme.apply(app, dark)
    text_size.apply(text_size.chosen(settings, height_px) / 100)
    session.text_scale = text_size.factor()
    kept = map(recent.from_line, settings.get("files/recent"))
    session.set_recent([entry for entry in kept if entry is not None])
    window = MainWindow(session, settings)
    session.setParent(window)
    editor = Editor(session, settings, window)
    session.provide("open_source", editor.open)
    session.provide("has_source", editor.has)
    _connect_parts(session, settings)
    return window


def _connect_parts(session: Session, settings: Settings) -> None:
    """Let the parts that are installed offer their services (each has ``install(session, settings)``)."""
    import importlib
    import importlib.util

    for name in ("gui.capture", "gui.loop", "gui.own_rules", "gui.repricing", "gui.source_folders"):
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).install(session, settings)


def _quit_on_signals(app: QApplication) -> None:
    """Quit in good order: Ctrl+C is no exception from here on, which would tear widgets down half made.

    The end of the desktop's session and of the terminal do so as well: what runs is stopped, and its result written. A
    second one ends the program at once.
    """

    def quit_soon(number: int, _frame: object) -> None:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        QTimer.singleShot(0, app.quit)  # it waits for the event loop, which may be yet to begin

    signal.signal(signal.SIGINT, quit_soon)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, quit_soon)


def listen(owner: QObject) -> QTimer:
    """Let Python see signals while Qt waits for events: a function of its own is called, one in C would not look."""
    beat = QTimer(owner)
    beat.timeout.connect(lambda: None)
    beat.start(500)
    return beat


def run(paths: list[Path]) -> int:
    """Show the window with these traces; return its exit status."""
    if no_screen():
        sys.stderr.write(
            "steplens: error: there is no screen to show a window on. The headless commands work without one: "
            "main.py analyze TRACE, main.py screenshot TRACE OUT.png, main.py report TRACE OUT.html.\n"
        )
        return NO_SCREEN
    if paths:
        helpers.start()  # it comes up while the window does
    app = make_application()
    _quit_on_signals(app)
    warmup.share_interpreter()
    window = make_window()
    collect_anywhere = binding.collect_here(window)
    hooks = errors.CrashHooks(window.show_error, window)
    hooks.install()
    listen(window)
    window.show()
    resume = Resume(window)
    if paths:
        window.open_or_profile([Path(p) for p in paths])
    resume.look("never" if paths else window.settings.get("window/reopen"))
    QTimer.singleShot(WARM_UP_MS, window, warmup.start)
    QTimer.singleShot(WARM_UP_MS, window, helpers.start)
    try:
        status = app.exec()
    finally:
        collect_anywhere()
        hooks.remove()
        jobs.cancel_all()
        jobs.wait_all()
        helpers.close_all()
    return int(status)
