"""What profiling says, in the user's language: it carries its template and values, and is translated here."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from profiling.sentences import CONTEXT, Sentence


def spoken(words: str) -> str:
    """Translate a sentence of profiling; other text (an error's own message, a path) stays as it is."""
    if not isinstance(words, Sentence):
        return words
    template = QCoreApplication.translate(CONTEXT, words.template)
    values = {name: spoken(value) if isinstance(value, str) else value for name, value in words.values.items()}
    try:
        return template.format_map(values)
    except (KeyError, IndexError, ValueError):  # a translation that does not fit
        return str(words)
