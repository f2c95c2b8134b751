from __future__ import annotations

import numpy as np
import pytest

from core.errors import TraceError
from core.kinds import SliceKind
from core.search import search
from core.trace import Trace
from tests.trace_builder import TraceBuilder


@pytest.fixture(scope="module")
def trace() -> Trace:
    made = TraceBuilder(with_stack=1)
    made.op("aten::conv2d", 0, 50).op("aten::_convolution", 5, 40).op("aten::relu", 60, 10)
    made.op("aten::conv2d", 100, 80).op("aten::add_", 190, 5)
    made.launch("volta_sgemm_128x64_nn", at=10, call=5, start=30, dur=60)
    made.python("größe.py(3): Maß", 0, 200).range("Обучение", 0, 195)
    return made.build()


def names(trace: Trace, ids: np.ndarray) -> list[str]:
    return [trace.name(int(i)) for i in ids]


def test_text_anywhere_in_the_name_without_case_in_time_order(trace: Trace) -> None:
    assert names(trace, search(trace, "CONV")) == ["aten::conv2d", "aten::_convolution", "aten::conv2d"]
    assert search(trace, "CONV", case_sensitive=True).tolist() == []
    assert search(trace, "").tolist() == []
    assert search(trace, "nothing like it").dtype == np.int32


def test_words_in_any_order(trace: Trace) -> None:
    assert names(trace, search(trace, "nn volta")) == ["volta_sgemm_128x64_nn"]
    assert search(trace, "nn ampere").tolist() == []


def test_a_word_is_found_as_the_names_of_slices_spell_it() -> None:
    made = TraceBuilder().op("aten::copy_", 0, 50).op("c10d::allreduce_", 60, 10).op("nccl:all_reduce", 80, 5)
    made.copy("HtoD (Pageable -> Device)", at=5, call=5, start=12, dur=10)
    made.launch("ncclDevKernel_AllReduce_Sum_f32", at=62, call=3, start=66, dur=20)
    trace = made.build()
    copies = ["aten::copy_", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"]
    assert names(trace, search(trace, "Copy")) == names(trace, search(trace, "copies")) == copies
    assert names(trace, search(trace, "h2d")) == names(trace, search(trace, "copy htod")) == copies[2:]
    assert names(trace, search(trace, "memcpy")) == copies[1:]
    reduced = ["c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32", "nccl:all_reduce"]
    assert names(trace, search(trace, "all_reduce")) == names(trace, search(trace, "allReduce")) == reduced
    assert names(trace, search(trace, "copy", case_sensitive=True)) == ["aten::copy_"]
    assert names(trace, search(trace, "copy", regex=True)) == ["aten::copy_"]
    assert names(trace, search(trace, "^*copy*")) == ["aten::copy_"]


def test_wildcards_are_found_anywhere_unless_they_are_anchored(trace: Trace) -> None:
    for query in ("conv2?", "onv2*", "*onv2*", "^aten*2d$", "^aten::conv2?$", "onv?d$", "^*onv2d$"):
        assert names(trace, search(trace, query)) == ["aten::conv2d"] * 2, query
    assert names(trace, search(trace, "gemm*n")) == ["volta_sgemm_128x64_nn"]
    for query in ("^onv2*", "^*conv$", "^conv2?", "aten*conv$", "^?conv2d$"):
        assert search(trace, query).tolist() == [], query


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("a*b", ["xx a-ab b", "a_b", "a bx", "ac ab", "ba b_"]),
        ("^a*b", ["a_b", "a bx", "ac ab"]),
        ("a*b$", ["xx a-ab b", "a_b", "ac ab"]),
        ("?b", ["xx a-ab b", "a_b", "a bx", "ac ab", "ba b_"]),
        ("a?b", ["a_b", "a bx", "ba b_"]),
        ("^a?b$", ["a_b"]),
        ("^b*a$", ["b a"]),
        ("*", ["xx a-ab b", "a_b", "a bx", "ac ab", "ba b_", "b a"]),
        ("b*a", ["ba b_", "b a"]),
    ],
)
def test_each_part_of_a_pattern_is_found_where_it_first_comes(query: str, fits: list[str]) -> None:
    made = TraceBuilder()
    for at, name in enumerate(("xx a-ab b", "a_b", "a bx", "ac ab", "ba b_", "b a")):
        made.op(name, at * 10, 5)
    trace = made.build()
    assert names(trace, search(trace, query)) == fits


def test_a_long_name_is_looked_through_once_for_all_parts_of_a_pattern() -> None:
    trace = TraceBuilder().op("a" * 100_000, 0, 10).op("a" * 50_000 + "b", 20, 10).build()
    assert search(trace, "*a*a*a*a*b").tolist() == [1]
    assert search(trace, "a*a*a*a*c").tolist() == []


def test_regular_expressions_and_their_errors(trace: Trace) -> None:
    assert names(trace, search(trace, r"^aten::(relu|add_)$", regex=True)) == ["aten::relu", "aten::add_"]
    with pytest.raises(TraceError, match="not a regular expression"):
        search(trace, "conv(", regex=True)


def test_signs_of_patterns_are_plain_text_otherwise(trace: Trace) -> None:
    assert names(trace, search(trace, "(3)")) == ["größe.py(3): Maß"]


def test_any_script(trace: Trace) -> None:
    assert names(trace, search(trace, "обучение")) == ["Обучение"]
    assert names(trace, search(trace, "MASS")) == ["größe.py(3): Maß"]  # casefold: ß and SS are one


def test_filters(trace: Trace) -> None:
    assert names(trace, search(trace, "*", kinds=[SliceKind.KERNEL])) == ["volta_sgemm_128x64_nn"]
    assert names(trace, search(trace, "conv2d", min_dur_ns=60_000)) == ["aten::conv2d"]
    assert len(search(trace, "conv2d", max_dur_ns=60_000)) == 1
    assert len(search(trace, "conv2d", start_ns=90_000)) == 1
    assert len(search(trace, "conv2d", end_ns=90_000)) == 1
    track = int(trace.slices.track_id[search(trace, "sgemm")[0]])
    assert names(trace, search(trace, "*", tracks=[track])) == ["volta_sgemm_128x64_nn"]
