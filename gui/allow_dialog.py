"""A finding that is meant: with a reason, for a place, in a file that a team commits beside its code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from core.allow import Allowed, entry_text, read_allow_file, scopes
from core.errors import TraceError
from gui import allow_file, text
from gui.parents import window_of
from gui.session import ALLOWED, Document, Session
from gui.suggestion_text import operators_and_range
from gui.widgets.labels import button, heading, label


class AllowDialog(QDialog):
    """Asks for reason, place and file, shows the entry, and adds it when asked.

    Parameters
    ----------
    session, document
        What the finding is of.
    index
        Position of the suggestion.
    path
        File that is offered; None where no script is known: then the user chooses one.
    """

    def __init__(
        self, session: Session, document: Document, index: int, path: Path | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._document, self._index, self.path = session, document, index, path
        suggestion = document.suggestion(index)
        assert suggestion is not None
        self._suggestion, self._scopes = suggestion, scopes(suggestion)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Allow a finding"))
        self.resize(640, 0)
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(8)
        title = heading(text.filled(suggestion.title, suggestion.values), 1, wrap=True)
        box.addWidget(title)
        words = self.tr(
            "Is this on purpose? A small file beside your code then says so, and why; commit it. With that file, "
            "{command} fails only for what is new."
        )
        box.addWidget(label(words.format(command="main.py analyze TRACE --allow FILE --fail-on any"), "dim", wrap=True))
        self.reason = QLineEdit()
        self.reason.setAccessibleName(self.tr("Reason"))
        self.reason.setPlaceholderText(self.tr("Why is it meant? For example: the loss is shown every step on purpose"))
        self.reason.textChanged.connect(self._show)
        box.addWidget(self.reason)
        box.addWidget(label(self.tr("Where"), "dim"))
        self.places = QButtonGroup(self)
        for number, scope in enumerate(self._scopes):
            choice = QRadioButton(self._place(scope).replace("&", "&&"))
            choice.setChecked(number == 0)
            choice.toggled.connect(self._show)
            self.places.addButton(choice, number)
            box.addWidget(choice)
        self.entry = label("", "dim", mono=True, select=True)
        self.entry.setObjectName("entry")
        box.addWidget(self.entry)
        box.addSpacing(6)
        row = QHBoxLayout()
        self.file = label("", "faint", mono=True, wrap=True, select=True)
        row.addWidget(self.file, 1)
        row.addWidget(button(self.tr("Another file…"), self._choose))
        box.addLayout(row)
        foot = QHBoxLayout()
        self.add = button(self.tr("Add to the file"), self._add, "primary")
        foot.addWidget(self.add)
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Cancel"), self.reject))
        box.addLayout(foot)
        self._show()

    def _place(self, scope: str) -> str:
        source = self._suggestion.source
        if scope == "rule":
            return self.tr("Wherever {rule} is found").format(rule=self._suggestion.rule_id)
        if scope == "op":
            path, inside = operators_and_range(self._suggestion)
            words = self.tr("Below the operators {path}, in the range {range}")
            if not inside:
                words = self.tr("Below the operators {path}")
            return words.format(path=text.elided(path, 70), range=text.elided(inside, 40))
        assert source is not None
        if scope == "line":
            return self.tr("Only at {place}").format(place=text.place(source.file, source.line))
        words = self.tr("In {function} of {file}, on any line")
        return words.format(function=source.function, file=self._scopes[scope].file)

    def allowed(self) -> Allowed:
        """The entry as it is chosen now."""
        chosen = list(self._scopes)[max(0, self.places.checkedId())]
        return scopes(self._suggestion, allow_file.in_one_line(self.reason.text()))[chosen]

    def _show(self) -> None:
        known = bool(self.reason.text().strip())
        entry = self.allowed()
        lines = entry_text(entry if known else replace(entry, reason="…")).rstrip("\n").splitlines()
        self.entry.setText("\n".join(text.elided(line, 84) for line in lines))
        self.entry.setMinimumHeight(self.entry.sizeHint().height())  # grows with what is typed
        if self.path is None:
            self.file.setText(self.tr("No file chosen: the trace does not say where its script lies."))
        else:
            self.file.setText(str(self.path))
        self.add.setEnabled(known and self.path is not None)

    def _choose(self) -> None:
        start = self.path or Path.home() / allow_file.NAME
        dialog = QFileDialog(self, self.tr("Save what is meant"), str(start.parent), "*.toml")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setOption(QFileDialog.Option.DontConfirmOverwrite)  # entries are added, nothing is lost
        dialog.setDefaultSuffix("toml")
        dialog.selectFile(start.name)
        dialog.fileSelected.connect(self._chosen)
        dialog.open()

    def _chosen(self, name: str) -> None:
        self.path = Path(name)
        self._show()

    def _add(self) -> None:
        assert self.path is not None
        entry = self.allowed()
        try:
            added = allow_file.add(self.path, [entry], self._suggestion)
            kept = next((e for e in read_allow_file(self.path) if e.fits(self._suggestion)), entry)
        except (TraceError, OSError) as error:
            self._session.raise_error(error)
            return
        self._document.set_suggestion_state(self._index, ALLOWED, kept.reason)  # as it stands there
        words = self.tr("Added to {file}.") if added else self.tr("{file} allows it already.")
        self._session.set_status(words.format(file=self.path))
        self.accept()


def ask(session: Session, document: Document, index: int) -> None:
    """Show the dialog for one suggestion."""
    if document.suggestion(index) is not None:
        path = allow_file.beside_script(session, document)
        AllowDialog(session, document, index, path, window_of(session)).open()


def recall(session: Session, document: Document) -> None:
    """Take findings of a run of one's own that the file beside its script allows out of the plan, with the reason."""
    path = allow_file.beside_script(session, document)
    if path is None or not path.is_file() or document.analysis is None:
        return
    try:
        known = read_allow_file(path)
    except TraceError as error:
        session.raise_error(error)
        return
    for index, suggestion in enumerate(document.analysis.suggestions):
        entry = next((entry for entry in known if entry.fits(suggestion)), None)
        if entry is not None and suggestion.key not in document.suggestion_state:
            document.set_suggestion_state(index, ALLOWED, entry.reason)
