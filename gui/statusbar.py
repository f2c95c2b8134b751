"""The bottom line: what was recorded, what there is to know, and the keys."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from core.call_stacks import has_call_stacks
from core.recorded import has_python_stacks, has_shapes
from core.words import fill
from gui import text
from gui.ranks import steps_text
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.labels import Elided, button, label, plain_tip

FRESH_MS = 1_500  # what was said so shortly before a page belongs to it
COPIED_LETTERS = 80  # of what was copied
LEAST_COUNTS_PX = 140  # of what was recorded, with the margins: the keys are left out before
SAID_MS = 12_000  # time to read one sentence with a path in it


def copied_here() -> bool:
    """Whether what is on the clipboard is this program's."""
    return QGuiApplication.clipboard().ownsClipboard()


class StatusBar(QFrame):
    """Uses ``currentChanged``, ``statusChanged`` and the document's ``analysisChanged``."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._document: Document | None = None
        self.setObjectName("status")
        self.counts = Elided("", "dim", at_end=True)  # what was said last stands in front
        self.chip = button("", lambda: session.panelRequested.emit("import_report"), "chip")
        self.keys = label("", "faint")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 12, 0)
        row.setSpacing(16)
        row.addWidget(self.counts, 1)
        row.addWidget(self.chip)
        row.addWidget(self.keys)
        self._fit()
        self._leaves = QTimer(self)  # what was said is for now: it leaves, and is not said of another trace
        self._leaves.setSingleShot(True)
        self._leaves.setInterval(SAID_MS)
        self._leaves.timeout.connect(self.clear)
        session.currentChanged.connect(self._follow)
        session.statusChanged.connect(self._said)
        QGuiApplication.clipboard().dataChanged.connect(self._copied)
        self._follow()

    def clear(self) -> None:
        """Take away what was said last."""
        if self._session.status:
            self._session.set_status("")

    def turn_page(self) -> None:
        """Another page is shown: what was said of the one before is over, what was said with the change is not."""
        if 0 <= self._leaves.remainingTime() < SAID_MS - FRESH_MS:
            self.clear()

    def _said(self) -> None:
        if self._session.status:
            self._leaves.start()
        else:
            self._leaves.stop()
        self._show()

    def _copied(self) -> None:
        """Say what was copied, wherever in the window that was: nothing else shows it."""
        if not copied_here():
            return
        first, *more = QGuiApplication.clipboard().text()[:2000].strip().split("\n")
        words = text.elided(first, COPIED_LETTERS) + (" …" if more and first else "")
        copied = self.tr("Copied: {words}").format(words=words) if words else self.tr("Copied")
        self._session.set_status(copied)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the keys out rather than cut them."""
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        chip_px = 0 if self.chip.isHidden() else self.chip.sizeHint().width() + px(16)
        taken_px = self.keys.sizeHint().width() + chip_px + px(LEAST_COUNTS_PX)
        self.keys.setVisible(taken_px <= self.width())

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(px(26))
        if hasattr(self, "chip"):  # the font of the application comes before the parts
            self.chip.setFixedHeight(px(18))

    def _follow(self) -> None:
        if self._document is not None:
            self._document.analysisChanged.disconnect(self._show)
        self._document = self._session.current
        if self._document is not None:
            self._document.analysisChanged.connect(self._show)
            self._document.destroyed.connect(self._forget)
        self._show()

    def _forget(self) -> None:
        if self._document is not self._session.current:
            self._document = None

    def _show(self) -> None:
        document = self._document
        self.keys.setText(self._hints(document is not None))
        self.chip.setVisible(False)
        if document is None:
            self.counts.set_text(self._session.status)
            self._make_room()
            return
        parts = [self._session.status] if self._session.status else []
        self.counts.set_text(" · ".join([*parts, *self.facts(document)]))
        notes = things_to_know(document)
        if notes:
            words = text.counted(self.tr("{count} {count|thing|things} to know about this trace"), len(notes))
            self.chip.setText(words)
            self.chip.setAccessibleName(words)
            self.chip.setToolTip(plain_tip("\n".join(f"• {n}" for n in notes[:12])))
            self.chip.setVisible(True)
        self._make_room()

    def _hints(self, trace_shown: bool) -> str:
        if trace_shown:
            return self.tr("W A S D move · F fit · J L syncs · N next · ? keys")
        return self.tr("Ctrl+O open · Ctrl+Shift+P all commands · ? keys")

    def facts(self, document: Document) -> list[str]:
        """Counts, versions and what was recorded."""
        trace, meta = document.trace, document.trace.meta
        figures = document.analysis.figures if document.analysis else None
        steps = len(figures.steps) if figures else len(trace.steps)
        facts = [text.counted(self.tr("{count} {count|slice|slices}"), len(trace.slices))]
        inferred = figures is not None and figures.summary.inferred
        name = self.tr("{count} inferred steps") if inferred else self.tr("{count} steps")
        if steps == 1 and not inferred:
            name = self.tr("1 step")
        each = steps_text(trace, figures.steps if figures else trace.steps)
        facts.append(each or (name.format(count=text.count(steps)) if steps else self.tr("no steps")))
        if meta.simulated:
            facts.append(self.tr("simulated"))
        if meta.torch_version:
            facts.append(f"torch {meta.torch_version}")
        if meta.rank is not None:
            facts.append(self.tr("rank {rank}").format(rank=meta.rank))
        facts += sorted({d.name for d in meta.devices if d.name})[:2]
        flags = self._recorded(document)
        none = self.tr("recorded without stacks, shapes, memory")
        if flags or document.analysis is not None:  # before it nothing is denied that events may yet show
            facts.append(self.tr("recorded with {flags}").format(flags=", ".join(flags)) if flags else none)
        return facts

    def _recorded(self, document: Document) -> list[str]:
        trace = document.trace
        flags = []
        looked = document.analysis is not None  # then events were looked at for the figures, and this is fast
        if has_python_stacks(trace):
            flags.append(self.tr("stacks"))
        elif looked and has_call_stacks(trace):
            flags.append(self.tr("call stacks of operators"))
        if has_shapes(trace) if looked else trace.meta.record_shapes:
            flags.append(self.tr("shapes"))
        if len(trace.memory):  # what was asked for and never came is not recorded
            flags.append(self.tr("memory"))
        return flags


def things_to_know(document: Document) -> list[str]:
    """Titles of what the importer and the doctor found odd (not of plain information)."""
    notes = [
        fill(n.title, {"count": n.count}, {"count": text.count(n.count)})
        for n in document.trace.report.notes
        if n.severity != "info"
    ]
    if document.analysis is not None:
        said = {n.headline for n in document.trace.report.notes}
        notes += [n.title for n in document.analysis.figures.doctor if n.severity != "info" and n.title not in said]
    return notes
