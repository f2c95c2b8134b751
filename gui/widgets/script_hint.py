"""What is better run in another way than as a plain script: a file of a package, a notebook."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from gui import jobs
from gui.widgets.labels import button
from profiling.notebooks import Script, is_notebook, make_script
from profiling.spec import package_module


class ScriptHint(QObject):
    """A link below the script's path, seen where it has something to offer.

    Signals
    -------
    module_wished(str, str)
        The name and the working folder with which a file of a package runs.
    script_made(str, int)
        Path of the script that a notebook was turned into, and how many of its lines were left out.
    failed(object)
        The notebook could not be turned into a script.
    """

    module_wished = Signal(str, str)
    script_made = Signal(str, int)
    failed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.link = button("", self._follow, "link")
        self._script = ""

    def show_for(self, script: str) -> None:
        """Offer what suits this path; nothing for an empty one."""
        self._script = script
        package = package_module(script) if script else None
        if is_notebook(script):
            self.link.setText(self.tr("This is a notebook: write its code to a script beside it, and take that"))
        elif package is not None:
            words = self.tr("This file belongs to a package: run it as the module {name}")
            self.link.setText(words.format(name=package[0]))
        self.link.setVisible(is_notebook(script) or package is not None)

    def _follow(self) -> None:
        found = package_module(self._script)
        if is_notebook(self._script):
            making = partial(_make, self._script)
            jobs.run(self.link, making, self._made, self.failed.emit, key="notebook")
        elif found is not None:
            self.module_wished.emit(*found)

    def _made(self, script: Script) -> None:
        self.script_made.emit(str(script.path), script.left_out)


def _make(notebook: str, progress: jobs.Progress) -> Script:
    progress(0.0, "")
    return make_script(notebook)
