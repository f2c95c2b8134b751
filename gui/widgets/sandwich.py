"""Callers and callees of one function in a window of their own: what calls it above, what it calls below."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QDialog, QSplitter, QVBoxLayout, QWidget

from core.figures.flame import FlameGraph
from core.figures.model import SyncTable
from core.figures.sandwich import callees, callers
from core.trace import Trace
from gui import jobs, text
from gui.models.flame_query import FlameQuery, FlameWords, threads_of
from gui.session import Document
from gui.text_size import px
from gui.widgets.flame_view import FlameView
from gui.widgets.labels import Elided, heading, label

SIZE_PX = 860, 560
Found = tuple[FlameGraph, int, tuple[FlameGraph, FlameGraph]]


def find_callers(trace: Trace, syncs: SyncTable | None, slice_id: int, progress: jobs.Progress) -> Found | None:
    """Merge callers and callees of what a slice is a call of, over all threads; None where no thread called it."""
    graph = FlameQuery(threads_of(trace), syncs=syncs).run(trace, progress)
    same = (graph.name_id == trace.slices.name_id[slice_id]) & (graph.kind == trace.slices.kind[slice_id])
    nodes = same.nonzero()[0]
    if not len(nodes):
        return None
    node = int(nodes[0])
    return graph, node, (callers(graph, node), callees(graph, node))


def show_callers(owner: QWidget, document: Document, slice_id: int, say: Callable[[str], None], said: str = "") -> None:
    """Show callers and callees of what a slice is a call of, once they are worked out; or say that nothing is known.

    Meanwhile ``say`` tells that they are worked out, and after it ``said`` again.
    """

    def came(found: Found | None) -> None:
        if found is None:
            say(QCoreApplication.translate("sandwich", "No call of it was found on a thread."))
            return
        say(said)
        graph, node, both = found
        shown = SandwichDialog(document.trace, graph, node, both, device=False, parent=owner.window())
        shown.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        shown.opened.connect(document.go_to_slice)
        shown.show()

    def failed(error: BaseException) -> None:
        say(said)
        raise error

    say(QCoreApplication.translate("sandwich", "Callers and callees are worked out…"))
    analysis = document.analysis
    syncs = analysis.figures.syncs if analysis is not None and len(analysis.figures.syncs) else None
    work = partial(find_callers, document.trace, syncs, slice_id)
    jobs.run(owner, work, came, failed, key=f"callers-{id(owner)}")


class SandwichDialog(QDialog):
    """Both directions from one box of a flame graph; a double click opens the slowest call of a box.

    Parameters
    ----------
    trace, graph, node
        The box that it is about.
    both
        What `core.figures.sandwich.callers` and `callees` say of it.
    device
        Times are those of the device.

    Signals
    -------
    opened(slice_id)
    """

    opened = Signal(int)

    def __init__(
        self,
        trace: Trace,
        graph: FlameGraph,
        node: int,
        both: tuple[FlameGraph, FlameGraph],
        *,
        device: bool,
        parent: QWidget | None,
    ) -> None:
        super().__init__(parent)
        words = FlameWords(trace, graph, "", device=device)
        self.setWindowTitle(self.tr("Callers and callees"))
        self.resize(px(SIZE_PX[0]), px(SIZE_PX[1]))
        name = heading("", 2)
        name.setText(text.elided(words.short(node), 80))
        name.setToolTip(text.elided(words.full(node), 300))
        self.callers, self.callees = FlameView(), FlameView()
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.setChildrenCollapsible(False)
        calls, called = self.tr("What calls it: a box is called by those below it"), self.tr("What it calls")
        none_calls, calls_none = self.tr("Nothing that is shown calls it."), self.tr("It calls nothing that is shown.")
        for view, made, said, nothing in (
            (self.callers, both[0], calls, none_calls),
            (self.callees, both[1], called, calls_none),
        ):
            if len(made) == 1:
                said = nothing
            view.setAccessibleName(said)
            about = FlameWords(trace, made, "", device=device)
            view.name_of, view.words_of = about.short, about.about
            view.show_graph(made)
            view.verticalScrollBar().setValue(0)  # the function itself stands on top
            view.opened.connect(lambda at, made=made: self._open(made, at))
            view.currentChanged.connect(lambda at, about=about: self._say(about, at))
            part = QWidget()
            column = QVBoxLayout(part)
            column.setContentsMargins(0, 0, 0, 0)
            column.addWidget(label(said, "dim"))
            column.addWidget(view, 1)
            parts.addWidget(part)
        self.status = Elided("", "dim")
        box = QVBoxLayout(self)
        box.addWidget(name)
        box.addWidget(parts, 1)
        box.addWidget(self.status)

    def _say(self, about: FlameWords, node: int) -> None:
        self.status.set_text(about.about(node).replace("\n", " · ") if node >= 0 else "")

    def _open(self, graph: FlameGraph, node: int) -> None:
        if int(graph.longest[node]) >= 0:
            self.opened.emit(int(graph.longest[node]))
