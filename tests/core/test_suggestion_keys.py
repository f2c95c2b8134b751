"""Suggestions of one rule in one function are told apart, the same way in every run over a trace."""

from __future__ import annotations

import random
from dataclasses import replace

from core.compare import GONE, SAME, match_suggestions
from core.suggestions import Evidence, SourceRef, Suggestion, numbered

PLACE = SourceRef("train.py", 10, "train_epoch")


def made(first: int, op: str = "aten::item", line: int = 10) -> Suggestion:
    evidence = (Evidence("Calls", 1, "", (first, first + 1)),)
    source = replace(PLACE, line=line)
    return Suggestion("scalar-read-back", "A scalar", {"op_path": op}, source=source, evidence=evidence)


def test_keys_are_distinct_whatever_the_order_and_the_line():
    found = [made(30), made(5), made(7, "aten::any"), made(90)]
    keys = {s.evidence[0].slices[0]: s.key for s in numbered(found)}
    assert len(set(keys.values())) == 4
    for _ in range(5):
        random.shuffle(found)
        assert {s.evidence[0].slices[0]: s.key for s in numbered(found)} == keys
    known = [replace(s, source=SourceRef("train.py", 77, "train_epoch", True)) for s in numbered(found)]
    assert {s.evidence[0].slices[0]: s.key for s in known} == keys  # finding the line later changes nothing
    assert numbered(numbered(found)) == numbered(found)
    assert keys[5].endswith("#1")
    assert keys[90].endswith("#3")


def test_a_key_never_looks_like_an_old_one():
    (one,) = numbered([made(1)])
    assert one.key != one.place_key
    assert one.place_key == "scalar-read-back|train.py:train_epoch"


def test_one_of_two_in_a_function_is_seen_to_go():
    before, after = numbered([made(5), made(30)]), numbered([made(8)])
    assert sorted(c.state for c in match_suggestions(before, after)) == sorted([GONE, SAME])
    other = numbered([made(5, "aten::nll"), made(30)])
    states = {str(c.either.values["op_path"]): c.state for c in match_suggestions(other, numbered([made(4)]))}
    assert states == {"aten::nll": GONE, "aten::item": SAME}
