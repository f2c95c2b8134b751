"""Two traces side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from core.analysis import analyze
from core.compare import GONE, NEW, SAME, Comparison, comparable_step, compare, match_suggestions
from core.figures.model import Summary
from core.importing import open_trace
from core.reporting import comparing, json
from core.reporting.text import Page
from core.run_folder import RunRecord
from core.suggestions import SourceRef
from tests.core.reporting.cases import SUGGESTION, analysed, training
from tests.core.reporting.schema import COMPARISON, check
from tests.trace_builder import TraceBuilder


@pytest.fixture(scope="module")
def pair():
    before = analysed(training(item=True))
    after = analysed(training(steps=3, item=False, kernel_us=30.0))
    return before, after, compare(*before, *after)


def row(table, name):
    return next(r for r in table if r.name == name)


def test_operators(pair):
    found: Comparison = pair[2]
    gone = row(found.operators, "aten::item")
    assert gone.state == GONE
    assert gone.after is None
    assert gone.before.calls == 4
    assert gone.before.calls_per_step == 1.0
    assert gone.before.total_per_step_ns == 300_000
    assert gone.before.self_per_step_ns == gone.before.self_ns / 4
    assert gone.before.self_per_step_ns < gone.before.total_per_step_ns
    assert gone.delta_ns == -300_000
    assert row(found.operators, "aten::mm").state == SAME  # three steps instead of four: the same per step


def test_what_calls_itself_spends_its_time_once_per_step_as_in_all_tables():
    builder = TraceBuilder()
    for n in range(4):
        builder.step(n, n * 1000.0, 900).op("aten::div", n * 1000.0 + 10, 100).op("aten::div", n * 1000.0 + 20, 60)
    side = analysed(builder)
    div = row(compare(*side, *side).operators, "aten::div").before
    assert (div.calls, div.total_ns) == (8, 400_000)
    assert (div.calls_per_step, div.total_per_step_ns, div.self_per_step_ns) == (2.0, 100_000, 100_000)


def test_kernels(pair):
    gemm = row(pair[2].kernels, "gemm")
    assert gemm.state == "changed"
    assert (gemm.before.calls, gemm.after.calls) == (4, 3)
    assert gemm.before.total_ns == 4 * 60_000
    assert gemm.delta_ns == -30_000


def test_ranges_and_sync_points(pair):
    found: Comparison = pair[2]
    assert row(found.ranges, "forward").state == SAME
    sync = row(found.sync_points, "cudaMemcpyAsync in aten::item")
    assert sync.state == GONE
    assert sync.before.calls_per_step == 1.0
    assert sync.before.total_ns > 0


def test_tables_are_sorted_by_difference(pair):
    sizes = [abs(r.delta_ns) for r in pair[2].operators]
    assert sizes == sorted(sizes, reverse=True)


def test_a_trace_against_itself_has_no_difference(pair):
    before = pair[0]
    found = compare(*before, *before)
    assert {r.state for t in (found.operators, found.kernels, found.ranges, found.sync_points) for r in t} == {SAME}
    assert {c.state for c in found.suggestions} <= {SAME}
    assert "No difference" in comparing.report(before[0], before[0], found)


def test_json(pair):
    before, after, found = pair
    values = orjson.loads(json.to_bytes(comparing.document(before[0], after[0], found)))
    check(values, COMPARISON)
    assert values["per_step"] is True


def test_text(pair):
    before, after, found = pair
    text = comparing.report(before[0], after[0], found, Page(100))
    assert "gone: aten::item" in text
    assert "gone: cudaMemcpyAsync in aten::item" in text
    assert max(map(len, text.splitlines())) <= 100


def test_comparable_step_needs_both_sides():
    sustained = Summary(sustained_step_ns=5.0, period_ns=7.0)
    assert comparable_step(sustained, Summary(period_ns=8.0)) == ("period", 7.0, 8.0)
    assert comparable_step(sustained, sustained) == ("sustained", 5.0, 5.0)
    assert comparable_step(sustained, Summary()) is None


def test_suggestions_are_matched_by_rule_and_place_not_by_folder():
    moved = replace(SUGGESTION, source=SourceRef("/runs/3/source/train.py", 14, "train_step"))
    other = replace(SUGGESTION, source=SourceRef("/home/user/project/train.py", 40, "evaluate"))
    changes = match_suggestions([SUGGESTION, other], [moved])
    assert [(c.state, c.either.source.function) for c in changes] == [(GONE, "evaluate"), (SAME, "train_step")]
    assert match_suggestions([], [other])[0].state == NEW


def test_suggestions_of_a_script_with_another_name_are_paired_by_function():
    assert SUGGESTION.source is not None
    renamed = replace(SUGGESTION, source=replace(SUGGESTION.source, file="stage3.py"))
    assert [c.state for c in match_suggestions([SUGGESTION], [renamed])] == [SAME]
    second = replace(renamed, source=replace(renamed.source, file="other.py"))
    assert [c.state for c in match_suggestions([SUGGESTION], [renamed, second])] == [GONE, NEW, NEW]  # cannot be told


def test_suggestions_whose_places_one_trace_lacks_are_paired_by_their_operators():
    """A recording without stacks has no lines: its suggestions did not come and go for that."""
    other = replace(SUGGESTION, values={**SUGGESTION.values, "op_path": "aten::nonzero"})
    bare = [replace(s, source=None) for s in (other, SUGGESTION)]
    for sides in (([SUGGESTION, other], bare), (bare, [SUGGESTION, other])):
        found = match_suggestions(*sides)
        assert [c.state for c in found] == [SAME, SAME]
        for change in found:
            assert change.before.values["op_path"] == change.after.values["op_path"]
            assert change.source == SUGGESTION.source
    assert [c.state for c in match_suggestions([SUGGESTION], [replace(other, source=None)])] == [GONE, NEW]
    elsewhere = replace(SUGGESTION, source=replace(SUGGESTION.source, function="evaluate"))
    several = match_suggestions([SUGGESTION, elsewhere], bare)  # which of the two went cannot be told
    assert sorted(c.state for c in several) == [GONE, GONE, NEW, NEW]


def test_what_no_step_is_known_of_is_not_called_per_step(pair):
    before, after, found = pair
    assert "Per step\n" in comparing.report(before[0], after[0], found)
    one = replace(found, before=Summary(gpu_busy_pct=40.0))
    assert "Per step\n" in comparing.report(before[0], after[0], one)
    neither = replace(one, after=Summary(gpu_busy_pct=50.0))
    text = comparing.report(before[0], after[0], neither)
    assert found.timeless == () and one.timeless == ("before",)
    assert "The trace before has no step time" in comparing.report(
        before[0], after[0], replace(one, wall_ns=(None, 1.0))
    )
    assert "Neither trace has a step time" in text
    assert "Per step" not in text and "Whole traces (no steps are known)\n" in text


def noisy(found: Comparison) -> Comparison:
    """Two runs whose own steps differ much, and whose step times went opposite ways."""
    sides = [replace(found.before, sustained_step_ns=ns, step_ns=ns) for ns in (1_320_000_000, 1_130_000_000)]
    return replace(found, before=sides[0], after=sides[1], wall_ns=(381e6, 937e6), differs=(), noise=("spread",))


def test_recorded_steps_cannot_tell_where_more_was_recorded_of_one():
    """The profiler takes another share of the step then; a step without it still tells."""
    bare, more = TraceBuilder(), TraceBuilder()
    for n in range(5):
        bare.step(n, n * 1000.0, 800).op("aten::mm", n * 1000.0 + 10, 700)
        more.step(n, n * 1000.0, 950).op("aten::mm", n * 1000.0 + 10, 850).python("train.py(3): step", n * 1000.0, 940)
    more.step(5, 5000.0, 950).op("aten::mm", 5010.0, 850)
    before, after = analysed(more), analysed(bare)
    found = compare(*before, *after)
    assert (found.outcome, found.noise) == ("unclear", ("recording",))
    said = " ".join(comparing.report(before[0], after[0], found, Page(width=200)).split())
    assert "What was recorded differs (stacks before; nothing more after)" in said
    assert "Steps recorded: 6 and 5." in said
    values = orjson.loads(json.to_bytes(comparing.document(before[0], after[0], found)))
    check(values, COMPARISON)
    assert values["recording"] == {"before": ["stacks"], "after": []}
    runs = [RunRecord(Path(f"/runs/{k}"), "t", "ok", None, wall, None) for k, wall in enumerate((700e3, 500e3))]
    timed = compare(*before, *after, (runs[0], runs[1]))
    assert timed.recording is not None
    assert "recording" not in timed.noise


def test_a_file_that_breaks_off_is_told(tmp_path):
    whole = training()
    before = whole.build(tmp_path / "whole.json")
    (tmp_path / "cut.json").write_bytes((tmp_path / "whole.json").read_bytes()[:-400])
    after = open_trace(tmp_path / "cut.json")
    found = compare(before, analyze(before), after, analyze(after))
    assert found.cut_off == ("after",)
    assert "The trace after breaks off" in comparing.report(before, after, found)


def test_what_is_noise_is_unclear_as_it_is_for_a_round(pair):
    before, after, found = pair
    found = noisy(found)
    assert found.outcome == "unclear"
    assert found.contradiction == ("sustained", 1_320_000_000, 1_130_000_000)
    said = " ".join(comparing.report(before[0], after[0], found, Page(width=200)).split())
    assert "Unclear: the unprofiled step went from 381 ms to 937 ms (+146 %" in said
    assert "But the sustained step went from 1.32 s to 1.13 s (−14 %" in said
    assert "differ so much among themselves" in said
    assert "Slower" not in said
    values = orjson.loads(json.to_bytes(comparing.document(before[0], after[0], found)))
    check(values, COMPARISON)
    assert (values["outcome"], values["noise"]) == ("unclear", ["spread"])


def test_without_noise_the_step_without_the_profiler_decides_and_the_other_is_said(pair):
    found = replace(noisy(pair[2]), noise=())
    assert found.outcome == "slower"
    assert found.contradiction is not None
    assert replace(found, wall_ns=(381e6, 300e6)).contradiction is None
    assert replace(found, wall_ns=(None, None)).contradiction is None


def test_steps_that_differ_much_among_themselves_are_noise():
    even, uneven = TraceBuilder(), TraceBuilder()
    for n in range(5):
        even.step(n, n * 1000.0, 900).op("aten::mm", n * 1000.0 + 10, 700)
        uneven.step(n, n * 1000.0, 300 + 150 * n).op("aten::mm", n * 1000.0 + 10, 200 + 150 * n)
    sides = analysed(even), analysed(uneven)
    found = compare(*sides[0], *sides[1])
    assert found.noise == ("spread",)
    assert found.outcome == "unclear"
    assert compare(*sides[0], *sides[0]).noise == ()
    assert compare(*sides[1], *sides[1]).outcome == "same"  # of one and the same trace


def test_one_odd_step_does_not_hide_that_steps_lie_apart():
    slow, quick, mixed = TraceBuilder(), TraceBuilder(), TraceBuilder()
    at = [0.0, 0.0, 0.0]
    rows = ((176, 174, 177, 181, 176, 164), (182, 124, 127, 126, 163, 116), (182, 118, 120, 175, 172, 104))
    for k, builder in enumerate((slow, quick, mixed)):
        for n, ms in enumerate(rows[k]):
            builder.step(n, at[k], 1000 * ms).op("aten::mm", at[k] + 10, 900 * ms)
            at[k] += 1000.0 * ms
    sides = analysed(slow), analysed(quick), analysed(mixed)
    found = compare(*sides[0], *sides[1])
    assert (found.outcome, found.noise) == ("faster", ())
    assert compare(*sides[1], *sides[0]).outcome == "slower"
    assert compare(*sides[0], *sides[2]).noise == ("spread",)  # two of them are no accident


def test_differences_are_of_the_whole_traces_where_one_knows_no_steps(pair):
    """Else a column of totals would stand beside a difference per step."""
    other = analysed(TraceBuilder().op("aten::other", 0, 5))
    for found in (compare(*other, *pair[1]), compare(*pair[1], *other)):
        assert not found.per_step
        for table in (found.operators, found.kernels):
            for one in table:
                assert one.state in (NEW, GONE)
                assert abs(one.delta_ns) == (one.before or one.after).total_ns
    assert "+0 points" not in comparing.report(pair[0][0], pair[0][0], compare(*pair[0], *pair[0]))


def test_a_recording_of_the_cpu_alone_is_called_as_on_its_own_page(tmp_path):
    builder = TraceBuilder(gpu=None)
    for number in range(6):
        builder.step(number, number * 1000, 1000).op("aten::mm", number * 1000 + 10, 900)
    trace = builder.build(tmp_path / "trace.json")
    found = analyze(trace)
    text = comparing.report(trace, trace, compare(trace, found, trace, found))
    assert "verdict         CPU only\n" in text
