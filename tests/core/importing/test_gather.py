"""Columns put together piece by piece are those of all pieces; answers pass through shared memory."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.importing import gather
from core.importing.columns import EventColumns, FlowColumns, MemoryColumns, group_of
from core.importing.gather import Gathering
from core.importing.slots import Slots

_NUMBERS = st.sampled_from([-1, 0, 7, 2**31 - 1, 2**31, -(2**31), -(2**40), 2**62])
_PIECES = st.lists(st.lists(st.tuples(_NUMBERS, st.sampled_from("abcd")), max_size=5), max_size=6)


def _piece(rows):
    """Flows whose ids and categories are given; each piece numbers its strings in its own order."""
    strings = sorted({text for _, text in rows}, reverse=len(rows) % 2 == 0)
    columns = {name: [0] * len(rows) for name in ("phase", "pid", "tid", "time_ns")}
    columns["category"] = [strings.index(text) for _, text in rows]
    columns["flow_id"] = [number for number, _ in rows]
    columns["tid"] = [-1] * len(rows)
    return EventColumns(strings, flows=group_of(FlowColumns, columns), events=len(rows))


@pytest.mark.parametrize("read", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("lasting", [True, False])
@given(pieces=_PIECES)
def test_the_whole_is_what_the_pieces_hold(read, lasting, pieces):
    gathering = Gathering(lasting=lasting)
    for rows in pieces:
        piece = _piece(rows)
        gathering.add(piece, read)
        if not lasting:
            piece.flows.flow_id[:] = 99  # its memory is used again
    whole = gathering.finish()
    every = [row for rows in pieces for row in rows]
    assert whole.flows.flow_id.tolist() == [number for number, _ in every]
    assert [whole.strings[i] for i in whole.flows.category.tolist()] == [text for _, text in every]
    assert set(whole.flows.tid.tolist()) <= {-1}
    assert whole.events == len(every)
    assert len(whole.memory) == 0


def test_more_rows_than_expected_find_room(monkeypatch):
    monkeypatch.setattr(gather, "SPARE_ROWS", 0)
    gathering = Gathering()
    for number in range(40):
        gathering.add(_piece([(number, "a"), (2**40 + number if number > 30 else 1, "b")]), 1.0)
    wanted = [n for i in range(40) for n in (i, 2**40 + i if i > 30 else 1)]
    assert gathering.finish().flows.flow_id.tolist() == wanted


def test_an_answer_comes_out_of_its_slot_as_it_went_in():
    places = Slots(2, 1 << 20)
    columns = {name: [1, 2, 3] for name in MemoryColumns.__annotations__}
    answer = EventColumns(["a"], memory=group_of(MemoryColumns, columns), events=3)
    sent = [places.leave(slot, answer if slot else _piece([(5, "x")] * 9)) for slot in (1, 0, -1)]
    assert places.find(sent[0]).memory.address.tolist() == [1, 2, 3]
    assert places.find(sent[0]).strings == ["a"]
    assert places.find(sent[1]).flows.flow_id.tolist() == [5] * 9
    assert places.find(sent[2]).memory.address.tolist() == [1, 2, 3]  # no slot was free


def test_an_answer_too_large_for_its_slot_is_sent_whole():
    places = Slots(2, 4096)
    small = places.leave(1, _piece([(5, "x")] * 9))
    large = places.find(places.leave(0, _piece([(number, "x") for number in range(4096)])))
    assert large.flows.flow_id.tolist() == list(range(4096))
    assert places.find(small).flows.flow_id.tolist() == [5] * 9
    assert np.shares_memory(places.find(small).flows.flow_id, np.frombuffer(places._memory, np.uint8))


def test_slots_are_lent_once_each():
    places = Slots(2, 1 << 20)
    taken = [places.take() for _ in range(3)]
    assert sorted(taken) == [-1, 0, 1]
    places.give_back(taken[0])
    assert places.take() == taken[0]


def _same(group, other):
    for name, column in vars(group).items():
        assert getattr(other, name).tolist() == column.tolist(), name
        assert getattr(other, name).dtype == column.dtype, name
    return type(group) is type(other)


@given(rows=st.lists(st.tuples(_NUMBERS, st.sampled_from("abcd")), max_size=5), protocol=st.integers(2, 5))
def test_columns_come_out_of_a_pickle_as_they_went_in(rows, protocol):
    flows = _piece(rows).flows
    assert _same(flows, pickle.loads(pickle.dumps(flows, protocol)))
    assert _same(flows, copy.deepcopy(flows))
    held = []
    head = pickle.dumps(flows, 5, buffer_callback=held.append)
    shared = pickle.loads(head, buffers=held)
    assert _same(flows, shared)
    if rows:
        flows.flow_id[0] = 5
        assert shared.flow_id[0] == 5  # nothing was copied


@pytest.mark.parametrize(
    "narrow", [lambda c: c.astype(np.int32), lambda c: np.broadcast_to(c[:1], 6), lambda c: c[::2]]
)
def test_columns_that_are_not_held_as_declared_keep_their_kind(narrow):
    flows = _piece([(number, "a") for number in range(6)]).flows
    flows.flow_id = narrow(flows.flow_id)
    assert _same(flows, pickle.loads(pickle.dumps(flows, 5)))
