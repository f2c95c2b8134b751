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

from core.kernel_names import short_kernel_name, short_op_name
from core.kinds import SliceKind
from core.lod import LEVELS, fold
from core.trace import Trace
from gui.timeline.frame import Frame
from gui.timeline.labels import MIN_WIDTH_PX, NEW_PER_FRAME, PADDING_PX, LabelAtlas, draw_text
from gui.timeline.layout import LANE_PX, PAD_PX, SLICE_PX, SUMMARY_LANES, Row, RowKind
from gui.timeline.palette import fill
from gui.timeline.rects import RectBatch

_DEVICE = (SliceKind.KERNEL, SliceKind.MEMCPY, SliceKind.MEMSET)
_CACHED_ROWS = 400
PAD_SHARE = 0.4  # of the view, on each side: boxes are kept while the view stays inside
PREFETCH_SHARE = 0.15  # with less than this left they are made anew when there is time
FRESH_S = 0.004  # time a frame takes for making boxes anew, as far as kept ones can stand in
STALE_FACTOR = 4  # how far the resolution of boxes that stand in may be off

Labels = list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]  # slice ids, x, y, room


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


def _colour(code: int, dark: bool) -> QColor:
    return fill(code // (LEVELS + 1), code % (LEVELS + 1), dark)


def label_of(trace: Trace, slice_id: int) -> str:
    """Short name of a slice, as on the slice."""
    name = trace.name(slice_id)
    return short_kernel_name(name) if int(trace.slices.kind[slice_id]) in _DEVICE else short_op_name(name)


class SlicePainter:
    """Draws the lanes of rows. One instance per canvas: it keeps boxes and rendered texts between frames."""

    def __init__(self) -> None:
        self._rows: dict[str, _RowBoxes] = {}
        self._batch = RectBatch()
        self._dark: bool | None = None
        self._atlas: LabelAtlas | None = None
        self.incomplete = False  # labels or fresh boxes were left for the next frame
        self._started_s = 0.0

    def forget(self) -> None:
        """Drop what was kept: the colours' meaning or the lanes changed."""
        self._rows.clear()

    def begin_frame(self) -> None:
        """Start the time of a frame, whose rows may come in several calls of `paint`."""
        self.incomplete = False
        self._started_s = time.perf_counter()

    def paint(self, painter: QPainter, frame: Frame, rows: list[Row]) -> None:
        """Draw the slices of rows, then their labels."""
        self._begin(frame)
        labels: Labels = []
        for row in rows:
            if row.kind is RowKind.SLICES:
                self._add_row(frame, row, float(frame.row_y(row) + PAD_PX), LANE_PX, SLICE_PX, labels)
            elif row.kind is RowKind.GROUP and not row.expanded:
                self._add_summary(frame, row)
        self._batch.draw(painter, partial(_colour, dark=frame.palette.dark))
        if labels:
            ids, x, y, room = (np.concatenate([part[i] for part in labels]) for i in range(4))
            self._labels(painter, frame, ids, x, y, room)

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
            room = min(frame.start_ns - kept.start_ns, kept.end_ns - frame.end_ns)
            fresh = kept.bin_ns == bin_ns
            if fresh and room > PREFETCH_SHARE * (frame.end_ns - frame.start_ns):
                return kept
            late = time.perf_counter() - self._started_s > FRESH_S and not frame.vector
            if late and STALE_FACTOR * kept.bin_ns >= bin_ns >= kept.bin_ns / STALE_FACTOR:
                self.incomplete |= not fresh
                return kept
        pad = (frame.end_ns - frame.start_ns) * PAD_SHARE
        start, end = frame.start_ns - pad, frame.end_ns + pad
        parts = [fold(lane, frame.coarse_looks, start, end, bin_ns) for lane in lanes]
        ids = np.concatenate([p.slice_id for p in parts]) if parts else np.zeros(0, np.int32)
        level = np.concatenate([p.level for p in parts]) if parts else np.zeros(0, np.uint8)
        single = np.concatenate([np.arange(len(p)) < p.single for p in parts]) if parts else np.zeros(0, np.bool_)
        look = np.where(single, frame.looks[ids], frame.coarse_looks[ids])
        kept = _RowBoxes(
            signature,
            bin_ns,
            start,
            end,
            np.concatenate([p.start_ns for p in parts]).astype(np.float64) if parts else np.zeros(0),
            np.concatenate([p.end_ns for p in parts]).astype(np.float64) if parts else np.zeros(0),
            np.repeat(np.arange(len(parts), dtype=np.float64), [len(p) for p in parts]),
            look.astype(np.int32) * (LEVELS + 1) + level,
            ids,
            single,
        )
        if len(self._rows) > _CACHED_ROWS:
            self._rows.clear()
        self._rows[row.key] = kept
        return kept

    def _add_row(
        self,
        frame: Frame,
        row: Row,
        top: float,
        pitch: float,
        height: float,
        labels: Labels | None,
    ) -> None:
        boxes = self._boxes(frame, row)
        x0, x1 = frame.x(boxes.begin), frame.x(boxes.stop)
        seen = np.flatnonzero((x1 >= frame.left_px) & (x0 < frame.width_px))
        if not len(seen):
            return
        x0 = np.maximum(x0[seen], frame.left_px - 2.0)
        x1 = np.minimum(x1[seen], frame.width_px + 2.0)
        y = top + boxes.lane[seen] * pitch
        left = np.floor(x0)
        width = np.maximum(np.round(x1) - left, 1.0)
        width -= (width > 3.0) & boxes.single[seen]  # a hair between neighbours
        code = boxes.code[seen]
        self._batch.add(left, y, width, np.full(len(seen), float(height)), code)
        if labels is not None:
            wide = np.flatnonzero((width >= MIN_WIDTH_PX) & boxes.single[seen])
            if len(wide):
                at = np.maximum(left[wide], frame.left_px) + PADDING_PX
                room = left[wide] + width[wide] - at - 2.0
                labels.append((boxes.ids[seen][wide], at, y[wide], room))

    def _add_summary(self, frame: Frame, group: Row) -> None:
        """Outermost lanes of a collapsed group's members, a few pixels each."""
        members = [frame.layout.by_key[key] for key in group.members]
        members = [row for row in members if row.kind is RowKind.SLICES and not row.hidden][:SUMMARY_LANES]
        if not members:
            return
        height = max(2, (group.height - 8) // len(members) - 1)
        for i, row in enumerate(members):
            lanes = frame.layout.index.lanes(row.track_id)
            stand_in = Row(f"summary/{row.key}", RowKind.SLICES, "", track_id=row.track_id, lanes=len(lanes))
            self._add_row(frame, stand_in, frame.row_y(group) + 4.0 + i * (height + 1), 0.0, height, None)

    def _labels(
        self, painter: QPainter, frame: Frame, ids: NDArray[Any], x: NDArray[Any], y: NDArray[Any], room: NDArray[Any]
    ) -> None:
        if frame.vector:
            for i in range(len(ids)):
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
