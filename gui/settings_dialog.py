"""What the user can choose: theme, editor, how many recent files, and which folders are trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from gui import own_rules, source_folders, text, text_size
from gui.settings import Settings
from gui.widgets.calm import CalmCombo, CalmSpin
from gui.widgets.labels import button, label


class Removable(QWidget):
    """A list that entries can be taken off; "None yet." where it is empty."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.list = QListWidget()
        self.list.setAccessibleName(name)
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setMaximumHeight(96)
        self.none = label(self.tr("None yet."), "dim")
        tip = self.tr("Takes the chosen entries off the list.")
        self.remove = button(self.tr("Remove from the list"), self._remove, tip=tip)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(6)
        box.addWidget(self.list)
        box.addWidget(self.none)
        box.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignLeft)
        self.list.itemSelectionChanged.connect(self._enable)
        self._enable()

    def fill(self, entries: Iterable[tuple[str, object]]) -> None:
        """Show these entries: words, and what they stand for."""
        for words, value in entries:
            item = QListWidgetItem(words, self.list)
            item.setData(Qt.ItemDataRole.UserRole, value)
            item.setToolTip(words)
        self._enable()

    def left(self) -> list[Any]:
        """What the entries stand for that are still there."""
        return [self.list.item(k).data(Qt.ItemDataRole.UserRole) for k in range(self.list.count())]

    def _remove(self) -> None:
        for item in self.list.selectedItems():
            self.list.takeItem(self.list.row(item))
        self._enable()

    def _enable(self) -> None:
        self.remove.setEnabled(bool(self.list.selectedItems()))
        for widget in (self.list, self.remove):
            widget.setVisible(self.list.count() > 0)
        self.none.setVisible(self.list.count() == 0)


class SettingsDialog(QDialog):
    """Changes are kept when the dialog is closed with "Save"."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Settings"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(600, 520)
        self._settings = settings
        self.consent_changed = False  # once kept: traces have to be diagnosed again
        self._make_choices()
        self.editor = QLineEdit(settings.get("editor/command"))
        self.editor.setPlaceholderText("code --goto {file}:{line}")
        self.recent = CalmSpin()
        self.recent.setRange(0, 50)
        self.recent.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recent.setFixedWidth(64)
        self.recent.setValue(settings.get("files/recent_max"))
        self.folders = Removable(self.tr("Trusted folders"))
        self.folders.fill((folder, folder) for folder in settings.get("editor/allowed_folders"))
        self.sources = Removable(self.tr("Folders with sources"))
        self.sources.fill((mapping.words, mapping) for mapping in source_folders.known(settings))
        self.rules = QCheckBox(self._rules_words())
        self.rules.setChecked(bool(own_rules.allowed(settings)))
        self.rules.setEnabled(own_rules.folder_of(settings) is not None)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(10)
        self._add(form, self.tr("Theme"), self.theme)
        self._add(form, self.tr("Text size"), self.text_size)
        self._add(form, self.tr("At the start"), self.reopen)
        self._add(form, self.tr("Editor"), self.editor)
        hint = self.tr("Program and arguments; {file} and {line} stand for the place. Empty: the first one found.")
        form.addRow("", label(hint, "faint", wrap=True))
        self._add(form, self.tr("Recent traces kept"), self.recent)
        self._add(form, self.tr("Own rules"), self.rules)
        hint = self.tr("Python files of your own in {folder}: they run with your rights at every diagnosis.")
        folder = own_rules.folder_of(settings)
        form.addRow("", label(hint.format(folder=folder or "-"), "faint", wrap=True, select=True))
        form.addRow(label(self.tr("Folders with sources"), "dim"), self.sources)
        hint = self.tr("Where sources are read that a trace of another machine names. You choose them on a suggestion.")
        form.addRow("", label(hint, "faint", wrap=True))
        form.addRow(label(self.tr("Trusted folders"), "dim"), self.folders)
        hint = self.tr(
            "Files in these folders are opened in your editor without asking, when a trace names one of them. A folder "
            "comes here when you allow it as you open a line of code."
        )
        form.addRow("", label(hint, "faint", wrap=True))
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(button(self.tr("Cancel"), self.reject))
        save = button(self.tr("Save"), self.accept, "primary")
        save.setDefault(True)  # Enter in any field
        row.addWidget(save)
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 16, 16, 16)
        box.setSpacing(12)
        box.addLayout(form, 1)
        box.addLayout(row)
        self.accepted.connect(self._keep)

    def _make_choices(self) -> None:
        self.theme, self.text_size, self.reopen = CalmCombo(), CalmCombo(), CalmCombo()
        themes = {"system": self.tr("As the desktop"), "light": self.tr("Light"), "dark": self.tr("Dark")}
        starts = {
            "ask": self.tr("Offer what was open last time"),
            "always": self.tr("Open what was open last time"),
            "never": self.tr("Show the start page"),
        }
        for box, key, choices in (
            (self.theme, "appearance/theme", themes),
            (self.reopen, "window/reopen", starts),
        ):
            for value, words in choices.items():
                box.addItem(words, value)
            box.setCurrentIndex(max(0, box.findData(self._settings.get(key))))
        self.text_size.addItem(self.tr("As the desktop, larger on a very high screen"), 0)
        for percent in text_size.PERCENTS:
            self.text_size.addItem(text.percent(percent), percent)
        kept = self._settings.get(text_size.KEY)
        self.text_size.setCurrentIndex(self.text_size.findData(text_size.nearest(kept) if kept > 0 else 0))

    def _add(self, form: QFormLayout, name: str, widget: QWidget) -> None:
        widget.setAccessibleName(name)
        form.addRow(label(name, "dim"), widget)

    def _rules_words(self) -> str:
        count = len(own_rules.files_of(self._settings))
        if not count:
            return self.tr("Run my own rules (there are none yet)")
        one = self.tr("Run my own rule (1 file)")
        return one if count == 1 else self.tr("Run my own rules ({count} files)").format(count=count)

    def _keep(self) -> None:
        self._settings.set("appearance/theme", self.theme.currentData())
        self._settings.set(text_size.KEY, self.text_size.currentData())
        self._settings.set("window/reopen", self.reopen.currentData())
        self._settings.set("editor/command", self.editor.text().strip())
        self._settings.set("files/recent_max", self.recent.value())
        self._settings.set("editor/allowed_folders", self.folders.left())
        before = (own_rules.allowed(self._settings), source_folders.known(self._settings))
        if self.rules.isChecked() != bool(before[0]):
            own_rules.decide(self._settings, allow=self.rules.isChecked())
        source_folders.keep(self._settings, tuple(self.sources.left()))
        self.consent_changed = before != (own_rules.allowed(self._settings), source_folders.known(self._settings))
