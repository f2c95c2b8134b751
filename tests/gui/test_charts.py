"""Charts tell what is under the pointer, and tables what became of a filter."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QColor, QFont, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QApplication, QPushButton

from gui import text
from gui.models.columns import Column, ColumnModel
from gui.widgets.charts import LABEL_GAP_PX, FallingBars, Histogram, LineChart
from gui.widgets.cut_name import CutValue, fewer_digits
from gui.widgets.table import TableBox


def test_a_line_tells_the_value_that_held_at_a_time(qapp: QApplication) -> None:
    chart = LineChart()
    chart.resize(101, 72)
    assert chart.value_at(50) is None
    chart.show_values(np.array([0, 40, 100]), np.array([1024, 2048, 4096]), text.size)
    assert chart.value_at(0) == (0.0, 1024.0)
    assert chart.value_at(39) == (39.0, 1024.0)
    assert chart.value_at(41) == (41.0, 2048.0)
    assert chart.value_at(500) == (100.0, 4096.0)
    assert text.size(4096) in chart.accessibleName()


def test_charts_over_each_other_share_their_axis_and_say_nothing_of_the_time_before(qapp: QApplication) -> None:
    chart = LineChart()
    chart.resize(101, 72)
    chart.show_values(np.array([50]), np.array([4096]), text.size, None, (0.0, 100.0))
    assert chart.value_at(40) is None
    assert chart.value_at(60) == (60.0, 4096.0)
    image = chart.grab().toImage()
    rows = [[image.pixelColor(x, y) for y in range(20, 54)] for x in (20, 80)]
    assert len(set(map(QColor.name, rows[0]))) == 1
    assert rows[1][10] != rows[0][10]


def test_a_peak_of_a_moment_is_not_held(qapp: QApplication) -> None:
    chart = LineChart()
    chart.resize(101, 72)
    chart.show_values(np.array([0, 1, 1000]), np.array([100, 1, 1]), text.size)
    image = chart.grab().toImage()
    assert image.pixelColor(50, 22) == image.pixelColor(99, 22)
    assert image.pixelColor(50, 22) != image.pixelColor(0, 40)


def test_a_bar_of_the_histogram_tells_how_many_it_holds(qapp: QApplication) -> None:
    chart = Histogram()
    chart.resize(160, 96)
    assert chart.words_at(5) == ""
    chart.show_values(np.array([1000] * 5 + [17000]), 1000.0)
    assert chart.words_at(1).startswith("5 calls of")
    assert chart.words_at(159).startswith("1 call of")


def test_a_filter_without_rows_says_so_and_copying_says_how_many(qapp: QApplication) -> None:
    model = ColumnModel([Column("Name", "text", ["mm", "add"])])
    box = TableBox(model, lambda slice_id: None, name="Operators", note="Double-click a row.")
    box.filter.setText("nothing of the kind")
    assert box.note.full_text() == "No row has these words."
    box.filter.setText("mm")
    assert box.note.full_text() == "Double-click a row."
    next(b for b in box.findChildren(QPushButton) if b.text() == "Copy CSV").click()
    assert box.note.full_text().startswith("1 row copied")
    assert QGuiApplication.clipboard().text() == "Name\nmm\n"


def test_numbers_under_the_bars_never_run_together(qapp: QApplication) -> None:
    bars = FallingBars()
    bars.show_values([77.5e6, 73.2e6, 73.2e6, 73.1e6, 73.0e6, 72.4e6, 72.1e6, 65.0e6])
    metrics = QFontMetrics(QFont("monospace", 12))
    width = metrics.horizontalAdvance("77.5")
    bars.resize(8 * (width + 2), 72)
    few = bars.labels(metrics, bars._pitch_px())
    assert {0, 7} <= few.keys() and 2 < len(few) < 8
    places = sorted(few.values())
    assert min(b - a for a, b in zip(places, places[1:], strict=False)) >= width + LABEL_GAP_PX
    assert places[0] >= 0 and places[-1] + width <= bars.width()
    bars.resize(8 * (width + 12), 72)
    assert len(bars.labels(metrics, bars._pitch_px())) == 8


def test_a_figure_without_room_loses_digits_before_its_unit(qapp: QApplication) -> None:
    value = CutValue(2)
    value.set_text("77.54\u202fms")
    assert fewer_digits("77.54\u202fms") == ["77.54\u202fms", "77.5\u202fms", "78\u202fms"]
    assert fewer_digits("12.5 ms") == ["12.5 ms", "13 ms"]
    assert fewer_digits("unknown") == ["unknown"]
    assert fewer_digits("0.4\u202fms") == ["0.4\u202fms"]
    room = value.fontMetrics().horizontalAdvance
    assert value.fitting(room("77.54\u202fms")) == "77.54\u202fms"
    assert value.fitting(room("78\u202fms")) == "78\u202fms"
    assert value.fitting(room("78")).endswith("…")
