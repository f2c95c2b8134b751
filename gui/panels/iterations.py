"""The rounds of one script: what was fixed, what it brought, whether the prediction held and the results stayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QSplitter, QVBoxLayout, QWidget

from core.judging import is_same_code, judge
from core.project import Iteration, Project
from core.results import ResultCheck
from core.round_checks import checks_of
from gui import round_chart, round_tips, round_words
from gui.compare_rounds import RoundsCompared
from gui.models.columns import Column, ColumnModel
from gui.panels import PanelSpec
from gui.round_buttons import PLANNED, RoundButtons
from gui.round_state import again_words
from gui.session import Document, Session
from gui.text_size import px
from gui.widgets.calm import CalmCombo
from gui.widgets.code import CodeDiff
from gui.widgets.labels import button, heading, label, restyle
from gui.widgets.scrolled import scrolled
from gui.widgets.steady import Steady
from gui.widgets.step_chart import CHART_PX, StepChart
from gui.widgets.table import Table

if TYPE_CHECKING:
    from gui.loop import Loop


NAME_PX = 190
LOW_PX, VERY_LOW_PX, LOW_CHART_PX = 600, 400, 92  # of the page: the chart gives way to the table
ELSEWHERE_MS = 2000  # between two looks at what another window runs
BELOW_PX = 130  # of the chosen round, at least
LEAST_ROWS = 4  # of the table, shown however small the window is


class IterationsPage(QWidget):
    """The iteration table. Uses ``changed`` of ``gui.loop.Loop``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._compared = RoundsCompared(session, self)
        self._loop: Loop | None = session.ask("loop")
        self._chosen: int | None = None
        self.undo_round: QPushButton | None = None
        self._known_checks: dict[int, ResultCheck] = {}
        box = scrolled(self, self.tr("Rounds"))
        box.setContentsMargins(24, 24, 24, 16)
        box.setSpacing(10)
        self.title = heading("", 6)
        self.words = Steady("dim")
        self.scripts = CalmCombo()
        self.scripts.setAccessibleName(self.tr("Script"))
        self.scripts.give_way(letters=18)
        self.scripts.activated.connect(self._script_chosen)
        top = QHBoxLayout()
        top.addWidget(self.title)
        top.addStretch(1)
        top.addWidget(self.scripts)
        box.addLayout(top)
        box.addWidget(self.words)
        self.chart = StepChart()
        box.addWidget(self.chart)
        self.caption = label("", "faint", wrap=True)
        box.addWidget(self.caption)
        self.model = ColumnModel([])
        self.table = Table(self.model, self._open_row)
        self.table.setAccessibleName(self.tr("Rounds"))
        self.table.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.table.selectionModel().currentRowChanged.connect(self._row_chosen)
        inner = QWidget()
        inner.setObjectName("scrolled")
        self._below_box = QVBoxLayout(inner)
        self._below_box.setContentsMargins(0, 8, 8, 0)
        self.below = QScrollArea()
        self.below.setWidgetResizable(True)
        self.below.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.below.setWidget(inner)
        self.split = QSplitter(Qt.Orientation.Vertical)
        self.split.setChildrenCollapsible(False)
        self.below.setMinimumHeight(px(BELOW_PX))
        self.split.addWidget(self.table)
        self.split.addWidget(self.below)
        self.split.setStretchFactor(1, 1)
        box.addWidget(self.split, 1)
        self.undo = button("", self._undo)
        box.addWidget(self.undo, 0, Qt.AlignmentFlag.AlignLeft)
        session.themeChanged.connect(self._recolour)
        if self._loop is not None:
            self._loop.changed.connect(self.show_all)
            if self._loop.project is None:
                self._loop.shown.recall()
        self._elsewhere = QTimer(self, interval=ELSEWHERE_MS)
        self._elsewhere.timeout.connect(self._look_elsewhere)
        self.show_all()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Nobody looks."""
        super().hideEvent(event)
        self._elsewhere.stop()

    def _list_scripts(self) -> None:
        """Offer the scripts that have rounds; those that are kept on disk too."""
        found = self._loop.projects() if self._loop is not None else []
        shown = self.project()
        self.scripts.clear()
        for project in found:
            self.scripts.addItem(round_words.script_name(project), project)
        folders = [project.folder for project in found]
        self.scripts.setCurrentIndex(folders.index(shown.folder) if shown and shown.folder in folders else -1)
        self.scripts.setVisible(len(found) > 1)

    def _script_chosen(self, at: int) -> None:
        if self._loop is not None:
            self._loop.show_project(self.scripts.itemData(at))

    def project(self) -> Project | None:
        """The project that is shown."""
        return self._loop.project if self._loop is not None else None

    def show_all(self) -> None:
        """Show the rounds of the script that is looked at."""
        self._list_scripts()
        project = self.project()
        rounds = project.iterations if project is not None else ()
        for widget in (self.table, self.below):
            widget.setVisible(bool(rounds))
        self._fit_chart()
        if project is None or not rounds:
            self._name_undo()
            self.title.setText(self.tr("No rounds yet"))
            self.words.setText(
                self.tr(
                    "Profile a script from here, choose a suggestion and apply it to a copy: the copy runs with the "
                    "same options, and this table shows what each fix really brought."
                )
            )
            return
        self.title.setText(Path(project.script).name)
        checks = self._known_checks = checks_of(project)
        self.words.keep_room_for([round_words.verdict(project, checks, i.number, again_words) for i in rounds])
        self.chart.show_rounds(round_chart.bars(project), round_chart.least(project), round_chart.without_bar(project))
        self.caption.setText(round_chart.caption(project, self.chart.cuts))
        self.model.replace(self._columns(project, checks))
        self.table.fit_columns(NAME_PX)
        if self.isVisible():
            QTimer.singleShot(0, self, self._share_room)
        judged = self._loop.judged if self._loop is not None else None
        self.choose(judged[1] if judged is not None and judged[0] == project.folder else rounds[-1].number)

    def _table_px(self, rows: int) -> int:
        """Height of the table with so many rows, its head and its horizontal bar."""
        head, bar = self.table.horizontalHeader().sizeHint().height(), self.table.horizontalScrollBar()
        return (
            head
            + rows * self.table.verticalHeader().defaultSectionSize()
            + 6
            + (bar.sizeHint().height() if bar.maximum() > 0 else 0)
        )

    def _share_room(self) -> None:
        """The table gets what its rows need, half of the room at most; the chosen round the rest."""
        self.table.fit_columns(NAME_PX)
        self.table.setMinimumHeight(self._table_px(min(self.model.rowCount(), LEAST_ROWS)))
        room = sum(self.split.sizes())
        wanted = min(self._table_px(self.model.rowCount()), room // 2)
        if room > 0:
            self.split.setSizes([wanted, room - wanted])
        if self.table.currentIndex().isValid():  # the round that is shown below
            self.table.scrollTo(self.table.currentIndex().siblingAtColumn(0))

    def _recolour(self) -> None:
        """The grounds of a diff are the theme's."""
        if self._chosen is not None:
            self._show_below(self._chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """In a low window the chart is lower, in a very low one it is not there."""
        super().resizeEvent(event)
        QTimer.singleShot(0, self, self._fit_chart)  # not while the layout is at work

    def _fit_chart(self) -> None:
        self.chart.setFixedHeight(CHART_PX if self.height() >= LOW_PX else LOW_CHART_PX)
        project = self.project()
        for widget in (self.chart, self.caption):
            widget.setVisible(bool(project and project.iterations) and self.height() >= VERY_LOW_PX)
        QTimer.singleShot(0, self, self._share_room)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Give the columns their room once there is one."""
        super().showEvent(event)
        self._elsewhere.start()
        QTimer.singleShot(0, self, self._share_room)

    def choose(self, number: int) -> None:
        """Select a round."""
        project = self.project()
        if project is None:
            return
        numbers = [i.number for i in project.iterations]
        if number in numbers:
            self._chosen = number
            self.table.selectRow(numbers.index(number))
            self._show_below(number)

    # The table ---------------------------------------------------------------------------------------------------

    def _columns(self, project: Project, checks: dict[int, ResultCheck]) -> list[Column]:
        rounds = project.iterations
        figures = [i.figures for i in rounds]
        pairs = [(i, project.get(i.parent)) for i in rounds]
        judged = [judge(parent, i, rounds) if parent is not None and i.is_good else None for i, parent in pairs]
        of_gpu = [
            Column(self.tr("GPU busy"), "pct", [_known(f.gpu_busy_pct) for f in figures]),
            Column(self.tr("Sync points"), "count", [_known(f.sync_points) for f in figures], self.tr("per step")),
        ]
        on_gpu = any(f.gpu_busy_pct is not None or f.sync_points is not None for f in figures)
        tips = round_tips.tips()
        sustained = Column(
            self.tr("Sustained step"), "ns", [_known(f.sustained_ns) for f in figures], tips["sustained"]
        )
        wall = Column(self.tr("Without profiler"), "ns", [_known(f.wall_ns) for f in figures], tips["wall"])
        first, last = (
            (wall, sustained) if round_words.plain_counts(project) else (sustained, wall)
        )  # what was judged first
        in_turn = all(i.parent == (i.number - 1 if i.number else None) for i in rounds)  # each goes on from the last
        from_tip = self.tr("The round whose code was changed for this one: predicted and measured are counted from it.")
        made_from = [str(i.parent) if i.parent is not None else "" for i in rounds]
        return [
            Column(self.tr("What was fixed"), "name", [self._name(i) for i in rounds]),
            Column(self.tr("Round"), "count", [i.number for i in rounds]),
            *([] if in_turn else [Column(self.tr("From round"), "text", made_from, from_tip)]),
            first,
            Column(
                self.tr("Predicted"),
                "text",
                _changes([j.predicted_pct if j else None for j in judged]),
                tips["predicted"],
            ),
            Column(
                self.tr("Measured"), "text", _changes([j.measured_pct if j else None for j in judged]), tips["measured"]
            ),
            Column(
                self.tr("Prediction"),
                "text",
                [
                    round_tips.outcome(j) if i.is_measured and i.again is None else ""
                    for j, i in zip(judged, rounds, strict=True)
                ],
                tips["prediction"],
            ),
            Column(
                self.tr("Same losses"),
                "text",
                [round_words.same_in_short(checks[i.number], parent if i.is_good else None) for i, parent in pairs],
                tips["losses"],
                [-(checks[i.number].status == "differs" and not checks[i.number].chance) for i in rounds],
            ),
            last,
            Column(self.tr("Host step"), "ns", [_known(f.host_ns) for f in figures], tips["host"]),
            *(of_gpu if on_gpu else ()),  # a run on the CPU alone has neither
        ]

    def _name(self, iteration: Iteration) -> str:
        if iteration.state not in ("ok", ""):
            states = {
                PLANNED: self.tr("not run yet"),
                "running": self.tr("running in another window")
                if self._is_elsewhere(iteration)
                else self.tr("running"),
                "failed": self.tr("the script failed"),
                "stopped": self.tr("stopped"),
                "killed": self.tr("stopped"),
                "interrupted": self.tr("interrupted"),
            }
            state = states.get(iteration.state, iteration.state)
        else:
            state = ""
        name = "; ".join(round_tips.short(fix) for fix in iteration.fixes) or self.tr("as it was")
        if len(iteration.fixes) > 1:
            name = self.tr("{count} fixes: {names}").format(count=len(iteration.fixes), names=name)
        project = self.project()
        earlier = project.iterations[: project.iterations.index(iteration)] if project is not None else ()
        if any(is_same_code(i, iteration) for i in earlier):
            name = self.tr("{name}, measured again").format(name=name)
        return self.tr("({state}) {name}").format(name=name, state=state) if state else name  # its end may be cut

    def _is_elsewhere(self, iteration: Iteration) -> bool:
        return self._loop is not None and self._loop.rounds.is_elsewhere(iteration)

    def _look_elsewhere(self) -> None:
        """A round that another window runs is looked after while its row is seen."""
        project = self.project()
        rounds = project.iterations if self._loop is not None and project is not None else ()
        if self._loop is not None and any(self._loop.rounds.is_awaited(i) for i in rounds):
            self._loop.look_again()

    # One round ---------------------------------------------------------------------------------------------------

    def _row_chosen(self, current: object, _: object) -> None:
        row = self.table.currentIndex().row()
        project = self.project()
        if project is not None and 0 <= row < self.model.rowCount():
            number = project.iterations[self.model.source_row(row)].number
            if number != self._chosen:
                self._chosen = number
                self._show_below(number)

    def _show_below(self, number: int) -> None:
        while (item := self._below_box.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        project = self.project()
        iteration = project.get(number) if project is not None else None
        if project is None or iteration is None:
            return
        self.words.setText(round_words.verdict(project, self._known_checks, number, again_words))
        assert self._loop is not None
        row = RoundButtons(self._loop, project, iteration, self._compare)
        self.again, self.both, self.repeat = row.again, row.both, row.repeat
        self.take, self.undo_round = row.take, row.undo
        self._name_undo()
        self._below_box.addWidget(row)
        for fix in iteration.fixes:
            summary = label(fix.summary, "", wrap=True)
            restyle(summary, "role", "")
            self._below_box.addWidget(summary)
            if not fix.diff:  # another fix of this round does the same
                continue
            before, after = _sides(fix.diff)
            self._below_box.addWidget(CodeDiff(before, after, self.tr("Change of the code")))
        if iteration.copy:
            self._below_box.addWidget(label(iteration.copy, "faint", wrap=True, mono=True, select=True))
        self._below_box.addStretch(1)

    def _compare(self, before: int, after: int) -> None:
        if self._loop is not None:
            self._compared.compare(self._loop, (before, after))

    def _open_row(self, row: int) -> None:
        project = self.project()
        if project is not None and self._loop is not None:
            self._loop.open_iteration(project.iterations[self.model.source_row(row)].number)

    def _name_undo(self) -> None:
        applied = self._loop.applied if self._loop is not None else []
        self.undo.setVisible(bool(applied))
        if applied:
            count = self._loop.own.last_count() if self._loop is not None else 1
            words = self.tr("Undo the change of {file}") if count == 1 else self.tr("Undo the change of {count} files")
            self.undo.setText(words.format(file=applied[-1].edit.path.name, count=count))
            if self.undo_round is not None and self.undo_round.text() == self.undo.text():
                self.undo.hide()  # the round that is shown has the same button

    def _undo(self) -> None:
        if self._loop is not None:
            self._loop.undo_last()
            (self.undo if self.undo.isVisible() else self.table).setFocus()


def _sides(diff: str) -> tuple[str, str]:
    """Both sides of a unified diff, without its head."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    before = [line[1:] if line[:1] in " -" else "⋯" for line in lines if not line.startswith("+")]
    after = [line[1:] if line[:1] in " +" else "⋯" for line in lines if not line.startswith("-")]
    return "\n".join(before).lstrip("⋯\n"), "\n".join(after).lstrip("⋯\n")


def _changes(shares: list[float | None]) -> list[str]:
    return [round_words.signed(share) for share in shares]


def _known(value: float | None) -> float:
    return -1.0 if value is None else value


def _create(session: Session, _: Document | None) -> QWidget:
    return IterationsPage(session)


PANEL = PanelSpec("iterations", "Rounds", "page", _create)
