"""Which script's rounds are shown is kept for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.settings import Settings

if TYPE_CHECKING:
    from gui.loop import Loop

KEY = "runs/rounds_of"


class ShownProject:
    """Knows a project by the name of its folder."""

    def __init__(self, loop: Loop, settings: Settings) -> None:
        self._loop, self._settings = loop, settings

    def name(self) -> str:
        """The one that is looked at, "" for none."""
        return self._loop.project.folder.name if self._loop.project is not None else ""

    def note(self) -> None:
        """Keep it for the next start."""
        if self.name() and self._settings.get(KEY) != self.name():
            self._settings.set(KEY, self.name())

    def recall(self) -> None:
        """Look at the one that was shown last, else at the one worked on last; nobody is told."""
        found, last = self._loop.projects(), self._settings.get(KEY)
        self._loop.project = next((p for p in found if p.folder.name == last), next(iter(found), None))

    def show(self, name: str) -> None:
        """Look at one, where it is still there."""
        self._loop.show_project(next((p for p in self._loop.projects() if p.folder.name == name), None))
