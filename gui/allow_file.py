"""Dismissed suggestions as an allow file that a team commits beside its code (docs/headless.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication, QFileDialog

from core.allow import HEADER, Allowed, entry_for, entry_text, read_allow_file
from core.errors import TraceError
from core.files import check_output, clear_parts, write_atomically
from core.run_folder import run_of
from core.suggestions import Suggestion
from gui.session import SET_ASIDE, Document, Session

NAME = "steplens-allow.toml"
translate = QCoreApplication.translate


def in_one_line(reason: str) -> str:
    """A reason as it is kept: what was pasted may have several lines, the file is to be read at a glance."""
    return " ".join(reason.split())


def meant(document: Document, known: Iterable[Allowed] = ()) -> list[Allowed]:
    """Entries for the suggestions that were dismissed, or allowed elsewhere, and that no known entry covers."""
    entries = []
    for suggestion in document.analysis.suggestions if document.analysis else ():
        aside = document.suggestion_state.get(suggestion.key) in SET_ASIDE
        if aside and not any(k.fits(suggestion) for k in known):
            reason = in_one_line(document.dismiss_reason.get(suggestion.key, ""))
            entries.append(entry_for(suggestion, reason or translate("allow", "dismissed without a reason")))
    return entries


def append(path: Path, document: Document) -> int:
    """Add what was dismissed and is missing to the file; returns how many entries were added. See `add`."""
    known = _known(path)
    return _write(path, meant(document, known))


def add(path: Path, entries: list[Allowed], suggestion: Suggestion) -> int:
    """Add entries about a suggestion, unless the file, which is made where there is none, allows it already.

    Raises
    ------
    TraceError
        When the file is there but is no allow file, or cannot be written: it is then left as it is.
    """
    return 0 if any(entry.fits(suggestion) for entry in _known(path)) else _write(path, entries)


def _known(path: Path) -> list[Allowed]:
    check_output(path, (".toml",), [])
    return read_allow_file(path) if path.exists() else []


def _write(path: Path, entries: list[Allowed]) -> int:
    if entries:
        old = path.read_bytes().decode("utf-8-sig") if path.exists() else HEADER
        newline = "\r\n" if "\r\n" in old else "\n"
        clear_parts(path)
        added = [entry_text(entry).replace("\n", newline) for entry in entries]
        write_atomically(path, newline.join([old.rstrip("\r\n") + newline, *added]).encode())
    return len(entries)


def beside_script(session: Session, document: Document) -> Path | None:
    """The allow file beside the script that a run was of (there or not); None for a trace from elsewhere.

    For a changed copy it is the one beside the user's own script.
    """
    run, loop = run_of(document.trace.path) if document.trace.sources else None, session.ask("loop")
    if run is None:
        return None
    script = Path(loop.project_of(run).script if loop is not None else str(run.spec.get("script") or ""))
    return script.parent / NAME if script.is_absolute() and script.parent.is_dir() else None


def save(session: Session) -> None:
    """Ask where, and add the dismissed suggestions of the current trace."""
    document = session.current
    if document is None:
        return
    offered = beside_script(session, document) or Path.home() / NAME
    name, _ = QFileDialog.getSaveFileName(
        QApplication.activeWindow(),
        translate("allow", "Save what is meant"),
        str(offered),
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
