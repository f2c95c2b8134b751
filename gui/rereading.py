"""Traces that are open and asked for once more: whether their files are still what was read, and what stays shown."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

from core.words import visible
from gui import evidence, text, together
from gui.session import Document, Session

Stamp = tuple[tuple[str, int, int], ...]  # path, size in bytes, and time of change in ns, of each file
_seen: WeakKeyDictionary[Document, Stamp] = WeakKeyDictionary()  # what the files were when they began to be read


def stamp_of(path: Path) -> Stamp:
    """What the files of a path are now, those of several ranks one by one; nothing where none is there."""
    files = list(together.files_of(path))
    if path.is_dir():
        from core.errors import TraceError
        from core.importing.ranks import find_traces

        try:
            files = find_traces([path])
        except (TraceError, OSError):
            return ()
    return tuple(entry for file in files if (entry := _entry(file)) is not None)


def _entry(file: Path) -> tuple[str, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return str(file), found.st_size, found.st_mtime_ns


def remember(document: Document, stamp: Stamp) -> None:
    """Keep what the files of a trace were before they were read: what is written meanwhile is a change too."""
    _seen[document] = stamp


def open_from(session: Session, path: Path) -> Document | None:
    """The trace that is open from a path, or from a folder of ranks."""
    for document in session.documents:
        asked = document.property("asked")
        if document.trace.sources and (asked == str(path) if asked else document.trace.path == path):
            return document
    return None


def is_still_shown(session: Session, document: Document, path: Path) -> bool:
    """Bring an open trace to the front; False, and the status bar says so, where its file must be read anew."""
    read = tuple((str(s.path), s.size_bytes, s.mtime_ns) for s in document.trace.sources)
    seen, now = _seen.get(document, read), stamp_of(path)
    session.set_current(document)
    name = visible(path.name)
    if not now:
        words = text.translate("Opener", "{name} is no longer there. This is what was read before.")
        session.set_status(words.format(name=name))
        return True
    if sorted(seen) == sorted(now):
        return not _has_ended(document)
    words = text.translate("Opener", "{name} has changed since it was opened: it is read again.")
    session.set_status(words.format(name=name))
    return False


def _has_ended(document: Document) -> bool:
    """Whether the run that made a trace was on when it was opened and is over: its sources and times are there now."""
    if document.run is None or document.run.state != "running":
        return False
    from core.run_folder import read_run

    found = read_run(document.run.folder)
    return found is not None and found.state != "running"


def carry_over(session: Session, old: Document, new: Document) -> None:
    """Show a trace that was read again as the old one was shown: its tracks, the view below, the stretch in view.

    Marks and answers to suggestions stay with the recording that they were made on.
    """
    panel = session.ask("keep_layout", old)
    new.panel = panel or old.panel
    new.small_shown = old.small_shown
    new.timeline_state = new.timeline_state or dict(old.timeline_state)
    start_ns, end_ns = old.viewport.start_ns, old.viewport.end_ns
    typical = evidence.typical_step(old.analysis.figures) if old.analysis is not None else None
    moved = (start_ns, end_ns) not in (typical, (old.viewport.first_ns, old.viewport.last_ns))
    if moved and new.viewport.first_ns <= start_ns and end_ns <= new.viewport.last_ns:
        new.keeps_view = True
        new.zoom_to(start_ns, end_ns, remember=False)


def take_place(session: Session, old: Document, new: Document, *, front: bool) -> None:
    """Put a trace where another one stood, and close that one."""
    session.add_document(new, session.documents.index(old), front=front)
    session.close_document(old)
