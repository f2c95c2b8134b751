"""The user's own rules: Python files in a folder beside the settings, run only after the user has allowed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtWidgets import QMessageBox

from gui.parents import window_of

if TYPE_CHECKING:
    from gui.session import Session
    from gui.settings import Settings

translate = QCoreApplication.translate
FOLDER = "rules"
MOST_NAMES = 8  # file names that the question lists


def folder_of(settings: Settings) -> Path | None:
    """Return the folder for own rules (it may not exist); None where nothing is kept in files."""
    return settings.folder / FOLDER if settings.folder is not None else None


def files_of(settings: Settings) -> tuple[Path, ...]:
    """Rule files there; names with an underscore in front are helpers, not rules."""
    folder = folder_of(settings)
    try:
        return tuple(sorted(p for p in folder.glob("*.py") if not p.name.startswith("_"))) if folder else ()
    except OSError:
        return ()


def allowed(settings: Settings) -> tuple[Path, ...]:
    """Folders whose rules may be run: ours once the user has said so, else none."""
    folder = folder_of(settings)
    return (folder,) if folder is not None and str(folder) in settings.get("rules/allowed") else ()


def decide(settings: Settings, *, allow: bool) -> None:
    """Keep the user's answer; either can be changed in the settings."""
    folder = str(folder_of(settings))
    for key, wanted in (("rules/allowed", allow), ("rules/refused", not allow)):
        rest = [other for other in settings.get(key) if other != folder]
        settings.set(key, [*rest, folder] if wanted else rest)


class OwnRules(QObject):
    """Asks once, when a trace is first opened and there are rules that nobody has decided on."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session)
        self._session, self._settings = session, settings
        self._asked = False
        session.documentsChanged.connect(self._opened)

    def _opened(self) -> None:
        folder = folder_of(self._settings)
        if self._asked or not self._session.documents or folder is None:
            return
        self._asked = True
        known = str(folder) in [*self._settings.get("rules/allowed"), *self._settings.get("rules/refused")]
        if not known and files_of(self._settings):
            self.ask(folder)

    def ask(self, folder: Path) -> None:
        """Ask whether these files may be run."""
        box = QMessageBox(window_of(self._session))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle(translate("rules", "Run your own rules?"))
        box.setTextFormat(Qt.TextFormat.PlainText)
        names = [path.name for path in files_of(self._settings)]
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        box.setText(translate("rules", "Run the rules in {folder}?").format(folder=folder))
        words = translate(
            "rules",
            "{names}\n\nRules are Python programs. They run with your rights each time a trace is diagnosed, so allow "
            "only files that you know. You can change your answer in the settings.",
        )
        box.setInformativeText(words.format(names=shown))
        run = box.addButton(translate("rules", "Run these rules"), QMessageBox.ButtonRole.AcceptRole)
        skip = box.addButton(translate("rules", "Do not run them"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(skip)
        box.setEscapeButton(skip)

        def answered() -> None:
            decide(self._settings, allow=box.clickedButton() is run)
            if box.clickedButton() is run:
                diagnose_all(self._session)

        box.finished.connect(lambda _result: answered())
        box.open()


def diagnose_all(session: Session) -> None:
    """Diagnose every open trace again, with what is allowed now."""
    for document in session.documents:
        session.ask("diagnose", document)


def install(session: Session, settings: Settings) -> None:
    """Watch for the first trace."""
    OwnRules(session, settings)
