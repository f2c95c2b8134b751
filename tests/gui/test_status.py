"""What the status bar says leaves again: after a while, and when another page is shown."""

from __future__ import annotations

from gui import statusbar
from gui.main_window import MainWindow
from gui.session import Document


def test_a_message_leaves_after_a_while(window: MainWindow, document: Document) -> None:
    bar = window.status
    window.session.set_status("Saved a.html")
    assert "Saved a.html" in bar.counts.accessibleName()
    assert bar._leaves.isActive()
    bar._leaves.timeout.emit()
    assert "Saved a.html" not in bar.counts.accessibleName()
    assert window.session.status == ""
    assert not bar._leaves.isActive()


def test_a_message_leaves_with_its_page(window: MainWindow, document: Document, monkeypatch) -> None:
    monkeypatch.setattr(statusbar, "FRESH_MS", -1)
    window.session.set_status("The code is on the clipboard.")
    window.session.pageRequested.emit("start")
    assert window.session.status == ""
    monkeypatch.setattr(statusbar, "FRESH_MS", statusbar.SAID_MS)
    window.session.set_current(document)
    window.session.set_status("Set the variables again, then press Run.")  # said with the page that comes
    window.session.pageRequested.emit("start")
    assert window.session.status != ""
