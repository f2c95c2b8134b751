"""Write the pictures of the README and the docs from the samples, as the window is now.

python -m tests.pictures
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtGui import QImage, QPixmap

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.run_folder import finder_for
from core.trace import Trace
from gui.main_window import MainWindow
from gui.screenshot import dispose, picture_window, settle
from gui.session import Document

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
SIZE = (1600, 1000)
COLORS = 256


def sample(stage: int) -> tuple[Trace, Analysis]:
    """Trace and analysis of a stage of the example."""
    trace = open_trace(ROOT / "resources" / "samples" / f"story_stage{stage}_simulated.json.gz")
    return trace, analyze(trace, source=finder_for(trace))


def keep(pixmap: QPixmap, name: str) -> None:
    """Write a picture of at most 256 colours, the most frequent ones: a third of the size, and it looks the same."""
    image = pixmap.toImage().convertToFormat(QImage.Format.Format_RGB32)
    height, width = image.height(), image.width()
    packed = np.frombuffer(image.constBits(), np.uint32).reshape(height, image.bytesPerLine() // 4)[:, :width]
    colors, where, counts = np.unique(packed, return_inverse=True, return_counts=True)
    kept = colors[np.argsort(-counts)[:COLORS]]
    channels = [(values[:, None] >> np.array([16, 8, 0])).astype(np.int32) & 255 for values in (colors, kept)]
    nearest = np.abs(channels[0][:, None, :] - channels[1][None, :, :]).sum(axis=2).argmin(axis=1).astype(np.uint8)
    pixels = np.ascontiguousarray(nearest[where.reshape(height, width)])
    indexed = QImage(pixels.data, width, height, width, QImage.Format.Format_Indexed8)
    indexed.setColorTable([int(c) | 0xFF000000 for c in kept])
    path = FOLDER / name
    if not indexed.save(str(path), "PNG", 0):  # type: ignore[call-overload]
        raise OSError(0, "the picture cannot be written", str(path))
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KB")


def window_with(stage: int, *, dark: bool) -> MainWindow:
    """Window on a stage of the example, without the tour."""
    window = picture_window(*sample(stage), SIZE, dark=dark)
    page = window.current_page()
    assert page is not None
    tour = page.band("tour")
    if tour is not None:
        tour.hide()
    return window


def take() -> None:
    """Take all of them."""
    window = window_with(0, dark=True)
    document = window.session.current
    assert document is not None
    document.show_suggestion(0)
    settle()
    keep(window.grab(), "window.png")
    dispose(window)
    take_views()

    window = window_with(0, dark=False)
    trace, analysis = sample(3)
    after = Document(trace)
    after.kept = False
    after.title = trace.path.name
    window.session.add_document(after)
    after.set_analysis(analysis)
    window.show_page("compare")
    settle()
    keep(window.grab(), "guided-loop-compare.png")
    dispose(window)


def take_views() -> None:
    """Take those of the views under the timeline: the views alone, tall."""
    for panel_id, dark in (("flame", True), ("kernels", False)):
        window = window_with(0, dark=dark)
        page = window.current_page()
        assert page is not None
        page.show_panel(panel_id)
        page.toggle_tall()
        panel = page.panel(panel_id)
        assert panel is not None
        settle()
        table = getattr(panel, "table", None)
        if table is not None:
            table.selectRow(0)
            settle()
        keep(page.bottom.grab(), f"view-{panel_id}.png")
        dispose(window)


if __name__ == "__main__":
    take()
