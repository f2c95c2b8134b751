"""What the user did to a trace, kept in the user's data folder and never beside the user's file."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QSaveFile, QStandardPaths

from core.trace import Trace
from gui.session import CHOSEN, DONE, LATER, SET_ASIDE, Document, Mark

log = logging.getLogger(__name__)
VERSION = 1
_known: WeakKeyDictionary[Document, dict[str, Any]] = WeakKeyDictionary()  # as each was when read or written last


def folder() -> Path:
    """Folder of the app in the user's data folder."""
    base = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
    return Path(base) / "steplens" / "traces"


def file_of(trace: Trace) -> Path:
    """File for a trace: known again by name, size and time of change, wherever the trace was moved to."""
    key = "|".join(f"{s.path.name}:{s.size_bytes}:{s.mtime_ns}" for s in trace.sources)
    return folder() / (hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24] + ".json")


def save(document: Document) -> None:
    """Write suggestion states and marks, all or nothing; a full disk costs the marks, not the app.

    What another window has written of the same trace since this one read or wrote it is kept, where this window has not
    changed the same.
    """
    if not document.kept or not document.trace.sources:
        return
    path = file_of(document.trace)
    state = _state_of(document)
    there, base = _read(path), _known.get(document, {})
    for name in ("suggestions", "reasons"):
        state[name] = _merged(state[name], _texts(there.get(name)), base.get(name, {}))
    own = (*base.get("marks", ()), *state["marks"])
    marks = there.get("marks")
    state["marks"] += [mark for mark in marks if mark not in own] if isinstance(marks, list) else []
    if not (document.suggestion_state or document.marks or document.timeline_state) and not path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.info("cannot keep the state of the view: %s", error)
        return
    out = QSaveFile(str(path))
    if out.open(QSaveFile.OpenModeFlag.WriteOnly):
        out.write(json.dumps(state).encode())
        if not out.commit():
            log.info("cannot keep the state of the view: %s", out.errorString())
            return
        _known[document] = _state_of(document)


def _state_of(document: Document) -> dict[str, Any]:
    return {
        "format": "steplens.view",
        "version": VERSION,
        "suggestions": dict(document.suggestion_state),
        "reasons": dict(document.dismiss_reason),
        "timeline": document.timeline_state,
        "marks": [[m.start_ns, m.end_ns, m.text] for m in document.marks],
    }


def _merged(mine: dict[str, str], there: dict[str, str], base: dict[str, str]) -> dict[str, str]:
    """Texts by key: of this window where it changed them, else of the file, which another window may have written."""
    keys = {*mine, *there, *base}
    chosen = {k: (mine if mine.get(k) != base.get(k) else there).get(k) for k in keys}
    return {k: text for k, text in chosen.items() if text is not None}


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it cannot be read or is of another version."""
    try:
        state: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) and state.get("version") == VERSION else {}


def restore(document: Document) -> None:
    """Read back what `save` wrote; anything that does not fit is left out."""
    if not document.trace.sources:
        return
    state = _read(file_of(document.trace))
    if not state:
        return
    document.suggestion_state = _texts(state.get("suggestions"), (DONE, LATER, CHOSEN, *SET_ASIDE))
    document.dismiss_reason = _texts(state.get("reasons"))
    timeline = state.get("timeline")
    document.timeline_state = timeline if isinstance(timeline, dict) else {}
    marks = state.get("marks")
    for mark in marks if isinstance(marks, list) else ():
        if (
            isinstance(mark, list)
            and [type(v) for v in mark] == [int, int, str]
            and abs(mark[0]) + abs(mark[1]) < 1 << 62
        ):
            document.marks.append(Mark(*mark))
    _known[document] = _state_of(document)


def _texts(value: Any, allowed: tuple[str, ...] = ()) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, str) and (not allowed or v in allowed)}
