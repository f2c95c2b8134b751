"""The plan without what was dismissed or allowed, priced anew: the window's figures are those of a report."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer

from core.analysis import Analysis
from core.trace import Trace
from gui import jobs
from gui.diagnosing import ASKED_MS, something_is_asked
from gui.session import SET_ASIDE, Document, Session
from gui.settings import Settings


class Repricer(QObject):
    """Watches what is set aside in each document. One fix of a group can be worth more, or less, without another."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._watched: set[Document] = set()
        self._asked: dict[Document, frozenset[str]] = {}
        session.documentsChanged.connect(self._documents)

    def _documents(self) -> None:
        for document in self._session.documents:
            if document not in self._watched:
                self._watched.add(document)
                document.analysisChanged.connect(partial(self.look, document))
                document.suggestionChanged.connect(partial(self.look, document))
        self._watched &= set(self._session.documents)
        self._asked = {d: keys for d, keys in self._asked.items() if d in self._watched}

    def look(self, document: Document) -> None:
        """Price a document's plan anew, off the GUI thread, where other suggestions are set aside than it was for."""
        analysis = document.analysis
        if analysis is None or document.analysis_running or document not in self._watched:
            return
        wanted = _set_aside(document, analysis)
        if wanted == analysis.aside or wanted == self._asked.get(document):
            return
        self._asked[document] = wanted
        jobs.run(
            document,
            partial(_price, document.trace, analysis, wanted),
            partial(self._take, document, analysis, wanted),
            self._session.raise_error,
            key=f"price-{id(document)}",
        )

    def _take(self, document: Document, before: Analysis, wanted: frozenset[str], fresh: Analysis) -> None:
        if document not in self._watched:
            return
        if something_is_asked():
            QTimer.singleShot(ASKED_MS, document, partial(self._take, document, before, wanted, fresh))
            return
        self._asked.pop(document, None)
        if document.analysis is before and _set_aside(document, before) == wanted:
            document.set_analysis(fresh)
        else:
            self.look(document)


def _set_aside(document: Document, analysis: Analysis) -> frozenset[str]:
    """Keys of what is set aside; none where no price comes from the replay."""
    if not any(s.effects for s in analysis.suggestions):
        return frozenset()
    states = document.suggestion_state
    return frozenset(s.key for s in analysis.suggestions if not s.informational and states.get(s.key) in SET_ASIDE)


def _price(trace: Trace, analysis: Analysis, keys: frozenset[str], progress: jobs.Progress) -> Analysis:
    from core.set_aside import priced_without

    progress(0.0, "")
    return priced_without(trace, analysis, keys)


def install(session: Session, _settings: Settings) -> None:
    """Keep the plans of the window's documents priced."""
    Repricer(session)
