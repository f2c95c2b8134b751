"""Where the CPU's time goes, under the plan of a trace in which no device worked; and how to record one."""

from __future__ import annotations

from functools import partial

import numpy as np

from core.figures.model import BREAKDOWN_PARTS, CpuTime, Figures, StatTable
from core.reporting.cpu_time import own_ns
from gui import text
from gui.session import Document, Session
from gui.widgets.cpu_time import Sections, Share
from gui.widgets.labels import button

ROWS = 6
LOADER = BREAKDOWN_PARTS.index("dataloader")


class CpuTimeView(Sections):
    """Uses the document's ``analysisChanged`` and the session's ``themeChanged``; hidden where a device worked."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._shown: Figures | None = None
        document.when_analysed(self.show_all)
        session.themeChanged.connect(self.update)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        wanted = analysis is not None and not self._document.trace.has_device_work
        self.setVisible(wanted)
        if not wanted or analysis is None or analysis.figures is self._shown:
            return
        self._shown = figures = analysis.figures
        self.clear()
        if (of_cpu := figures.cpu_time) is not None:
            self._add_table(self.tr("Where the CPU time goes"), "operators", of_cpu, of_cpu.operators)
            if len(of_cpu.modules):
                self._add_table(self.tr("Modules"), "modules", of_cpu, of_cpu.modules, whole=True)
            elif not len(of_cpu.operators):
                self._add_table(self.tr("Python"), "python", of_cpu, of_cpu.python)
        self._add_loader(figures)
        self._add_how_to()

    def _add_table(self, title: str, panel_id: str, of_cpu: CpuTime, stats: StatTable, *, whole: bool = False) -> None:
        """Add the names with the most time: their own, or (``whole``) with all that they call, as for modules."""
        times, steps = stats.host_total_ns if whole else stats.host_self_ns, max(of_cpu.steps, 1)
        if not len(stats) or times.max() <= 0:
            return
        of_ns = of_cpu.whole_ns if whole else own_ns(of_cpu, stats)
        order = np.argsort(-times, kind="stable")[:ROWS]
        names = self._document.trace.strings
        shares = [
            Share(
                names[int(stats.name_id[row])].removeprefix("nn.Module: "),
                float(times[row]) / steps,
                float(stats.calls[row]) / steps,
                partial(self._document.go_to_slice, int(stats.first_slice[row])),
                whole,
                of_cpu.steps > 0,
            )
            for row in order.tolist()
            if times[row] > 0
        ]
        self.add_title(title, self._note(of_ns, of_cpu.steps, whole=whole))
        self.add_rows(shares, of_ns)
        every = len(getattr(self._shown, panel_id))  # the table's are of the whole recording
        if every > len(shares):
            words = self.tr("All {count} in a table").format(count=text.count(every))
            self.add_widget(button(words, partial(self._session.panelRequested.emit, panel_id), "link"))

    def _note(self, of_ns: float, steps: int, *, whole: bool) -> str:
        if whole:
            words = (
                self.tr(
                    "Per step (mean of the {count} counted {count|step|steps}), with all that they call; such a step "
                    "takes {time}. One module's time holds its parts'."
                )
                if steps
                else self.tr("With all that they call; of {time} in all. One module's time holds its parts'.")
            )
        else:
            words = (
                self.tr(
                    "Per step (mean of the {count} counted {count|step|steps}), by time of their own, without what "
                    "they call; of {time} in all."
                )
                if steps
                else self.tr("By time of their own, without what they call; of {time} in all.")
            )
        return text.counted(words, steps, time=text.duration(of_ns))

    def _add_loader(self, figures: Figures) -> None:
        chosen = figures.step_figures.counted
        if not len(figures.steps) or not chosen.any():
            return
        parts = figures.step_figures.breakdown_ns[chosen].sum(axis=0)
        if not parts[LOADER] or not parts.sum():
            return
        self.add_title(self.tr("Data loader"))
        words = self.tr("The steps spend {share} of their time waiting for the next batch: {time} per step.")
        share = text.percent(100 * float(parts[LOADER]) / float(parts.sum()))
        self.add_text(words.format(share=share, time=text.duration(float(parts[LOADER]) / int(chosen.sum()))))

    def _add_how_to(self) -> None:
        self.add_title(self.tr("To see a GPU here"))
        if self._document.trace.meta.devices:
            words = self.tr(
                "The trace names a device but holds no work of it: record with ProfilerActivity.CUDA (or that of your "
                "accelerator), and only one profiler at a time."
            )
        else:
            words = self.tr(
                "Run the script on a machine with a GPU, its model and batches moved to the device, and record with "
                "ProfilerActivity.CUDA. Profiled from here, StepLens does so by itself where torch finds a GPU."
            )
        self.add_text(words)
        if self._session.can("profile"):
            self.add_widget(button(self.tr("Profile a script…"), partial(self._session.ask, "profile"), "link"))
