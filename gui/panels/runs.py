"""The runs that are kept: what each was, how it ended, its size on disk; reopened, renamed, moved to the bin."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QDateTime, QEvent, QFile, QItemSelectionModel, QLocale, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QShowEvent
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
from gui.text_size import px
from gui.widgets.labels import button, heading, label
from profiling.errors import ProfilingError
from profiling.manifest import default_runs_root
from profiling.runs import KeptRun, list_runs, rename
from profiling.spec import from_json

WHEN, FIGURES = 1, 3  # columns: the date, and the first of those with figures
ARROW_PX = 16
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
ROWS = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows


class RunsPage(QWidget):
    """Table of the runs. Uses ``runChanged``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: list[KeptRun] = []
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 24, 24, 16)
        box.setSpacing(12)
        self._shown: tuple[list[KeptRun], int, Qt.SortOrder] | None = None
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
        head = table.horizontalHeader()
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionsClickable(True)
        head.setSortIndicatorShown(True)
        head.setSortIndicator(WHEN, Qt.SortOrder.DescendingOrder)
        head.sortIndicatorChanged.connect(lambda _column, _order: self._show(self._runs))
        for column in range(FIGURES):
            item = table.horizontalHeaderItem(column)
            if item is not None:
                item.setTextAlignment(LEFT)
        table.setAccessibleName(self.tr("Runs that are kept"))
        table.itemSelectionChanged.connect(self._enable)
        table.itemDoubleClicked.connect(lambda _item: self._open())
        return table

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Show what there is now: folders come and go in the file manager, too."""
        super().showEvent(event)
        self.refresh()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """The same when the user comes back from another window."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow() and self.isVisible():
            self.refresh()

    def refresh(self) -> None:
        """Read the folder again, off the GUI thread."""
        settings = self._session.ask("capture_settings")
        chosen = settings.get("runs/folder") if settings is not None else ""
        root = default_runs_root() if not chosen else type(default_runs_root())(chosen)
        jobs.run(self, partial(_list, root), self._show, self._session.raise_error, key="runs")

    def _show(self, found: list[KeptRun]) -> None:
        keep = {run.folder for run in self.chosen()}
        head = self.table.horizontalHeader()
        column, order = head.sortIndicatorSection(), head.sortIndicatorOrder()
        found = sorted(found, key=partial(_sort_key, column), reverse=order == Qt.SortOrder.DescendingOrder)
        if self._shown == (found, column, order):
            return
        self._shown, self._runs = (found, column, order), found
        self.table.setRowCount(len(found))
        for row, run in enumerate(found):
            for place, words in enumerate(self._cells(run)):
                item = QTableWidgetItem(words)
                item.setTextAlignment(LEFT if place < FIGURES else RIGHT)
                self.table.setItem(row, place, item)
        self.table.clearSelection()
        picked = self.table.selectionModel()
        for row in [row for row, run in enumerate(found) if run.folder in keep]:
            picked.select(self.table.model().index(row, 0), ROWS)
        # Once for all: a header that measures by itself does so for each cell that is set, which took seconds.
        for place in range(1, self.table.columnCount()):
            self.table.resizeColumnToContents(place)
            self.table.setColumnWidth(place, self.table.columnWidth(place) + px(ARROW_PX))  # beside any title
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
        openable = [run for run in chosen if run.traces or not run.folder.is_dir()]  # gone: pressing says so
        self.buttons[0].setEnabled(len(chosen) == 1 and bool(openable))
        self.buttons[4].setEnabled(bool(chosen) and all(run.state != "running" for run in chosen))

    def _there(self) -> list[KeptRun]:
        """Chosen runs whose folder is still where it was; where one is not, says so and reads the list again."""
        chosen = self.chosen()
        gone = [run for run in chosen if not run.folder.is_dir()]
        if gone:
            self._session.raise_error(
                ProfilingError(
                    self.tr("The folder of {name} is not there any more.").format(name=gone[0].name),
                    str(gone[0].folder),
                    self.tr("It was moved, renamed or deleted outside StepLens. The list has been read again."),
                )
            )
            self.refresh()
        return [run for run in chosen if run not in gone]

    def _open(self) -> None:
        for run in self._there()[:1]:
            if run.traces:
                self._session.open([run.traces[0]], run.folder)

    def _again(self) -> None:
        capture = self._session.ask("capture")
        for run in self.chosen()[:1]:  # its folder is not needed for that
            try:
                spec = from_json(run.manifest.get("spec") or {})
            except (ProfilingError, TypeError) as error:
                self._session.raise_error(ProfilingError(self.tr("This run's settings cannot be read."), str(error)))
                return
            if capture is not None:
                capture.show_launcher(spec)

    def _rename(self) -> None:
        for run in self._there()[:1]:
            box = QInputDialog(self)
            box.setWindowTitle(self.tr("Rename"))
            box.setLabelText(self.tr("Name of the run"))
            box.setTextValue(run.name)
            box.resize(px(420), box.sizeHint().height())  # names are longer than Qt's field
            agreed, name = box.exec(), box.textValue()
            box.deleteLater()
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
        for run in self._there()[:1]:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(run.folder)))

    def _delete(self) -> None:
        chosen = self._there()
        if not chosen:
            return
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
        kept = [run for run in runs if run.folder.is_dir() and not _to_bin(str(run.folder))]
        if kept:
            title = text.counted(self.tr("{count} {count|run|runs} could not be moved to the bin."), len(kept))
            cure = self.tr("Delete what is not needed any more by hand.")
            self._session.raise_error(ProfilingError(title, "\n".join(str(run.folder) for run in kept), cure))
        self.refresh()


def _to_bin(folder: str) -> bool:
    moved = QFile.moveToTrash(folder)
    return bool(moved[0] if isinstance(moved, tuple) else moved)


def _sort_key(column: int, run: KeptRun) -> tuple[bool, float, str]:
    """What a column is sorted by: numbers as such, unknown ones as the least; else words."""
    steps = run.manifest.get("steps") or {}
    wall = steps.get("wall_step_us")
    numbers: dict[int, float | None] = {
        1: run.created,
        3: float(len(steps.get("recorded") or [])),
        4: float(wall) if isinstance(wall, int | float) else None,
        6: float(run.size_bytes),
    }
    words = {0: run.name, 2: run.state, 5: str(run.manifest.get("torch") or "")}.get(column, "")
    number = numbers.get(column)
    return number is not None, number or 0.0, words.casefold()


def _list(root: object, progress: jobs.Progress) -> list[KeptRun]:
    from pathlib import Path

    progress(0.0, "")
    assert isinstance(root, Path)
    return list_runs(root)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return RunsPage(session)


PANEL = PanelSpec("runs", "Runs", "page", create)
