"""A script is no trace: wherever one is opened, the form that profiles it is shown instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from gui.session import Session

SUFFIXES = (".py", ".ipynb")


def is_script(path: Path) -> bool:
    """Whether a file is a program or a notebook by its name."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def open_or_profile(session: Session, pages: Mapping[Any, QWidget], paths: Iterable[Path]) -> None:
    """Open the traces among some files; where there is none, show the form with the first script."""
    paths = list(paths)
    traces = [path for path in paths if not is_script(path)]
    if traces:
        session.open(traces)
    if traces and len(traces) < len(paths):
        words = "A script is no trace: it was left out. Open it by itself to profile it."
        session.set_status(QCoreApplication.translate("scripts", words))
    elif paths and not traces and session.can("profile"):
        session.ask("profile")
        launch: Any = pages.get("launch")
        if launch is not None:
            launch.as_script.setChecked(True)
            launch.script.setText(str(paths[0]))


def choose(session: Session, pages: Mapping[Any, QWidget]) -> None:
    """Show the form and ask at once for the script; without an answer the form stays."""
    session.ask("profile")
    launch: Any = pages.get("launch")
    if launch is not None:
        QTimer.singleShot(0, launch, partial(_ask, launch))


def _ask(launch: Any) -> None:
    launch.choose_script()
