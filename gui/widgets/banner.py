"""Lines under the top bar (an error with what to do about it, a notice), and work in progress with Cancel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from gui.text_size import px
from gui.widgets.labels import Elided, button, heading, label

WORK_PX = 760  # at most, of the lines that show running work
BAR_PX = 140


class ErrorBanner(QFrame):
    """Title, detail and hint of an error, or several listed; stays until closed or until something else is opened."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "banner")
        self.title = heading("", 0.5, wrap=True)
        self.detail = label("", "dim", wrap=True, select=True)
        self.hint = label("", "", wrap=True, select=True)
        self._shown: list[tuple[str, str, str]] = []
        self._again: list[Callable[[], object]] = []
        self.again = button(self.tr("Try again"), self._try_again)
        close = button("×", self.clear, "flat", self.tr("Close this message"))
        close.setAccessibleName(self.tr("Close this message"))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        for widget in (self.title, self.detail, self.hint):
            texts.addWidget(widget)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 8, 8)
        row.addLayout(texts, 1)
        row.addWidget(self.again, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def clear(self) -> None:
        """Forget what was shown."""
        self._shown.clear()
        self._again.clear()
        self.hide()

    def _try_again(self) -> None:
        """Do all that failed once more."""
        again = tuple(self._again)
        self.clear()
        for run in again:
            run()

    def show_error(self, title: str, detail: str, hint: str, again: Callable[[], object] | None = None) -> None:
        """Show one error more; the first keeps its place when several files fail together.

        Parameters
        ----------
        again
            Does once more what failed; there is a button for it then.
        """
        if (title, detail, hint) not in self._shown:
            self._shown.append((title, detail, hint))
        if again is not None:
            self._again.append(again)
        self.again.setVisible(bool(self._again))
        if len(self._shown) > 1:
            lines = [" ".join(part for part in error if part) for error in self._shown]
            title = self.tr("{count} things went wrong").format(count=len(lines))
            detail, hint = "\n".join(line[:400] for line in lines[-8:]), ""
        self.title.setText(title)
        for widget, text in ((self.detail, detail), (self.hint, hint)):
            widget.setText(text[:3000])
            widget.setVisible(bool(text))
        self.setAccessibleName(f"{title} {detail} {hint}".strip())
        self.show()


class NoticeLine(QFrame):
    """Something that was done, with a link to what came of it; stays until closed or until the next one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("band")
        self.words = Elided("")
        self.link = button("", self._follow, "link")
        self._run: Callable[[], object] | None = None
        close = button("×", self.hide, "flat", self.tr("Close this message"))
        close.setAccessibleName(self.tr("Close this message"))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 4, 8, 4)
        row.setSpacing(12)
        row.addWidget(self.words, 1)
        row.addWidget(self.link)
        row.addWidget(close)
        self.hide()

    def say(self, words: str, link: str, run: Callable[[], object]) -> None:
        """Show a message; ``run`` is called when its link is clicked."""
        self.words.set_text(words)
        self.link.setText(link)
        self._run = run
        self.show()

    def _follow(self) -> None:
        if self._run is not None:
            self._run()


class WorkLines(QFrame):
    """Running jobs, at the lower left over the page: they come and go, and the page under them never moves.

    Parameters
    ----------
    over
        What they lie over.
    foot
        They stand above it.
    """

    def __init__(self, over: QWidget, foot: QWidget) -> None:
        super().__init__(over)
        self._foot = foot
        self.setProperty("role", "card")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 2, 0, 2)
        self._column.setSpacing(0)
        over.installEventFilter(self)
        self.hide()

    def add(self, line: WorkLine) -> None:
        """Show one job more."""
        self._column.addWidget(line)
        line.show()  # a layout shows what it is given only later, and the box would be measured without it
        self.show()
        self._place()

    def remove(self, line: WorkLine) -> None:
        """It has ended."""
        self._column.removeWidget(line)
        line.hide()
        line.deleteLater()
        self.setVisible(self._column.count() > 0)
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow the window's size."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        over = self.parentWidget()
        if over is None or self.isHidden():
            return
        width = min(px(WORK_PX), over.width() - 24)
        height = self._column.totalMinimumSize().height()
        self.setGeometry(12, over.height() - self._foot.height() - height - 8, width, height)
        self.raise_()


class WorkLine(QFrame):
    """One running job: what it does, how far it is, how long it will take, and Cancel."""

    def __init__(self, title: str, on_cancel: Callable[[], object]) -> None:
        super().__init__()
        self.title = Elided(title)
        self.note = label("", "dim")
        self.note.setMinimumWidth(self.note.fontMetrics().averageCharWidth() * 28)  # bars of several lines end alike
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        self.bar.setAccessibleName(title)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 12, 6)
        row.setSpacing(12)
        self.bar.setFixedWidth(px(BAR_PX))
        row.addWidget(self.title, 1)  # names of runs are long, and differ at their end
        row.addWidget(self.bar)
        row.addWidget(self.note)
        self.cancel = button(self.tr("Cancel"), on_cancel)
        row.addWidget(self.cancel)

    def set_progress(self, fraction: float, note: str) -> None:
        """Show ``fraction`` (0..1) and a note such as the time left."""
        self.bar.setValue(round(1000 * min(max(fraction, 0.0), 1.0)))
        self.note.setText(note)
