"""Look-ups by kind and name against a plain search."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.figures.lookup import View
from core.kinds import SliceKind
from core.rule_tools.name_index import KindIndex
from tests.trace_builder import TraceBuilder

KINDS = ((SliceKind.CPU_OP,), (SliceKind.RANGE, SliceKind.CPU_OP), (SliceKind.RUNTIME, SliceKind.DRIVER))


@given(st.lists(st.tuples(st.sampled_from(["cpu_op", "user_annotation"]), st.sampled_from("abc")), max_size=12))
def test_several_kinds_are_searched_as_one(events: list[tuple[str, str]]) -> None:
    builder = TraceBuilder()
    for at, (category, name) in enumerate(events):
        builder.event(ph="X", cat=category, name=name, pid=100, tid=100, ts=10 * at, dur=5)
    trace = builder.build()
    index = KindIndex(trace)
    for kinds in KINDS:
        found = index.of(kinds)
        ids = np.flatnonzero(np.isin(trace.slices.kind, kinds))
        assert found.ids.tolist() == ids.tolist()
        assert set(found.names) == {trace.name(i) for i in ids.tolist()}
        for wanted in (found.names, found.names[:1], ()):
            rows = found.rows([found.place[name] for name in wanted])
            assert rows.tolist() == [i for i in ids.tolist() if trace.name(i) in wanted]


def test_a_view_answers_as_before_after_it_has_let_go() -> None:
    builder = TraceBuilder().op("aten::mm", 10, 30)
    builder.launch("gemm", at=15, call=5, start=40, dur=20)
    view = View(builder.build())
    asked = [view.work, view.host_calls, view.launches, view.by_kind(SliceKind.CPU_OP), view.valid]
    view.let_go()
    again = [view.work, view.host_calls, view.launches, view.by_kind(SliceKind.CPU_OP), view.valid]
    assert all(len(one) for one in asked)
    for one, other in zip(asked, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert view.thread[view.work].tolist() == [-1]
    assert view.device[view.work].tolist() == [0]
