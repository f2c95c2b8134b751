"""Folders with the sources that traces of another machine name: only ones that the user has chosen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtWidgets import QFileDialog

from core.errors import TraceError
from core.run_folder import finder_for
from core.source_files import why_unread
from gui.parents import window_of

if TYPE_CHECKING:
    from core.trace import Trace
    from gui.session import Document, Session
    from gui.settings import Settings

translate = QCoreApplication.translate
KEY = "sources/folders"


# What keeps a file from being read (`core.source_files.why_unread`) -> what is said, and what to do.
_REFUSALS = {
    "": ("{folder} does not hold {file}.", "Choose the folder in which the script lay, or one above it."),
    "link": (
        "In {folder}, {file} is a link that leads out of it, so it is not read.",
        "Choose the folder that the link leads to.",
    ),
    "size": ("In {folder}, {file} is too large for a script, so it is not read.", "Choose the folder of the script."),
    "binary": ("In {folder}, {file} is no text, so it is not read.", "Choose the folder of the script."),
    "denied": ("In {folder}, {file} cannot be read.", "Allow yourself to read it, or choose another folder."),
}


@dataclass(frozen=True)
class Mapping:
    """Sources under ``there`` (a folder as traces name it) lie in ``here``.

    Where a trace cuts its paths short, ``there`` is empty, and only traces in the folder ``traces`` are meant.
    """

    there: str
    here: str
    traces: str

    def fits(self, trace: Trace) -> bool:
        """Whether a trace is one of those meant."""
        if not self.there:
            return bool(trace.sources) and str(trace.path.parent) == self.traces
        return any(name.replace("\\", "/").startswith(self.there + "/") for name in trace.strings.values)

    @property
    def words(self) -> str:
        """For a list."""
        there = self.there or translate("sources", "traces in {folder}").format(folder=self.traces)
        return f"{there}  →  {self.here}"


def known(settings: Settings) -> tuple[Mapping, ...]:
    """All that the user has allowed; entries that do not read as such are left out."""
    found = []
    for line in settings.get(KEY):
        try:
            there, here, traces = json.loads(line)
        except (ValueError, TypeError):
            continue
        if all(isinstance(part, str) for part in (there, here, traces)) and here:
            found.append(Mapping(there, here, traces))
    return tuple(found)


def keep(settings: Settings, mappings: tuple[Mapping, ...]) -> None:
    """Replace the list."""
    settings.set(KEY, [json.dumps([m.there, m.here, m.traces]) for m in mappings])


def roots(settings: Settings, trace: Trace) -> tuple[Path, ...]:
    """Folders in which the sources of a trace may be read."""
    return tuple(dict.fromkeys(Path(m.here) for m in known(settings) if m.fits(trace)))


def mapping_for(trace: Trace, file: str, folder: Path) -> Mapping | None:
    """How a file that a trace names lies below a folder; None where it does not."""
    found = finder_for(trace, [folder]).resolve(file)
    if found is None or not found.is_relative_to(folder.resolve()):
        return None
    parts = file.replace("\\", "/").split("/")
    below = found.relative_to(folder.resolve()).parts
    return Mapping("/".join(parts[: -len(below)]), str(folder), str(trace.path.parent))


class SourceFolders(QObject):
    """Offers ``map_sources(document, file)``: the user chooses the folder that holds a file's sources."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session)
        self._session, self._settings = session, settings
        session.provide("map_sources", self.ask)
        session.provide("renew_sources", self.renew)

    def ask(self, document: Document, file: str) -> None:
        """Let the user choose; choosing is the consent to read sources there, for this and later traces like it."""
        title = translate("sources", "Choose the folder that holds {file}").format(file=file)
        dialog = QFileDialog(window_of(self._session), title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setLabelText(QFileDialog.DialogLabel.Accept, translate("sources", "Read sources here"))
        dialog.fileSelected.connect(partial(self.use, document, file))
        dialog.open()

    def use(self, document: Document, file: str, folder: str) -> None:
        """Read the sources of a trace below this folder from now on."""
        made = mapping_for(document.trace, file, Path(folder))
        if made is None:
            words, hint = _REFUSALS[why_unread(file, Path(folder))]
            said = translate("sources", words).format(folder=folder, file=file)
            self._session.raise_error(TraceError(said, "", translate("sources", hint)))
            return
        rest = tuple(m for m in known(self._settings) if (m.there, m.traces) != (made.there, made.traces))
        keep(self._settings, (made, *rest))  # chosen last, looked into first
        self.renew()
        self._session.set_status(translate("sources", "Lines are now read from {folder}.").format(folder=folder))

    def renew(self) -> None:
        """Look the lines of all open traces up again, with the folders allowed now."""
        for document in self._session.documents:
            document.finder = finder_for(document.trace, roots(self._settings, document.trace))
            self._session.ask("diagnose", document)


def install(session: Session, settings: Settings) -> None:
    """Offer the service."""
    SourceFolders(session, settings)
