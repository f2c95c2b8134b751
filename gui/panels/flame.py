"""Flame graph: what ran, merged by call path, as wide as its time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QMenu, QProgressBar, QVBoxLayout, QWidget

from core.figures.call_paths import Layers
from core.figures.flame import THREAD_KIND, FlameGraph
from core.figures.sandwich import callees, callers
from core.files import write_atomically
from core.tables import Bool
from gui import jobs, names, text
from gui.models.flame_query import FlameQuery, FlameWords, find, first_layers, thread_name, threads_of
from gui.models.folded import folded
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.choice import Choice
from gui.widgets.empty import EmptyState
from gui.widgets.flame_view import FlameView
from gui.widgets.labels import Elided, button, named
from gui.widgets.sandwich import SandwichDialog

WHOLE, RANGE = -2, -1  # stretches that are no step
MOST_STEPS = 200
AT_ONCE = 5000  # boxes that are searched without a job
FIND_PX, NARROW_PX = 150, 700  # width of the search, and of a panel in which it has half of it
STATUS_PX = 170  # height from which there is room for a line of words below the boxes


class FlamePanel(QWidget):
    """Uses the document's ``selectionChanged`` and ``analysisChanged``; graphs come from a job, the newest wins."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._threads = threads_of(document.trace)
        self._asked: FlameQuery | None = None
        self._words: FlameWords | None = None
        self._thread_chosen = self._stretch_chosen = False
        self.view = FlameView()
        self.view.opened.connect(self._open)
        self.view.offers_callers = True
        self.view.sandwiched.connect(self.show_sandwich)
        self.view.currentChanged.connect(lambda _node: self._say_status())
        self.view.zoomChanged.connect(self._zoomed)
        self.status = Elided("", "dim")
        self.empty = EmptyState()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Working the flame graph out"))
        self.stop = button(self.tr("Stop"), self.cancel, "flat", self.tr("Stop working it out"))
        self._job: jobs.Job | None = None
        self._search: jobs.Job | None = None
        self._make_controls()
        self._full = QWidget()
        inside = QVBoxLayout(self._full)
        inside.setContentsMargins(16, 0, 8, 4)
        inside.setSpacing(4)
        inside.addWidget(self.view, 1)
        inside.addWidget(self.status)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._controls)
        box.addWidget(self.empty, 1)
        box.addWidget(self._full, 1)
        document.selectionChanged.connect(self._selection_changed)
        document.when_analysed(self._analysis_came)
        self._fill_stretches()
        self._busy(False)
        if self._threads:
            self.ask()
        else:
            self._nothing(self.tr("Nothing that ran on the CPU was recorded."))
            self._controls.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """A low panel gives the line below to the boxes: tooltips say the same."""
        super().resizeEvent(event)
        self.status.setVisible(event.size().height() >= STATUS_PX)
        self.search.setMaximumWidth(FIND_PX if event.size().width() >= px(NARROW_PX) else FIND_PX // 2)

    # Controls -------------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        trace = self._document.trace
        self.measure = Choice(self.tr("What widths mean"), (self.tr("CPU time"), False))
        if trace.has_device_work:
            self.measure.addItem(self.tr("Device time"), True)
        self.layers = Choice(
            self.tr("Which calls are shown"),
            (self.tr("All calls"), Layers.ALL),
            (self.tr("Own code"), Layers.OWN),
            (self.tr("No Python"), Layers.NO_PYTHON),
        )
        self.layers.setCurrentIndex(self.layers.findData(first_layers(trace)))
        self.thread_box = Choice(self.tr("Thread"), (self.tr("All threads"), -1))
        for thread in self._threads:
            self.thread_box.addItem(text.elided(thread_name(trace, thread), 40), thread)
        self.thread_box.setCurrentIndex(min(1, self.thread_box.count() - 1))
        self.thread_box.setVisible(len(self._threads) > 1)
        self.stretch = Choice(self.tr("Stretch of time"), (self.tr("Whole trace"), WHOLE))
        self.thread_box.activated.connect(self._thread_activated)
        self.stretch.activated.connect(self._stretch_activated)
        self.measure.activated.connect(self._measure_activated)
        self.layers.activated.connect(lambda _index: self.ask())
        self.search = named(QLineEdit(), self.tr("Find in the flame graph"))
        self.search.setPlaceholderText(self.tr("Find"))
        self.search.setClearButtonEnabled(True)
        self.search.setAcceptDrops(False)  # files dropped on it are for the window
        self.search.setMaximumWidth(FIND_PX)
        self.search.textChanged.connect(self._find)
        self.back = button(self.tr("Back"), self.view.back, "flat", self.tr("The box before (Esc)"))
        self._controls = QWidget()
        row = QHBoxLayout(self._controls)
        row.setContentsMargins(16, 5, 8, 4)
        row.setSpacing(8)
        self.more = button("⋯", None, "flat", self.tr("Callers and callees; save or copy the graph as folded stacks"))
        self.more.setAccessibleName(self.tr("More"))
        menu = QMenu(self.more)
        menu.addAction(self.tr("Callers and callees of the chosen box"), lambda: self.show_sandwich(self.view.current))
        menu.addAction(self.tr("Save as folded stacks…"), self.save_folded)
        menu.addAction(self.tr("Copy as folded stacks"), self.copy_folded)
        self.more.setMenu(menu)
        for widget in (self.search, self.measure, self.layers, self.thread_box, self.stretch, self.back, self.more):
            row.addWidget(widget)
        row.addWidget(self.bar)
        row.addWidget(self.stop)
        row.addStretch(1)
        self.bar.setFixedWidth(80)

    def _fill_stretches(self) -> None:
        """List the stretches that there are: the selected one, and the steps."""
        chosen = self.stretch.currentData()
        self.stretch.clear()
        self.stretch.addItem(self.tr("Whole trace"), WHOLE)
        if self._document.selected_range is not None:
            self.stretch.addItem(self.tr("Selected time"), RANGE)
        analysis = self._document.analysis
        steps = analysis.figures.steps if analysis is not None else ()
        for row in range(min(len(steps), MOST_STEPS)):
            number = int(steps.number[row]) if int(steps.number[row]) >= 0 else row  # type: ignore[union-attr]
            self.stretch.addItem(self.tr("Step {number}").format(number=number), row)
        self.stretch.setCurrentIndex(max(0, self.stretch.findData(chosen)))

    def _analysis_came(self) -> None:
        self._fill_stretches()
        self.ask()

    def _selection_changed(self) -> None:
        had = self.stretch.currentData()
        self._fill_stretches()
        has_range = self._document.selected_range is not None
        if has_range and (not self._stretch_chosen or had == RANGE):
            self.stretch.setCurrentIndex(self.stretch.findData(RANGE))
        self.ask()

    def _thread_activated(self, _index: int) -> None:
        self._thread_chosen = True
        self.ask()

    def _stretch_activated(self, _index: int) -> None:
        self._stretch_chosen = self.stretch.currentData() != RANGE
        self.ask()

    def _measure_activated(self, _index: int) -> None:
        if not self._thread_chosen:  # the backward pass launches from a thread of its own
            self.thread_box.setCurrentIndex(0 if self.measure.currentData() else min(1, self.thread_box.count() - 1))
        self.ask()

    # Working it out -------------------------------------------------------------------------------------------

    def query(self) -> FlameQuery:
        """Return what the controls ask for."""
        thread = int(self.thread_box.currentData())
        where, stretch = int(self.stretch.currentData()), None
        analysis, chosen = self._document.analysis, self._document.selected_range
        if where == RANGE and chosen is not None:
            stretch = (chosen.start_ns, chosen.end_ns)
        elif where >= 0 and analysis is not None:
            steps = analysis.figures.steps
            stretch = (int(steps.start_ns[where]), int(steps.end_ns[where]))
        threads = self._threads if thread < 0 else (thread,)
        return FlameQuery(
            threads,
            Layers(self.layers.currentData()),
            bool(self.measure.currentData()),
            stretch,
            analysis.figures.syncs if analysis is not None and len(analysis.figures.syncs) else None,
        )

    def ask(self) -> None:
        """Have the graph worked out that the controls ask for, unless it is shown already."""
        query = self.query()
        if query == self._asked or not self._threads:
            return
        self._asked = query
        trace = self._document.trace
        self._busy(True)
        self._job = jobs.run(
            self,
            lambda progress: query.run(trace, progress),
            partial(self._came, query),
            self._failed,
            on_progress=lambda fraction, _words: self.bar.setValue(round(100 * fraction)),
            key=f"flame-{id(self)}",
        )

    def cancel(self) -> None:
        """Stop working it out; the next change of a control asks again."""
        if self._job is not None:
            self._job.cancel()
        self._asked = None
        self._busy(False)

    def _failed(self, error: BaseException) -> None:
        self._asked = None
        self._busy(False)
        self._session.raise_error(error)

    def _busy(self, busy: bool) -> None:
        self.bar.setVisible(busy)
        self.stop.setVisible(busy)
        self.bar.setValue(0)

    def _came(self, query: FlameQuery, graph: FlameGraph) -> None:
        if query != self._asked:
            return
        self._busy(False)
        if int(graph.total_ns[0]) <= 0:
            words = self.tr("No device work was launched there.") if query.device else self.tr("Nothing ran there.")
            self._nothing(words)
            return
        whole = self.stretch.currentText()
        self._words = FlameWords(self._document.trace, graph, whole, device=query.device)
        self.view.name_of, self.view.words_of = self._words.short, self._words.about
        self.empty.hide()
        self._full.show()
        self.view.show_graph(graph)
        self._find(self.search.text())

    def _nothing(self, words: str) -> None:
        self._full.hide()
        self.empty.say(words)
        self.empty.show()

    def show_sandwich(self, node: int) -> None:
        """Show what calls the function of a box, and what it calls."""
        graph, asked = self.view.graph, self._asked
        if graph is None or asked is None or node <= 0 or int(graph.kind[node]) >= THREAD_KIND:
            self._session.set_status(self.tr("Click a box first: its callers and callees are shown then."))
            return
        jobs.run(
            self,
            lambda progress: (callers(graph, node), callees(graph, node)),
            partial(self._sandwich_came, graph, node, asked.device),
            self._session.raise_error,
            key=f"flame-sandwich-{id(self)}",
        )

    def _sandwich_came(self, graph: FlameGraph, node: int, device: bool, both: tuple[FlameGraph, FlameGraph]) -> None:
        shown = SandwichDialog(self._document.trace, graph, node, both, device=device, parent=self.window())
        shown.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        shown.opened.connect(self._document.go_to_slice)
        shown.show()

    # Folded stacks --------------------------------------------------------------------------------------------

    def copy_folded(self) -> None:
        """Put the graph into the clipboard as folded stacks."""
        if self.view.graph is not None and self._words is not None:
            QGuiApplication.clipboard().setText(folded(self._words, self.view.graph))

    def save_folded(self) -> None:
        """Ask where, and write the graph as folded stacks."""
        words, graph = self._words, self.view.graph
        if words is None or graph is None:
            return
        stem = names.file_stem(self._document.title)
        name, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save as folded stacks"), f"{stem}.folded.txt", self.tr("Folded stacks (*.txt *.folded)")
        )
        if name:
            path = Path(name)
            jobs.run(
                self,
                lambda progress: write_atomically(path, folded(words, graph).encode("utf-8", "replace")),
                lambda _done: self._session.set_status(self.tr("Saved {name}").format(name=path.name)),
                self._session.raise_error,
                key=f"folded-{id(self)}",
            )

    # Answers --------------------------------------------------------------------------------------------------

    def _open(self, node: int) -> None:
        graph = self.view.graph
        if graph is not None and int(graph.longest[node]) >= 0:
            self._document.go_to_slice(int(graph.longest[node]))

    def _zoomed(self) -> None:
        self.back.setEnabled(self.view.zoomed != 0)
        self._say_status()

    def _find(self, needle: str) -> None:
        graph, words = self.view.graph, self._words
        if graph is None or words is None:
            return
        if not needle.strip():
            if self._search is not None:
                self._search.cancel()
            self._found(graph, None)
        elif len(graph) <= AT_ONCE:
            self._found(graph, find(words, graph, needle))
        else:
            self._search = jobs.run(
                self,
                lambda progress: find(words, graph, needle),
                partial(self._found, graph),
                self._session.raise_error,
                key=f"flame-find-{id(self)}",
            )

    def _found(self, graph: FlameGraph, found: tuple[Bool, float] | None) -> None:
        if graph is not self.view.graph:
            return
        nodes, self._share = found if found is not None else (None, -1.0)
        self.view.set_found(nodes)
        self._say_status()

    def _say_status(self) -> None:
        graph = self.view.graph
        if graph is None or self._words is None:
            return
        parts = []
        if self._share >= 0:
            parts.append(self.tr("Found: {share} of all").format(share=text.percent(self._share)))
        if self.view.current > 0:
            parts.append(self._words.about(self.view.current).replace("\n", " · "))
        elif self._share < 0:
            parts.append(self.tr("Click a box to zoom, double-click to see its slowest call, Esc to go back."))
            if graph.unlinked_ns > 0:
                words = self.tr("{time} of device work has no launch in the trace and is not shown.")
                parts.append(words.format(time=text.duration(graph.unlinked_ns)))
        self.status.set_text(" · ".join(parts))

    _share = -1.0


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return FlamePanel(session, document)


PANEL = PanelSpec(
    "flame", "Flame graph", "bottom", create, tip="What ran, merged by who called it; boxes are as wide as their time"
)
