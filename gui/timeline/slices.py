"""Slices of lanes -> rectangles and labels, at a cost that follows the pixels."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from core.kernel_names import short_op_name
from core.kinds import TrackKind
from core.lod import LEVELS, fold_lanes
from core.trace import Trace
from gui.models.slice_facts import brief_name
from gui.timeline.frame import Frame
from gui.timeline.labels import MIN_WIDTH_PX, NEW_PER_FRAME, PADDING_PX, LabelAtlas, draw_text, slice_font
from gui.timeline.palette import fill
from gui.timeline.rects import RectBatch
from gui.timeline.row import SLICE_PX, SUMMARY_LANES, Row, RowKind
from gui.timeline.waits import HATCH_FROM_PX, LABEL_FROM_PX, waits_in

_CACHED_ROWS = 400
PAD_REST, PAD_MOST = 0.2, 2.0  # shares of the view by which boxes reach beyond it, at least and at most
AHEAD_PAN, AHEAD_ZOOM = 10, 4  # frames of the present motion for which boxes are made; a zoom soon wants other bins
FRESH_S = 0.0010  # time after which a frame makes no more boxes anew, as far as kept ones can stand in
FRESH_AT_LEAST = 3  # rows that a frame makes anew in any case, so that a slow machine gets there, too
LOWEST_PX = 5.0  # of folded slices on a device, however little they cover
STALE_FACTOR = 4  # how far the resolution of boxes that stand in may be off

Labels = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # slice ids, x, y, room


@dataclass(eq=False)
class _RowBoxes:
    """Boxes of all lanes that a row draws, kept while the view moves inside their window."""

    signature: tuple[int, ...]
    bin_ns: int
    start_ns: float
    end_ns: float
    begin: NDArray[np.float64]
    stop: NDArray[np.float64]
    lane: NDArray[np.float64]
    code: NDArray[np.int32]  # look * (LEVELS + 1) + level
    ids: NDArray[np.int32]
    single: NDArray[np.bool_]


@dataclass(eq=False)
class _Part:
    """Boxes of one row and where its lanes go, px."""

    boxes: _RowBoxes
    top: float
    pitch: int
    height: int
    labelled: bool
    by_density: bool = False  # folded slices stand as high as they cover their time


def _colour(code: int, dark: bool) -> QColor:
    return fill(code // (LEVELS + 1), code % (LEVELS + 1), dark)


def label_of(trace: Trace, slice_id: int) -> str:
    """Short name of a slice, as on the slice."""
    return short_op_name(brief_name(trace, slice_id))


def beside_waits(
    frame: Frame, ids: NDArray[Any], x: NDArray[Any], room: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels of blocked calls keep off the stripes over them: x and room, px, of the larger part that is free.

    A wait that has a label of its own speaks for its call, which then has none.
    """
    if frame.figures is None:
        return x, room
    calls, waits = waits_in(frame.figures, ids)
    start, length = frame.figures.syncs.wait_start_ns[waits], frame.figures.syncs.wait_ns[waits]
    first = np.maximum(frame.x(start), frame.left_px - 2.0)
    last = np.minimum(frame.x(start + length), frame.width_px + 2.0)
    striped = np.flatnonzero(last - first >= HATCH_FROM_PX)
    calls, first, last = calls[striped], first[striped], last[striped]
    before, after = first - x[calls] - 2.0, x[calls] + room[calls] - last - PADDING_PX
    later = after > before
    x[calls] = np.where(later, last + PADDING_PX, x[calls])
    room[calls] = np.where(last - first >= LABEL_FROM_PX, 0.0, np.maximum(before, after))
    return x, room


class SlicePainter:
    """Draws the lanes of rows. One instance per canvas: it keeps boxes and rendered texts between frames."""

    def __init__(self) -> None:
        self._rows: dict[str, _RowBoxes] = {}
        self._batch = RectBatch()
        self._dark: bool | None = None
        self._atlas: LabelAtlas | None = None
        self.incomplete = False  # labels or fresh boxes were left for the next frame
        self._started_s = 0.0
        self._made = 0  # rows whose boxes were made in this frame
        self._window = (0.0, 0.0)  # of the last frame, ns
        self._ahead: tuple[float, float] = (0.0, 0.0)  # by how much the view grew or moved to either side, ns
        self._pad: tuple[float, ...] = (0.0, 0.0)  # by how much boxes reach beyond the view, ns

    def forget(self) -> None:
        """Drop what was kept: the colours' meaning or the lanes changed."""
        self._rows.clear()

    def begin_frame(self, frame: Frame) -> None:
        """Start the time of a frame, whose rows may come in several calls of `paint`."""
        self.incomplete = False
        (before, after), start, end = self._window, frame.start_ns, frame.end_ns
        self._window, width = (start, end), end - start
        self._ahead = (max(before - start, 0.0), max(end - after, 0.0))
        if min(end, after) <= max(start, before):
            self._ahead = (0.0, 0.0)  # a leap to another place is no motion
        pan = abs((after - before) - width) < 1e-6 * width
        frames = AHEAD_PAN if pan else AHEAD_ZOOM
        self._pad = tuple(min(PAD_REST * width + frames * ns, PAD_MOST * width) for ns in self._ahead)
        self._started_s, self._made = time.perf_counter(), 0

    def warm(self, frame: Frame, rows: list[Row]) -> None:
        """Make the boxes of rows ahead of the frame that draws them, and what texts need."""
        self.begin_frame(frame)
        self._begin(frame)
        for row in rows:
            if row.kind is RowKind.SLICES:
                self._boxes(frame, row)

    def paint(self, painter: QPainter, frame: Frame, rows: list[Row]) -> None:
        """Draw the slices of rows, then their labels."""
        self._begin(frame)
        parts: list[_Part] = []
        for row in rows:
            if row.kind is RowKind.SLICES:
                top = float(frame.row_y(row) + frame.pad_px)
                device = row.track_kind == TrackKind.DEVICE_STREAM
                parts.append(_Part(self._boxes(frame, row), top, frame.lane_px, frame.slice_px, True, device))
            elif row.kind is RowKind.GROUP and not row.expanded:
                parts += self._summary(frame, row)
        parts = [part for part in parts if len(part.boxes.ids)]
        if not parts:
            return
        labels = self._collect(frame, parts)
        self._batch.draw(painter, partial(_colour, dark=frame.palette.dark))
        if len(labels[0]):
            self._labels(painter, frame, *labels)

    def _begin(self, frame: Frame) -> None:
        if self._dark != frame.palette.dark:
            self._dark = frame.palette.dark
            self._atlas = None
        if self._atlas is None or self._atlas.dpr != frame.dpr or len(self._atlas.lookup) <= len(frame.trace.strings):
            self._atlas = LabelAtlas(len(frame.trace.strings), frame.palette.label, frame.dpr)

    def _boxes(self, frame: Frame, row: Row) -> _RowBoxes:
        """Boxes of a row: the kept ones, or fresh ones.

        Kept ones of a neighbouring resolution stand in while a frame's time for fresh ones is used up, so that no
        frame pays for all rows at once; the next frames catch up.
        """
        lanes = frame.layout.lanes_of(row)
        bin_ns = frame.bin_ns
        signature = (len(lanes), row.first_lane, int(row.expanded))
        kept = self._rows.get(row.key)
        if kept and kept.signature == signature and kept.start_ns <= frame.start_ns and frame.end_ns <= kept.end_ns:
            fresh = kept.bin_ns == bin_ns
            room = (frame.start_ns - kept.start_ns, kept.end_ns - frame.end_ns)
            if fresh and room[0] >= self._ahead[0] and room[1] >= self._ahead[1]:  # the next frame has its boxes too
                return kept
            late = self._made >= FRESH_AT_LEAST and time.perf_counter() - self._started_s > FRESH_S and not frame.vector
            if late and STALE_FACTOR * kept.bin_ns >= bin_ns >= kept.bin_ns / STALE_FACTOR:
                self.incomplete |= not fresh
                return kept
        self._made += 1
        turn = 0.8 + 0.4 * (row.track_id * 0.618 % 1.0)  # rows run out one after the other, not all in one frame
        start, end = frame.start_ns - self._pad[0] * turn, frame.end_ns + self._pad[1] * turn
        made, lane = fold_lanes(lanes, frame.coarse_looks, start, end, bin_ns)
        ids, single = made.slice_id, np.arange(len(made)) < made.single
        look = np.where(single, frame.looks[ids], frame.coarse_looks[ids])
        kept = _RowBoxes(
            signature,
            bin_ns,
            start,
            end,
            made.start_ns.astype(np.float64),
            made.end_ns.astype(np.float64),
            lane.astype(np.float64),
            look.astype(np.int32) * (LEVELS + 1) + made.level,
            ids,
            single,
        )
        if len(self._rows) > _CACHED_ROWS:
            self._rows.clear()
        self._rows[row.key] = kept
        return kept

    def _collect(self, frame: Frame, parts: list[_Part]) -> Labels:
        """Put the boxes of all rows into the batch, at once; returns the labels that have room."""
        counts = [len(part.boxes.ids) for part in parts]
        begin, stop, lane, code, ids, single = (
            np.concatenate([getattr(part.boxes, name) for part in parts])
            for name in ("begin", "stop", "lane", "code", "ids", "single")
        )
        x0, x1 = frame.x(begin), frame.x(stop)
        seen = np.flatnonzero((x1 >= frame.left_px) & (x0 < frame.width_px))
        of = np.repeat(np.arange(len(parts)), counts)[seen]
        places = np.array([(p.top, p.pitch, p.height, p.labelled, p.by_density) for p in parts], np.float64)
        x0 = np.maximum(x0[seen], frame.left_px - 2.0)
        x1 = np.minimum(x1[seen], frame.width_px + 2.0)
        y = places[of, 0] + lane[seen] * places[of, 1]
        left, alone = np.floor(x0), single[seen]
        width = np.maximum(np.round(x1) - left, 1.0)
        width -= (width > 3.0) & alone  # a hair between neighbours
        full, low = places[of, 2], (places[of, 4] > 0) & ~alone
        height = np.where(low, np.maximum(np.round(full * (code[seen] % (LEVELS + 1)) / LEVELS), LOWEST_PX), full)
        self._batch.add(left, y + full - height, width, height, code[seen])
        wide = np.flatnonzero((width >= MIN_WIDTH_PX) & alone & (places[of, 3] > 0))
        at = np.maximum(left[wide], frame.left_px) + PADDING_PX
        middle = y[wide] + (frame.slice_px - SLICE_PX) // 2
        room = left[wide] + width[wide] - at - 2.0
        at, room = beside_waits(frame, ids[seen][wide], at, room)
        return ids[seen][wide], at, middle, room

    def _summary(self, frame: Frame, group: Row) -> list[_Part]:
        """Outermost lanes of a collapsed group's members, a few pixels each."""
        members = [frame.layout.by_key[key] for key in group.members]
        members = [row for row in members if row.kind is RowKind.SLICES and not row.hidden][:SUMMARY_LANES]
        height = max(2, (group.height - 8) // max(len(members), 1) - 1)
        parts = []
        for i, row in enumerate(members):
            lanes = frame.layout.index.lanes(row.track_id)
            stand_in = Row(f"summary/{row.key}", RowKind.SLICES, "", track_id=row.track_id, lanes=len(lanes))
            parts.append(
                _Part(self._boxes(frame, stand_in), frame.row_y(group) + 4.0 + i * (height + 1), 0, height, False)
            )
        return parts

    def _labels(
        self, painter: QPainter, frame: Frame, ids: NDArray[Any], x: NDArray[Any], y: NDArray[Any], room: NDArray[Any]
    ) -> None:
        if frame.vector:
            painter.setFont(slice_font())
            for i in np.flatnonzero(room > 0).tolist():
                rect = QRectF(x[i], y[i], room[i], SLICE_PX)
                draw_text(painter, rect, label_of(frame.trace, int(ids[i])), frame.palette.label)
            return
        assert self._atlas is not None
        names = frame.trace.slices.name_id[ids]
        missing = self._atlas.lookup[names] < 0
        if missing.any():
            order = np.argsort(-room[missing], kind="stable")
            wanted = dict(zip(names[missing][order].tolist(), ids[missing][order].tolist(), strict=True))
            chosen = list(wanted)[:NEW_PER_FRAME]
            self._atlas.ensure({name: label_of(frame.trace, wanted[name]) for name in chosen})
        rows = self._atlas.lookup[names]
        ready = rows >= 0
        self.incomplete |= not bool(ready.all())
        self._atlas.draw(painter, rows[ready], x[ready], y[ready], room[ready])
