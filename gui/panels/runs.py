"""The runs that are kept: what each was, how it ended, its size on disk; reopened, renamed, moved to the bin."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QDateTime, QFile, QLocale, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QMessageBox,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from gui import jobs, text
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import button, heading, label
from profiling.errors import ProfilingError
from profiling.manifest import default_runs_root
from profiling.runs import KeptRun, list_runs, rename
from profiling.spec import from_json


class RunsPage(QWidget):
    """Table of the runs. Uses ``runChanged``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: list[KeptRun] = []
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 24, 24, 16)
        box.setSpacing(12)
        self.sum = label("", "dim")
        row = QHBoxLayout()
        row.addWidget(heading(self.tr("Runs"), 6))
        row.addStretch(1)
        row.addWidget(self.sum)
        box.addLayout(row)
        self.table = self._table()
        box.addWidget(self.table, 1)
        self.buttons = [
            button(self.tr("Open trace"), self._open, "primary"),
            button(self.tr("Run again…"), self._again),
            button(self.tr("Rename…"), self._rename),
            button(self.tr("Show folder"), self._show_folder),
            button(self.tr("Delete…"), self._delete, tip=self.tr("Moves the run's folder to the bin")),
        ]
        row = QHBoxLayout()
        for made in self.buttons:
            row.addWidget(made)
        row.addStretch(1)
        box.addLayout(row)
        session.runChanged.connect(self.refresh)
        self.refresh()

    def _table(self) -> QTableWidget:
        titles = (
            self.tr("Name"), self.tr("When"), self.tr("Ended"), self.tr("Steps"), self.tr("Step without profiler"),
            self.tr("torch"), self.tr("Size"),
        )  # fmt: skip
        table = QTableWidget(0, len(titles))
        table.setHorizontalHeaderLabels(list(titles))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.verticalHeader().setVisible(False)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(3):
            head = table.horizontalHeaderItem(column)
            if head is not None:
                head.setTextAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        table.setAccessibleName(self.tr("Runs that are kept"))
        table.itemSelectionChanged.connect(self._enable)
        table.itemDoubleClicked.connect(lambda _item: self._open())
        return table

    def refresh(self) -> None:
        """Read the folder again, off the GUI thread."""
        settings = self._session.ask("capture_settings")
        chosen = settings.get("runs/folder") if settings is not None else ""
        root = default_runs_root() if not chosen else type(default_runs_root())(chosen)
        jobs.run(self, partial(_list, root), self._show, self._session.raise_error, key="runs")

    def _show(self, found: list[KeptRun]) -> None:
        keep = {run.folder for run in self.chosen()}
        self._runs = found
        self.table.setRowCount(len(found))
        for row, run in enumerate(found):
            for column, words in enumerate(self._cells(run)):
                item = QTableWidgetItem(words)
                if column >= 3:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.table.setItem(row, column, item)
            if run.folder in keep:
                self.table.selectRow(row)
        total = sum(run.size_bytes for run in found)
        self.sum.setText(
            self.tr("Kept: {count} · {size} on disk").format(count=text.count(len(found)), size=text.size(total))
        )
        self._enable()

    def _cells(self, run: KeptRun) -> tuple[str, ...]:
        steps = run.manifest.get("steps") or {}
        when = QDateTime.fromSecsSinceEpoch(int(run.created))
        wall = steps.get("wall_step_us")
        return (
            run.name,
            QLocale().toString(when, QLocale.FormatType.ShortFormat) if run.created else text.unknown(),
            self._state(run.state),
            text.count(len(steps.get("recorded") or [])),
            text.duration(wall * 1e3) if isinstance(wall, int | float) else "–",
            str(run.manifest.get("torch") or "–"),
            text.size(run.size_bytes),
        )

    def _state(self, state: str) -> str:
        return {
            "ok": self.tr("normally"),
            "failed": self.tr("failed"),
            "stopped": self.tr("stopped"),
            "killed": self.tr("stopped by force"),
            "running": self.tr("still running"),
            "lost": self.tr("lost with the app"),
        }.get(state, state)

    def chosen(self) -> list[KeptRun]:
        """Runs of the selected rows."""
        rows = {index.row() for index in self.table.selectionModel().selectedRows()}
        return [self._runs[row] for row in sorted(rows) if row < len(self._runs)]

    def _enable(self) -> None:
        chosen = self.chosen()
        for made in self.buttons:
            made.setEnabled(len(chosen) == 1)
        self.buttons[0].setEnabled(len(chosen) == 1 and bool(chosen[0].traces))
        self.buttons[4].setEnabled(bool(chosen) and all(run.state != "running" for run in chosen))

    def _open(self) -> None:
        for run in self.chosen()[:1]:
            if run.traces:
                self._session.open([run.traces[0]], run.folder)

    def _again(self) -> None:
        capture = self._session.ask("capture")
        for run in self.chosen()[:1]:
            try:
                spec = from_json(run.manifest.get("spec") or {})
            except (ProfilingError, TypeError) as error:
                self._session.raise_error(ProfilingError(self.tr("This run's settings cannot be read."), str(error)))
                return
            if capture is not None:
                capture.show_launcher(spec)

    def _rename(self) -> None:
        for run in self.chosen()[:1]:
            name, agreed = QInputDialog.getText(self, self.tr("Rename"), self.tr("Name of the run"), text=run.name)
            if agreed:
                self.rename(run, name)

    def rename(self, run: KeptRun, name: str) -> None:
        """Give a run another name."""
        try:
            rename(run.folder, name)
        except ProfilingError as error:
            self._session.raise_error(error)
        self.refresh()

    def _show_folder(self) -> None:
        for run in self.chosen()[:1]:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(run.folder)))

    def _delete(self) -> None:
        chosen = self.chosen()
        total = text.size(sum(run.size_bytes for run in chosen))
        question = text.counted(self.tr("Move {count} {count|run|runs} ({size}) to the bin?"), len(chosen), size=total)
        box = QMessageBox(QMessageBox.Icon.NoIcon, self.tr("Delete"), question, parent=self)
        go = box.addButton(self.tr("Move to the bin"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(self.tr("Keep"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        box.exec()
        if box.clickedButton() is go:
            self.delete(chosen)

    def delete(self, runs: list[KeptRun]) -> None:
        """Move run folders to the bin; where there is none, nothing is deleted and the user is told."""
        for run in runs:
            moved = QFile.moveToTrash(str(run.folder))
            if not (moved[0] if isinstance(moved, tuple) else moved):
                self._session.raise_error(
                    ProfilingError(
                        self.tr("The run could not be moved to the bin."),
                        str(run.folder),
                        self.tr("Delete the folder by hand if it is not needed any more."),
                    )
                )
        self.refresh()


def _list(root: object, progress: jobs.Progress) -> list[KeptRun]:
    from pathlib import Path

    progress(0.0, "")
    assert isinstance(root, Path)
    return list_runs(root)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return RunsPage(session)


PANEL = PanelSpec("runs", "Runs", "page", create)
