"""The code of the tour's example: what changes from one stage to the next, and how it is run here."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QDialog, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from core.run_folder import EXAMPLE
from gui.loop_fixes import near_lines
from gui.session import Session
from gui.widgets.code import CodeDiff
from gui.widgets.labels import button, heading, label


def stage_file(trace_name: str, offset: int = 0) -> Path | None:
    """Script behind one of the example's traces, or of a stage after it; None where it is not there."""
    found = re.search(r"stage(\d+)", trace_name)
    path = EXAMPLE / f"stage{int(found[1]) + offset}.py" if found else None
    return path if path is not None and path.is_file() else None


class StageDialog(QDialog):
    """The change of the code from one stage to the next, exact to the line.

    Parameters
    ----------
    before, after
        The two scripts.
    title
        What the change is about.
    """

    def __init__(self, before: Path, after: Path, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("What changes in the code"))
        self.resize(920, 560)
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        box.addWidget(heading(title, 2))
        words = self.tr("From {before} to {after}, as it was done by hand. Nothing else in the program changes.")
        box.addWidget(label(words.format(before=before.name, after=after.name), "dim", wrap=True))
        self.diff = CodeDiff(*near_lines(before.read_text("utf-8"), after.read_text("utf-8")), self.windowTitle())
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setWidget(self.diff)
        box.addWidget(area, 1)
        box.addWidget(label(str(EXAMPLE), "faint", mono=True, select=True))
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        box.addLayout(row)


class EndDialog(QDialog):
    """The end of the tour: what the fixes brought, and the way on to a script of one's own."""

    def __init__(self, session: Session, recap: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("The end of the tour"))
        self.setMinimumWidth(460)
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(10)
        box.addWidget(heading(self.tr("Now a script of your own"), 2))
        words = self.tr(
            "It runs as it is, in your own Python. Then the plan names the line, shows the change of your own code, "
            "and a changed copy is run to see whether it came true."
        )
        for said in (recap, words):
            if said:
                box.addWidget(label(said, "" if said == recap else "dim", wrap=True))
        row = QHBoxLayout()
        self.profile = button(self.tr("Profile a script…"), partial(self._go, "profile"), "primary")
        self.profile.setEnabled(session.can("profile"))
        row.addWidget(self.profile)
        row.addWidget(button(self.tr("Open a trace…"), partial(self._go, "open")))
        row.addStretch(1)
        row.addWidget(button(self.tr("Close"), self.reject))
        box.addLayout(row)

    def _go(self, service: str) -> None:
        self.accept()
        QTimer.singleShot(0, self._session, partial(self._session.ask, service))


def run_here(session: Session, script: Path) -> None:
    """Show the page that starts a run, filled with a stage of the example."""
    from profiling.interpreters import find_interpreters
    from profiling.spec import RunSpec

    settings, capture = session.ask("capture_settings"), session.ask("capture")
    if capture is None:
        return
    last = settings.get("runs/interpreters") if settings is not None else []
    found = find_interpreters(str(script), last)
    capture.show_launcher(RunSpec(found[0].path if found else sys.executable, str(script)), aside=True)
