"""From what a rule has found to suggestions: one per place, with evidence that can be looked at."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of, ids_tuple
from core.rule_tools.intervals import covered_ns, union
from core.rule_tools.sync_classes import Occurrence, classify, host_time_ns, is_last_of_all
from core.rule_tools.uneven import SENTENCE, uneven
from core.sets import changes, distinct
from core.suggestions import Effect, EffectKind, Evidence, Fix, RuleContext, SourceRef, Suggestion
from core.tables import I32

MS = 1e6
MOST_NAMED = 64  # occurrences whose range is looked at for its name
MOST_PLACES = 9  # slices of one step whose lines are looked up, for a fault at more than one line
OLD_STACK_READS = 24  # old stacks are read from the file, so only so many occurrences are told apart


SPENT = (
    "The CPU spent {host_ms:time} of the {window_ms:time} looked at inside the {count} {count|call|calls}, "
    "{wait_ms:time} of it waiting for the GPU."
)
SPENT_PER_STEP = (
    "In each step the CPU spends {step_host_ms:time} of {step_ms:time} inside such calls, {step_wait_ms:time} of it "
    "waiting for the GPU ({count} {count|call|calls} in {steps} {steps|step|steps})."
)
SPENT_ON_AVERAGE = SPENT_PER_STEP.replace("In each step the CPU spends", "On average over all steps the CPU spends")
SPENT_IN_ONE_STEP = (
    "The CPU spent {host_ms:time} of the step's {window_ms:time} inside the {count} {count|call|calls}, {wait_ms:time} "
    "of it waiting for the GPU."
)
MADE = (
    "Making what is copied takes {made_ms:time} of CPU time more. With what goes on around both, the fix frees the CPU "
    "for {gone_ms:time}, the waiting included."
)
MADE_PER_STEP = (
    "Making what is copied takes the CPU {made_ms:time} a step more. With what goes on around both, the fix frees the "
    "CPU for {gone_ms:time} a step, the waiting included."
)
TOOK = "{took_ms:time}"  # by convention a time of all that a rule looked at
TOOK_PER_STEP = "{took_ms:time} in {of_steps} {of_steps|step|steps} is {of_step_ms:time} per step."
# labels of times of the whole recording, and what they are called per step
PER_STEP = {
    "Their time": "Their time per step",
    "Their CPU time": "Their CPU time per step",
    "CPU time": "CPU time per step",
    "GPU time": "GPU time per step",
    "CPU time inside them": "CPU time inside them per step",
    "CPU time in their calls": "CPU time in their calls per step",
    "CPU time of making what is copied": "CPU time per step of making what is copied",
}


@dataclass(frozen=True)
class Group:
    """Occurrences at one place of the program."""

    occurrences: tuple[Occurrence, ...]
    source: SourceRef | None
    op_path: str

    @property
    def calls(self) -> list[int]:
        """All blocking calls of the group."""
        return [c for o in self.occurrences for c in o.calls]


def range_name(facts: Facts, slice_id: int) -> str:
    """Innermost range around a slice that the user may have set, numbers left out; empty when there is none."""
    for at in facts.ranges_around(slice_id):
        if facts.trace.slices.kind[at] == int(SliceKind.RANGE):
            return re.sub(r"\d+", "#", facts.trace.name(at))
    return ""


def _named_range(facts: Facts, group: Group) -> str:
    """Name of the range as it was written, where all occurrences ran in ranges of one name; else empty."""
    names = set()
    for one in group.occurrences[:MOST_NAMED]:
        around = facts.ranges_around(one.calls[0])
        names.add(next((facts.trace.name(r) for r in around if facts.trace.slices.kind[r] == int(SliceKind.RANGE)), ""))
    return names.pop() if len(names) == 1 else ""


def by_place(ctx: RuleContext, facts: Facts, items: Sequence[Occurrence], hint: str) -> list[Group]:
    """Group occurrences by operator path, user frame and range; the one that blocks longest first."""
    groups: dict[tuple[object, ...], list[Occurrence]] = defaultdict(list)
    has_python = bool(len(facts.of_kind(SliceKind.PYTHON)))
    for at, item in enumerate(items):
        place: object = ""
        if has_python:
            frame = ctx.source.user_frame(item.calls[0])
            place = int(ctx.trace.slices.name_id[frame]) if frame >= 0 else ""
        elif at < OLD_STACK_READS:
            found = ctx.source.of_slice(item.anchor, hint)
            place = (found.file, found.line) if found else ""
        groups[(item.path or (ctx.trace.name(item.calls[0]),), place, range_name(facts, item.calls[0]))].append(item)
    out = []
    for (path, _, _), members in groups.items():
        step = facts.rows_of([members[0].anchor])
        same = [m.anchor for m in members[:MOST_PLACES] if facts.rows_of([m.anchor]) == step]
        source = ctx.source.of_slices(same, hint)
        out.append(Group(tuple(members), source, " > ".join(str(p) for p in path)))  # type: ignore[attr-defined]
    out.sort(key=lambda g: -sum(host_time_ns(facts, o) for o in g.occurrences))
    return out


@dataclass(frozen=True)
class SyncTexts:
    """What a rule about a sync point says; templates may use the values of `sync_values`."""

    title: str
    why: str
    fix: Fix
    effect: EffectKind
    on_op: bool = False  # the effect concerns the whole outermost op, not only its blocking calls
    hint: str = ""
    once_is_note: bool = False  # without steps, once or twice is a measurement or an end, not a loop


def sync_values(facts: Facts, group: Group) -> dict[str, Any]:
    """Named values for the texts about one group of sync points."""
    host = sum(host_time_ns(facts, o) for o in group.occurrences)
    inside = range_name(facts, group.occurrences[0].calls[0])
    wait = sum(o.wait_ns for o in group.occurrences)
    count = len(group.occurrences)
    sizes = [o.bytes for o in group.occurrences if o.bytes >= 0]
    return {
        "op": group.op_path.split(" > ")[0],
        "call": facts.trace.name(group.occurrences[0].calls[0]),
        "op_path": f"{group.op_path} [{inside}]" if inside else group.op_path,  # tells places apart
        "count": count,
        "steps": max(facts.n_steps, 1),
        "host_ms": host / MS,
        "wait_ms": wait / MS,
        "step_host_ms": facts.per_step(host) / MS,
        "step_wait_ms": facts.per_step(wait) / MS,
        "step_ms": facts.per_step(facts.window_ns) / MS,
        "each_ms": host / MS / max(count, 1),
        "window_ms": facts.window_ns / MS,
        "share_pct": 100.0 * host / max(facts.window_ns, 1),
        "each_bytes": sum(sizes) / len(sizes) if sizes else math.nan,
        "range": _named_range(facts, group) or inside,
    }


def sync_suggestions(
    ctx: RuleContext,
    rule_id: str,
    texts: SyncTexts,
    *,
    extra_removed: Callable[[Facts, Occurrence], Iterable[int]] | None = None,
    target: Callable[[Facts, Occurrence], Iterable[int]] | None = None,
    advise: Callable[[Facts, Group], Fix | None] | None = None,
    retell: Callable[[Group], SyncTexts | None] | None = None,
) -> list[Suggestion]:
    """One suggestion per place for the sync points that belong to a rule.

    Parameters
    ----------
    ctx
        The rule's context.
    rule_id
        Whose sync points.
    texts
        What to say.
    extra_removed
        Slices that the fix removes besides, per occurrence (ops that made the tensor).
    target
        Slices that the effect concerns, per occurrence; the blocking calls (or the outermost op) when omitted.
    advise, retell
        A fix of its own for a group, or all texts; None for the usual ones.
    """
    facts, usual, out = facts_of(ctx), texts, []
    for group in by_place(ctx, facts, classify(ctx, facts).get(rule_id, []), texts.hint):
        texts = (retell(group) if retell is not None else None) or usual
        values = sync_values(facts, group)
        told, more = uneven(facts, group.occurrences)
        sentences = [_spent(facts, rows := facts.rows_of([o.anchor for o in group.occurrences]))]
        sentences += [SENTENCE] if told else []
        slices = _targets(facts, group, texts, target)
        effects = [Effect(texts.effect, tuple(slices))]
        extra = [i for o in group.occurrences for i in extra_removed(facts, o)] if extra_removed is not None else []
        if extra:
            effects.append(Effect(EffectKind.REMOVE_WORK, tuple(extra)))
            told |= _made(facts, extra, [*slices, *extra])
            made = evidence(facts, "CPU time of making what is copied", total_ns(facts, extra) / MS, "ms", extra)
            more = (*more, *_by_step(facts, (made,)))
            sentences.append(MADE_PER_STEP if facts.n_steps else MADE)
        out.append(
            Suggestion(
                rule_id=rule_id,
                title=texts.title,
                values=values | told,
                why=texts.why,
                more=tuple(sentences),
                occurrences=len(group.occurrences),
                steps=rows,
                source=group.source,
                evidence=(*_sync_evidence(facts, group, values), *more),
                fix=(advise(facts, group) if advise is not None else None) or texts.fix,
                effects=tuple(effects),
                informational=_is_note(facts, texts, group),
            )
        )
    return out


def _is_note(facts: Facts, texts: SyncTexts, group: Group) -> bool:
    """Whether nothing would come of the fix: no work follows, or it is a measurement or an end and no loop."""
    if all(is_last_of_all(facts, o) for o in group.occurrences):
        return True
    return texts.once_is_note and not facts.n_steps and len(group.occurrences) < 3


def _spent(facts: Facts, rows: Sequence[int]) -> str:
    if facts.n_steps > 1:
        return SPENT_PER_STEP if len(rows) >= facts.n_steps else SPENT_ON_AVERAGE
    return SPENT_IN_ONE_STEP if facts.n_steps else SPENT


def _made(facts: Facts, extra: Sequence[int], removed: Sequence[int]) -> dict[str, Any]:
    """Values for `MADE`: CPU time of what the fix removes besides the wait, and of all that it removes."""
    gone = np.asarray(removed, dtype=np.int64)
    start, end = union(facts.trace.slices.start_ns[gone], facts.trace.end_ns[gone])
    steps = max(facts.n_steps, 1)
    return {"made_ms": total_ns(facts, extra) / MS / steps, "gone_ms": float((end - start).sum()) / MS / steps}


def _targets(
    facts: Facts, group: Group, texts: SyncTexts, target: Callable[[Facts, Occurrence], Iterable[int]] | None
) -> list[int]:
    if target is not None:
        return [i for o in group.occurrences for i in target(facts, o)]
    return [o.anchor for o in group.occurrences] if texts.on_op else group.calls


def _sync_evidence(facts: Facts, group: Group, values: dict[str, Any]) -> tuple[Evidence, ...]:
    calls, by_step = ids_tuple(group.calls), facts.n_steps > 1
    covered = facts.per_step(_covered_ns(facts, group)) if by_step else _covered_ns(facts, group)
    longest = max(group.occurrences, key=lambda o: host_time_ns(facts, o))
    out = [
        Evidence(
            "Operations that block the CPU", len(group.occurrences), "", ids_tuple(o.anchor for o in group.occurrences)
        ),
        Evidence(
            "CPU time inside them per step" if by_step else "CPU time inside the blocking calls",
            round(values["step_host_ms" if by_step else "host_ms"], 6),
            "ms",
            calls,
        ),
        Evidence("of it, waiting for the GPU", round(values["step_wait_ms" if by_step else "wait_ms"], 6), "ms", calls),
        Evidence("of that, while the GPU was computing", round(covered / MS, 6), "ms", calls),
        Evidence("The longest one", round(host_time_ns(facts, longest) / MS, 6), "ms", longest.calls),
    ]
    copies = ids_tuple(c for o in group.occurrences for c in o.copies)
    if copies:
        size = int(facts.trace.slices.copy_bytes[list(copies)].clip(0).sum())
        out.append(Evidence("Copied", size, "bytes", copies))
    waited = ids_tuple(dict.fromkeys(w for o in group.occurrences for w in o.waited))
    if waited:
        out.append(Evidence("GPU work that was waited for", len(waited), "", waited))
    around = [r for r in facts.ranges_around(longest.calls[0]) if facts.trace.slices.kind[r] == int(SliceKind.RANGE)]
    if around:
        out.append(Evidence("Inside the range", facts.trace.name(around[0]), "", (around[0],)))
    return tuple(out)


def _covered_ns(facts: Facts, group: Group) -> int:
    """Part of the waits during which some kernel ran: as long as the device is the limit, that part costs nothing."""
    runs = facts.memo.get("kernel runs")
    if runs is None:
        kernels = facts.of_kind(SliceKind.KERNEL)
        runs = facts.memo["kernel runs"] = union(facts.trace.slices.start_ns[kernels], facts.trace.end_ns[kernels])
    rows = [r for o in group.occurrences for r in o.rows]
    start = facts.figures.syncs.wait_start_ns[rows]
    return int(covered_ns(runs, start, start + facts.figures.syncs.wait_ns[rows]).sum())


def suggestion(
    ctx: RuleContext,
    rule_id: str,
    title: str,
    why: str,
    fix: Fix,
    evidence: Sequence[Evidence],
    *,
    values: dict[str, Any] | None = None,
    anchors: Iterable[int] = (),
    occurrences: int = 0,
    effects: Sequence[Effect] = (),
    informational: bool = False,
    hint: str = "",
    at: int | None = None,
) -> Suggestion:
    """Build a suggestion; steps come from ``anchors``, the source from slice ``at`` (or the first anchor)."""
    facts = facts_of(ctx)
    spots = anchors if isinstance(anchors, np.ndarray) else list(anchors)
    place = at if at is not None else (int(spots[0]) if len(spots) else None)
    told = {} if informational else _took_per_step(facts, title + why, spots, values or {})
    return Suggestion(
        rule_id=rule_id,
        title=title,
        values=(values or {}) | told,
        why=why,
        more=(TOOK_PER_STEP,) if told else (),
        occurrences=occurrences or len(spots),
        steps=facts.rows_of(spots) if len(spots) else (),
        source=_source(ctx, facts, place, [] if at is not None else spots, hint),
        evidence=tuple(evidence) if informational else _by_step(facts, evidence),
        fix=fix,
        effects=tuple(effects),
        informational=informational,
    )


def _took_per_step(facts: Facts, words: str, spots: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Values for `TOOK_PER_STEP` where the explanation gives, once, a time of all counted steps; else empty."""
    if facts.n_steps < 2 or words.count(TOOK) != 1 or "took_ms" not in values or not _counted(facts, spots):
        return {}
    return {"of_steps": facts.n_steps, "of_step_ms": facts.per_step(values["took_ms"])}


def _counted(facts: Facts, ids: Any) -> bool:
    """Whether all of these slices lie in steps that count, so that their time can be told per step."""
    rows = np.asarray(ids, dtype=np.int32)
    return len(facts.in_steps(rows)) == len(rows)


def _by_step(facts: Facts, shown: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Times of all counted steps together, given per step as savings are; as they are where at most one step counts."""
    if facts.n_steps < 2:
        return tuple(shown)
    return tuple(
        replace(one, label=PER_STEP[one.label], value=round(facts.per_step(float(one.value)), 6))
        if one.label in PER_STEP and isinstance(one.value, int | float) and _counted(facts, one.slices)
        else one
        for one in shown
    )


def _source(ctx: RuleContext, facts: Facts, place: int | None, spots: Any, hint: str) -> SourceRef | None:
    """Place of a suggestion: of its first slice, and of those of the same name that follow in the same step."""
    if place is None or place < 0:
        return None
    trace = ctx.trace
    row, same = facts.rows_of([place]), []
    for other in [int(i) for i in spots[1:MOST_PLACES]]:
        if trace.slices.name_id[other] != trace.slices.name_id[place] or facts.rows_of([other]) != row:
            break
        same.append(other)
    return ctx.source.of_slices((place, *same), hint)


def evidence(facts: Facts, label: str, value: float | int | str | None, unit: str, ids: Iterable[Any]) -> Evidence:
    """Evidence with plain ints; numbers are rounded to what can be read."""
    shown = round(value, 6) if isinstance(value, float) else value
    return Evidence(label, shown, unit, ids_tuple(ids))


def counted_kernels(facts: Facts, work: I32) -> I32:
    """int32[k]: the kernels of the counted steps among device work that may be named several times, each once."""
    return distinct(work[facts.is_counted_kernel[work]])


def total_ns(facts: Facts, ids: Any) -> int:
    """Summed duration of slices, ns."""
    return int(facts.trace.slices.dur_ns[np.asarray(ids, dtype=np.int64)].sum())


def group_by_frame(ctx: RuleContext, facts: Facts, ids: Iterable[int]) -> dict[str, list[int]]:
    """Slices by the name of the nearest user frame around them ("" without stacks), in order of appearance."""
    wanted = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, dtype=np.int32)
    return {name: part.tolist() for name, part in parts_by_frame(ctx, facts, wanted).items()}


def parts_by_frame(ctx: RuleContext, facts: Facts, ids: I32) -> dict[str, I32]:
    """As `group_by_frame`, as arrays: for many slices."""
    if not len(facts.of_kind(SliceKind.PYTHON)):
        return {"": ids} if len(ids) else {}
    frames = ctx.source.user_frames(ids)
    names = np.where(frames >= 0, ctx.trace.slices.name_id[np.maximum(frames, 0)], -1)
    order = names.argsort(kind="stable")
    cut = [*changes(names[order]).nonzero()[0].tolist(), len(order)]
    parts = [order[first:last] for first, last in pairwise(cut)]
    parts.sort(key=lambda part: int(part[0]))
    return {ctx.trace.strings[int(names[part[0]])]: ids[part] for part in parts}
