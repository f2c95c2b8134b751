"""Opens a place in the user's code in their editor: only a file that is there, and only after they agreed."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QProcess, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from core.errors import TraceError

if TYPE_CHECKING:
    from gui.session import Document, Session
    from gui.settings import Settings

translate = QCoreApplication.translate
# Editors that take a line, in the order in which they are looked for; the setting editor/command comes first.
KNOWN = (
    ("code", "code --goto {file}:{line}"),
    ("codium", "codium --goto {file}:{line}"),
    ("pycharm", "pycharm --line {line} {file}"),
    ("subl", "subl {file}:{line}"),
    ("kate", "kate --line {line} {file}"),
    ("gedit", "gedit +{line} {file}"),
)
TEXT_SUFFIXES = (".py", ".pyi", ".pyx", ".txt", ".ipynb", ".cu", ".cpp", ".c", ".h", ".hpp")


def command_line(template: str, file: Path, line: int) -> list[str]:
    """Program and arguments; the file name is one argument whatever it holds (no shell is used)."""
    return [part.replace("{file}", str(file)).replace("{line}", str(line)) for part in shlex.split(template)]


def find_editor(settings: Settings) -> str:
    """Return the command to use, "" when none is known."""
    chosen = str(settings.get("editor/command"))
    if chosen:
        return chosen
    return next((command for program, command in KNOWN if shutil.which(program)), "")


class Editor:
    """The services ``open_source(file, line)`` and ``has_source(document, file)``.

    A path comes from a trace and is not trusted: it has to be an existing text file, and the user is asked once per
    folder before anything is opened.
    """

    def __init__(self, session: Session, settings: Settings, window: QWidget) -> None:
        self._session, self._settings, self._window = session, settings, window

    def has(self, document: Document, file: str) -> bool:
        """Whether a file that a trace names is at hand, so that it can be opened."""
        return self._find(file, document) is not None

    def open(self, file: str, line: int) -> None:
        """Open a place, or say why not."""
        path = self._find(file, self._session.current)
        if path is None:
            self._session.raise_error(
                TraceError(
                    translate("editor", "{file} is not on this machine.").format(file=file),
                    translate("editor", "The trace names it, line {line}.").format(line=line),
                    translate(
                        "editor",
                        "With a copy of the sources here: “Choose the folder with the sources…” on the suggestion's "
                        "card. Or open the trace where the script ran.",
                    ),
                )
            )
        elif self._allowed(path):
            self._start(path, line)
        else:
            self._ask(path, line)

    def _find(self, file: str, document: Document | None) -> Path | None:
        """Existing text file: as named, or under the trace's run folder or its own folder."""
        name = Path(file)
        if name.suffix not in TEXT_SUFFIXES:
            return None
        if document is not None and document.run is not None:
            original, copy = document.run.original_of(file), document.run.copy_of(file)
            for path in (original, copy):
                if path is not None and path.is_file():
                    return path.resolve()
        mapped = document.finder.resolve(file) if document is not None and document.finder is not None else None
        if mapped is not None:  # in a folder that the user has chosen for the sources of this trace
            return mapped
        roots = [Path()] if name.is_absolute() else []
        if document is not None and not name.is_absolute() and ".." not in name.parts:
            roots += [document.run_folder] if document.run_folder else []
            roots += [document.trace.path.parent] if document.trace.sources else []
        for root in roots:
            path = root / name
            try:
                if path.is_file():
                    return path.resolve()
            except (OSError, ValueError):
                continue
        return None

    def _allowed(self, path: Path) -> bool:
        return str(path.parent) in self._settings.get("editor/allowed_folders")

    def _ask(self, path: Path, line: int) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle(translate("editor", "Open a file?"))
        box.setTextFormat(box.textFormat().PlainText)
        words = translate("editor", "The trace names this place. Open it in your editor?\n\n{file}, line {line}")
        box.setText(words.format(file=path, line=line))
        once = box.addButton(translate("editor", "Open"), QMessageBox.ButtonRole.AcceptRole)
        always = box.addButton(translate("editor", "Open, and trust this folder"), QMessageBox.ButtonRole.YesRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(once)

        def answered() -> None:
            if box.clickedButton() is always:
                folders = self._settings.get("editor/allowed_folders")
                self._settings.set("editor/allowed_folders", [*folders, str(path.parent)])
            if box.clickedButton() in (once, always):
                self._start(path, line)
            box.deleteLater()

        box.finished.connect(lambda _result: answered())
        box.open()

    def _start(self, path: Path, line: int) -> None:
        template = find_editor(self._settings)
        if template and _started(template, path, line):
            return
        if self._settings.get("editor/command"):
            what, where = translate("editor", "The editor of the settings could not be started."), template
        elif QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))):
            return
        else:
            what, where = translate("editor", "No editor was found."), str(path)
        advice = translate("editor", "Set one under Settings, for example: code --goto {file}:{line}")
        self._session.raise_error(TraceError(what, where, advice))


def _started(template: str, path: Path, line: int) -> bool:
    try:
        program, *arguments = command_line(template, path, line)
    except ValueError:  # a quote that is never closed
        return False
    return bool(program) and QProcess.startDetached(program, arguments, os.path.dirname(path))[0]
