"""Sets of numbers of slices against numpy's own, which is slow but known to be right."""

import numpy as np
import pytest

from core.sets import all_alike, among, changes, distinct, grouped, median, most_frequent, percentile


@pytest.mark.parametrize("far", [10, 10_000, 30_000_000])  # by a table, and by searching
def test_as_numpy_does_it(far):
    random = np.random.default_rng(far)
    for count in (0, 1, 2, 50, 3000):
        values = random.integers(-1, far, count).astype(np.int32)
        members = np.concatenate([random.integers(-1, far, count // 2), values[:3]])
        assert distinct(values).tolist() == np.unique(values).tolist()
        assert among(values, members).tolist() == np.isin(values, members).tolist()
        assert among(values, members.tolist()).tolist() == np.isin(values, members).tolist()


def test_types_and_nothing():
    assert distinct(np.array([3, 1, 3], dtype=np.int32)).dtype == np.int32
    assert among(np.array([1, 2]), []).tolist() == [False, False]
    assert not len(among(np.empty(0, dtype=np.int32), [1]))
    kinds = np.array([0, 4, 5], dtype=np.uint8)  # as columns of kinds are kept
    assert among(kinds, (4, 300)).tolist() == [False, True, False]


def test_groups_and_counts_as_numpy_does_them():
    random = np.random.default_rng(5)
    for count in (1, 2, 9, 400):
        values = random.integers(-1, max(count // 3, 2), count).astype(np.int32)
        for ours, theirs in zip(
            grouped(values), np.unique(values, return_index=True, return_inverse=True), strict=True
        ):
            assert ours.tolist() == theirs.tolist()
        names, counts = np.unique(values, return_counts=True)
        assert most_frequent(values) == names[np.argmax(counts)]
        assert median(values) == np.median(values) == median(values.astype(np.float64))
        for pct in (0, 10, 25, 50, 75, 99.5, 100):
            assert percentile(values, pct) == np.percentile(values, pct)
            assert percentile(values / 7, pct) == np.percentile(values / 7, pct)
        assert changes(values).tolist() == np.append(True, values[1:] != values[:-1]).tolist()
    assert not len(changes(values[:0]))
    assert np.isnan(median(values[:0]))
    assert [len(part) for part in grouped(values[:0])] == [0, 0, 0]


def test_one_number_held_once():
    held = all_alike(0.5, 4)
    assert held.tolist() == [0.5] * 4
    assert not held.flags.writeable
    assert held.strides == (0,)
    assert not len(all_alike(1.0, 0))
