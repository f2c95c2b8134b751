"""The run that is on: phase and steps, live output, input, Stop; and, when it has ended, what came of it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QProgressBar, QVBoxLayout, QWidget

from core.same_program import copy_of
from gui import text
from gui.panels import PanelSpec
from gui.said import spoken
from gui.session import Document, Session
from gui.widgets.labels import Elided, button, heading, label, plain_tip, restyle
from gui.widgets.terminal import Terminal
from profiling.result import source_in_words

if TYPE_CHECKING:
    from gui.capture import Capture
    from profiling.events import Progress

MOST_GPUS_SHOWN = 4
MOST_FRAMES = 6  # of the user's own, the innermost ones
MOST_FRAMES_OF_OTHERS = 3  # of libraries: the whole traceback stands in the output
HUGE_BYTES = 200 << 20  # of a trace; above, opening takes noticeably long


class OutputPage(QWidget):
    """Shows the app's one run. Uses the signals of ``gui.capture.Capture``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._capture: Capture | None = session.ask("capture")
        self._began = time.monotonic()
        self._phase_began = ("", 0.0)
        self._fresh = False  # a run began since the page was shown last
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head())
        self.outcome = self._outcome()
        self.terminal = Terminal()
        body = QVBoxLayout()
        body.setContentsMargins(16, 12, 16, 12)
        body.setSpacing(12)
        body.addWidget(self.outcome)
        body.addWidget(self.terminal, 1)
        box.addLayout(body, 1)
        box.addWidget(self._input())
        self._clock = QTimer(self)
        self._clock.setInterval(500)
        self._clock.timeout.connect(self._tick)
        if self._capture is not None:
            self._capture.started.connect(self._started)
            self._capture.output.connect(self.terminal.feed)
            self._capture.progressed.connect(self._progressed)
            self._capture.ended.connect(self._ended)
            if self._capture.run is not None:
                self._started()
        self._show_state()

    def _head(self) -> QWidget:
        head = QFrame()
        head.setObjectName("band")
        box = QVBoxLayout(head)
        box.setContentsMargins(16, 12, 16, 12)
        box.setSpacing(8)
        self.title = heading(self.tr("No script has been run yet"), 3)
        self.time = label("", "dim")
        self.open_button = button(self.tr("Open the trace now"), self._open_now, "primary")
        self.open_button.hide()
        self.stop_button = button(self.tr("Stop"), self._stop)
        self.again_button = button(self.tr("Run again…"), self._again)
        row = QHBoxLayout()
        row.addWidget(self.title)
        row.addStretch(1)
        row.addWidget(self.time)
        row.addWidget(self.open_button)
        row.addWidget(self.stop_button)
        row.addWidget(self.again_button)
        box.addLayout(row)
        self.command = Elided("", "faint", mono=True)
        box.addWidget(self.command)
        self.phase = label("", "dim")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the run"))
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.phase)
        row.addWidget(self.bar, 1)
        box.addLayout(row)
        self.anew = label("", "warn", wrap=True)
        self.anew.hide()
        box.addWidget(self.anew)
        self.choices = label(
            self.tr(
                "What was recorded is saved. Let the script finish, and the trace opens with all times and losses; "
                "open it now and look while the script runs on; or stop the script: the trace stays. A run can "
                "also end by itself here: tick “End the script once the chosen steps are recorded” in its form."
            ),
            "",
            wrap=True,
        )
        self.choices.hide()
        box.addWidget(self.choices)
        return head

    def _outcome(self) -> QFrame:
        frame = QFrame()
        frame.setProperty("role", "card")
        box = QVBoxLayout(frame)
        box.setContentsMargins(14, 12, 14, 12)
        box.setSpacing(6)
        self.words = heading("", 1, wrap=True)
        box.addWidget(self.words)
        self.details = QVBoxLayout()
        self.details.setSpacing(3)
        box.addLayout(self.details)
        frame.hide()
        return frame

    def _input(self) -> QWidget:
        self.input_row = QFrame()
        self.input_row.setObjectName("status")
        row = QHBoxLayout(self.input_row)
        row.setContentsMargins(16, 6, 16, 6)
        self.input = QLineEdit()
        self.input.setPlaceholderText(self.tr("Answer the script here, if it asks; Enter sends the line"))
        self.input.setAccessibleName(self.tr("Input for the script"))
        self.input.returnPressed.connect(self._send)
        row.addWidget(self.input, 1)
        row.addWidget(button(self.tr("End of input"), self._end_input, tip=self.tr("No more input will come")))
        return self.input_row

    # What happens -----------------------------------------------------------------------------------------------

    def _started(self) -> None:
        assert self._capture is not None
        assert self._capture.spec is not None
        self._began = time.monotonic()
        self.terminal.clear_all()
        self.outcome.hide()
        title = self._capture.spec.title
        if self._capture.spec.line_ranges:
            title = self.tr("Finding the line: {name}").format(name=title)
        self.title.setText(title)
        command, copy = " ".join(self._capture.spec.command), copy_of(self._capture.spec.script)
        words = self.tr("{command} · a changed copy, in {folder}") if copy else "{command}"
        self.command.set_text(words.format(command=command, folder=copy))
        self._progressed()
        self._clock.start()
        self._show_state()
        self._fresh = True
        if self.isVisible():
            self._take_focus()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """The keys are for the output of a run that has just begun: what started it is gone with its page."""
        super().showEvent(event)
        if self._fresh:
            self._take_focus()

    def _take_focus(self) -> None:
        self._fresh = False
        self.terminal.setFocus()

    def _progressed(self) -> None:
        assert self._capture is not None
        progress = self._capture.progress
        saved = bool(self._capture.running and self._capture.saved())
        words = phase_words(progress.phase)
        if saved:
            words = self.tr("The trace is saved, Stop is safe now; the script runs on")
        if progress.total:
            words = self.tr("{phase}: step {done} of {total}").format(
                phase=words, done=min(progress.done + 1, progress.total), total=progress.total
            )
        elif progress.step:
            words = text.counted(self.tr("{phase} · {count} {count|step|steps} so far"), progress.step, phase=words)
        left = self._time_left(progress)
        if left is not None:
            words = self.tr("{words} · about {time} left").format(words=words, time=text.seconds(left))
        self.anew.setText(spoken(progress.anew or ""))
        self.anew.setVisible(bool(progress.anew))
        self.open_button.setVisible(saved)
        self.choices.setVisible(saved)
        self.stop_button.setToolTip(plain_tip(self._stop_tip(saved)))
        self.phase.setText(words)
        self.bar.setRange(0, progress.total)  # no total: the bar shows that something is going on
        self.bar.setValue(progress.done)

    def _stop_tip(self, saved: bool) -> str:
        """What is left of a script that is stopped now."""
        if saved:
            return self.tr("The trace is saved: nothing of it is lost.")
        return self.tr(
            "The chosen steps are not all recorded yet. What is left then is a short recording of the first steps, "
            "without shapes and memory."
        )

    def _time_left(self, progress: Progress) -> float | None:
        """Seconds until the phase ends, None where that cannot be told (or is too short to be read)."""
        now = time.monotonic()
        if self._phase_began[0] != progress.phase:
            self._phase_began = (progress.phase, now)
        spent = now - self._phase_began[1]
        if not progress.total or not progress.done or spent < 1.0:
            return None
        return spent / progress.done * (progress.total - progress.done)

    def _ended(self) -> None:
        assert self._capture is not None
        result = self._capture.result
        assert result is not None
        self._clock.stop()
        self.words.setText(spoken(result.words))
        restyle(self.words, "role", {"ok": "saved", "failed": "wait"}.get(result.outcome, "warn"))
        while (item := self.details.takeAt(0)) is not None:
            widget = item.widget()  # None: a space between two of them
            if widget is not None:
                widget.deleteLater()
        if result.failure is not None:
            self._show_failure(result.failure)
        for line in [*self._facts(), *map(spoken, result.notices)]:
            self.details.addWidget(label(line, "dim", wrap=True, select=True))
        failed = result.outcome == "failed"
        if result.missed_its_window and not failed:  # else the error comes first
            again = button(self.tr("Run again and record from the first step"), self._again_from_the_start, "link")
            self.details.addWidget(again)
        if result.trace is not None:
            words = self.tr("Open what was recorded until then") if failed else self.tr("Open the trace")
            opener = button(words, partial(self._session.open, [result.trace], result.folder), "link")
            self.details.addWidget(opener)
        self.outcome.show()
        self._show_state()

    def _show_failure(self, failure: object) -> None:
        from profiling.outcome import Failure

        assert isinstance(failure, Failure)
        if failure.hint:
            self.details.addWidget(label(spoken(failure.hint), "", wrap=True, select=True))
        users = [frame for frame in failure.frames if frame.users][-MOST_FRAMES:]
        others = [frame for frame in failure.frames if not frame.users][-MOST_FRAMES_OF_OTHERS:]
        for frame in [*users, *others]:  # the user's own first
            words = f"{short_path(frame.file)}:{frame.line} · {frame.function}"
            role = "" if frame.users else "faint"
            self.details.addWidget(Elided(f"{words} · {frame.code}" if frame.code else words, role, mono=True))
        self.details.addSpacing(6)

    def _facts(self) -> list[str]:
        assert self._capture is not None
        assert self._capture.result is not None
        steps = self._capture.result.manifest.get("steps") or {}
        lines = []
        if steps.get("recorded"):
            first, last, source = steps["recorded"][0], steps["recorded"][-1], source_in_words(steps["source"])
            words = (
                self.tr("Steps {first} to {last} are recorded.")  # a script that was killed could not say more
                if source.key == "source-none" or not steps.get("count")
                else self.tr("Steps {first} to {last} of {count} are recorded; they were found from {source}.")
            )
            lines.append(words.format(first=first, last=last, count=steps.get("count"), source=spoken(source)))
        if steps.get("wall_step_us"):
            lines.append(
                self.tr("A step takes {wall} without the profiler and {profiled} with it.").format(
                    wall=text.duration(steps["wall_step_us"] * 1e3),
                    profiled=text.duration(steps["profiled_step_us"] * 1e3) if steps["profiled_step_us"] else "–",
                )
            )
        lines += self._size_words(len(steps.get("recorded") or ()))
        if self.terminal.left_out:
            lines.append(
                self.tr("The whole output is in {file}.").format(file=self._capture.result.folder / "output.log")
            )
        return lines

    def _size_words(self, steps: int) -> list[str]:
        """Say of a huge trace what made it so, and how to record less."""
        assert self._capture is not None
        result, spec = self._capture.result, self._capture.spec
        if result is None or spec is None or result.trace is None or not result.trace.is_file():
            return []
        n_bytes = result.trace.stat().st_size
        if n_bytes < HUGE_BYTES:
            return []
        size, steps_words = text.size(n_bytes), self.tr("the whole run")
        if steps:
            steps_words = text.counted(self.tr("{count} {count|step|steps}"), steps)
        if spec.options.stacks:
            words = self.tr(
                "The trace is large, {size}: {steps} with Python stacks, which are most of it. Fewer steps, or no "
                "stacks once the lines are known, make it smaller and quicker to open."
            )
        else:
            words = self.tr("The trace is large, {size}: {steps}. Fewer steps make it smaller and quicker to open.")
        return [words.format(size=size, steps=steps_words)]

    def _open_now(self) -> None:
        assert self._capture is not None
        self._capture.open_now()

    # What the user does -----------------------------------------------------------------------------------------

    def _stop(self) -> None:
        assert self._capture is not None
        self._capture.stop()
        self.stop_button.setText(self.tr("Stop at once"))
        self.phase.setText(self.tr("Asked the script to stop; it has a few seconds to do so"))

    def _again(self) -> None:
        if self._capture is not None:
            self._capture.show_launcher(self._capture.spec)

    def _again_from_the_start(self) -> None:
        """The same run with nothing to skip: the user has seen what it starts, and asks for it by this click."""
        if self._capture is not None and self._capture.spec is not None:
            spec = self._capture.spec
            self._capture.start(replace(spec, schedule=replace(spec.schedule, skip=0, warmup=0, repeat=1)))

    def _send(self) -> None:
        if self._capture is not None:
            self._capture.write(self.input.text() + "\n")
            self.input.clear()

    def _end_input(self) -> None:
        if self._capture is not None and self._capture.run is not None:
            self._capture.run.close_stdin()

    def _tick(self) -> None:
        seconds = time.monotonic() - self._began
        words = self.tr("{minutes}:{seconds:02d}").format(minutes=int(seconds) // 60, seconds=int(seconds) % 60)
        run = self._capture.run if self._capture is not None else None
        for index, percent, used_bytes in run.gpus.now[:MOST_GPUS_SHOWN] if run is not None else ():
            use = self.tr("GPU {index}: {percent} %, {memory}").format(
                index=index,
                percent=text.unknown() if percent is None else percent,
                memory=text.unknown() if used_bytes is None else text.size(used_bytes),
            )
            words = f"{use}   {words}"
        self.time.setText(words)

    def _show_state(self) -> None:
        running = self._capture is not None and self._capture.running
        self.stop_button.setVisible(running)
        self.stop_button.setText(self.tr("Stop"))
        for widget in (self.open_button, self.choices):
            widget.setVisible(running and self._capture is not None and bool(self._capture.saved()))
        self.again_button.setVisible(not running and self._capture is not None and self._capture.spec is not None)
        self.bar.setVisible(running)
        self.phase.setVisible(running)
        self.anew.setVisible(running and bool(self.anew.text()))
        self.input_row.setVisible(running)


def short_path(path: str) -> str:
    """Path of a file as it is imported, where it lies among installed packages; others stay whole."""
    parts = path.replace("\\", "/").split("/")
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return "/".join(parts[parts.index(name) + 1 :])
    return path


def phase_words(phase: str) -> str:
    """A phase of a run as a person reads it."""
    tr = text.translate
    return {
        "starting": tr("capture", "Starting the interpreter"),
        "script": tr("capture", "Running, no training seen yet"),
        "idle": tr("capture", "Waiting for the next step"),
        "whole": tr("capture", "Running, no training seen yet"),
        "early": tr("capture", "Recording the first steps, in case the script is short"),
        "skip": tr("capture", "Passing over steps"),
        "wall": tr("capture", "Timing steps without the profiler"),
        "base": tr("capture", "Recording steps without marks, to know what the marks cost"),
        "sync": tr("capture", "Looking for the lines that wait for the device"),
        "prime": tr("capture", "Warming the profiler up"),
        "window": tr("capture", "Recording the chosen steps"),
        "saving": tr("capture", "Saving the trace"),
        "done": tr("capture", "The chosen steps are recorded; the script runs on"),
        "ended": tr("capture", "Ended"),
    }.get(phase, phase)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the page."""
    return OutputPage(session)


PANEL = PanelSpec("output", "Run", "page", create)
