"""The timeline as a picture: PNG, SVG, or an image in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontInfo, QImage, QImageWriter, QPainter

from gui.session import Document, Session

SHARP = 2.0  # pixels of a saved picture for one of the screen's

if TYPE_CHECKING:
    from gui.timeline.canvas import Canvas
    from gui.timeline.view import TimelineView


def render_to_image(
    document: Document,
    width: int,
    height: int,
    dark: bool,
    *,
    view_ns: tuple[float, float] | None = None,
    scale: float = 1.0,
    legend: bool = False,
) -> QImage:
    """Picture of a document's timeline, ``width`` x ``height`` px times ``scale``.

    The document's own view is left as it is. Needs a QApplication; shows no window.
    """
    from gui.timeline.view import TimelineView

    view = document.viewport
    before = (view.start_ns, view.end_ns)
    session = Session()
    session.dark = dark
    timeline = TimelineView(session, document)
    timeline.motion.animated = False
    timeline.canvas.show_legend = legend
    view.show(*(view_ns or before))
    timeline.empty_rows.settle()
    image = picture_of(timeline, QSize(width, height), scale)
    view.show(*before)
    timeline.deleteLater()
    return image


def picture_of(widget: TimelineView, size: QSize, scale: float) -> QImage:
    """Render a timeline that need not be shown."""
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    widget.resize(size)
    widget.show()
    image = _drawn(widget, scale)
    widget.hide()
    return image


@contextmanager
def _unpointed(canvas: Canvas) -> Iterator[None]:
    """What only follows the pointer is of the moment: it stays out of pictures."""
    kept = canvas.pointer, canvas.hovered
    canvas.pointer, canvas.hovered = None, -1
    try:
        yield
    finally:
        canvas.pointer, canvas.hovered = kept


def image_of(timeline: TimelineView) -> QImage:
    """Picture of the timeline as it is shown now."""
    return _drawn(timeline, timeline.devicePixelRatioF())


def _drawn(timeline: TimelineView, scale: float) -> QImage:
    image = QImage(timeline.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    parts = (timeline.canvas, timeline.strip, timeline.minimap)
    for part in parts:
        part.picture_scale = scale
    with _unpointed(timeline.canvas):
        for _ in range(60):  # labels come in portions
            timeline.render(image)
            if not timeline.canvas.incomplete:
                break
    for part in parts:
        part.picture_scale = 0.0
        part.update()
    return image


def save_png(timeline: TimelineView, path: Path, scale: float = SHARP) -> None:
    """Write the timeline as it is shown now; an existing file is an error.

    Raises
    ------
    OSError
        When the file exists or cannot be written.
    """
    image = _drawn(timeline, scale)
    _claim(path)
    if not QImageWriter(str(path), QByteArray(b"PNG")).write(image):
        path.unlink(missing_ok=True)
        raise OSError(f"{path} could not be written.")


def save_svg(timeline: TimelineView, path: Path) -> None:
    """Write the timeline as vectors with its texts as text; an existing file is an error.

    Raises
    ------
    OSError
        When the file exists or cannot be written.
    """
    from PySide6.QtSvg import QSvgGenerator

    _claim(path)
    written = QBuffer()
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # the smaller standard knows no clipping
    generator.setOutputDevice(written)
    generator.setSize(timeline.size())
    generator.setViewBox(QRect(QPoint(0, 0), timeline.size()))
    generator.setTitle(timeline.tr("Timeline of {name}").format(name=timeline.document.title))
    painter = QPainter(generator)
    painter.fillRect(timeline.rect(), timeline.canvas.frame().palette.header)
    for part in (timeline.strip, timeline.minimap):  # of pictures that are kept, drawn as sharp as a saved one
        part.picture_scale = SHARP
    timeline.strip.render(painter, timeline.strip.pos())
    for bar in (timeline.minimap, timeline.axis):  # a clip that is set while a widget is rendered stays behind there
        painter.save()
        painter.translate(bar.pos())
        painter.scale(bar.scale, bar.scale)
        bar.paint(painter)
        painter.restore()
    for part in (timeline.strip, timeline.minimap):
        part.picture_scale = 0.0
        part.update()
    painter.translate(timeline.canvas.pos())
    painter.scale(timeline.canvas.scale, timeline.canvas.scale)
    with _unpointed(timeline.canvas):
        frame = timeline.canvas.frame()
        frame.vector = True
        timeline.canvas.paint_base(painter, frame)
        timeline.canvas.paint_above(painter, frame)
    painter.end()
    # Where the font is not installed, and for Qt's own word for the usual one, a viewer takes one without serifs.
    family, own = QFont().family(), QFontInfo(QFont()).family()
    first = f"{own}, " if own != family and own.replace(" ", "").isalnum() else ""
    text = bytes(written.data().data()).decode("utf-8")
    text = text.replace(f'font-family="{family}"', f'font-family="{first}{family}, sans-serif"')
    path.write_text(text, encoding="utf-8")


def _claim(path: Path) -> None:
    """Create the file, so that nothing of the user's is overwritten."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
