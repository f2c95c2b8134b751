from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from core.errors import TraceError
from core.trace import Trace
from gui import store
from gui.screenshot import screenshot, write_screenshot
from tests.gui.conftest import known_analysis, training


def colours(image: QImage) -> int:
    return len({image.pixel(x, y) for x in range(0, image.width(), 9) for y in range(0, image.height(), 9)})


def test_picture_has_the_size_asked_for_and_something_on_it(qapp: QApplication, trace: Trace, tmp_path: Path) -> None:
    out = tmp_path / "dark.png"
    write_screenshot(trace, known_analysis(trace), out, (1000, 640), suggestion=0, dark=True)
    dark = QImage(str(out))
    assert (dark.width(), dark.height()) == (1000, 640)
    assert colours(dark) > 30
    write_screenshot(trace, known_analysis(trace), tmp_path / "light.png", (1000, 640), dark=False)
    light = QImage(str(tmp_path / "light.png"))
    assert light.pixelColor(500, 630).lightness() > 128 > dark.pixelColor(500, 630).lightness()


def test_the_stretch_asked_for_is_shown(qapp: QApplication, trace: Trace, tmp_path: Path) -> None:
    pictures = []
    for name, stretch in (("a", (0, 400_000)), ("b", (2_000_000, 2_400_000)), ("c", (0, 400_000))):
        out = tmp_path / f"{name}.png"
        write_screenshot(trace, known_analysis(trace), out, (900, 600), None, True, *stretch)
        pictures.append(QImage(str(out)))
    assert pictures[0] == pictures[2]
    assert pictures[0] != pictures[1]


def test_nothing_of_the_users_is_written(qapp: QApplication, trace: Trace, tmp_path: Path) -> None:
    write_screenshot(trace, known_analysis(trace), tmp_path / "x.png", (700, 500), suggestion=0)
    assert not store.file_of(trace).exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.json", "x.png"]


def test_a_picture_that_cannot_be_written_leaves_what_was_there(
    qapp: QApplication, trace: Trace, tmp_path: Path
) -> None:
    with pytest.raises((OSError, TraceError)):
        write_screenshot(trace, None, tmp_path / "no folder" / "x.png", (700, 500))


def options(trace: Path, out: Path, suggestion: int | None) -> argparse.Namespace:
    return argparse.Namespace(
        trace=trace, out=out, size=(800, 600), suggestion=suggestion, theme="light", start_us=None, end_us=None
    )


def test_headless_command_draws_and_refuses_a_suggestion_that_is_not_there(qapp: QApplication, tmp_path: Path) -> None:
    path = training().write(tmp_path / "train.json")
    told: list[float] = []
    screenshot(options(path, tmp_path / "out.png", None), lambda fraction, text: told.append(fraction))
    assert QImage(str(tmp_path / "out.png")).width() == 800
    assert told == sorted(told)
    with pytest.raises(TraceError, match="no suggestion 99"):
        screenshot(options(path, tmp_path / "no.png", 99), lambda fraction, text: None)
    assert not (tmp_path / "no.png").exists()


def test_sources_beside_the_trace_are_read_as_in_the_window(qapp: QApplication) -> None:
    from core.importing import open_trace
    from gui.screenshot import dispose, picture_window
    from gui.tour_story import sample

    trace = open_trace(sample(0))
    window = picture_window(trace, None, (900, 600))
    document = window.session.current
    assert document is not None
    assert document.finder is not None
    copies = next(i for i in range(len(trace.slices)) if trace.name(i) == "cudaMemcpyAsync")
    found = document.finder.of_slice(copies)
    dispose(window)
    assert found is not None
    assert not found.function or found.exact or found.candidates or found.line > 0
    assert document.finder.resolve(found.file) is not None  # its text can be shown
