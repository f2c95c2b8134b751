"""The planner by itself: gains are a function of the set of fixes, and what the best order is stands beside it."""

from __future__ import annotations

from core.replay.plan import Planner


def planner(gain, count: int) -> Planner:
    return Planner(gain=gain, scale=100.0, order=list(range(count)))


def test_independent_fixes_come_best_first() -> None:
    worth = {0: 5.0, 1: 20.0, 2: 1.0, 3: 0.1}
    turns = planner(lambda s: sum(worth[i] for i in s), 4).plan([0, 1, 2, 3])
    assert [t.fix for t in turns] == [1, 0, 2]
    assert [t.saved for t in turns] == [20, 25, 26]
    assert all(t.group == (t.fix,) for t in turns)


def test_many_equal_fixes_are_no_chain() -> None:
    turns = planner(lambda s: 2.0 * len(s), 10).plan(range(10))
    assert len(turns) == 10
    assert all(len(t.group) == 1 for t in turns)


def test_two_fixes_that_only_pay_together() -> None:
    turns = planner(lambda s: 40.0 if {1, 3} <= s else 0.0, 4).plan([0, 1, 2, 3])
    assert [t.fix for t in turns] == [1, 3]
    assert [t.saved for t in turns] == [0, 40]
    assert all(t.group == (1, 3) and t.group_gain == 40 for t in turns)


def test_a_chain_of_five_among_twenty() -> None:
    chain = {2, 5, 9, 13, 17}
    turns = planner(lambda s: 50.0 * (chain <= s), 20).plan(range(20))
    assert {t.fix for t in turns} == chain
    assert [t.fix for t in turns] == sorted(chain)
    assert turns[-1].saved == 50


def test_a_good_single_fix_comes_before_a_chain() -> None:
    turns = planner(lambda s: 30.0 * (0 in s) + 40.0 * ({1, 2} <= s), 3).plan([0, 1, 2])
    assert [t.fix for t in turns] == [0, 1, 2]
    assert [t.saved for t in turns] == [30, 30, 70]


def test_a_fix_that_later_ones_make_superfluous_is_no_step() -> None:
    def gain(fixes: frozenset[int]) -> float:
        both = 30.0 if {1, 2} <= fixes else 0.0  # the pair takes away all that fix 0 shortens, too
        return max(10.0 * (0 in fixes), both) + 5.0 * (3 in fixes)

    turns = planner(gain, 4).plan([0, 1, 2, 3])
    assert {t.fix for t in turns} == {1, 2, 3}
    assert max(t.saved for t in turns) == 35
    assert all(t.group_gain == 30 for t in turns if t.group == (1, 2))


def test_two_suggestions_for_the_same_wait_count_once() -> None:
    turns = planner(lambda s: 10.0 * bool(s & {0, 1}), 2).plan([0, 1])
    assert len(turns) == 1


def test_nothing_worth_doing_gives_no_plan() -> None:
    assert planner(lambda s: 0.1 * len(s), 3).plan([0, 1, 2]) == []
    assert planner(lambda s: 0.0, 0).plan([]) == []


def test_sets_are_replayed_once() -> None:
    asked: list[frozenset[int]] = []

    def gain(fixes: frozenset[int]) -> float:
        asked.append(fixes)
        return float(len(fixes))

    planner(gain, 6).plan(range(6))
    assert len(asked) == len(set(asked))


def test_independent_fixes_are_not_replayed_in_every_turn() -> None:
    asked: list[frozenset[int]] = []

    def gain(fixes: frozenset[int]) -> float:
        asked.append(fixes)
        return float(sum(10 - i for i in fixes))

    turns = planner(gain, 8).plan(range(8))
    assert [t.fix for t in turns] == list(range(8))
    assert len(asked) <= 8 + 8  # each by itself, and the sets that the plan consists of


def test_many_small_fixes_that_add_up_are_no_plan() -> None:
    assert planner(lambda s: 0.5 * len(s), 15).plan(range(15)) == []


def test_small_fixes_beside_a_chain_are_not_its_members() -> None:
    def gain(fixes: frozenset[int]) -> float:
        return 4.0 * ({1, 3} <= fixes) + 0.2 * len(fixes & {0, 2, 4})

    turns = planner(gain, 5).plan(range(5))
    assert [t.fix for t in turns] == [1, 3]


def test_members_of_a_chain_may_be_small_where_all_of_them_are_worth_it() -> None:
    turns = planner(lambda s: 0.05 * len(s) ** 2, 8).plan(range(8))
    assert len(turns) == 8
    assert turns[0].group == tuple(range(8))
    assert turns[-1].group_gain == 0.05 * 64


def test_no_pair_is_passed_over_that_might_suffice() -> None:
    asked: list[frozenset[int]] = []

    def gain(fixes: frozenset[int]) -> float:
        asked.append(fixes)
        return 30.0 * ({0, 2} <= fixes)

    endless = float("inf")
    turns = Planner(gain, 100.0, [0, 1, 2], most=[endless, 0.1, 0.1], promise=[0.1, 1.0, 0.1]).plan([0, 1, 2])
    assert [t.fix for t in turns] == [0, 2]


def test_pairs_whose_limit_rules_them_out_are_not_replayed() -> None:
    asked: list[frozenset[int]] = []

    def gain(fixes: frozenset[int]) -> float:
        asked.append(fixes)
        return 30.0 if len(fixes) == 4 else 0.0

    turns = Planner(gain, 100.0, [0, 1, 2, 3], limit=lambda fixes: 10.0 * len(fixes) - 3.0).plan([0, 1, 2, 3])
    assert len(turns) == 4
    assert turns[-1].saved == 30
    assert not any(fixes == {a, b} for fixes in asked for a in (1, 2, 3) for b in (2, 3) if a < b)


def test_of_two_fixes_that_bring_the_same_the_one_that_takes_least_away_is_taken() -> None:
    """The optimizer alone, and a graph around the whole step, both leave the device's time: the first is enough."""
    both = Planner(gain=lambda s: 40.0 * bool(s), scale=100.0, order=[0, 1], most=[90.0, 45.0], promise=[90.0, 45.0])
    assert [t.fix for t in both.plan([0, 1])] == [1]


def test_a_fix_of_the_largest_cause_begins_the_plan_where_it_saves_about_as_much() -> None:
    def order(mine: float) -> list[int]:
        worth = {0: 10.0, 1: mine, 2: 9.0}
        made = Planner(lambda s: sum(worth[i] for i in s), 100.0, [0, 1, 2], answers=frozenset({1}))
        return [t.fix for t in made.plan([0, 1, 2])]

    assert order(8.5) == [1, 0, 2]
    assert order(7.0) == [0, 2, 1]
