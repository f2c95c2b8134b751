"""Details of the selected slice: what it is, what it waits for, where it comes from, and how it compares."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFormLayout, QGridLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

from core.card_lines import CardLines
from core.errors import TraceError
from core.figures.names import is_launch
from core.kinds import DEVICE_WORK, HOST_CALLS, CopyDirection, HostMemory, SliceKind
from core.source_frames import is_user_frame, parse_old_stack
from core.tables import FLAG_CROSSING, FLAG_NO_DURATION, FLAG_UNFINISHED
from core.words import plain_name
from gui import jobs, text
from gui.models import args_text, slice_facts
from gui.models.thread_titles import track_words
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.empty import EmptyState
from gui.widgets.flow import FlowLayout
from gui.widgets.labels import Elided, button, label
from gui.widgets.same_name import SameName
from gui.widgets.slice_title import SliceTitle
from gui.widgets.wrapped_link import WrappedLink

WIDE_PX = 820
MAX_LINKS = 6
MAX_FRAMES = 40


class DetailsPanel(QScrollArea):
    """Uses the document's ``selectionChanged`` and ``analysisChanged``."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._slice = -2
        self.setWidgetResizable(True)
        self.setAccessibleName(self.tr("Details of the selected slice"))
        self.setProperty("role", "view")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # to scroll with the keys
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inner = QWidget()
        self._inner.setObjectName("scrolled")
        self._grid = QGridLayout(self._inner)
        self._grid.setContentsMargins(16, 6, 16, 10)
        self._grid.setHorizontalSpacing(32)
        self._grid.setVerticalSpacing(6)
        self.setWidget(self._inner)
        self._columns: list[QWidget] = []
        self._title: list[QWidget] = []  # the name, across all columns
        self._args: QVBoxLayout | None = None
        self._has_source = False  # the line of the selected slice is known
        document.selectionChanged.connect(self.show_slice)
        document.analysisChanged.connect(self._analysis_came)
        self.show_slice()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Columns beside or under each other."""
        super().resizeEvent(event)
        self._place()

    def _analysis_came(self) -> None:
        self._slice = -2
        self.show_slice()

    def show_slice(self) -> None:
        """Show the selected slice."""
        chosen = self._document.selected_slice
        if chosen == self._slice:
            return
        self._slice = chosen
        for widget in [*self._columns, *self._title]:
            self._grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._columns, self._title, self._args = [], [], None
        if chosen < 0 or chosen >= len(self._document.trace.slices):
            self._columns = [self._nothing()]
        else:
            trace = self._document.trace
            self._title = [SliceTitle(slice_facts.brief_name(trace, chosen), trace.name(chosen))]
            self._columns = [self._facts(chosen), SameName(self._document, chosen), self._stack(chosen)]
            self._read_args(chosen)
        self._place()

    def _place(self) -> None:
        wide = self.viewport().width() >= px(WIDE_PX)
        for k, widget in enumerate(self._columns):
            self._grid.removeWidget(widget)
            self._grid.addWidget(widget, 1 if wide else k + 1, k if wide else 0, Qt.AlignmentFlag.AlignTop)
        for same in self._columns:
            if isinstance(same, SameName):
                same.fit_to(self.viewport().height())
        for widget in self._title:
            self._grid.removeWidget(widget)
            self._grid.addWidget(widget, 0, 0, 1, 3 if wide else 1)
        for k, share in enumerate((5, 3, 4)):
            self._grid.setColumnStretch(k, share if wide and len(self._columns) > 1 else (1 if k == 0 else 0))
        for k in range(5):
            self._grid.setRowStretch(k, 0)
        self._grid.setRowStretch(5, 1)

    def _nothing(self) -> QWidget:
        words = EmptyState(
            self.tr("Nothing is selected."),
            self.tr("Click a slice in the timeline, or a suggestion at the right. J and L go along the sync points."),
        )
        layout = words.layout()
        assert layout is not None
        layout.setContentsMargins(0, 0, 0, 0)
        return words

    # Left: facts ---------------------------------------------------------------------------------------------

    def _facts(self, i: int) -> QWidget:
        trace, s, tr = self._document.trace, self._document.trace.slices, self.tr
        widget = QWidget()
        form = QFormLayout(widget)
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(4)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        _add(form, tr("Kind"), Elided(self._kind(i)))
        _add(form, tr("Time"), Elided(self._times(i)))
        _add(form, tr("Start"), Elided(self._start(i)))
        waits = self._waits(i)
        if waits is not None:
            _add(form, tr("Waits for"), waits)
        if s.kind[i] == SliceKind.MEMCPY or s.copy_bytes[i] >= 0:
            _add(form, tr("Copy"), Elided(self._copy(i)))
        delay = slice_facts.queue_delay_ns(trace, i) if int(s.kind[i]) in DEVICE_WORK else None
        if delay is not None:
            words = tr("{time} from launch to start").format(time=text.duration(delay))
            _add(form, tr("Queue delay"), Elided(words))
        chain = slice_facts.op_chain(trace, i)
        if chain:
            _add(form, tr("Under"), self._links(chain[:MAX_LINKS], " ← "))
        around = slice_facts.innermost_range(trace, i)
        if around >= 0:
            _add(form, tr("Range"), self._links([around]))
        self._add_flows(form, i)
        source = self._source(i)
        self._has_source = source is not None
        if source is not None:
            _add(form, tr("Source"), source)
        return widget

    def _kind(self, i: int) -> str:
        trace, s = self._document.trace, self._document.trace.slices
        track = int(s.track_id[i])
        parts = [text.kind_name(int(s.kind[i])), track_words(trace, track)[0]]
        if s.correlation_id[i] >= 0:
            parts.append(self.tr("correlation {number}").format(number=int(s.correlation_id[i])))
        for flag, words in (
            (FLAG_UNFINISHED, self.tr("never ended in the trace")),
            (FLAG_CROSSING, self.tr("crosses another slice")),
            (FLAG_NO_DURATION, self.tr("no valid duration")),
        ):
            if s.flags[i] & flag:
                parts.append(words)
        return " · ".join(p for p in parts if p)

    def _times(self, i: int) -> str:
        trace, s = self._document.trace, self._document.trace.slices
        parts = [self.tr("{total} total").format(total=text.duration(int(s.dur_ns[i])))]
        own = slice_facts.self_ns(trace, i)
        if own != s.dur_ns[i]:  # as in the tooltip: calls below a range or frame lie on another track
            parts.append(self.tr("{own} self").format(own=text.duration(own)))
        return " · ".join(parts)

    def _start(self, i: int) -> str:
        trace, s = self._document.trace, self._document.trace.slices
        parts = [text.duration(int(s.start_ns[i]))]
        analysis = self._document.analysis
        step = int(analysis.figures.step_of[i]) if analysis is not None else -1
        if analysis is not None and step >= 0:
            steps = analysis.figures.steps
            parts.append(
                self.tr("{time} into {step}").format(
                    time=text.duration(int(s.start_ns[i] - steps.start_ns[step])),
                    step=trace.strings[int(steps.name_id[step])] or self.tr("step {number}").format(number=step),
                )
            )
        return " · ".join(parts)

    def _waits(self, i: int) -> QWidget | None:
        analysis = self._document.analysis
        row = slice_facts.sync_row(analysis.figures if analysis else None, i)
        if row < 0 or analysis is None:
            return None
        syncs = analysis.figures.syncs
        wait_ns, waited = int(syncs.wait_ns[row]), int(syncs.waited_id[row])
        if wait_ns == 0:  # it did not block: nothing to be red about
            return label(self.tr("nothing: it returned without waiting"))
        wait = self.tr("{time} waited").format(time=text.duration(wait_ns))
        if waited < 0:
            return label(self.tr("{wait}, for work that is not in the trace").format(wait=wait), "wait")
        widget = self._links([waited])
        made = label(wait, "wait")
        layout = widget.layout()
        assert layout is not None
        layout.addWidget(made)
        return widget

    def _copy(self, i: int) -> str:
        s, parts = self._document.trace.slices, []
        direction = CopyDirection(int(s.direction[i]))
        names = {
            CopyDirection.HTOD: self.tr("host to device"),
            CopyDirection.DTOH: self.tr("device to host"),
            CopyDirection.DTOD: self.tr("device to device"),
            CopyDirection.HTOH: self.tr("host to host"),
            CopyDirection.PTOP: self.tr("between devices"),
        }
        if direction in names:
            parts.append(names[direction])
        if s.copy_bytes[i] >= 0:
            parts.append(text.size(int(s.copy_bytes[i])))
            if int(s.kind[i]) in DEVICE_WORK:
                parts.append(text.rate(int(s.copy_bytes[i]), int(s.dur_ns[i])))
        memory = HostMemory(int(s.host_memory[i]))
        if memory is not HostMemory.UNKNOWN:
            pageable = memory is HostMemory.PAGEABLE
            parts.append(self.tr("pageable host memory") if pageable else self.tr("pinned host memory"))
        return " · ".join(parts) or text.unknown()

    def _add_flows(self, form: QFormLayout, i: int) -> None:
        trace, tr = self._document.trace, self.tr
        if int(trace.slices.kind[i]) in DEVICE_WORK:
            launch = int(trace.links.launch_of[i])
            words = label(tr("not in the trace"), "dim")
            _add(form, tr("Launched by"), self._links([launch]) if launch >= 0 else words)
        work = slice_facts.launched(trace, i)
        if len(work):
            time = text.duration(int(trace.slices.dur_ns[work].sum())) if len(work) > 1 else ""
            _add(form, tr("Launches"), self._links([int(k) for k in work[:MAX_LINKS]], "", len(work), time))
        elif int(trace.slices.kind[i]) in HOST_CALLS and is_launch(trace.name(i)):
            _add(form, tr("Launches"), label(tr("nothing that is in the trace"), "dim"))
        forward, backward = slice_facts.partners(trace, i)
        if forward:
            _add(form, tr("Forward"), self._links(forward[:MAX_LINKS], "", len(forward)))
        if backward:
            _add(form, tr("Backward"), self._links(backward[:MAX_LINKS], "", len(backward)))

    def _source(self, i: int) -> QWidget | None:
        from core.source import SourceFinder, lines_in_words

        found = (self._document.finder or SourceFinder(self._document.trace)).of_slice(i)
        if found is None:
            return None
        found = self._card_lines().better(i, found) or found
        words = text.place(found.file, found.line) + (f" · {found.function}" if found.function else "")
        if found.candidates:
            words += " " + self.tr("(or {lines})").format(lines=lines_in_words(found.candidates))
        elif not found.exact:  # a file's own code has no line at which it begins
            at_top = found.function == "<module>"
            words += " " + (self.tr("(not the exact line)") if at_top else self.tr("(line of the function)"))
        return WrappedLink(words, partial(self._session.ask, "open_source", found.file, found.line), found.file)

    def _card_lines(self) -> CardLines:
        analysis = self._document.analysis
        return CardLines(self._document.trace, analysis.suggestions if analysis is not None else ())

    def _links(self, ids: list[int], between: str = "", total: int = 0, time: str = "") -> QWidget:
        """Slices as links that select and zoom; how many there are when not all are listed, and their time if given."""
        widget = QWidget()
        row = FlowLayout(spacing=4)
        widget.setLayout(row)
        for k, i in enumerate(ids):
            if k and between:
                row.addWidget(label(between.strip(), "faint"))
            name = text.elided(slice_facts.brief_name(self._document.trace, i), 46)
            made = button(name, partial(self._document.go_to_slice, i), "link", self._document.trace.name(i)[:1000])
            made.setAccessibleName(self.tr("Go to {name}").format(name=name))
            row.addWidget(made)
        words = [self.tr("… {count} in all").format(count=text.count(total))] if total > len(ids) else []
        if words or time:
            row.addWidget(label(" · ".join((*words, *filter(None, [time]))), "dim"))
        return widget

    # Right: Python stack and arguments -----------------------------------------------------------------------

    def _stack(self, i: int) -> QWidget:
        widget = QWidget()
        box = QVBoxLayout(widget)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(label(self.tr("Python stack, innermost first"), "dim"))
        frames = slice_facts.python_stack(self._document.trace, i)
        for frame in frames[:MAX_FRAMES]:
            name = self._document.trace.name(frame)
            made = button(text.elided(plain_name(name), 64), partial(self._open_frame, frame), "link", name[:1000])
            made.setProperty("library", not is_user_frame(name))  # one's own lines stand out
            box.addWidget(made)
        self._no_stack = label(self._why_no_stack(), "faint", wrap=True)
        if not frames:
            box.addWidget(self._no_stack)
        elif len(frames) > MAX_FRAMES:
            box.addWidget(label(self.tr("… {count} in all").format(count=len(frames)), "faint"))
        box.addSpacing(8)
        box.addWidget(label(self.tr("Arguments"), "dim"))
        self._args = QVBoxLayout()
        self._args.setSpacing(2)
        box.addLayout(self._args)
        self._args.addWidget(label(self.tr("Reading…"), "faint"))
        return widget

    def _why_no_stack(self) -> str:
        """What is said in place of frames, until the arguments are there: older recordings keep the calls in them."""
        if (self._document.trace.slices.kind == SliceKind.PYTHON).any():
            return self.tr("None was recorded here.")
        if self._has_source:
            return self.tr("No frames were recorded; the line is known from the recorded calls.")
        return self.tr("None recorded here. Record with with_stack=True to see the lines of code.")

    def _open_frame(self, frame: int) -> None:
        place = args_text.frame_place(self._document.trace.name(frame))
        if place is None:
            self._document.go_to_slice(frame)
        else:
            self._session.ask("open_source", *place)

    def _read_args(self, i: int) -> None:
        jobs.run(
            self,
            lambda progress: self._document.trace.args(i),
            partial(self._args_came, i),
            partial(self._no_args, i),
            key=f"args-{id(self)}",
        )

    def _args_came(self, i: int, args: dict[str, Any]) -> None:
        if i != self._slice or self._args is None:
            return
        _clear(self._args)
        lines = args_text.with_rate(args_text.lines(args), args, *slice_facts.time_at_work_ns(self._document.trace, i))
        widget = QWidget()
        form = QFormLayout(widget)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(1)
        for name, value in lines:
            _add(form, name, Elided(value, mono=True))
        self._args.addWidget(widget if lines else label(self.tr("None."), "faint"))
        if calls := parse_old_stack(str(args.get("Call stack") or "")):
            names = [f"{text.place(f.file, f.line)} {f.function}" for f in calls[:MAX_FRAMES]]
            self._no_stack.setText("\n".join(text.elided(name, 64) for name in names))

    def _no_args(self, i: int, error: BaseException) -> None:
        if i != self._slice or self._args is None:
            return
        _clear(self._args)
        if not isinstance(error, TraceError):
            self._session.raise_error(error)
        self._args.addWidget(label(str(error), "warn", wrap=True))


def _add(form: QFormLayout, name: str, widget: QWidget) -> None:
    title = label(text.elided(name, 40), "dim")
    title.setBuddy(widget)
    form.addRow(title, widget)


def _clear(layout: QLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return DetailsPanel(session, document)


PANEL = PanelSpec(
    "details", "Details", "bottom", create, tip="All about the selected slice: times, waits, source line, arguments"
)
