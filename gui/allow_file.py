"""Dismissed suggestions as an allow file that a team commits beside its code (docs/headless.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication, QFileDialog

from core.allow import HEADER, Allowed, entry_for, entry_text, read_allow_file
from core.errors import TraceError
from core.files import check_output, write_atomically
from core.run_folder import run_of
from gui.session import DISMISSED, Document, Session

NAME = "steplens-allow.toml"
translate = QCoreApplication.translate


def meant(document: Document, known: Iterable[Allowed] = ()) -> list[Allowed]:
    """Entries for the suggestions that were dismissed and that no known entry covers."""
    entries = []
    for suggestion in document.analysis.suggestions if document.analysis else ():
        if document.suggestion_state.get(suggestion.key) == DISMISSED and not any(k.fits(suggestion) for k in known):
            reason = document.dismiss_reason.get(suggestion.key, "").strip()
            entries.append(entry_for(suggestion, reason or translate("allow", "dismissed without a reason")))
    return entries


def append(path: Path, document: Document) -> int:
    """Add what is missing to the file, which is made where there is none; returns how many entries were added.

    Raises
    ------
    TraceError
        When the file is there but is no allow file, or cannot be written: it is then left as it is.
    """
    check_output(path, (".toml",), [])
    known = read_allow_file(path) if path.exists() else []
    entries = meant(document, known)
    if entries:
        old = path.read_text("utf-8") if path.exists() else HEADER
        text = "\n".join([old.rstrip("\n") + "\n", *(entry_text(entry) for entry in entries)])
        write_atomically(path, text.encode())
    return len(entries)


def save(session: Session) -> None:
    """Ask where, and add the dismissed suggestions of the current trace."""
    document = session.current
    if document is None:
        return
    run = run_of(document.trace.path) if document.trace.sources else None
    script = str(run.spec.get("script") or "") if run is not None else ""
    folder = Path(script).parent if script else Path.home()
    name, _ = QFileDialog.getSaveFileName(
        QApplication.activeWindow(),
        translate("allow", "Save what is meant"),
        str(folder / NAME),
        translate("allow", "Allow file ({pattern})").format(pattern="*.toml"),
        options=QFileDialog.Option.DontConfirmOverwrite,  # entries are added, nothing is lost
    )
    if not name:
        return
    try:
        added = append(Path(name), document)
    except (TraceError, OSError) as error:
        session.raise_error(error)
        return
    session.set_status(
        translate("allow", "Entries added to {file}: {count}.").format(file=Path(name).name, count=added)
    )
