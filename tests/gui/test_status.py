"""What the status bar says leaves again: after a while, and when another page is shown."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel

from gui import statusbar
from gui.main_window import MainWindow
from gui.screenshot import settle
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
    monkeypatch.setattr(statusbar, "FRESH_MS", -statusbar.SAID_MS)
    window.session.set_status("The code is on the clipboard.")
    window.session.pageRequested.emit("start")
    assert window.session.status == ""
    monkeypatch.setattr(statusbar, "FRESH_MS", 2 * statusbar.SAID_MS)
    window.session.set_current(document)
    window.session.set_status("Set the variables again, then press Run.")  # said with the page that comes
    window.session.pageRequested.emit("start")
    assert window.session.status != ""


def test_what_is_folded_open_on_the_start_page_leaves_its_link_where_it_was(window: MainWindow) -> None:
    window.resize(1500, 1000)
    window.show()
    page = window.pages["start"]
    settle()
    link = page._fold.link
    before = link.mapTo(window, QPoint(0, 0))
    link.click()
    settle()
    assert page._fold.opened
    assert link.mapTo(window, QPoint(0, 0)) == before
    words = " ".join(made.text() for made in page._fold.findChildren(QLabel))
    assert "the three before them are left out" in words
    assert "wait=1, warmup=2, active=6" in words
