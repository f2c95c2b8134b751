"""Several fixes in one copy: each is derived from the text that the ones before it left."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.fixes.line_blocks import line_blocks, lines_of
from core.fixes.of_run import Derive, attempt_for_run
from core.fixes.propose import ProposedEdit
from core.run_folder import RunRecord
from core.suggestions import Suggestion

_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Conflict:
    """A fix that cannot join the others: by position of the suggestion, and of the fix it clashes with.

    ``kind`` is ``lost`` (its change would take away what the other one wrote), ``gone`` (after the other one it cannot
    be derived any more) or ``none`` (it cannot be derived by itself either: ``other`` is -1). ``lines`` are the lines
    of the user's file that both are about; ``reason`` is the fix engine's own.
    """

    index: int
    other: int
    kind: str
    lines: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Joint:
    """Edits that build on one another, by position of their suggestion, in the order in which they are made.

    ``covered`` maps a position to the one whose change does all that its own would do.
    """

    edits: tuple[tuple[int, ProposedEdit], ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    covered: tuple[tuple[int, int], ...] = ()

    @property
    def indices(self) -> tuple[int, ...]:
        """Positions of all suggestions whose change is made."""
        return tuple(sorted([*(i for i, _ in self.edits), *(i for i, _ in self.covered)]))


def join(run: RunRecord, chosen: Iterable[tuple[int, Suggestion]], derive: Derive = attempt_for_run) -> Joint:
    """Derive several fixes for one copy of a run's sources.

    Each fix is derived anew from the text with all the fixes before it, its place moved along, so that two changes of
    one call are both in it. A fix that would take away what another wrote is left out, and said to be. Where fixes
    clash, another order is tried.

    Parameters
    ----------
    run
        The run whose sources are changed.
    chosen
        Positions and suggestions, in the order in which they are to be made.
    derive
        Derives one edit; `core.fixes.of_run.attempt_for_run`.

    Returns
    -------
    Joint
        What fits together, and what does not.
    """
    wanted = list(chosen)
    alone = {index: derive(run, suggestion, {}) for index, suggestion in wanted}
    best = _join(run, wanted, alone, derive)
    for clash in [c for c in best.conflicts if c.kind != "none"]:
        first = [pair for pair in wanted if pair[0] == clash.index]
        found = _join(run, [*first, *(pair for pair in wanted if pair[0] != clash.index)], alone, derive)
        if len(found.conflicts) < len(best.conflicts):
            best = found
    return best


def _join(
    run: RunRecord,
    wanted: Sequence[tuple[int, Suggestion]],
    each: Mapping[int, tuple[ProposedEdit | None, str]],
    derive: Derive,
) -> Joint:
    files: dict[str, _File] = {}
    edits: list[tuple[int, ProposedEdit]] = []
    conflicts: list[Conflict] = []
    covered: list[tuple[int, int]] = []
    for index, suggestion in wanted:
        alone, why = each[index]
        if alone is None:
            conflicts.append(Conflict(index, -1, "none", reason=why))
            continue
        file = files.setdefault(str(alone.path), _File(alone.before))
        twin = next((i for i, e in file.made if _changes(e) >= _changes(alone)), None)
        if twin is not None:
            covered.append((index, twin))
            continue
        edit: ProposedEdit | None = alone
        if file.made:
            texts = {path: f.text for path, f in files.items()}
            edit, why = derive(run, moved(suggestion, alone.before, file.text), texts)
        if edit is None or edit.path != alone.path or edit.before != file.text or edit.after == edit.before:
            conflicts.append(Conflict(index, *_nearest(alone, file.made), reason=why))
        elif (other := file.lost_in(edit)) is not None:
            shared = set(alone.lines) & set(next(e for i, e in file.made if i == other).lines)
            conflicts.append(Conflict(index, other, "lost", tuple(sorted(shared)) or alone.lines))
        else:
            file.take(index, alone, edit)
            edits.append((index, edit))
    return Joint(tuple(edits), tuple(conflicts), tuple(covered))


def _nearest(alone: ProposedEdit, others: Sequence[tuple[int, ProposedEdit]]) -> tuple[int, str, tuple[int, ...]]:
    """The fix that shares lines with this one; the last one made where none does."""
    for other, earlier in reversed(others):
        shared = set(alone.lines) & set(earlier.lines)
        if shared:
            return other, "gone", tuple(sorted(shared))
    return (others[-1][0] if others else -1), "gone", ()


def _changes(edit: ProposedEdit) -> frozenset[tuple[int, str]]:
    """What an edit does line by line: the line of the old text, how many go, and the new text there."""
    before, after = lines_of(edit.before), lines_of(edit.after)
    blocks = line_blocks(before, after)
    return frozenset((a, "\n".join([str(b - a), *after[c:d]])) for tag, a, b, c, d in blocks if tag != "equal")


_Word = tuple[str, int]  # a word or sign, and the position of the fix that wrote it (-1: it was there)


@dataclass
class _File:
    """A file with the fixes made so far, and who wrote which word of it."""

    text: str
    made: list[tuple[int, ProposedEdit]] = field(default_factory=list)  # as each is by itself, of the user's text
    _lines: list[list[_Word]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = [[(word, -1) for word in _WORDS.findall(line)] for line in lines_of(self.text)]

    def lost_in(self, edit: ProposedEdit) -> int | None:
        """Position of a fix that an edit would take words away from."""
        _, lost = self._after(edit.after, -1)
        return lost

    def take(self, index: int, alone: ProposedEdit, edit: ProposedEdit) -> None:
        """Make an edit."""
        self._lines, _ = self._after(edit.after, index)
        self.text = edit.after
        self.made.append((index, alone))

    def _after(self, text: str, index: int) -> tuple[list[list[_Word]], int | None]:
        new, lost = lines_of(text), None
        out: list[list[_Word]] = []
        blocks = line_blocks(lines_of(self.text), new)
        for tag, a, b, c, d in blocks:
            if tag == "equal":
                out += self._lines[a:b]
                continue
            old = [word for line in self._lines[a:b] for word in line]
            words = [_WORDS.findall(line) for line in new[c:d]]
            flat = [word for line in words for word in line]
            owners, kept = [index] * len(flat), [False] * len(old)
            matcher = difflib.SequenceMatcher(None, [word for word, _ in old], flat, autojunk=False)
            for start, at, size in matcher.get_matching_blocks():
                owners[at : at + size] = [owner for _, owner in old[start : start + size]]
                kept[start : start + size] = [True] * size
            gone = [owner for (word, owner), stays in zip(old, kept, strict=True) if not stays and owner >= 0]
            lost = gone[0] if gone and lost is None else lost
            owned = iter(owners)
            out += [[(word, next(owned)) for word in line] for line in words]
        return out, lost


# Places that move along ---------------------------------------------------------------------------------------


def moved(suggestion: Suggestion, before: str, after: str) -> Suggestion:
    """Return the suggestion with its lines where they are after an edit; a line that went is where it stood."""
    source = suggestion.source
    if source is None or before == after:
        return suggestion
    blocks = line_blocks(lines_of(before), lines_of(after))

    def now(line: int) -> int:
        at = line - 1
        found = next(((a, c, d) for _, a, b, c, d in blocks if a <= at < b), None)
        return line if found is None else 1 + min(found[1] + at - found[0], max(found[1], found[2] - 1))

    candidates = tuple(now(line) for line in source.candidates)
    return replace(suggestion, source=replace(source, line=now(source.line), candidates=candidates))
