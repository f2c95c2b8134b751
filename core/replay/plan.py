"""The order of fixes: which one next, and which ones only pay together.

Greedy, with groups. Each round replays every remaining fix on top of those already chosen and takes the best. When
the best one alone brings little of what all the rest together would bring, the waits form a chain: letting one go
only moves its time to the next. Then the smallest group that brings most of the rest is looked for: the best pair if
a pair does, else all the rest with everything left out that is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Gain = Callable[[frozenset[int]], float]

# A fix, or a chain of them, must bring this share of the step to be in the plan; less is not worth a person's while.
LEAST_SHARE = 0.01
# A member of a chain may bring less, but not one that depends on none of the others: it loses them no more than this
# multiple of what it brings by itself.
BY_ITSELF = 1.5
# The best single fix is taken while it brings this share of what all the rest could; else a group is looked for.
ALONE_SHARE = 0.25
SUM_SHARE = 0.5  # ... or while all of them, each by itself, add up to this share: then they are no chain
# Only the best fix is replayed again, until it stays the best; that is enough where it brings its share of the rest,
# and where what the fixes brought last adds up to this share of all the rest: then none depends on another.
ADDITIVE_SHARE = 0.9
PAIR_SHARE = 0.6  # a pair is enough when it brings this share of all the rest
MAX_ASKED = 24  # fixes replayed per turn; of more, those that brought least so far have to wait
MAX_PAIRED = 12  # candidates of which all pairs are tried
MAX_PAIRS = 10  # pairs that are replayed, those with the longest reach; a group without what is not missed does as well
COMPARABLE_SHARE = 0.8  # of what the best fix brings: a fix of the largest cause that brings as much begins the plan
IDLE_SHARE = 0.001  # a fix without which the whole plan loses less than this share of the step is not part of it
MISSED_SHARE = 0.02  # a member of a group is dropped when the rest loses less than this share of its gain


@dataclass(frozen=True)
class Turn:
    """One fix in the plan.

    ``saved`` is what is saved with all fixes up to this one. ``group`` are the members of its chain (itself alone for
    a fix that pays by itself), in order; ``group_gain`` what they bring together.
    """

    fix: int
    saved: float
    group: tuple[int, ...]
    group_gain: float


@dataclass
class Planner:
    """Looks for the order.

    Parameters
    ----------
    gain
        What a set of fixes saves together (any unit); called as seldom as possible.
    scale
        The step time now, in the same unit.
    order
        Rank of each fix in the program: members of a group are applied in this order.
    most
        Upper bound of what each fix can add in any company, in the same unit (infinite where there is none); pairs
        that cannot suffice are not asked for.
    promise
        What speaks for a fix in a pair: those that promise most are asked for first.
    limit
        Upper bound of what a set saves, in the same unit, cheaper than ``gain``: pairs that cannot suffice are not
        asked for.
    answers
        Fixes of what limits the step: where the saving of one is comparable to the best, the plan begins with it.
    on_turn
        Called after each turn with the number of fixes still to place.
    """

    gain: Gain
    scale: float
    order: Sequence[float]
    most: Sequence[float] | None = None
    promise: Sequence[float] | None = None
    limit: Gain | None = None
    answers: frozenset[int] = frozenset()
    on_turn: Callable[[int], None] = lambda left: None
    _known: dict[frozenset[int], float] = field(default_factory=dict)

    def saved(self, fixes: frozenset[int]) -> float:
        """Gain of a set, worked out once."""
        value = self._known.get(fixes)
        if value is None:
            value = self._known[fixes] = self.gain(fixes) if fixes else 0.0
        return value

    def plan(self, fixes: Sequence[int]) -> list[Turn]:
        """Order the fixes; those that bring nothing in any company are left out."""
        least = LEAST_SHARE * self.scale
        chosen: frozenset[int] = frozenset()
        remaining = list(fixes)
        turns: list[Turn] = []
        hopes = {fix: self.saved(frozenset((fix,))) for fix in remaining}
        while remaining:
            base = self.saved(chosen)
            rest = self.saved(chosen | frozenset(remaining)) - base
            if rest < least:
                break
            gains = self._gains(chosen, remaining, hopes, base, rest)
            best = self._most_careful(gains if turns else self._of_largest_cause(gains))
            alone = gains[best] >= ALONE_SHARE * rest or sum(gains.values()) >= SUM_SHARE * rest
            group: tuple[int, ...] = (best,)
            if gains[best] < least or not alone:
                group = self._group(chosen, remaining, base, rest)
                if self.saved(chosen | frozenset(group)) - base < least:
                    break
            turns += self._turns(chosen, group, base)
            chosen |= frozenset(group)
            remaining = [fix for fix in remaining if fix not in chosen]
            self.on_turn(len(remaining))
        return self._needed(turns)

    def _of_largest_cause(self, gains: Mapping[int, float]) -> Mapping[int, float]:
        """The gains of fixes that work on what limits the step, where one is comparable to the best; else all."""
        least = COMPARABLE_SHARE * max(gains.values())
        return {fix: gain for fix, gain in gains.items() if fix in self.answers and gain >= least} or gains

    def _most_careful(self, gains: Mapping[int, float]) -> int:
        """The fix that brings most; of several that bring the same, the one that takes least away."""
        best = max(gains, key=lambda fix: gains[fix])
        promise = self.promise
        if promise is None:
            return best
        same = [fix for fix in gains if gains[fix] >= gains[best] - IDLE_SHARE * self.scale]
        return min(same, key=lambda fix: (promise[fix], -gains[fix]))

    def _needed(self, turns: list[Turn]) -> list[Turn]:
        """Leave out what later fixes have made superfluous.

        Members of a group are needed by their group, and the last turn by its own gain: only the others are asked for,
        and none where all pay by themselves and add up.
        """
        kept = frozenset(turn.fix for turn in turns)
        alone = sum(self.saved(frozenset((turn.fix,))) for turn in turns)
        if all(len(turn.group) == 1 for turn in turns) and alone <= self.saved(kept) * (1 + MISSED_SHARE):
            return turns
        for turn in turns[:-1]:
            left = kept - {turn.fix}
            if len(turn.group) == 1 and self.saved(kept) - self.saved(left) < IDLE_SHARE * self.scale:
                kept = left
        if len(kept) == len(turns):
            return turns
        result: list[Turn] = []
        chosen: frozenset[int] = frozenset()
        for group in dict.fromkeys(turn.group for turn in turns if turn.fix in kept):
            result += self._turns(chosen, group, self.saved(chosen))
            chosen |= frozenset(group)
        return result

    def _gains(
        self, chosen: frozenset[int], remaining: list[int], hopes: dict[int, float], base: float, rest: float
    ) -> dict[int, float]:
        """What each remaining fix brings now, or brought when it was replayed last, as far as that decides.

        Of very many, only those are replayed again that brought something.
        """
        fresh: set[int] = set()
        while (best := max(remaining, key=lambda fix: hopes[fix])) not in fresh:
            hopes[best] = self.saved(chosen | {best}) - base
            fresh.add(best)
        additive = sum(hopes[fix] for fix in remaining) >= ADDITIVE_SHARE * rest
        if additive or (hopes[best] >= ALONE_SHARE * rest and hopes[best] >= LEAST_SHARE * self.scale):
            return {fix: hopes[fix] for fix in remaining}
        asked = sorted(remaining, key=lambda fix: -hopes[fix])[:MAX_ASKED]
        gains = {fix: self.saved(chosen | {fix}) - base for fix in asked}
        hopes.update(gains)
        return gains

    def _group(self, chosen: frozenset[int], remaining: list[int], base: float, rest: float) -> tuple[int, ...]:
        """Smallest set of the remaining fixes that brings most of what all of them bring.

        Members that depend on none of the others, and that bring less than is worth a place in the plan, are left out.
        """
        pair = self._pair(chosen, remaining, base, rest) if len(remaining) <= MAX_PAIRED else ()
        group = list(pair or remaining)
        now = self.saved(chosen | frozenset(group)) - base
        alone = {fix: self.saved(chosen | {fix}) - base for fix in group}
        for fix in sorted(group, key=lambda f: alone[f]):
            without = [other for other in group if other != fix]
            left = self.saved(chosen | frozenset(without)) - base if without else 0.0
            missed = now - left
            small = missed < LEAST_SHARE * self.scale
            by_itself = missed <= BY_ITSELF * alone[fix] + IDLE_SHARE * self.scale
            if without and ((not pair and left >= rest * (1 - MISSED_SHARE)) or (small and by_itself)):
                group, now = without, left
        return tuple(sorted(group, key=lambda fix: self.order[fix]))

    def _pair(self, chosen: frozenset[int], remaining: list[int], base: float, rest: float) -> tuple[int, ...]:
        """Two fixes that bring most of what all the remaining ones bring, nothing where no pair does."""
        pairs = [(a, b) for i, a in enumerate(remaining) for b in remaining[i + 1 :]]
        if self.most is not None:
            most = self.most
            kept = sum(most[fix] for fix in chosen) - base
            pairs = [pair for pair in pairs if kept + most[pair[0]] + most[pair[1]] >= PAIR_SHARE * rest]
        if self.promise is not None:
            promise = self.promise
            pairs = sorted(pairs, key=lambda pair: -(promise[pair[0]] + promise[pair[1]]))[:MAX_PAIRS]
        if self.limit is not None:
            limit = self.limit
            pairs = [pair for pair in pairs if limit(chosen | frozenset(pair)) - base >= PAIR_SHARE * rest]
        if not pairs:
            return ()
        best = max(pairs, key=lambda pair: self.saved(chosen | frozenset(pair)))
        return best if self.saved(chosen | frozenset(best)) - base >= PAIR_SHARE * rest else ()

    def _turns(self, chosen: frozenset[int], group: tuple[int, ...], base: float) -> list[Turn]:
        total = self.saved(chosen | frozenset(group)) - base
        turns = []
        for count, fix in enumerate(group, start=1):
            saved = self.saved(chosen | frozenset(group[:count]))
            turns.append(Turn(fix, saved, group, total))
        return turns
