"""What the user can choose: theme, editor, how many recent files, and which folders are trusted."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from gui.settings import Settings
from gui.widgets.labels import button, label


class SettingsDialog(QDialog):
    """Changes are kept when the dialog is closed with "Save"."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Settings"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(560, 380)
        self._settings = settings
        self.theme = QComboBox()
        for value, words in (
            ("system", self.tr("As the desktop")),
            ("light", self.tr("Light")),
            ("dark", self.tr("Dark")),
        ):
            self.theme.addItem(words, value)
        self.theme.setCurrentIndex(max(0, self.theme.findData(settings.get("appearance/theme"))))
        self.editor = QLineEdit(settings.get("editor/command"))
        self.editor.setPlaceholderText("code --goto {file}:{line}")
        self.recent = QSpinBox()
        self.recent.setRange(0, 50)
        self.recent.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recent.setFixedWidth(64)
        self.recent.setValue(settings.get("files/recent_max"))
        self.folders = QListWidget()
        self.folders.addItems(settings.get("editor/allowed_folders"))
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(10)
        self._add(form, self.tr("Theme"), self.theme)
        self._add(form, self.tr("Editor"), self.editor)
        hint = self.tr("Program and arguments; {file} and {line} stand for the place. Empty: the first one found.")
        form.addRow("", label(hint, "faint", wrap=True))
        self._add(form, self.tr("Recent traces kept"), self.recent)
        self.folders.setAccessibleName(self.tr("Trusted folders"))
        self.none = label(self.tr("None yet."), "dim")
        trusted = QVBoxLayout()
        trusted.addWidget(self.folders)
        trusted.addWidget(self.none)
        form.addRow(label(self.tr("Trusted folders"), "dim"), trusted)
        hint = self.tr(
            "Files in these folders are opened in your editor without asking, when a trace names one of them. A folder "
            "comes here when you allow it as you open a line of code."
        )
        form.addRow("", label(hint, "faint", wrap=True))
        self.forget = button(
            self.tr("Remove from the list"), self._forget, tip=self.tr("Takes the chosen folders off the list.")
        )
        self.folders.itemSelectionChanged.connect(self._enable)
        self._enable()
        row = QHBoxLayout()
        row.addWidget(self.forget)
        row.addStretch(1)
        row.addWidget(button(self.tr("Cancel"), self.reject))
        row.addWidget(button(self.tr("Save"), self.accept, "primary"))
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 16, 16, 16)
        box.setSpacing(12)
        box.addLayout(form, 1)
        box.addLayout(row)
        self.accepted.connect(self._keep)

    def _add(self, form: QFormLayout, name: str, widget: QWidget) -> None:
        widget.setAccessibleName(name)
        form.addRow(label(name, "dim"), widget)

    def _enable(self) -> None:
        self.forget.setEnabled(bool(self.folders.selectedItems()))
        for widget in (self.folders, self.forget):
            widget.setVisible(self.folders.count() > 0)
        self.none.setVisible(self.folders.count() == 0)

    def _forget(self) -> None:
        for item in self.folders.selectedItems():
            self.folders.takeItem(self.folders.row(item))
        self._enable()

    def _keep(self) -> None:
        self._settings.set("appearance/theme", self.theme.currentData())
        self._settings.set("editor/command", self.editor.text().strip())
        self._settings.set("files/recent_max", self.recent.value())
        folders = [self.folders.item(k).text() for k in range(self.folders.count())]
        self._settings.set("editor/allowed_folders", folders)
