"""What is to be known of a script before it runs: that another way suits it better, and what spoils its times."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from gui import jobs
from gui.said import spoken
from gui.widgets.labels import button, form_text
from profiling.notebooks import Script, is_notebook, make_script
from profiling.preflight import Remark
from profiling.script_remarks import remarks_of_script
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
        self.remarks = form_text("warn")  # what the script does that spoils its times
        self.remarks.hide()
        self._script = ""
        self._looked_at = ""

    def show_for(self, script: str) -> None:
        """Offer what suits this path; nothing for an empty one."""
        self._script = script
        if script != self._looked_at:
            self._looked_at = script
            self.look()
        package = package_module(script) if script else None
        if is_notebook(script):
            self.link.setText(self.tr("This is a notebook: write its code to a script beside it, and take that"))
        elif package is not None:
            words = self.tr("This file belongs to a package: run it as the module {name}")
            self.link.setText(words.format(name=package[0]))
        self.link.setVisible(is_notebook(script) or package is not None)

    def look(self) -> None:
        """Look into the script, off the GUI thread, for what spoils its times."""
        looking = partial(_look, self._script)
        jobs.run(self.remarks, looking, self._take_remarks, lambda _: self._take_remarks(()), key="script-remarks")

    def _take_remarks(self, remarks: tuple[Remark, ...]) -> None:
        self.remarks.setText("\n".join(f"{spoken(r.text)} {spoken(r.cure)}" for r in remarks))
        self.remarks.setVisible(bool(remarks))

    def _follow(self) -> None:
        found = package_module(self._script)
        if is_notebook(self._script):
            making = partial(_make, self._script)
            jobs.run(self.link, making, self._made, self.failed.emit, key="notebook")
        elif found is not None:
            self.module_wished.emit(*found)

    def _made(self, script: Script) -> None:
        self.script_made.emit(str(script.path), script.left_out)


def _look(script: str, progress: jobs.Progress) -> tuple[Remark, ...]:
    progress(0.0, "")
    return remarks_of_script(script) if script else ()


def _make(notebook: str, progress: jobs.Progress) -> Script:
    progress(0.0, "")
    return make_script(notebook)
