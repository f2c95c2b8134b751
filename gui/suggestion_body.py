"""What an open card of the plan shows and offers, for one suggestion of a document."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QInputDialog, QWidget

from core.notebook_cells import cell_of
from core.run_folder import kept_source
from core.suggestions import Suggestion
from gui import suggestion_text, text
from gui.evidence import is_typical
from gui.models import code_context
from gui.session import ALLOWED, DISMISSED, DONE, LATER, SET_ASIDE, Document, Session
from gui.widgets.card import Action, Body, Link


class BodyMaker(QObject):
    """Makes the bodies of a document's cards; what their buttons do goes through the document and the session."""

    def __init__(self, session: Session, document: Document, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._document, self._window = session, document, parent

    def body(self, index: int, suggestion: Suggestion) -> Body:
        """Everything about one suggestion."""
        source, links = suggestion.source, []
        if source is not None:
            place, can = text.place(source.file, source.line), True
            if self._session.can("has_source"):
                can = self._session.ask("has_source", self._document, source.file)
            words = self.tr("Open {place} in the editor") if can else self.tr("{place}, which is not on this machine.")
            opens = partial(self._session.ask, "open_source", source.file, source.line) if can else None
            links.append(Link(words.format(place=place), opens, source.file))
            if source.reason:
                links.append(Link(source.reason[:1].upper() + source.reason[1:] + ".", None))
            links += self._of_folder(source.file)
            links += self._of_notebook(source.file, source.line)
        edit = self._session.ask("proposed_edit", self._document, index)
        return Body(
            why=" ".join(text.filled(words, suggestion.values) for words in (suggestion.why, *suggestion.more)),
            summary=text.filled(suggestion.fix.summary, suggestion.values),
            code=self._code(suggestion),
            own_diff=edit.diff if edit is not None else "",
            why_example=str(self._session.ask("why_no_edit", self._document, index) or "") if edit is None else "",
            deriving=edit is None and self._pending(index),
            before=suggestion.fix.before,
            after=suggestion.fix.after,
            source=tuple(links),
            evidence=tuple(self._evidence(suggestion)),
            saves=suggestion_text.saves(self._document.analysis, index, suggestion),
            risk=edit.risk if edit is not None else text.filled(suggestion.fix.risk, suggestion.values),
            url=suggestion.fix.url,
            actions=tuple(self._actions(index, suggestion)),
        )

    def _pending(self, index: int) -> bool:
        """Whether the change of the user's code is being derived (`Document.fixDerived` tells when it is there)."""
        asked = self._session.can("when_fix_known")
        return asked and self._session.ask("can_apply_fix", self._document, index) is None

    def _of_folder(self, file: str) -> list[Link]:
        """For a trace from elsewhere: where its sources are read from, or the offer to say where they lie."""
        document, session = self._document, self._session
        if document.run is not None or not session.can("map_sources"):
            return []
        if kept_source(document.run, document.trace, file) is not None:
            return []
        found = document.finder.resolve(file) if document.finder is not None else None
        ask = partial(session.ask, "map_sources", document, file)
        if found is not None:
            again = Link(self.tr("Choose another folder…"), ask)
            return [Link(self.tr("read from {file}").format(file=found), None), again]
        tip = self.tr("The trace is from elsewhere. With the sources at hand the exact line can be worked out.")
        words = self.tr("Choose the folder with the sources…")
        return [Link(words, ask, tip)]

    def _of_notebook(self, file: str, line: int) -> list[Link]:
        """For a script that was made of a notebook: the cell, and that a fix changes the script."""
        copy = kept_source(self._document.run, self._document.trace, file)
        found = cell_of(copy, line) if copy is not None else None
        if found is None:
            return []
        words = self.tr("This script was made of {notebook}: a fix changes the script, not the notebook.")
        if found.number is not None:
            words = self.tr(
                "In {notebook} it is line {line} of cell {cell} (cells of text counted). A fix changes the script that "
                "was made of the notebook, not the notebook: make the change there as well."
            )
        return [Link(words.format(notebook=found.notebook, line=found.line, cell=found.number), None)]

    def _code(self, suggestion: Suggestion) -> tuple[code_context.CodeLine, ...]:
        """Lines around the place, from our own copy of the source or a folder that the user has chosen."""
        document, source = self._document, suggestion.source
        if source is None:
            return ()
        copy = kept_source(document.run, document.trace, source.file)
        if copy is None and document.finder is not None:
            copy = document.finder.resolve(source.file)  # in a folder that the user has chosen
        if copy is None:
            return ()
        return code_context.around(copy, source.line, (*source.candidates, *source.also, source.line))

    def _evidence(self, suggestion: Suggestion) -> list[Link]:
        links = []
        for e in suggestion.evidence:
            words = text.filled(e.label, suggestion.values)
            if e.value is not None:
                words = f"{words}: {text.quantity(e.value, e.unit)}"
            show = partial(self._document.show_slices, e.slices, typical=is_typical(e.label))
            run = show if e.slices else None
            links.append(Link(words, run))
        return links

    def _actions(self, index: int, suggestion: Suggestion) -> list[Action]:
        document, session = self._document, self._session
        state = document.suggestion_state.get(suggestion.key, "")
        actions = self._of_code(index, suggestion)
        tip = self.tr("You made this change yourself: the predicted step counts it. Only a run shows what it saved.")
        for chosen, words, undo in (
            (DONE, self.tr("Done"), self.tr("Not done yet")),
            (LATER, self.tr("Later"), self.tr("Now after all")),
        ):
            back = state == chosen
            run = partial(document.set_suggestion_state, index, "" if back else chosen)
            actions.append(Action(undo if back else words, run, tip=tip if chosen == DONE and not back else ""))
        if state in SET_ASIDE:
            tip = self.tr("Here only: the entry in the allow file stays until it is taken out there.")
            again = partial(document.set_suggestion_state, index, "")
            actions.append(Action(self.tr("Take back"), again, tip=tip if state == ALLOWED else ""))
        else:
            tip = self.tr("Not for me: takes it off this plan, on this machine. Allow… tells the team and CI as well.")
            actions.append(Action(self.tr("Dismiss…"), partial(self._dismiss, index), tip=tip))
        if session.can("allow_finding"):
            tip = self.tr("It is meant: writes it into a small file beside your code, with the reason, for CI as well.")
            actions.append(Action(self.tr("Allow…"), partial(session.ask, "allow_finding", document, index), tip=tip))
        return actions

    def _of_code(self, index: int, suggestion: Suggestion) -> list[Action]:
        """Buttons that run something; where they cannot work here they say why."""
        document, session = self._document, self._session
        actions: list[Action] = []
        own = bool(document.run_folder)
        made = getattr(session.ask("fix_state", document, index), "made", None)
        if made is not None:
            undo = self.tr("Undo the change of {file}").format(file=made.edit.path.name)
            tip = self.tr("The change stands in {path}.").format(path=made.edit.path)
            return [
                Action(self.tr("Run it again now"), partial(session.ask, "run_own", document), primary=True, tip=tip),
                Action(undo, partial(session.ask, "undo_fix", document, index), tip=tip),
            ]
        foreign = self.tr("Needs a recording made here: press Profile script above, then this works on your own code.")
        if session.can("apply_fix") and (suggestion.fix.after or suggestion.fix.before):
            known = session.ask("can_apply_fix", document, index) if session.can("can_apply_fix") else True
            can = known is not False  # while it is derived, the dialog waits for it
            tip = self.tr("Shows the change first; your own file is not touched.")
            if not can:
                tip = self.tr("There is no mechanical edit for this place: change it by hand.") if own else foreign
            actions.append(
                Action(
                    self.tr("Apply to a copy, re-run…"),
                    partial(session.ask, "apply_fix", document, index),
                    primary=True,
                    tip=tip,
                    enabled=can,
                )
            )
        if session.can("find_line") and not (suggestion.source and suggestion.source.exact):
            actions.append(
                Action(
                    self.tr("Find the line"),
                    partial(session.ask, "find_line", document, index),
                    tip=self.tr("Runs the script once more and records the exact line.") if own else foreign,
                    enabled=own,
                )
            )
        return actions

    def _dismiss(self, index: int) -> None:
        dialog = QInputDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(self.tr("Dismiss the suggestion"))
        dialog.setLabelText(self.tr("Why does it not apply? (may stay empty)"))
        dialog.textValueSelected.connect(partial(self._document.set_suggestion_state, index, DISMISSED))
        dialog.open()
