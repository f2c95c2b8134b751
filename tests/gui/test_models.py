from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QTableView

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.kinds import SliceKind
from core.trace import Trace
from gui import text
from gui.main_window import MainWindow
from gui.models import args_text, range_stats, slice_facts
from gui.models.columns import Column, ColumnModel
from gui.models.query import Fault, Query, find
from gui.panels.python import without_launcher
from gui.panels.syncs import SyncsPanel
from gui.session import Document
from tests.trace_builder import TraceBuilder, rows

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal


def model() -> ColumnModel:
    columns = [
        Column("Name", "name", ["beta", "Alpha", "gamma", "alpha two"]),
        Column("Time", "ns", np.array([30, 2_000_000, -1, 7])),
    ]
    return ColumnModel(columns, np.array([5, 6, 7, 8]))


def shown(m: ColumnModel, column: int = 0) -> list[str]:
    return [m.index(r, column).data() for r in range(m.rowCount())]


def test_cells_are_formatted_and_unknown_is_said() -> None:
    assert shown(model(), 1) == ["30\u202fns", "2.00\u202fms", text.unknown(), "7\u202fns"]


def test_sorts_by_value_and_by_text_without_case() -> None:
    m = model()
    m.sort(1, Qt.SortOrder.DescendingOrder)
    assert shown(m) == ["Alpha", "beta", "alpha two", "gamma"]
    m.sort(0, Qt.SortOrder.AscendingOrder)
    assert shown(m) == ["Alpha", "alpha two", "beta", "gamma"]
    m.sort(-1)
    assert shown(m) == ["beta", "Alpha", "gamma", "alpha two"]


def test_filter_wants_all_words_and_keeps_the_order() -> None:
    m = model()
    m.sort(1, Qt.SortOrder.AscendingOrder)
    m.set_filter("ALPHA")
    assert shown(m) == ["alpha two", "Alpha"]
    assert [m.slice_of(r) for r in range(2)] == [8, 6]
    m.set_filter("two alpha")
    assert shown(m) == ["alpha two"]


def test_a_filter_finds_what_names_spell_otherwise() -> None:
    m = ColumnModel([Column("Name", "name", ["Memcpy HtoD (Pinned -> Device)", "aten::copy_", "aten::mm"])])
    m.set_filter("copy")
    assert shown(m) == ["Memcpy HtoD (Pinned -> Device)", "aten::copy_"]
    m.set_filter("H2D Copy")
    assert shown(m) == ["Memcpy HtoD (Pinned -> Device)"]


def test_csv_holds_raw_values_and_no_formula() -> None:
    m = ColumnModel([Column("Name", "name", ['=cmd("x")', "a,b"]), Column("Time", "ns", np.array([-1, 5]))])
    assert m.csv().splitlines() == ["Name,Time [ns]", '"\'=cmd(""x"")",', '"a,b",5']


def test_model_keeps_qts_contract_while_sorted_filtered_and_replaced() -> None:
    m = model()
    QAbstractItemModelTester(m, FATAL)
    m.index(0, 0).data()
    m.sort(1, Qt.SortOrder.DescendingOrder)
    m.set_filter("a")
    m.set_filter("nothing fits")
    m.set_filter("")
    m.replace([Column("Name", "name", ["x"])])
    m.replace([])


def test_every_table_of_the_window_keeps_qts_contract(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    for panel_id in page.panel_ids():
        page.panel(panel_id)
    models = {view.model() for view in page.findChildren(QTableView)}
    assert len(models) >= 8
    for m in models:
        QAbstractItemModelTester(m, FATAL)
        m.sort(0, Qt.SortOrder.AscendingOrder)
        if m.columnCount() > 1:
            m.sort(1, Qt.SortOrder.DescendingOrder)
        assert all(m.index(0, c).data() is not None for c in range(m.columnCount() if m.rowCount() else 0))


def test_a_persistent_index_follows_its_row() -> None:
    from PySide6.QtCore import QPersistentModelIndex

    m = model()
    kept = QPersistentModelIndex(m.index(0, 0))
    m.sort(0, Qt.SortOrder.AscendingOrder)
    assert kept.data() == "beta"
    assert kept.row() == 2


def test_search_finds_slices_in_time_order(trace: Trace) -> None:
    hits = Query("aten::item").run(trace)
    assert list(hits) == sorted(rows(trace, "aten::item"), key=lambda i: trace.slices.start_ns[i])
    assert len(hits) == 4
    assert not len(Query("  ").run(trace))
    assert not len(Query("no such name").run(trace))


def test_search_reads_patterns_and_regular_expressions(trace: Trace) -> None:
    both = list(Query("aten::item").run(trace))
    assert list(Query("aten::i*m").run(trace)) == both
    assert list(Query("^aten::item$", regex=True).run(trace)) == both
    assert list(Query("/^aten::item$/").run(trace)) == both
    assert not len(Query("^aten::item$").run(trace))
    _, why = find(trace, Query("(", regex=True), None)
    assert isinstance(why, Fault)
    assert why.short == "not a pattern"
    assert "not a regular expression" in why.why


def test_search_keeps_to_kind_track_and_duration(trace: Trace) -> None:
    slices = trace.slices
    kernels = Query(kinds="kernels").run(trace)
    assert len(kernels) == np.count_nonzero(slices.kind == SliceKind.KERNEL) > 0
    track = int(slices.track_id[kernels[0]])
    assert set(slices.track_id[Query("*", tracks=(track,)).run(trace)].tolist()) == {track}
    typical = int(np.median(slices.dur_ns))
    assert (slices.dur_ns[Query(min_dur_ns=typical).run(trace)] >= typical).all()
    assert (slices.dur_ns[Query(max_dur_ns=typical).run(trace)] <= typical).all()
    assert not len(Query().run(trace))


def test_facts_of_a_read_back(trace: Trace) -> None:
    call = rows(trace, "cudaMemcpyAsync")[1]
    chain = [trace.name(i) for i in slice_facts.op_chain(trace, call)]
    assert chain == ["aten::_local_scalar_dense", "aten::item"]
    assert trace.name(slice_facts.innermost_range(trace, call)) == "loss"
    stack = [trace.name(i) for i in slice_facts.python_stack(trace, call)]
    assert stack == ["train.py(14): weighted_nll", "train.py(10): main"]
    kernel = rows(trace, "gemm_kernel")[0]
    assert slice_facts.queue_delay_ns(trace, kernel) == 20_000
    op = rows(trace, "aten::mm")[0]
    assert list(slice_facts.launched(trace, op)) == [kernel]
    assert slice_facts.self_ns(trace, op) == 50_000
    same = slice_facts.same_name(trace, kernel)
    assert len(same.ids) == 4
    assert set(same.dur_ns) == {500_000}


def test_statistics_of_a_stretch_are_clipped_and_add_up(trace: Trace) -> None:
    first = int(trace.slices.start_ns[rows(trace, "gemm_kernel")[0]])
    stats = range_stats.compute(trace, None, first + 100_000, first + 300_000, ())
    assert stats.wall_ns == 200_000
    assert stats.busy_ns == 200_000
    assert stats.sync_wait_ns is None
    names = {trace.strings[int(n)]: k for k, n in enumerate(stats.totals.name_id)}
    assert stats.totals.total_ns[names["gemm_kernel"]] == 200_000
    whole = range_stats.compute(trace, None, *trace.span_ns, ())
    assert whole.copies == 4
    assert whole.copy_bytes == 16
    at = {trace.strings[int(n)]: k for k, n in enumerate(whole.totals.name_id)}
    assert whole.totals.total_ns[at["aten::item"]] == 4 * 300_000
    assert whole.totals.self_ns[at["aten::item"]] == 4 * 2_000


def test_statistics_of_an_empty_stretch(trace: Trace) -> None:
    end = trace.span_ns[1]
    stats = range_stats.compute(trace, None, end + 10, end + 20, ())
    assert (stats.slices, stats.busy_ns, len(stats.totals.calls)) == (0, 0, 0)


def test_arguments_as_text() -> None:
    lines = args_text.lines({"External id": 3, "Input Dims": [[1, 2]], "x": "<b>" + "y" * 2000})
    assert lines[0] == ("Input Dims", "[[1, 2]]")
    assert lines[2][1].startswith("<b>y")
    assert len(lines[2][1]) < 700
    assert args_text.frame_place("a/train.py(14): weighted_nll") == ("a/train.py", 14)
    assert args_text.frame_place("<built-in method item of Tensor object at 0x7f>") is None


@pytest.mark.parametrize(
    ("ns", "shown_as"),
    [
        (None, "unknown"),
        (0, "0 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (12.5, "12.5 ns"),
        (986_000, "986 µs"),
        (12_340_000, "12.3 ms"),
        (1.5e9, "1.50 s"),
        (150e9, "2 min 30 s"),
    ],
)
def test_durations(ns: float | None, shown_as: str) -> None:
    assert text.duration(ns).replace(text.THIN, " ") == shown_as


def test_a_template_without_its_value_stays_readable() -> None:
    assert text.filled("{count} times", {}) == "{count} times"
    assert text.filled("`{op}` waits", {"op": "aten::item"}) == "aten::item waits"
    assert text.breakable("1.5 torch_x fbgemm::permute_features").replace("\u200b", "|") == (
        "1.5 torch_x fbgemm::|permute_|features"
    )


def test_the_launcher_is_no_part_of_the_users_stack_nor_of_the_table(tmp_path: Path) -> None:
    made = TraceBuilder(with_stack=1)
    made.python("_child.py(277): <module>", 0, 1000).python("runpy.py(80): run_path", 10, 900)
    made.python("train.py(1): <module>", 20, 800).python("my_child.py(9): step", 100, 300)
    made.op("aten::linear", 125, 50)
    trace = made.build(tmp_path / "launched.json")
    stack = [trace.name(i) for i in slice_facts.python_stack(trace, int(rows(trace, "aten::linear")[0]))]
    assert stack == ["my_child.py(9): step", "train.py(1): <module>"]
    stats = compute_figures(trace).python
    left = without_launcher(trace, stats)
    names = {trace.strings[int(i)] for i in left.name_id}
    assert names == {trace.strings[int(i)] for i in stats.name_id} - {"_child.py(277): <module>"}
    assert "my_child.py(9): step" in names


def test_without_runtime_calls_the_table_of_waits_does_not_say_that_the_cpu_never_waits(window, show) -> None:
    silent = TraceBuilder().step(1, 0, 100).kernel("k", 5, 80).build()
    called = TraceBuilder().step(1, 0, 100).launch("k", at=1, call=3, start=5, dur=80).build()
    for trace, words in ((silent, "unknown"), (called, "never waits")):
        analysis = Analysis(compute_figures(trace))
        panel = SyncsPanel(window.session, show(trace, analysis))
        assert words in panel._syncs(analysis).empty


def test_own_time_counts_what_children_share_once_as_the_tables_do() -> None:
    made = TraceBuilder().python("a.py(1): main", 0, 10_000).python("a.py(5): forward", 100, 200)
    made.python("<built-in method run>", 150, 9850).python("a.py(9): loss", 400, 100)
    trace = made.build()
    python = compute_figures(trace).python
    own = {trace.strings[int(n)]: int(t) for n, t in zip(python.name_id, python.host_self_ns, strict=True)}
    assert own["a.py(1): main"] == 100_000
    assert {trace.name(i): slice_facts.self_ns(trace, i) for i in range(len(trace.slices))} == own


def test_where_only_operators_carry_stacks_the_table_of_waits_tells_their_line(window, show, tmp_path: Path) -> None:
    made = TraceBuilder().step(1, 0, 100)
    made.op("aten::to", 5, 80, Call_stack="torch/nn/module.py(3): f;train.py(44): <module>")
    trace = made.copy("HtoD (Pageable -> Device)", at=10, call=70, start=15, dur=60).build(tmp_path / "old.json")
    analysis = Analysis(compute_figures(trace))
    syncs = analysis.figures.syncs
    columns = SyncsPanel(window.session, show(trace, analysis))._columns(analysis, syncs)
    assert len(syncs) == 1
    assert {c.title: list(c.values) for c in columns}["In your code"] == ["train.py:44 · <module>"]
