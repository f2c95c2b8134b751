"""What stands where there is nothing to show: what is missing, and what to do about it."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.labels import label


class EmptyState(QWidget):
    """One line that says what is missing, one that says how to get it; at the top left, as everything else."""

    def __init__(self, words: str = "", advice: str = "") -> None:
        super().__init__()
        self.words = label("", "", wrap=True)
        self.advice = label("", "dim", wrap=True, select=True)
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 10, 16, 10)
        box.setSpacing(4)
        box.addWidget(self.words)
        box.addWidget(self.advice)
        box.addStretch(1)
        self.say(words, advice)

    def say(self, words: str, advice: str = "") -> None:
        """Say something else; no advice, no second line."""
        self.words.setText(words)
        self.advice.setText(advice)
        self.advice.setVisible(bool(advice))
        self.advice.setAccessibleName(advice)
