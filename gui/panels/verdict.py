"""The answer on top: one word, one sentence, the step times by name, and one step's time as a bar that adds up."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from core.analysis import Analysis
from core.device_words import devices_word
from core.engine_steps import engine_steps
from core.figures.busy_parts import busy_parts
from core.figures.model import BREAKDOWN_PARTS, Figures, Summary
from core.figures.rounds import outliers_told
from core.figures.verdict import values_shown
from core.kinds import GapCause, SliceKind
from core.own_run import no_steps_reason
from core.reporting.cpu_time import further_words
from gui import figure_reasons as reasons
from gui import figure_words, text, theme
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.budget_bar import BudgetBar, Part
from gui.widgets.glossary import FiguresPage, Shown
from gui.widgets.labels import Elided, heading, label, plain_tip, restyle
from gui.widgets.metric import Metric

WIDE_PX = 1300
ELLIPSIS = "…"
LOW_PX = 746  # height of the page: the word stands beside its sentence
VERY_LOW_PX = 640  # the bar has no line of names
SHORT_PX = 560  # the sentence has one line
ROUGH_PCT = 10.0  # as `core.pricing.POOR_REPLAY_PCT`: a replay further off than this gives rough savings
LOWEST_PX = 420  # the main figures stand beside the word; what the sentence says, the bar shows
ROLES = {
    "healthy": "saved",
    "sync_bound": "wait",
    "host_bound": "warn",
    "input_bound": "warn",
    "communication_bound": "warn",
}


class VerdictBand(QFrame):
    """Uses the document's ``analysisChanged`` and the session's ``themeChanged``."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self.setObjectName("band")
        self.word = heading("", 5)
        self.sentence = label("", "dim", wrap=True)
        self.sentence.setMinimumWidth(160)
        self.short_sentence = Elided("", "dim", at_end=True)
        self.short_sentence.hide()
        self._page_px = 0
        left = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        left.setSpacing(1)
        left.addWidget(self.word)
        left.addWidget(self.sentence, 1)
        left.addWidget(self.short_sentence, 1)
        self._metrics = [Metric() for _ in range(7)]
        self._shown: list[Shown] = []
        self._row = QHBoxLayout()
        self._row.setSpacing(28)
        for metric in self._metrics:
            self._row.addWidget(metric, 0, Qt.AlignmentFlag.AlignTop)
            metric.clicked.connect(self.explain)
        self.bar = BudgetBar()
        self.bar_name = label("", "dim")
        bar_row = QHBoxLayout()
        bar_row.addWidget(self.bar_name, 0, Qt.AlignmentFlag.AlignTop)
        bar_row.addWidget(self.bar, 1)
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(32)
        self._grid.setVerticalSpacing(6)
        self._left = left
        self._wide: bool | None = None
        self._lowest = False
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 8, 16, 8)
        box.setSpacing(6)
        box.addLayout(self._grid)
        box.addLayout(bar_row)
        self._grid.addLayout(left, 0, 0)
        self._place(True)
        document.when_analysed(self.show_all)
        session.themeChanged.connect(self.show_all)
        session.servicesChanged.connect(self.show_all)
        self.show_all()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Put the figures under the sentence in a narrow window."""
        super().resizeEvent(event)
        self._fit()

    def fit_to(self, height_px: int) -> None:
        """Take fewer lines on a page of little height."""
        self._page_px = height_px
        self._fit()

    def _fit(self) -> None:
        page_px = self._page_px or self.window().height()
        self._lowest = self.width() < px(WIDE_PX) and page_px < px(LOWEST_PX)
        self._place(self._lowest or self.width() >= px(WIDE_PX))
        self._row.setSpacing(28 if self.width() > px(1000) else 16 if self.width() > px(500) else 8)
        low = self._lowest or (
            not self._wide and page_px < px(LOW_PX)
        )  # a low window has no line to spare for one word
        very_low = page_px < px(VERY_LOW_PX)
        self._show_figures()
        said = self._lowest and bool(self._shown)
        short = page_px < px(SHORT_PX)
        self.sentence.setVisible(not short)
        self.short_sentence.setVisible(short and not said)
        self.setToolTip(plain_tip(self.sentence.text()) if said else "")
        self.bar.show_names_below(not very_low)
        self._left.setDirection(QBoxLayout.Direction.LeftToRight if low else QBoxLayout.Direction.TopToBottom)
        self._left.setSpacing(12 if low else 1)

    def _show_figures(self) -> None:
        """All figures, or, in a line with the word, as many of the main ones as there is room for."""
        room = self.width() - 2 * 16 - self.word.sizeHint().width() - self._grid.horizontalSpacing()
        for place, metric in enumerate(self._metrics):
            metric.set_in_line(self._lowest)
            shown = place < len(self._shown)
            if shown and self._lowest:
                room -= metric.sizeHint().width() + self._row.spacing() if self._is_main(place) else 0
                shown = place == 0 or (room >= 0 and self._is_main(place))
            metric.setVisible(shown)

    def _is_main(self, place: int) -> bool:
        return place == 0 or not (self._shown[place].is_aside or self._shown[place].is_unknown)

    def explain(self) -> None:
        """Show what every figure means."""
        if self._shown:
            FiguresPage(self._shown, self.window()).open()

    def _place(self, wide: bool) -> None:
        if wide == self._wide:
            return
        self._wide = wide
        self._grid.removeItem(self._row)
        self._row.setParent(None)
        self._grid.addLayout(self._row, 0 if wide else 1, 1 if wide else 0, Qt.AlignmentFlag.AlignLeft)
        self._grid.setColumnStretch(0, 1)

    # Content -------------------------------------------------------------------------------------------------

    def show_all(self) -> None:
        """Show the figures as far as they are there."""
        analysis = self._document.analysis
        if analysis is None:
            self._show_waiting()
            return
        figures, summary = analysis.figures, analysis.figures.summary
        if self._is_pending(analysis):
            self.word.setText(self.tr("Working it out…"))
            restyle(self.word, "role", "dim")
            self.word.setToolTip("")
            words = self.tr(
                "What limits the step follows from its replay, which runs now. The figures are as measured."
            )
            self._say(words)
        else:
            outliers, _ = outliers_told(figures)
            self.word.setText(text.verdict_of(self._document.trace, summary.verdict, outliers))
            role = ROLES.get(summary.verdict, "")
            restyle(self.word, "role", "warn" if outliers and role == "saved" else role)
            self.word.setToolTip(plain_tip(text.verdict_meaning(summary.verdict)))
            self._say(self._sentence(analysis))
        self.setAccessibleName(f"{self.word.text()}. {self.sentence.text()}")
        shown = self._shown = self._main_first(self._figures(analysis))
        for place, metric in enumerate(self._metrics):
            if place < len(shown):
                metric.show_figure(shown[place])
        self._show_budget(figures)
        self.bar.keep_room(False)
        self._fit()

    def _say(self, words: str) -> None:
        self.sentence.setText(words)
        self.short_sentence.set_text(words)

    def _show_waiting(self) -> None:
        failed = self._document.analysis_error is not None
        self.word.setText(self.tr("No diagnosis") if failed else self.tr("Looking…"))
        self._say(
            self.tr("The diagnosis failed; the timeline can be used.")
            if failed
            else self.tr("The figures of this trace are being worked out.")
        )
        self._shown = []
        self._fit()
        self.bar.keep_room(not failed)
        self.bar.hide()
        self.bar_name.hide()

    def _is_pending(self, analysis: Analysis) -> bool:
        """The replay may still change the verdict: none is shown that would be taken back."""
        return self._document.analysis_running and analysis.figures.summary.sustained_step_ns is None

    def _sentence(self, analysis: Analysis) -> str:
        trace, figures, summary = self._document.trace, analysis.figures, analysis.figures.summary
        words = text.filled(summary.verdict_template, values_shown(summary)) or summary.verdict_text
        failed, *further = (text.filled(*one) for one in further_words(trace, analysis))
        parts = [w for w in (failed, words, *further) if w]
        if summary.enqueue_bound:
            parts.append(self.tr("The CPU runs ahead: the host step is only the time to queue a step."))
        if not parts and not trace.has_device_work:
            parts.append(self.tr("No device work was recorded: there is no device to wait for. The CPU side is shown."))
        if trace.meta.simulated:
            parts.append(self.tr("This trace is simulated, not recorded."))
        if len(engine_steps(trace)) and not len(figures.steps):
            parts.append(self.tr("The recording holds one step of an inference engine."))
        elif not len(figures.steps) and (own := no_steps_reason(trace)):
            parts.append(text.translate("reasons", own))
        elif not len(figures.steps):
            parts.append(self.tr("Steps are unknown: call prof.step() after each iteration, or profile from here."))
        return " ".join(parts)

    def _figures(self, analysis: Analysis) -> list[Shown]:
        trace = self._document.trace
        if not trace.has_device_work and not trace.meta.devices:  # recorded without one: nothing of it is unknown
            return self._step_figures(analysis)
        return [*self._step_figures(analysis), *self._device_figures(analysis)]

    def _main_first(self, shown: list[Shown]) -> list[Shown]:
        """Mark the sustained step as the one to go by, where it is known, and the other step times as others."""
        tr, main = self.tr, shown[0]
        others = {tr("Host step"), tr("Wall, no profiler"), tr("Period"), tr("Device step")}
        if main.is_unknown or main.value == ELLIPSIS:
            return shown
        words = self.tr("The one to go by. {meaning}").format(meaning=main.meaning)
        rest = [replace(one, is_aside=True) if one.name in others else one for one in shown[1:]]
        return [replace(main, is_main=True, meaning=words), *rest]

    def _step_figures(self, analysis: Analysis) -> list[Shown]:
        tr, ns, trace, summary = self.tr, text.duration, self._document.trace, analysis.figures.summary
        run = self._document.run
        wall = run.wall_step_ns if run is not None else self._session.ask("wall_step_ns", self._document)
        return [
            Shown(
                tr("Sustained step"),
                ELLIPSIS if self._is_pending(analysis) else ns(summary.sustained_step_ns),
                tr(
                    "The time per step if the loop ran for ever, from a replay of the trace. Where the CPU runs ahead "
                    "the device decides it, whatever the host step says. Savings are counted from it."
                )
                + self._replay_note(summary),
                reasons.sustained(trace, analysis),
            ),
            Shown(
                tr("Host step"),
                ns(summary.step_ns),
                tr(
                    "How long the CPU spent in one step (mean of those that count). Where the CPU runs ahead of the "
                    "device, this is only the time to enqueue a step."
                )
                + figure_words.host_steps(analysis.figures),
                reasons.host_step(trace, analysis),
            ),
            Shown(
                tr("Wall, no profiler"),
                ns(wall),
                tr("One step by the clock: the time of some steps before the recording, without the profiler."),
                reasons.wall(run),
            ),
        ]

    def _device_figures(self, analysis: Analysis) -> list[Shown]:
        tr, ns, trace, summary = self.tr, text.duration, self._document.trace, analysis.figures.summary
        return [
            Shown(
                tr("Period"),
                ns(summary.period_ns),
                tr("The distance between the same device work in successive steps (mean)."),
                reasons.period(trace, analysis),
            ),
            Shown(
                tr("Device step"),
                ns(summary.device_step_ns),
                tr("From the first to the last device work that one step launched (mean)."),
                reasons.device_step(trace, analysis),
            ),
            Shown(
                tr("{device} busy").format(device=devices_word(trace)),
                text.percent(summary.gpu_busy_pct),
                (
                    tr(
                        "Share of the host steps, without warm-up and outliers, in which at least one kernel, copy or "
                        "memset ran."
                    )
                    if summary.steps and not summary.inferred
                    else tr("Share of the whole recording in which at least one kernel, copy or memset ran.")
                )
                + figure_words.of_the_bar(analysis.figures)
                + figure_words.busy_of_steps(analysis.figures)
                + self._kernels_note(summary),
                reasons.busy(trace, analysis),
            ),
            figure_words.sync_wait(trace, analysis),
            *figure_words.launches(analysis.figures),  # no room on top: on the page of all figures
        ]

    def _kernels_note(self, summary: Summary) -> str:
        share, words = summary.kernel_busy_pct, self.tr("Kernels alone (TensorBoard's GPU utilization): {share}")
        return "" if share is None else "\n" + words.format(share=text.percent(share))

    def _replay_note(self, summary: Summary) -> str:
        if summary.replay_error_pct is None or summary.sustained_step_ns is None:
            return ""
        if summary.held_out_error_pct is not None:
            note = self.tr(
                "How far to trust it: made from one half of the steps, it gives the other half's time within {error}. "
                "What the halves differ by is part of that."
            ).format(error=text.percent(summary.held_out_error_pct))
        else:
            note = self.tr(
                "How far to trust it is unknown: telling that takes four counted steps of one loop, of which one half "
                "foretells the other."
            )
        own = (
            self.tr("All steps replayed together give their own time within {error}: close to 0 by construction.")
            if abs(summary.replay_error_pct) <= ROUGH_PCT
            else self.tr(
                "All steps replayed together miss their own time by {error}: what waits for what is not fully "
                "understood here, so savings are rough."
            )
        )
        return "\n" + note + "\n" + own.format(error=text.percent(abs(summary.replay_error_pct)))

    def _show_budget(self, figures: Figures) -> None:
        budget, dark = figures.budget, self._session.dark
        if not self._document.trace.has_device_work and self._show_host_budget(figures):
            return
        known = budget.period_ns is not None and budget.busy_ns is not None and budget.period_ns > 0
        self.bar_name.setVisible(known)
        self.bar.setVisible(known)
        if not known or budget.period_ns is None:
            return
        parts = self._busy(figures, dark)
        for cause, ns in sorted(budget.idle_by_cause_ns.items(), key=lambda item: -item[1]):
            why = text.gap_cause(GapCause(cause))
            parts.append(Part(self.tr("idle: {cause}").format(cause=why), ns, theme.gap_color(cause, dark), why))
        whole = budget.basis == "window"
        title = (
            self.tr("The recording, {time}, and where it goes:")
            if whole
            else self.tr("One step, {time}, and where it goes:")
        )
        self.bar.show_parts(parts, budget.period_ns, title.format(time=text.duration(budget.period_ns)))
        self.bar_name.setText(self.tr("Device, recording") if whole else self.tr("Device, one step"))

    def _busy(self, figures: Figures, dark: bool) -> list[Part]:
        """The busy time: computing, and what ran while nothing was computed."""
        names = {
            "busy": self.tr("busy"),
            "computing": self.tr("busy: computing"),
            "communication_only": self.tr("busy: communication only"),
            "copies_only": self.tr("busy: copies only"),
        }
        short = {"communication_only": self.tr("comm."), "copies_only": self.tr("copies")}
        found = busy_parts(figures).items()
        return [Part(names[part], ns, theme.busy_color(part, dark), short.get(part, "")) for part, ns in found]

    def _show_host_budget(self, figures: Figures) -> bool:
        """Where no device worked: one step of the CPU; False where the steps are unknown."""
        chosen = figures.step_figures.counted
        if not len(figures.steps) or not chosen.any():
            return False
        mean_ns = figures.step_figures.breakdown_ns[chosen].mean(axis=0)
        names = {
            "cpu_exec": (self.tr("operators"), theme.slice_color(SliceKind.CPU_OP, self._session.dark)),
            "dataloader": (self.tr("data loader"), theme.gap_color(GapCause.LOADER, self._session.dark)),
            "communication": (self.tr("communication"), theme.gap_color(GapCause.COMMUNICATION, self._session.dark)),
            "other": (self.tr("Python and the rest"), theme.slice_color(SliceKind.PYTHON, self._session.dark)),
        }
        parts = [Part(name, float(mean_ns[BREAKDOWN_PARTS.index(key)]), c) for key, (name, c) in names.items()]
        whole = sum(part.value_ns for part in parts)
        title = self.tr("One step of the CPU, {time}, and where it goes:").format(time=text.duration(whole))
        self.bar.show_parts(parts, whole, title)
        self.bar_name.setText(self.tr("CPU, one step"))
        self.bar_name.setVisible(whole > 0)
        return True


def create(session: Session, document: Document | None) -> QWidget:
    """Make the band."""
    assert document is not None
    return VerdictBand(session, document)


PANEL = PanelSpec("verdict", "Verdict", "band", create)
