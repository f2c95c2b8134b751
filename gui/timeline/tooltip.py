"""What the pointer is over, in a few plain lines of bounded length."""

from __future__ import annotations

import re

import numpy as np
from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from core.figures.model import Figures
from core.kinds import DEVICE_WORK, SliceKind, TrackKind
from core.lanes import Lane
from core.lod import bin_width_ns
from core.tables import FLAG_UNFINISHED
from core.trace import Trace
from gui import text
from gui.models import slice_facts
from gui.timeline import navigation
from gui.timeline.frame import Frame
from gui.timeline.header import header_font
from gui.timeline.row import Row, RowKind
from gui.timeline.waits import gap_lane, sync_lane

LINE_PX = 17
NEAR_PX = 6  # to both sides of the pointer
NAME_CHARACTERS = 160
LINE_CHARACTERS = 64


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def tip_lines(trace: Trace, figures: Figures | None, slice_id: int) -> list[str]:
    """`slice_lines` for the tooltip: what stands on the slice, and the name in as many lines as it needs."""
    name, *lines = slice_lines(trace, figures, slice_id)
    brief = slice_facts.brief_name(trace, slice_id)
    first = [text.elided(brief, LINE_CHARACTERS)] if brief != trace.name(slice_id) else []
    return [*first, *_wrapped(name), *lines]


def slice_lines(trace: Trace, figures: Figures | None, slice_id: int) -> list[str]:
    """Name, cut where it is very long; times, and what the slice waits for or was launched by."""
    slices, links = trace.slices, trace.links
    lines = [text.elided(trace.name(slice_id), NAME_CHARACTERS)]
    kind, dur = int(slices.kind[slice_id]), int(slices.dur_ns[slice_id])
    own = slice_facts.self_ns(trace, slice_id) if slices.subtree_end[slice_id] - slice_id < 50_000 else dur
    words = text.kind_name(kind) + " · " + text.duration(dur)
    if own != dur:
        words += " · " + _tr("self {time}").format(time=text.duration(own))
    lines.append(words)
    if slices.flags[slice_id] & FLAG_UNFINISHED:
        lines.append(_tr("never ended in the trace"))
    sync = navigation.sync_of_slice(figures, slice_id)
    if figures is not None and sync >= 0:
        wait = int(figures.syncs.wait_ns[sync])
        lines.append(_tr("the CPU waits {time} of it for the device").format(time=text.duration(wait)))
        waited = int(figures.syncs.waited_id[sync])
        if waited >= 0:
            lines.append(
                _tr("until the end of {name}").format(name=text.elided(slice_facts.brief_name(trace, waited), 48))
            )
    if kind in DEVICE_WORK:
        launch = int(links.launch_of[slice_id])
        if launch >= 0:
            delay = int(slices.start_ns[slice_id] - slices.start_ns[launch])
            lines.append(_tr("started {time} after its launch").format(time=text.duration(delay)))
        op = int(links.op_of[slice_id])
        if op >= 0:
            lines.append(_tr("for {name}").format(name=text.elided(trace.name(op), 56)))
        if slices.copy_bytes[slice_id] > 0:
            size = int(slices.copy_bytes[slice_id])
            lines.append(text.size(size) + (" · " + text.rate(size, dur) if dur > 0 else ""))
    elif kind not in (SliceKind.PYTHON, SliceKind.RANGE, SliceKind.STEP):
        work = links.device_work_of(slice_id, int(slices.subtree_end[slice_id]))
        if len(work):
            total = int(slices.dur_ns[work].sum())
            words = _tr("device work launched: {count}, {time}")
            lines.append(words.format(count=text.count(len(work)), time=text.duration(total)))
    return lines


def run_lines(frame: Frame, lane: Lane, slice_id: int, time_ns: float) -> list[str]:
    """Of a slice that is drawn as part of a run, with its strength for what the run covers: how much that is."""
    if frame.trace.slices.dur_ns[slice_id] >= bin_width_ns(frame.ns_per_px):
        return []
    start, end = time_ns - NEAR_PX * frame.ns_per_px, time_ns + NEAR_PX * frame.ns_per_px
    low, high = lane.window(start, end)
    if high - low < 2:
        return []
    inside = np.minimum(lane.ends(np.arange(low, high)), end) - np.maximum(lane.start_ns[low:high], start)
    words = _tr("{count} slices in {time} here, and gaps: they cover {share} of it")
    share = text.percent(100 * float(inside.sum()) / (end - start))
    return [words.format(count=text.count(high - low), time=text.duration(end - start), share=share)]


def row_lines(frame: Frame, row: Row, time_ns: float) -> list[str]:
    """Tooltip of a place without a slice: an idle stretch of a device, or a wait on the sync lane."""
    figures = frame.figures
    if figures is None:
        return []
    if row.kind is RowKind.SYNCS and len(figures.syncs):
        lane, _ = sync_lane(figures)
        sync = lane.at(time_ns, frame.ns_per_px * 4)
        return tip_lines(frame.trace, figures, int(figures.syncs.slice_id[sync])) if sync >= 0 else []
    if row.track_kind == TrackKind.DEVICE_STREAM and len(figures.gaps):
        gap = gap_lane(figures, row.device).at(time_ns)
        if gap >= 0:
            length = int(figures.gaps.end_ns[gap] - figures.gaps.start_ns[gap])
            lines = [_tr("device idle for {time}").format(time=text.duration(length))]
            lines.append(text.gap_cause(int(figures.gaps.cause[gap])))
            blame = int(figures.gaps.blame_id[gap])
            if blame >= 0:
                lines.append(text.elided(frame.trace.name(blame), LINE_CHARACTERS))
            return lines
    return []


def header_lines(frame: Frame, row: Row) -> list[str]:
    """Whole name of a row, which the column may have cut, and how much it holds."""
    lines = _wrapped(text.elided(row.title, NAME_CHARACTERS))
    if row.subtitle:
        lines.append(text.elided(row.subtitle, LINE_CHARACTERS))
    if row.track_id >= 0:
        tracks, threads = frame.trace.tracks, frame.trace.threads
        thread = int(tracks.thread_id[row.track_id])
        if thread >= 0 and threads.tid[thread] not in f"{row.title} {row.subtitle}":
            lines.append(_tr("thread {tid}").format(tid=threads.tid[thread]))
        count = int(tracks.end_id[row.track_id] - tracks.first_id[row.track_id])
        lines.append(text.counted(_tr("{count} {count|slice|slices}"), count))
    if row.kind is RowKind.SLICES and row.lanes > row.shown_lanes and row.expanded:
        words = _tr("{shown} of {lanes} lanes; the wheel scrolls them, dragging the lower border shows more")
        lines.append(words.format(shown=row.shown_lanes, lanes=row.lanes))
    left_out = frame.layout.left_out_above(row)
    if left_out:
        words = _tr("{count} {count|row|rows} above left out for want of room; right click shows hidden rows")
        lines.append(text.counted(words, left_out))
    return lines if len(lines) > 1 or len(row.title) > 16 else []


_BORDER = re.compile(r"(?<=[\s,:;<>()\[\]{}/_.])(?=\w)|(?<=\w)(?=[<(\[{])")  # places where a name may be broken


def _wrapped(line: str) -> list[str]:
    """Lines of at most `LINE_CHARACTERS`, broken between words where there are any in the second half of a line."""
    lines = []
    while len(line) > LINE_CHARACTERS:
        ends = [m.start() for m in _BORDER.finditer(line, LINE_CHARACTERS // 2, LINE_CHARACTERS + 1) if m.start()]
        end = ends[-1] if ends and ends[-1] <= LINE_CHARACTERS else LINE_CHARACTERS
        lines.append(line[:end].rstrip())
        line = line[end:]
    return [*lines, line]


def paint_tooltip(painter: QPainter, frame: Frame, at: QPointF, lines: list[str]) -> None:
    """Draw the lines beside the pointer, inside the canvas."""
    if not lines:
        return
    bold, plain = header_font(bold=True), header_font(small=True)
    widths = [QFontMetricsF(bold if i == 0 else plain).horizontalAdvance(line) for i, line in enumerate(lines)]
    width, height = max(widths) + 20, len(lines) * LINE_PX + 10
    x = at.x() + 14 if at.x() + 14 + width < frame.width_px else max(at.x() - 14 - width, frame.left_px + 4.0)
    y = at.y() + 18 if at.y() + 18 + height < frame.height_px else max(at.y() - 10 - height, 2.0)
    ground = QColor(frame.palette.window)
    ground.setAlpha(244)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setBrush(ground)
    painter.setPen(QPen(frame.palette.line, 1))
    painter.drawRoundedRect(QRectF(x + 0.5, y + 0.5, width, height), 5, 5)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for i, line in enumerate(lines):
        painter.setFont(bold if i == 0 else plain)
        painter.setPen(frame.palette.text if i == 0 else frame.palette.muted)
        rect = QRectF(x + 10, y + 5 + i * LINE_PX, width - 16, LINE_PX)
        painter.drawText(rect, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), line)
