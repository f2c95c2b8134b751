"""Saving what is shown: picture, vectors, and a trimmed trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFileDialog, QProgressDialog

from core.errors import TraceError
from core.trace import Trace
from core.trim import trim
from gui import jobs, text
from gui.models import args_text
from gui.timeline.export import save_png, save_svg

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

Progress = jobs.Progress


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def _ask(view: TimelineView, title: str, suffix: str, kinds: str) -> Path | None:
    stem = view.document.title.split(".")[0].replace("/", "-").replace("\\", "-").strip() or "trace"  # a name, no path
    name, _ = QFileDialog.getSaveFileName(view, title, f"{stem}-{suffix}", kinds)
    return Path(name) if name else None


def picture(view: TimelineView, vectors: bool) -> None:
    """Ask where, and write the timeline as it is shown, as PNG or SVG."""
    if vectors:
        path = _ask(view, _tr("Save the timeline as vectors"), "timeline.svg", _tr("SVG files (*.svg)"))
    else:
        path = _ask(view, _tr("Save a picture of the timeline"), "timeline.png", _tr("PNG files (*.png)"))
    if path is None:
        return
    try:
        (save_svg if vectors else save_png)(view, path)
    except FileExistsError:
        error = TraceError(_tr("{name} exists already.").format(name=path.name), hint=_tr("Choose another name."))
        view.session.raise_error(error)
    except OSError as failure:
        view.session.raise_error(failure)
    else:
        view.session.set_status(_tr("Saved {name}").format(name=path.name))


def trimmed_trace(view: TimelineView) -> None:
    """Ask where, and write the selected time (else the time in view) of the selected rows, else of those not hidden."""
    path = _ask(view, _tr("Save a part of the trace"), "part.json.gz", _tr("Traces (*.json.gz *.json)"))
    if path is None:
        return
    chosen, port = view.document.selected_range, view.document.viewport
    start, end = (chosen.start_ns, chosen.end_ns) if chosen else (round(port.start_ns), round(port.end_ns))
    hidden = {row.track_id for row in view.rows.rows if row.hidden}
    tracks = [t for t in range(len(view.document.trace.tracks)) if t not in hidden] if hidden - {-1} else None
    if chosen and chosen.tracks:
        tracks = list(chosen.tracks)
    dialog = QProgressDialog(_tr("Writing {name}").format(name=path.name), _tr("Cancel"), 0, 100, view)
    dialog.setWindowModality(Qt.WindowModality.NonModal)
    dialog.setMinimumDuration(400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    job = jobs.run(
        view,
        partial(_trim, view.document.trace, path, start, end, tracks),
        partial(_saved, view, dialog, path),
        partial(_failed, view, dialog),
        on_progress=lambda fraction, _: dialog.setValue(round(fraction * 100)),
    )
    dialog.canceled.connect(job.cancel)


def _trim(trace: Trace, path: Path, start_ns: int, end_ns: int, tracks: list[int] | None, progress: Progress) -> int:
    return trim(trace, path, start_ns, end_ns, tracks=tracks, progress=progress)


def _saved(view: TimelineView, dialog: QProgressDialog, path: Path, count: Any) -> None:
    dialog.canceled.disconnect()
    dialog.close()
    view.session.set_status(text.counted(_tr("Saved {count} {count|slice|slices} to {name}"), count, name=path.name))


def _failed(view: TimelineView, dialog: QProgressDialog, error: BaseException) -> None:
    dialog.canceled.disconnect()
    dialog.close()
    view.session.raise_error(error)


def arguments_text(trace: Trace, slice_id: int, progress: Any) -> list[str]:
    """Arguments of a slice as lines (in a worker thread); none where the file cannot be read any more."""
    try:
        return [f"{name}: {value}" for name, value in args_text.lines(trace.args(slice_id))]
    except TraceError:
        return []
