"""Goes round the guided loop by itself and prints the table of rounds: profile, fix, run again, until nothing is left.

    python -m examples.guided_loop SCRIPT [--folder DIR] [--rounds N] [--again] [-- ARGUMENTS OF THE SCRIPT]

Everything is done by the window's own services, in a window that nobody sees: the first suggestion whose fix can be
derived from the code is applied to a copy, the copy runs with the same arguments, and its row is added to the table.
The user's files are not touched. Without ``--folder`` the runs are kept where the window keeps them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEventLoop, QSettings, Qt, QTimer

from core.judging import judge
from gui import jobs
from gui.app import make_application, make_window
from gui.loop import Loop
from gui.main_window import MainWindow
from gui.screenshot import dispose
from gui.session import Document
from gui.settings import Settings
from profiling.spec import RunSpec, Schedule

PATIENCE_S = 600.0
LOOK_MS = 50


def wait(done: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Let the window work until something is so, at rest where it has nothing to do: a script is being timed.

    Raises
    ------
    TimeoutError
        Naming what did not happen.
    """
    end = time.monotonic() + patience_s
    loop = QEventLoop()
    look = QTimer(interval=LOOK_MS)
    look.timeout.connect(loop.quit)
    look.start()
    while not done():
        loop.exec()
        if time.monotonic() > end:
            raise TimeoutError(what)


class Walk:
    """One script's way round the loop, in a window.

    Parameters
    ----------
    window
        A window with all its services.
    say
        Receives a line for each round.
    """

    def __init__(self, window: MainWindow, say: Callable[[str], None] = lambda _: None) -> None:
        self.window, self.session, self.say = window, window.session, say
        self.tried: set[tuple[str, str]] = set()
        self.errors: list[Exception] = []
        self.session.errorRaised.connect(self.errors.append)
        found = self.session.ask("loop")
        assert isinstance(found, Loop)
        self.loop = found

    def profile(self, spec: RunSpec) -> Document:
        """Run a script and return its diagnosed trace."""
        known = set(self.session.documents)
        self.loop.capture.start(spec)  # type: ignore[union-attr]
        return self._opened(known)

    def fix_next(self, document: Document) -> Document | None:
        """Apply the first suggestion that can be and was not tried; the trace of its run, None when none is left."""
        found = document.analysis.suggestions if document.analysis else ()
        for index, suggestion in enumerate(found):
            key = (suggestion.rule_id, suggestion.source.function if suggestion.source else "")
            if suggestion.informational or key in self.tried or not self._can_apply(document, index):
                continue
            self.tried.add(key)
            self.say(f"{suggestion.headline}: {self.loop.proposal(document, index).edit.summary}")  # type: ignore[union-attr]
            known = set(self.session.documents)
            document.show_suggestion(index)
            self.loop.run_copy(document, index)
            wait(lambda: not jobs.busy(), "the copy was not made")
            return self._opened(known)
        return None

    def _can_apply(self, document: Document, index: int) -> bool:
        """Whether the change of a suggestion can be derived; that takes a moment."""
        wait(lambda: self.loop.can_apply(document, index) is not None, "the change was not derived")
        return bool(self.loop.can_apply(document, index))

    def _opened(self, known: set[Document]) -> Document:
        capture = self.loop.capture
        assert capture is not None
        wait(lambda: bool(self.errors) or capture.result is not None, "the script did not end")
        if self.errors:
            raise self.errors[0]
        if capture.result is None or capture.result.trace is None:
            raise RuntimeError("the run left no trace")
        wait(lambda: bool(set(self.session.documents) - known), "the trace was not opened")
        (document,) = set(self.session.documents) - known
        wait(lambda: document.analysis is not None and not document.analysis_running, "the diagnosis did not end")
        return document

    def clear_up(self) -> None:
        """Measure each round that is unclear once more, and what it was made from: one click each in the window."""
        project = self.loop.project
        for iteration in project.iterations if project is not None else ():
            rounds = self.loop.project.iterations if self.loop.project is not None else ()
            parent = next((i for i in rounds if i.number == iteration.parent), None)
            if parent is None or judge(parent, iteration, rounds).outcome != "unclear":
                continue
            self.say(f"round {iteration.number} is unclear: both again")
            self.loop.measure_both(iteration.number)
            wait(partial(self._has_measured, len(rounds) + 2), "the two runs did not end")

    def _has_measured(self, count: int) -> bool:
        """Whether there are so many rounds, all measured."""
        rounds = self.loop.project.iterations if self.loop.project is not None else ()
        return bool(self.errors) or len(rounds) >= count and all(i.is_measured for i in rounds)

    def rows(self) -> list[list[str]]:
        """Head and rows of the table of rounds, as the window shows them."""
        self.session.ask("rounds")
        QCoreApplication.processEvents()
        model = self.window.pages["iterations"].model  # type: ignore[attr-defined]
        columns = range(model.columnCount())
        heads = [str(model.headerData(c, Qt.Orientation.Horizontal)) for c in columns]
        return [heads, *([str(model.index(r, c).data() or "") for c in columns] for r in range(model.rowCount()))]


def markdown(rows: list[list[str]]) -> str:
    """Return the table as Markdown."""
    heads, *others = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *others])


def main(arguments: list[str]) -> int:
    """Go round and print; see the module's text."""
    own, of_script = _parted(arguments)
    parser = argparse.ArgumentParser(prog="python -m examples.guided_loop", description="Go round the guided loop.")
    parser.add_argument("script", type=Path)
    parser.add_argument("--folder", type=Path, help="keeps the runs (default: where the window keeps them)")
    parser.add_argument("--rounds", type=int, default=12, help="how many fixes at most (12)")
    parser.add_argument("--again", action="store_true", help="measure unclear rounds, and what they come from, again")
    parser.add_argument("--active", type=int, default=5, help="steps recorded (5)")
    parser.add_argument("--picture", type=Path, help="PNG of the page of rounds at the end")
    options = parser.parse_args(own)
    make_application()
    settings = Settings(QSettings(str((options.folder or Path()) / "settings.ini"), QSettings.Format.IniFormat))
    if options.folder:
        settings.set("runs/folder", str(options.folder.resolve()))
    window = make_window(settings if options.folder else None, dark=True)
    window.resize(1600, 1000)
    window.show()
    walk = Walk(window, lambda line: print(line, file=sys.stderr))
    spec = RunSpec(
        sys.executable,
        str(options.script.resolve()),
        argv=tuple(of_script),
        schedule=Schedule(active=options.active),
        stdin="null",
        runs_root=str(options.folder.resolve()) if options.folder else "",
    )
    document: Document | None = walk.profile(spec)
    for _ in range(options.rounds):
        document = walk.fix_next(document) if document is not None else None
    if options.again:
        walk.clear_up()
    print(markdown(walk.rows()))
    if options.picture:
        QCoreApplication.processEvents()
        window.grab().save(str(options.picture))
    dispose(window)
    return 0


def _parted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Arguments before and after ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
