"""One bar per step: its period as height, what bound it as colour. Outliers are seen before anything is read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QToolTip, QWidget

from core.engine_steps import engine_steps
from core.figures.model import Figures
from core.figures.step_parts import LEFT_OUT, shown_length_ns
from core.own_run import no_steps_reason
from gui import text
from gui.evidence import slices_of
from gui.painting import guarded
from gui.ranks import Ranks, ranks_of
from gui.session import Document, Session
from gui.timeline.header import header_font
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import Palette, palette
from gui.timeline.rects import draw_rects
from gui.timeline.scaled import Scaled
from gui.timeline.step_bounds import bound_colour, bound_text, bounds_of, parts_text

STRIP_PX, LOW_STRIP_PX = 44, 28
BAR_PX = 48  # widest bar
NOTE_PX = 230  # kept free at the right for the note when the bars leave it
RANK_GAP = 0.5  # between the bars of two ranks, in distances of two bars


class StepStrip(Scaled):
    """Bars of all steps; click goes to a step. Listens to analysis, view and suggestions of the document."""

    def __init__(self, session: Session, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._document = session, document
        self.follow_text_size(session)
        self._low = False
        self._ground: QPixmap | None = None
        self._ground_key: tuple[object, ...] = ()
        self._ranks: tuple[Figures, Ranks] | None = None
        self._outlined = np.zeros(0, np.intp)  # steps, as painted last
        self._drawn = np.zeros((0, 4))  # bars of the ground
        self._top_ns = 1.0  # period of the tallest bar
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Steps"))
        self.setAccessibleDescription(self.tr("One bar per step; its height is the step's period."))
        document.analysisChanged.connect(self._analysis_changed)
        document.viewChanged.connect(self._view_moved)
        document.suggestionChanged.connect(self.update)
        session.themeChanged.connect(self.update)
        self._analysis_changed()

    def sizeHint(self) -> QSize:
        return QSize(600, self.outer(self.height_px()))

    def height_px(self) -> int:
        """Height: a line of text suffices when there are no steps."""
        if self.figures() is None or not self.count():
            return 24
        return LOW_STRIP_PX if self._low else STRIP_PX

    def set_low(self, low: bool) -> None:
        """Take less height in a low window."""
        if low != self._low:
            self._low = low
            self.rescaled()

    def figures(self) -> Figures | None:
        """Figures of the document, None while they are being computed."""
        return self._document.analysis.figures if self._document.analysis else None

    def count(self) -> int:
        """Number of steps."""
        figures = self.figures()
        return len(figures.steps) if figures else 0

    def _analysis_changed(self) -> None:
        self.rescaled()
        self.update()

    def rescaled(self) -> None:
        """Keep the height in texts."""
        self._ground = None
        self.setFixedHeight(self.outer(self.height_px()))

    def _ranks_now(self) -> Ranks:
        figures = self.figures()
        if figures is None:
            return Ranks((), np.zeros(0, np.intp))
        if self._ranks is None or self._ranks[0] is not figures:
            self._ranks = figures, ranks_of(self._document.trace, figures.steps)
        return self._ranks[1]

    def places(self) -> NDArray[np.float64]:
        """Where each bar stands, in distances of two bars: those of a rank side by side, float64[n_steps]."""
        ranks = self._ranks_now()
        order = np.argsort(ranks.of_step, kind="stable")
        places = np.empty(len(order), np.float64)
        places[order] = np.arange(len(order)) + RANK_GAP * ranks.of_step[order]
        return places

    def pitch_px(self) -> float:
        """Distance of two bars."""
        room = self.wide() - self.head_px - 8
        count = max(self.count() + RANK_GAP * max(len(self._ranks_now().names) - 1, 0), 1)
        free = room - NOTE_PX
        return min(BAR_PX + 5.0, (free if free / count >= 6 else room) / count)

    def step_at(self, x: float) -> int:
        """Step whose bar is at an x, -1 none."""
        if x < self.head_px or not self.count():
            return -1
        past = (x - self.head_px) / self.pitch_px() - self.places()
        found = np.flatnonzero((past >= 0) & (past < 1))
        return int(found[0]) if len(found) else -1

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        pal, ratio = palette(self._session.dark), self.ratio()
        key = (self.size(), ratio, pal.dark, id(self.figures()), self._document.current_suggestion)
        if self._ground is None or key != self._ground_key:
            self._ground, self._ground_key = self._make_ground(pal, ratio), key
        painter = self.own_painter()
        painter.drawPixmap(QPointF(0, 0), self._ground)
        figures = self.figures()
        if figures is not None and len(figures.steps):
            self._outline_steps(painter, pal, figures)
        painter.end()

    def _make_ground(self, pal: Palette, ratio: float) -> QPixmap:
        pixmap = QPixmap(QSize(self.wide(), self.high()) * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(pal.strip)
        painter = QPainter(pixmap)
        painter.setPen(QPen(pal.line, 1))
        painter.drawLine(QPointF(0, self.high() - 0.5), QPointF(self.wide(), self.high() - 0.5))
        figures = self.figures()
        painter.setFont(header_font(bold=True))
        draw_text(painter, QRectF(20, 0, self.head_px - 26, 26), self.tr("Step times"), pal.text)
        painter.setFont(header_font(small=True))
        if figures is None:
            failed = self._document.analysis_error is not None
            words = (
                self.tr("Not measured: the diagnosis failed.") if failed else self.tr("The steps are being measured…")
            )
            draw_text(painter, QRectF(self.head_px, 0, 400, 24), words, pal.dim)
        elif not len(figures.steps):
            words = text.translate("reasons", no_steps_reason(self._document.trace)) or self.tr(
                "No steps are marked in this trace: call profiler.step() after each one."
            )
            if len(engine_steps(self._document.trace)):
                words = self.tr("The recording holds one step of an inference engine.")
            draw_text(painter, QRectF(self.head_px, 0, self.wide() - self.head_px - 8, 24), words, pal.dim)
        else:
            if not self._low:
                draw_text(painter, QRectF(20, 22, self.head_px - 26, 16), self.measure(figures), pal.dim)
            self._bars(painter, pal, figures)
        painter.end()
        return pixmap

    def measure(self, figures: Figures) -> str:
        """What the height of the bars is: the period, or the host step where no period is known."""
        inferred = bool(figures.steps.inferred.any())
        if bool((figures.step_figures.period_ns > 0).any()):
            return self.tr("period, inferred") if inferred else self.tr("period")
        return self.tr("host step, inferred") if inferred else self.tr("host step")

    def bars_px(self, figures: Figures) -> NDArray[np.float64]:
        """Bars as rectangles, px: float64[n_steps, 4]; a bar higher than 2.5 typical ones is cut there."""
        length = shown_length_ns(figures).astype(np.float64)
        counted = figures.step_figures.counted
        typical = float(np.median(length[counted])) if counted.any() else 0.0
        self._top_ns = min(float(length.max()), 2.5 * typical) if typical > 0 else float(length.max())
        pitch = self.pitch_px()
        width = max(pitch - (5 if pitch > 12 else 1 if pitch > 3 else 0), 1.0)
        room = self.high() - (18 if self._ranks_now().several else 12)  # names of ranks stand above their bars
        height = np.maximum(np.minimum(length / max(self._top_ns, 1.0), 1.0) * room, 2.0)
        x = self.head_px + self.places() * pitch
        return np.column_stack((x, self.high() - 5 - height, np.full(len(x), width), height))

    def _bars(self, painter: QPainter, pal: Palette, figures: Figures) -> None:
        bars, bounds = self.bars_px(figures), bounds_of(figures)
        self._drawn = bars
        painter.setPen(Qt.PenStyle.NoPen)
        # With more steps than pixels the tallest bars of a pixel stay: what is drawn later may only be taller.
        order = np.argsort(bars[:, 3], kind="stable") if self.pitch_px() < 2 else np.arange(len(bars))
        for number in np.unique(bounds).tolist():
            mine = order[bounds[order] == number]
            painter.setBrush(bound_colour(number, pal))
            draw_rects(painter, bars[mine])
        cut = bars[shown_length_ns(figures) > self._top_ns]
        painter.setBrush(pal.strip)
        draw_rects(painter, np.column_stack((cut[:, 0], cut[:, 1] + 3, cut[:, 2], np.full(len(cut), 2.0))))
        painter.setBrush(pal.accent)
        for step in self._pointed(figures):
            painter.drawRect(QRectF(bars[step, 0], self.high() - 3, bars[step, 2], 2))
        self._name_ranks(painter, pal, bars)
        at = float(bars[:, 0].max()) + self.pitch_px() + 14
        if self.wide() - at > 60:
            painter.setFont(slice_font())
            rect = QRectF(at, self.high() - 24, self.wide() - at - 8, 18)
            draw_text(painter, rect, self.note(figures), pal.muted)

    def _name_ranks(self, painter: QPainter, pal: Palette, bars: NDArray[np.float64]) -> None:
        """Name of each rank above its bars, where there is room for it."""
        ranks = self._ranks_now()
        if not ranks.several:
            return
        painter.setFont(header_font(small=True))
        advance = painter.fontMetrics().horizontalAdvance
        left, right = np.full(len(ranks.names), np.inf), np.zeros(len(ranks.names))
        np.minimum.at(left, ranks.of_step, bars[:, 0])
        np.maximum.at(right, ranks.of_step, bars[:, 0] + bars[:, 2])
        free_px = 0.0  # from here on no name stands: those of hundreds of ranks would lie over each other
        for name, x, end in zip(ranks.names, left.tolist(), right.tolist(), strict=True):
            if x < free_px:
                continue
            short = name.rsplit(" ", 1)[-1] if end - x < advance(name) else name
            draw_text(painter, QRectF(x, 0, max(end - x, advance(short) + 1.0), 12), short, pal.dim)
            free_px = x + max(advance(short), end - x if end - x > 14 else 0) + 12.0

    def _outline_steps(self, painter: QPainter, pal: Palette, figures: Figures) -> None:
        """Outline the steps that are in view."""
        shown = self._outlined = self._steps_in_view(figures)
        if not len(shown):
            return
        bars = self._drawn[shown]
        painter.setPen(QPen(pal.accent, 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self.pitch_px() > 4:
            for x, y, width, height in bars.tolist():
                painter.drawRect(QRectF(x - 1.5, y - 1.5, width + 3, height + 3))
        else:
            x0, x1 = float(bars[0, 0]), float(bars[-1, 0] + bars[-1, 2])
            painter.drawRect(QRectF(x0 - 1, 2, x1 - x0 + 2, self.high() - 6))

    def _steps_in_view(self, figures: Figures) -> NDArray[np.intp]:
        """Steps whose middle is in view; none where that is most of the trace."""
        view = self._document.viewport
        if view.width_ns > 0.7 * view.span_ns:
            return np.zeros(0, np.intp)
        middle = (figures.steps.start_ns + figures.steps.end_ns) // 2
        return np.flatnonzero((middle >= view.start_ns) & (middle < view.end_ns))

    def _view_moved(self) -> None:
        figures = self.figures()
        if figures is not None and not np.array_equal(self._steps_in_view(figures), self._outlined):
            self.update()

    def _pointed(self, figures: Figures) -> set[int]:
        suggestion = self._document.suggestion(self._document.current_suggestion)
        if suggestion is None:
            return set()
        if suggestion.steps:
            return set(suggestion.steps)
        ids = np.asarray(slices_of(suggestion), np.int64)
        return set(np.unique(figures.step_of[ids]).tolist()) - {-1} if len(ids) else set()

    def note(self, figures: Figures) -> str:
        """The slowest step, and what was left out: where there is no room, the first is seen."""
        out = int(np.count_nonzero(~figures.step_figures.counted))
        length = shown_length_ns(figures)
        words = []
        counted = np.flatnonzero(figures.step_figures.counted)
        if len(counted):
            worst = int(counted[np.argmax(length[counted])])
            words.append(self.tr("slowest: {step}").format(step=self.step_name(figures, worst)))
            words.append(self._of_what(figures, worst).format(time=text.duration(float(length[worst]))))
        slow = self._ranks_now().longest(figures, length)
        if slow is not None:
            slower = self.tr("longest: {rank}, {time} per step").format(rank=slow[0], time=text.duration(slow[1]))
            words = [slower]
        if out:
            words.append(self.tr("left out of the means: {count}").format(count=out))
        return " · ".join(words)

    def _of_what(self, figures: Figures, step: int) -> str:
        """A step's time with what it is, where it is not what the heading of the strip says: the last has no period."""
        periods = figures.step_figures.period_ns > 0
        return self.tr("{time}") if periods[step] or not periods.any() else self.tr("{time}, to the end of its work")

    def step_name(self, figures: Figures, step: int) -> str:
        """Name of a step."""
        number = int(figures.steps.number[step])
        name = self.tr("step {number}").format(number=number if number >= 0 else step + 1)
        ranks = self._ranks_now()
        if not ranks.several:
            return name
        return self.tr("{rank}, {step}").format(rank=ranks.names[int(ranks.of_step[step])], step=name)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        step, figures = self.step_at(self.inner(event.position()).x()), self.figures()
        if step >= 0 and figures is not None and event.button() == Qt.MouseButton.LeftButton:
            start, end = float(figures.steps.start_ns[step]), float(figures.steps.end_ns[step])
            end = max(end, start + 1)
            self._document.zoom_to(start - (end - start) * 0.05, end + (end - start) * 0.05)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            step, figures = self.step_at(self.inner(QPointF(event.pos())).x()), self.figures()
            if step >= 0 and figures is not None:
                QToolTip.showText(event.globalPos(), self.step_text(figures, step), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def step_text(self, figures: Figures, step: int) -> str:
        """Tooltip of a bar, plain text."""
        f = figures.step_figures
        known = [(self.tr("period"), f.period_ns[step]), (self.tr("host step"), f.dur_ns[step])]
        waits = f"{self.tr('waits of the CPU')}: {text.duration(int(f.sync_wait_ns[step]))}"
        bound = int(bounds_of(figures)[step])
        lines = [self.step_name(figures, step) + " · " + bound_text(bound)]
        lines += [f"{name}: {text.duration(int(ns) if ns >= 0 else None)}" for name, ns in known]
        lines += [*parts_text(figures, step), *([waits] if f.sync_wait_ns[step] >= 0 else [])]
        if bound == LEFT_OUT and f.why_not[step]:
            lines.append(f.why_not[step])
        lines.append(self.tr("Colour: what bound the step. K shows them all."))
        return "\n".join(lines)
