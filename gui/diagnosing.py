"""The diagnosis of an opened trace, in a worker thread: in a helper process where that pays, else right there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication, QMessageBox

from core.errors import TraceError
from gui import helpers, jobs
from gui.session import Document

if TYPE_CHECKING:
    from core.analysis import Analysis
    from gui.helper_process import Helper
    from gui.timeline.prepared import Prepared

ASKED_MS = 200  # how often is looked whether a dialog has been closed
TRACEBACK_LINES = 5  # the innermost calls
MANY = 20_000  # slices; fewer are diagnosed before a process has started


@dataclass(frozen=True)
class Consent:
    """Folders that the user has allowed: with own rules, which are run, and with sources, which are read."""

    rules: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()


def something_is_asked() -> bool:
    """Whether a dialog or a menu is open: it may speak of a position in a list, which is not sorted anew meanwhile.

    Message boxes ask about other things, and what has come is shown behind them.
    """
    modal = QApplication.activeModalWidget()
    return (modal is not None and not isinstance(modal, QMessageBox)) or QApplication.activePopupWidget() is not None


def analyze_document(
    document: Document,
    helper: Helper | None,
    consent: Consent,
    on_partial: Callable[[Analysis], None],
    progress: jobs.Progress,
) -> Analysis:
    """Figures, rules, prices (runs in a worker thread); ``on_partial`` gets what is there after each stage.

    The helper that has read the trace does it, where there is one, and ends; else another one.
    """
    if helper is None:
        helper = helpers.take(progress, start_one=len(document.trace.slices) >= MANY)
        if helper is not None:
            helper.adopt(document.trace)
    prepared: Prepared = document.prepared

    def hand_on(analysis: Analysis) -> None:
        prepared.take_figures(analysis.figures)
        on_partial(analysis)

    if helper is not None:
        found = helper.analyze(hand_on, progress, consent.rules, consent.sources)
    else:
        from core.analysis import analyze

        found = analyze(
            document.trace,
            progress=progress,
            on_partial=hand_on,
            source=document.finder,
            extra_folders=consent.rules,
        )
    prepared.take_figures(found.figures)
    return found


def given_up(analysis: Analysis) -> Analysis:
    """What is there of an analysis that has failed: prices that have not come will not, and its cards are made anew."""
    return replace(analysis, suggestions=(*analysis.suggestions,), awaits_prices=False, awaits_own_rules=False)


def replay_failed(document: Document) -> TraceError:
    """The error to show where the replay failed: what is missing, and the traceback to report."""
    tr, notes = QCoreApplication.translate, document.analysis.notes if document.analysis is not None else {}
    words = tr("diagnosing", "The replay of {name} failed: its savings and sustained step are missing.")
    hint = tr("diagnosing", "The timeline and all other figures can be used. Please report this with the lines above.")
    lines = str(notes.get("traceback") or notes.get("replay", "")).splitlines()
    lines = [line for line in lines if line.strip(" ^~")][-TRACEBACK_LINES:]
    return TraceError(words.format(name=document.title), "\n".join(lines), hint)
