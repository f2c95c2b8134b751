"""The rows: header column and lanes, painted by hand; what does not change between frames is kept as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from core.lanes import Lane
from gui import text
from gui.painting import guarded
from gui.ranks import ranks_of
from gui.session import Document, Session
from gui.timeline import overlays, rank_strips
from gui.timeline.counters import paint_counter, subtitle
from gui.timeline.frame import Frame, header_px
from gui.timeline.header import header_font, paint_grounds, paint_note, stuck
from gui.timeline.headers import HeaderColumn
from gui.timeline.labels import draw_text
from gui.timeline.layout import Layout
from gui.timeline.notes import notes_of
from gui.timeline.palette import coarse, looks, palette
from gui.timeline.prepared import Prepared
from gui.timeline.rects import draw_rects
from gui.timeline.row import Row, RowKind
from gui.timeline.scaled import Scaled
from gui.timeline.slices import SlicePainter
from gui.timeline.still import Still
from gui.timeline.tooltip import header_lines, paint_tooltip, row_lines, run_lines, tip_lines
from gui.timeline.waits import sync_lane

MIN_HEIGHT_PX = 120
CATCH_UP_MS = 14
STEP_NAME_PX = 45  # room that the name of a step wants


class Canvas(Scaled):
    """Paints rows and overlays. Input comes from `gui.timeline.gestures`, moves from the view."""

    scrolled = Signal(int)  # new scroll position or range, px
    fitted = Signal(int)  # the rows suit another height; how far they were scrolled before, px

    def __init__(
        self,
        session: Session,
        document: Document,
        layout: Layout,
        prepared: Prepared,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.session, self.document, self.rows = session, document, layout
        self.index, self.counters = prepared.index, prepared.counters
        self.by_name = False
        self.show_legend = False
        self.all_flows = False
        self.scroll_px = 0
        self.hovered = -1
        self.pointer: QPointF | None = None
        self.drop_y = -1  # where a dragged row would go
        self._told: tuple[tuple[int, int], list[str]] = ((-1, 0), [])  # tooltip of the slice hovered last
        self.quiet = False  # no tooltip while something is dragged
        self._passed = False  # the view moved under a resting pointer: no tooltip until the pointer moves
        self._by_kind = self._looks = prepared.looks
        self._coarse = prepared.coarse_looks
        self._alike = np.zeros(len(document.trace.slices), np.uint8)
        self._painter = SlicePainter()
        self._still = Still()
        self._headers = HeaderColumn()
        self._catch_up = QTimer(self)  # what a frame left over comes with the next one, after waiting input
        self._catch_up.setSingleShot(True)
        self._catch_up.setInterval(CATCH_UP_MS)
        self._catch_up.timeout.connect(self.update)
        self.setMouseTracking(True)
        self.follow_text_size(session)
        self.setMinimumHeight(MIN_HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Timeline"))
        for signal in (
            document.viewChanged,
            document.selectionChanged,
            document.highlightChanged,
            document.searchChanged,
            document.marksChanged,
            document.layoutChanged,
            document.suggestionChanged,
            document.analysisChanged,
            session.themeChanged,
        ):
            signal.connect(self.update)
        document.viewChanged.connect(self.hush)

    def sizeHint(self) -> QSize:
        return QSize(900, 420)

    # State ---------------------------------------------------------------------------------------------------

    def set_by_name(self, by_name: bool) -> None:
        """Colour slices by name, or by kind."""
        self.by_name = by_name
        self._looks = looks(self.document.trace, True) if by_name else self._by_kind
        self._coarse = coarse(self._looks)
        self._painter.forget()
        self._still.forget()
        self.update()

    def frame(self, width_px: int | None = None, height_px: int | None = None) -> Frame:
        """Paint context of the present state."""
        view, analysis = self.document.viewport, self.document.analysis
        return Frame(
            document=self.document,
            trace=self.document.trace,
            figures=analysis.figures if analysis else None,
            index=self.index,
            layout=self.rows,
            palette=palette(self.session.dark),
            looks=self._looks,
            coarse_looks=self._coarse,
            no_looks=self._alike,
            start_ns=view.start_ns,
            end_ns=view.end_ns,
            width_px=width_px or self.wide(),
            left_px=header_px(width_px or self.wide(), self.headings.chosen_px),
            height_px=height_px or self.high(),
            scroll_px=self.scroll_px,
            dpr=self.ratio(),
            show_legend=self.show_legend,
            all_flows=self.all_flows,
            hovered=self.hovered,
            hover_x=round(self.pointer.x()) if self.pointer is not None else -1,
        )

    @property
    def incomplete(self) -> bool:
        """Some labels were left for the next frame."""
        return self._painter.incomplete

    def max_scroll_px(self) -> int:
        """How far the rows can be scrolled."""
        return max(0, self.rows.pinned_px + self.rows.scrolled_px - self.high())

    def set_scroll(self, value_px: int) -> None:
        """Scroll the rows."""
        value = min(max(value_px, 0), self.max_scroll_px())
        if value != self.scroll_px:
            self.scroll_px = value
            self.update()
        self.scrolled.emit(self.scroll_px)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().height() != event.oldSize().height():
            self.rows.fit(self.high())
            self.fitted.emit(self.scroll_px)
        self.set_scroll(self.scroll_px)

    def rescaled(self) -> None:
        """Suit the rows to the new size."""
        self._still.forget()
        self.fit_rows()

    def fit_rows(self) -> None:
        """Suit the rows to the canvas anew; what stands at the top stays there."""
        frame, version, before = self.frame(), self.rows.version, self.scroll_px
        first = next((row for row in frame.visible_rows() if not row.pinned), None)
        offset = first.y - self.scroll_px if first is not None else 0
        self.rows.fit(self.high())
        self.set_scroll(first.y - offset if first is not None and self.scroll_px else self.scroll_px)
        if self.rows.version != version:
            self.document.layoutChanged.emit()
        self.fitted.emit(before)

    # Hit testing ---------------------------------------------------------------------------------------------

    def row_at(self, y: float) -> Row | None:
        """Visible row at a y."""
        frame = self.frame()
        for row in frame.visible_rows():
            top = frame.row_y(row)
            if top <= y < top + row.height and (row.pinned or y >= self.rows.pinned_px):
                return row
        return None

    def slice_at(self, position: QPointF) -> int:
        """Slice under a point, the nearest within 3 px; -1 none."""
        row = self.row_at(position.y())
        if row is None or position.x() < self.head_px:
            return -1
        frame = self.frame()
        time, slack = frame.time_at(position.x()), frame.ns_per_px * 3
        if row.kind is RowKind.STEPS:
            steps = self.document.trace.steps
            share = (position.y() - frame.row_y(row)) / row.height
            at = rank_strips.step_at(self.document.trace, steps, time, share)
            return int(steps.slice_id[at]) if at >= 0 else -1
        if row.kind is RowKind.SYNCS and frame.figures is not None:
            lane, _ = sync_lane(frame.figures)
            sync = lane.at(time, slack)
            return int(frame.figures.syncs.slice_id[sync]) if sync >= 0 else -1
        if row.kind is not RowKind.SLICES:
            return -1
        own = self._lane_at(frame, row, position)
        return own.at(time, slack) if own is not None else -1

    def _lane_at(self, frame: Frame, row: Row, position: QPointF) -> Lane | None:
        number = int((position.y() - frame.row_y(row) - frame.pad_px) // frame.lane_px)
        lanes = self.rows.lanes_of(row)
        return lanes[number] if 0 <= number < len(lanes) else None

    # Painting ------------------------------------------------------------------------------------------------

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        frame = self.frame()
        painter, size = self.own_painter(), QSize(frame.width_px, frame.height_px)
        self._still.paint(painter, self._key(frame), size, frame.dpr, lambda on: self.paint_base(on, frame))
        self.paint_above(painter, frame)
        painter.end()
        if self._painter.incomplete:
            self._still.forget()
            self._catch_up.start()

    def _key(self, frame: Frame) -> tuple[object, ...]:
        return (
            frame.start_ns,
            frame.end_ns,
            frame.scroll_px,
            frame.left_px,
            frame.palette.dark,
            self.rows.version,
            id(frame.figures),
        )

    def early_parts(self) -> Iterator[None]:
        """Make what the first picture is dear for, a part with each step: texts, headings, boxes."""
        frame = self.frame()
        visible = frame.visible_rows()
        self._painter.warm(frame, [])
        yield
        nowhere = QPixmap(1, 1)
        painter = QPainter(nowhere)
        self._draw_headers(painter, frame, visible)
        painter.end()
        yield
        self._painter.warm(frame, visible)

    def paint_base(self, painter: QPainter, frame: Frame) -> None:
        """Everything that stays while only pointer and selection move."""
        self._painter.begin_frame(frame)
        top = self.rows.pinned_px
        visible = frame.visible_rows()
        painter.fillRect(QRectF(frame.left_px, 0, frame.lanes_px, frame.height_px), frame.palette.lanes)
        self._section(painter, frame, [r for r in visible if not r.pinned], top, frame.height_px)
        if self.rows.filter_text and not self.rows.scrolled:
            painter.setFont(header_font())
            words = self.tr("No track has “{text}” in its name.").format(text=self.rows.filter_text)
            place = QRectF(frame.left_px + 16, top + 12, frame.lanes_px - 32, 20)
            draw_text(painter, place, words, frame.palette.muted)
        self._section(painter, frame, [r for r in visible if r.pinned], 0, top)
        if top:
            painter.fillRect(QRectF(frame.left_px, top - 1, frame.lanes_px, 1), frame.palette.line)
        self._draw_headers(painter, frame, visible)
        for row in visible:
            if row.key.startswith("busy/") and (row.pinned or frame.row_y(row) >= top - row.height):
                painter.setClipRect(QRect(0, 0 if row.pinned else top, frame.left_px - 8, frame.height_px))
                paint_note(painter, frame, stuck(frame, row), subtitle(self.counters, frame, row))
                painter.setClipping(False)

    def _section(self, painter: QPainter, frame: Frame, rows: list[Row], top: int, bottom: int) -> None:
        """Draw the lanes of the pinned or of the scrolled rows."""
        lanes = QRect(frame.left_px, top, frame.lanes_px, bottom - top)
        if not rows or lanes.height() <= 0:
            return
        painter.setClipRect(lanes)
        paint_grounds(painter, frame, rows)
        self._step_lines(painter, frame)
        part = replace(frame, section=rows[0].pinned)
        for overlay in overlays.UNDER:
            overlay.paint(painter, part)
        self._painter.paint(painter, frame, rows)
        for overlay in overlays.ON:
            overlay.paint(painter, part)
        for row in rows:
            if row.kind is RowKind.STEPS:
                self._step_band(painter, frame, row)
            elif row.kind is RowKind.COUNTER:
                paint_counter(painter, frame, self.counters, row)
        painter.setClipping(False)

    def _draw_headers(self, painter: QPainter, frame: Frame, rows: list[Row]) -> None:
        self._headers.paint(painter, frame, rows, notes_of(self.document, self.counters, frame, rows))

    def _step_lines(self, painter: QPainter, frame: Frame) -> None:
        """A faint line at the start of each step, while they are far enough apart."""
        steps = frame.figures.steps if frame.figures is not None else frame.trace.steps
        a, b = np.searchsorted(steps.start_ns, (int(frame.start_ns), int(frame.end_ns) + 1))
        if 0 < b - a < frame.lanes_px / 24:
            x, one = np.round(frame.x(steps.start_ns[a:b])), np.ones(b - a)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(frame.palette.line)
            draw_rects(painter, np.column_stack((x, one * 0, one, one * frame.height_px)))

    def _step_band(self, painter: QPainter, frame: Frame, row: Row) -> None:
        steps = frame.figures.steps if frame.figures is not None else frame.trace.steps
        painter.setFont(header_font(small=True))
        y, height = frame.row_y(row) + 1.0, row.height - 3.0
        strip, strips = rank_strips.strips_of(frame.trace, steps)
        begun = 1 if strips == 1 else 2 * strips  # steps that may reach into the view
        first = max(int(np.searchsorted(steps.start_ns, int(frame.start_ns), "right")) - begun, 0)
        stop = int(np.searchsorted(steps.start_ns, int(frame.end_ns) + 1))
        x0 = np.maximum(frame.x(steps.start_ns[first:stop]), frame.left_px - 2.0)
        x1 = np.minimum(frame.x(steps.end_ns[first:stop]), frame.width_px + 2.0)
        strip = strip[first:stop]
        _, one = np.unique(np.floor(x0) * strips + strip, return_index=True)  # more steps than pixels: one a pixel
        one = one[x1[one] > frame.left_px]
        width = np.maximum(x1[one] - x0[one] - 1, 1.0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(frame.palette.faint)
        thick = height / strips  # of steps of ranks, which lie over each other in time
        down, gap = y + strip[one] * thick, 0.0 if strips == 1 else 1.0
        draw_rects(painter, np.column_stack((x0[one], down, width, np.full(len(one), thick - gap))))
        room = np.minimum(x1[one], np.append(x0[one][1:], np.inf)) - x0[one]
        named = np.flatnonzero(room > STEP_NAME_PX)
        ranks = ranks_of(frame.trace, steps) if len(named) and len(frame.trace.sources) > 1 else None
        for k in named.tolist():
            i = int(one[k])
            step = first + i
            number = int(steps.number[step])
            name = self.tr("Step {number}").format(number=number if number >= 0 else step + 1)
            if ranks is not None and ranks.several:
                rank = ranks.names[int(ranks.of_step[step])]
                name = self.tr("{rank}, {step}").format(rank=rank.capitalize(), step=name[:1].lower() + name[1:])
            words = f"{name} · {text.duration(int(steps.end_ns[step] - steps.start_ns[step]))}"
            left = max(float(x0[i]), float(frame.left_px)) + 7
            draw_text(painter, QRectF(left, y, float(x0[i] + room[k]) - left - 6, height), words, frame.palette.muted)

    def paint_above(self, painter: QPainter, frame: Frame) -> None:
        """What follows pointer, selection and marks."""
        painter.setClipRect(QRect(frame.left_px, 0, frame.lanes_px, frame.height_px))
        for overlay in overlays.ABOVE:
            overlay.paint(painter, frame)
        painter.setClipping(False)
        if self.drop_y >= 0:
            painter.fillRect(QRectF(0, self.drop_y - 1, frame.width_px, 2), frame.palette.accent)
        if self.pointer is not None and self.tooltip_shown and not frame.vector:
            self._tooltip(painter, frame, self.pointer)

    @property
    def tooltip_shown(self) -> bool:
        """What lies under the pointer is described."""
        return self.pointer is not None and not (self.quiet or self._passed)

    def _tooltip(self, painter: QPainter, frame: Frame, at: QPointF) -> None:
        if at.x() < frame.left_px:
            row = self.row_at(at.y())
            lines = header_lines(frame, row) if row is not None else []
        elif self.hovered >= 0:
            key = (self.hovered, id(frame.figures))
            if key != self._told[0]:
                self._told = (key, tip_lines(frame.trace, frame.figures, self.hovered))
            row = self.row_at(at.y())
            lane = self._lane_at(frame, row, at) if row is not None and row.kind is RowKind.SLICES else None
            lines = self._told[1]
            if lane is not None:
                lines = [*lines, *run_lines(frame, lane, self.hovered, frame.time_at(at.x()))]
        else:
            row = self.row_at(at.y())
            lines = row_lines(frame, row, frame.time_at(at.x())) if row is not None else []
        paint_tooltip(painter, frame, at, lines)

    def point(self, position: QPointF | None) -> None:
        """Take over the pointer's place (None: it left)."""
        self.pointer, self._passed = position, False
        hovered = self.slice_at(position) if position is not None and not self.quiet else -1
        if hovered != self.hovered:
            self.hovered = hovered
            self.document.hoverChanged.emit()
        self.update()

    def hush(self) -> None:
        """No tooltip and no glow until the pointer moves: what lay under it is gone, or something else is asked for."""
        self._passed = True
        self.update()
        if self.hovered >= 0:
            self.hovered = -1
            self.document.hoverChanged.emit()
