"""Where a click on evidence leads: one of its slices is selected, and stands in the stretch that is shown."""

from __future__ import annotations

from pathlib import Path

from core.figures.compute import compute_figures
from core.suggestions import Evidence, Suggestion
from core.trace import Trace
from gui import evidence
from gui.session import Document
from tests.gui.conftest import known_analysis
from tests.trace_builder import TraceBuilder, rows


def shows(document: Document, slice_id: int) -> bool:
    """Whether a slice is selected, lies in the view, and is more than a hair of it."""
    view, trace = document.viewport, document.trace
    start, end = trace.slices.start_ns[slice_id], trace.end_ns[slice_id]
    wide = (end - start) / view.width_ns > 1 / 1000
    return document.selected_slice == slice_id and view.start_ns <= start and end <= view.end_ns and wide


def unmarked(tmp_path: Path) -> Trace:
    """No steps: a range of ten seconds, and two short calls in it."""
    made = TraceBuilder().range("all of it", 0, 10_000_000)
    return made.op("aten::item", 5_000_000, 15).op("aten::item", 9_000_000, 10).build(tmp_path / "unmarked.json")


def test_without_steps_a_long_range_beside_a_short_call_does_not_hide_it(tmp_path: Path) -> None:
    document = Document(unmarked(tmp_path))
    analysis, trace = known_analysis(document.trace), document.trace
    calls, around = tuple(rows(trace, "aten::item")), tuple(rows(trace, "all of it"))
    seen = (Evidence("Calls", 2, "", calls), Evidence("Inside the range", None, "", around))
    document.set_analysis(type(analysis)(analysis.figures, (Suggestion("a-rule", "A call", evidence=seen),)))
    document.show_suggestion(0)
    assert shows(document, calls[0])
    document.show_slices(around)
    assert document.selected_slice == around[0]
    document.show_slices(calls)
    assert shows(document, calls[0])


def test_what_is_selected_already_stays_and_is_shown(tmp_path: Path) -> None:
    document = Document(unmarked(tmp_path))
    calls = tuple(rows(document.trace, "aten::item"))
    document.select(calls[1])
    document.show_slices(calls)
    assert shows(document, calls[1])


def test_evidence_of_steps_and_from_between_them_is_in_view(tmp_path: Path) -> None:
    made = TraceBuilder()
    for k in range(4):
        made.step(k, k * 2000, 1000).op("aten::mm", k * 2000 + 100, 50)
    made.op("aten::save", 3400, 80)  # between two steps
    document = Document(made.build(tmp_path / "steps.json"))
    document.set_analysis(known_analysis(document.trace))
    products, between = tuple(rows(document.trace, "aten::mm")), tuple(rows(document.trace, "aten::save"))
    document.show_slices(products)
    first = document.selected_slice
    assert first in products
    assert shows(document, first)
    for ids in (between, products, (*between, *products)):
        document.show_slices(ids)
        assert document.selected_slice in ids
        assert shows(document, document.selected_slice)


def test_of_a_typical_step_the_longest_call_leads_and_not_one_of_median_length(tmp_path: Path) -> None:
    made = TraceBuilder()
    for k in range(4):  # a long copy and two short ones in each step
        made.step(k, k * 10_000, 9000).op("aten::to", k * 10_000 + 100, 3000)
        made.op("aten::to", k * 10_000 + 4000, 80).op("aten::to", k * 10_000 + 5000, 80)
    trace = made.build(tmp_path / "copies.json")
    document, copies = Document(trace), tuple(rows(trace, "aten::to"))
    seen = (Evidence("Calls", 12, "", copies), Evidence("In a typical step (median)", 3.16, "ms", copies[:9]))
    analysis = known_analysis(trace)
    document.set_analysis(type(analysis)(analysis.figures, (Suggestion("a-rule", "A copy", evidence=seen),)))
    document.show_suggestion(0)
    assert trace.slices.dur_ns[document.selected_slice] == 3_000_000
    assert evidence.is_typical("Typical (median) duration")


def test_the_lead_is_of_the_first_evidence_where_that_has_no_slice_in_the_step_of_the_rest(tmp_path: Path) -> None:
    made = TraceBuilder()
    for k in range(5):
        made.step(k, k * 2000, 1000 if k else 1900).op("aten::mm", k * 2000 + 100, 50)
    made.op("aten::item", 300, 90)  # in the first, longer step only
    document = Document(made.build(tmp_path / "steps.json"))
    trace = document.trace
    once = tuple(rows(trace, "aten::item"))
    seen = (Evidence("Once", 1, "", once), Evidence("Products", 5, "", tuple(rows(trace, "aten::mm"))))
    analysis = known_analysis(trace)
    document.set_analysis(type(analysis)(analysis.figures, (Suggestion("a-rule", "Once", evidence=seen),)))
    document.show_suggestion(0)
    assert shows(document, once[0])


def test_evidence_of_what_is_typical_selects_what_is_like_the_median(tmp_path: Path) -> None:
    made = TraceBuilder()
    for k, dur in enumerate((10, 20, 21, 22, 400)):
        made.op("aten::mm", k * 1000, dur)
    document = Document(made.build(tmp_path / "five.json"))
    products = tuple(rows(document.trace, "aten::mm"))
    document.select(products[4])
    document.show_slices(products, typical=evidence.is_typical("Typical (median) duration"))
    assert document.selected_slice == products[2]
    document.show_slices(products)
    assert document.selected_slice == products[2]  # it was looked at
    document.select(-1)
    document.show_slices(products)
    assert document.selected_slice == products[4]


def test_slices_that_the_trace_lacks_select_nothing(tmp_path: Path) -> None:
    trace = unmarked(tmp_path)
    document = Document(trace)
    document.show_slices((len(trace.slices) + 3,))
    assert document.selected_slice == -1
    assert evidence.lead_among(trace, compute_figures(trace), (-4,)) == -1
