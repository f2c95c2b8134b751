from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from core.analysis import Analysis
from core.figures.compute import compute_figures
from gui.session import Document
from gui.timeline.export import image_of, render_to_image, save_png, save_svg
from gui.timeline.view import TimelineView
from tests.gui.conftest import training
from tests.gui.timeline.conftest import place
from tests.trace_builder import rows


def test_picture_without_a_window_leaves_the_view_as_it_is(qapp: QApplication, tmp_path: Path) -> None:
    trace = training().build(tmp_path / "train.json")
    document = Document(trace)
    document.set_analysis(Analysis(compute_figures(trace)))
    document.zoom_to(1_000, 2_000)
    image = render_to_image(document, 900, 600, True, view_ns=(0, 1_000_000), scale=2.0)
    assert (image.width(), image.height()) == (1800, 1200)
    assert (document.viewport.start_ns, document.viewport.end_ns) == (1_000, 2_000)
    light = render_to_image(document, 900, 600, False, view_ns=(0, 1_000_000))
    assert light.pixelColor(400, 590).lightness() > 200 > 60 > image.pixelColor(800, 1180).lightness()
    sharp = sum(image.pixel(x, y) != image.pixel(x + 1, y) for x in range(0, 1798, 2) for y in range(200, 1200, 7))
    assert sharp > 400  # drawn at twice the size, not blown up from single size
    again = render_to_image(document, 900, 600, False, view_ns=(0, 1_000_000))
    assert again == light


def test_png_and_svg_are_written_and_never_over_a_file(view: TimelineView, tmp_path: Path) -> None:
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    view.document.zoom_to(0, 1_000_000)
    save_png(view, png)
    assert QImage(str(png)).width() == view.width() * 2
    save_svg(view, svg)
    text = svg.read_text(encoding="utf-8")
    assert "gemm_kernel" in text
    assert "loss" in text
    assert "sans-serif" in text
    for save in (save_png, save_svg):
        with pytest.raises(FileExistsError):
            save(view, png)


def test_in_vectors_no_ground_of_a_heading_lies_over_the_lanes(view: TimelineView, tmp_path: Path) -> None:
    view.document.zoom_to(0, 1_000_000)
    view.toggle("gpu/0", False)
    save_svg(view, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    after = text[text.index(">Step 0") :]  # the headings are drawn after the lanes
    assert ">GPU 0<" in after
    assert f'width="{view.canvas.wide()}"' not in after
    assert re.search(r">[\d.]+\u202f?[mµ]s<", text), "the axis has its times"
    assert "clip-path" in text, "rows that are half scrolled away end below the pinned ones"


def test_in_vectors_the_whole_trace_is_clipped_where_it_stands(view: TimelineView, tmp_path: Path) -> None:
    save_svg(view, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    left, top = view.minimap.head_px * view.minimap.scale, view.minimap.pos().y()
    assert top > 0
    assert any(f"M{left:g},{top:g} " in path for path in re.findall(r"<clipPath.*?</clipPath>", text, re.S))


def test_pictures_have_nothing_that_follows_the_pointer(view: TimelineView, tmp_path: Path) -> None:
    view.document.zoom_to(0, 1_000_000)
    calm, svg = image_of(view), tmp_path / "calm.svg"
    save_png(view, tmp_path / "calm.png")
    save_svg(view, svg)
    item = int(rows(view.document.trace, "aten::mm")[0])
    view.canvas.point(place(view, item))
    assert view.canvas.tooltip_shown and view.canvas.hovered == item
    save_png(view, tmp_path / "pointed.png")
    save_svg(view, tmp_path / "pointed.svg")
    assert QImage(str(tmp_path / "pointed.png")) == QImage(str(tmp_path / "calm.png"))
    assert (tmp_path / "pointed.svg").read_bytes() == svg.read_bytes()
    assert image_of(view) == calm
    assert view.canvas.hovered == item  # on the screen it stays
