"""What each suggestion saves, alone and in the plan (docs/replay.md)."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from core.analysis import Analysis
from core.errors import Cancelled
from core.figures.compute import final_verdict
from core.figures.lookup import view_of
from core.figures.model import Figures
from core.figures.verdict import LOST_LAUNCHES_SHARE, is_start_up
from core.plan_lead import ANSWERS
from core.replay.ahead import USELESS_REPLAY_PCT, is_usable, quicker_device_pct
from core.replay.plan import Planner, Turn
from core.replay.replay import Replay, WhatIf
from core.suggestions import Effect, EffectKind, PlanStep, RuleResult, Saving, Suggestion
from core.trace import Trace

Progress = Callable[[float, str], None]
_log = logging.getLogger(__name__)

HIGH_PCT = 10.0
MEDIUM_PCT = 3.0
POOR_REPLAY_PCT = 10.0  # a replay further off than this gives rough savings
_WAITS_ONLY = frozenset({EffectKind.REMOVE_WAIT, EffectKind.MAKE_ASYNC})
NOTHING_PCT = 1.0  # less than this is called next to nothing
# Templates of the notes of a plan, for translation.
NOTES = {
    "nothing": "Fix {position} of {members} that belong together: alone this saves next to nothing, all of them save "
    "{group_pct:.0f} %.",
    "little": "Fix {position} of {members} that belong together: alone this saves {alone_pct:.1f} %, all of them save "
    "{group_pct:.0f} %.",
    "last": "The last of {members} fixes that belong together: with it they save {group_pct:.0f} %.",
    "longer": "Once the fixes above are made the CPU comes to this wait earlier, and would wait longer: then it saves "
    "{gain_pct:.1f} % of the step of now, alone {alone_pct:.1f} %.",
    "uncovered": "The fixes above take away what hides this now: after them it saves {gain_pct:.1f} % of the step of "
    "now, alone {alone_pct:.1f} %.",
}
NOTES |= {  # of a recording without steps
    f"{key}_whole": NOTES[key].replace("of the step of now", "of the recording") for key in ("longer", "uncovered")
}
# What is added to the explanation of a fix that frees the CPU (``gone_ms``) for longer than it saves.
WAITS_LATER = (
    "Alone it saves only {alone_ms:time} of that: the CPU then waits at a later line instead.",
    "Alone it saves none of that: the CPU then waits at a later line instead.",
)
_SEVERITIES = ("low", "medium", "high")


def price(
    trace: Trace,
    figures: Figures,
    rule_results: Sequence[RuleResult],
    progress: Progress | None = None,
    replay: Callable[[], Replay] | None = None,
) -> Analysis:
    """Work out from the replay what the suggestions save.

    Parameters
    ----------
    trace, figures
        The trace and its figures.
    rule_results
        What the rules found.
    progress
        Called with the fraction done and what is being done; may raise `core.errors.Cancelled` to stop.
    replay
        Hands over the replay that has been begun already, see `core.replay.ahead`.

    Returns
    -------
    Analysis
        Suggestions priced and best first, the plan, and the figures with ``sustained_step_ns``,
        ``replay_error_pct`` and the verdict filled in. Savings are per step; per recorded window (and called rough)
        where the trace has no steps; None where nothing can be said.
    """
    tell = progress or _silent
    found = [suggestion for result in rule_results for suggestion in result.suggestions]
    tell(0.0, "replay")
    floors = _floors(rule_results)
    try:
        made = replay() if replay is not None else Replay(trace, figures)
        if not made or _device_unseen(trace):
            return _unpriced(trace, figures, rule_results, found)
        view_of(trace).let_go()  # of what the rules and the replay's graph needed, little is asked for again
        suggestions, plan = _Pricing(trace, figures, made, found, floors).run(tell)
    except Cancelled:
        raise
    except Exception as error:
        # What the rules found is worth showing even when a trace of a kind never seen before breaks the replay.
        what = f"{type(error).__name__}: {error}"
        _log.error("the replay failed: %s", what, exc_info=bool(os.environ.get("STEPLENS_DEBUG")))
        notes = {"replay": what, "traceback": "".join(traceback.format_exception(error))}
        return _unpriced(trace, figures, rule_results, found, notes)
    tell(1.0, "replay")
    return Analysis(_finished(trace, figures, made, suggestions, plan), suggestions, plan, tuple(rule_results))


def _unpriced(
    trace: Trace,
    figures: Figures,
    rule_results: Sequence[RuleResult],
    found: Sequence[Suggestion],
    notes: Mapping[str, str] | None = None,
) -> Analysis:
    """Return the suggestions with unknown savings."""
    floors = _floors(rule_results)
    plain = [replace(s, severity=_severity(None, s, floors)) for s in found]
    plain = sorted(plain, key=lambda s: (s.informational, -_SEVERITIES.index(s.severity)))
    return Analysis(_finished(trace, figures, None, plain), tuple(plain), (), tuple(rule_results), notes or {})


class _Pricing:
    """One run over all suggestions."""

    def __init__(
        self, trace: Trace, figures: Figures, replay: Replay, found: list[Suggestion], floors: dict[str, str]
    ) -> None:
        self._trace = trace
        self._replay = replay
        self._found = found
        self._floors = floors
        self._inferred = figures.summary.inferred or is_start_up(figures.budget)
        self._usable = replay.error_pct <= USELESS_REPLAY_PCT
        self._measured_ns = figures.summary.period_ns or figures.summary.step_ns
        self._answers = ANSWERS.get(figures.summary.verdict, frozenset())
        self._alone: dict[int, Saving] = {}
        self._results: dict[frozenset[int], WhatIf] = {}
        self._same: dict[tuple[Effect, ...], int] = {}
        self._most: dict[int, float] = {}  # what each can add in any company, ns
        self._promise: dict[int, float] = {}  # time of host and device that each takes away, ns
        self._share = 0.0  # of the plan that is done
        self._tell: Progress = _silent

    def _planned(self, share: float) -> None:
        self._share = share
        self._tell(0.5 + 0.5 * share, "plan")

    def run(self, tell: Progress) -> tuple[tuple[Suggestion, ...], tuple[PlanStep, ...]]:
        """Price, plan, sort."""
        found, self._tell = self._found, tell
        for number in range(len(found)):
            tell(0.1 + 0.4 * number / max(1, len(found)), "savings")
            self._alone[number] = self._price(number)
        fixes = [i for i, s in enumerate(found) if s.effects and not s.informational and self._usable]
        start = self._trace.slices.start_ns
        first = [min((int(start[list(e.slices)].min()) for e in s.effects if e.slices), default=0) for s in found]
        planner = Planner(
            gain=self._gain,
            scale=self._replay.step_ns,
            order=first,
            most=[self._most.get(i, 0.0) for i in range(len(found))],
            promise=[self._promise.get(i, 0.0) for i in range(len(found))],
            answers=frozenset(i for i in fixes if found[i].rule_id in self._answers),
            # Where nothing is repeated, a replay costs no more than its bound.
            limit=self._limit if self._replay.repeated else None,
            on_turn=lambda left: self._planned(1 - left / max(1, len(fixes))),
        )
        self._planned(0.0)
        turns = planner.plan(fixes)
        order = self._order(turns)
        place = {old: new for new, old in enumerate(order)}
        in_plan = self._gains(turns)
        suggestions = tuple(self._priced(i, turns, in_plan) for i in order)
        steps = tuple(self._plan_step(turn, place, turns) for turn in turns)
        return suggestions, steps

    # -- savings --------------------------------------------------------------------------------------------------

    def _gain(self, fixes: frozenset[int]) -> float:
        """What a set of suggestions saves together, ns per step."""
        if len(fixes) > 1:
            self._planned(self._share)  # where the user may call it off
        return self._what_if(fixes).saved_ns

    def _limit(self, fixes: frozenset[int]) -> float:
        """Bound of what a set of suggestions saves together, ns per step."""
        return self._replay.limit_ns(e for i in sorted(fixes) for e in self._found[i].effects)

    def _what_if(self, fixes: frozenset[int]) -> WhatIf:
        """Replay with some suggestions' fixes, once for each set."""
        result = self._results.get(fixes)
        if result is None:
            effects = [e for i in sorted(fixes) for e in self._found[i].effects]
            result = self._replay.what_if(effects, saving_only=len(fixes) > 1)
            self._results[fixes] = result
        return result

    def _price(self, number: int) -> Saving:
        """Saving of one suggestion by itself."""
        effects = self._found[number].effects
        if not effects or self._found[number].informational:  # a note promises nothing
            return Saving()
        same = self._same.setdefault(effects, number)  # suggestions with the same effects are replayed once
        result = self._results[frozenset((number,))] = self._what_if(frozenset((same,)))
        self._most[number], self._promise[number] = result.reach_ns, result.promise_ns
        step = self._replay.step_ns
        if not self._usable:
            if not self._measured_ns or any(e.kind not in _WAITS_ONLY for e in effects):
                return Saving()
            most = min(result.bound_ns, result.freed_host_ns, self._measured_ns)
            return Saving(round(most), 100.0 * most / self._measured_ns, "bounded")
        basis = self._basis(effects, result.bounded)
        freed = round(result.freed_host_ns)
        return Saving(round(result.saved_ns), 100.0 * result.saved_ns / step, basis, freed_host_ns=freed)

    def _basis(self, effects: tuple[Effect, ...], bounded: bool) -> str:
        if self._replay.error_pct > POOR_REPLAY_PCT:
            return "bounded" if bounded and all(e.kind in _WAITS_ONLY for e in effects) else "rough"
        if self._inferred or not self._replay.has_steps or any(e.is_assumed for e in effects):
            return "rough"
        return "bounded" if bounded else "replayed"

    def _gains(self, turns: Sequence[Turn]) -> dict[int, float]:
        """What each fix adds in its turn, ns."""
        gains, before = {}, 0.0
        for turn in turns:
            gains[turn.fix] = max(0.0, turn.saved - before)
            before = max(before, turn.saved)
        return gains

    # -- order ----------------------------------------------------------------------------------------------------

    def _worth(self, i: int, turns: Sequence[Turn]) -> float:
        """What a suggestion can bring: by itself, or with the others of its chain, ns."""
        together = max((t.group_gain for t in turns if t.fix == i), default=0.0)
        return max(float(self._alone[i].ns or 0), together)

    def _order(self, turns: Sequence[Turn]) -> list[int]:
        """Best first: the plan's fixes in its order, then the others by their own saving, notes last.

        Savings that no measurement could tell apart are equal; then the fix that frees more of the CPU's time comes
        first: it is the one that the next change is most likely to uncover. Where no saving can be foretold, what it
        costs (`Suggestion.costs_ns`) stands for it, among the plan's fixes too. Of those that nothing is known of, the
        severer comes first.
        """
        rank = {turn.fix: number for number, turn in enumerate(turns)}
        scale = self._replay.step_ns if self._usable else self._measured_ns

        def key(i: int) -> tuple[bool, int, bool, int, int, int, int]:
            saving, costs_ns = self._alone[i], self._found[i].costs_ns
            pct = 100.0 * costs_ns / scale if costs_ns and saving.ns is None and scale else saving.pct
            level = round(float(pct or 0.0) / NOTHING_PCT)
            return (
                self._found[i].informational,
                rank.get(i, len(rank)),
                saving.ns is None and not costs_ns,
                -level,
                -(saving.freed_host_ns or 0),
                -_SEVERITIES.index(_severity(saving.pct, self._found[i], self._floors)),
                i,
            )

        order = sorted(range(len(self._found)), key=key)
        for i in [i for i in order if self._costs_only(i)]:  # it stands before the first that is worth less
            costs, at = float(self._found[i].costs_ns or 0), order.index(i)
            less = (p for p, other in enumerate(order[:at]) if self._worth(other, turns) < costs)
            order.insert(next(less, at), order.pop(at))
        return order

    def _costs_only(self, i: int) -> bool:
        """Whether what a suggestion costs is known, and not what it saves."""
        suggestion = self._found[i]
        return bool(suggestion.costs_ns) and self._alone[i].ns is None and not suggestion.informational

    def _priced(self, i: int, turns: Sequence[Turn], in_plan: dict[int, float]) -> Suggestion:
        suggestion, saving = self._found[i], self._alone[i]
        if i in in_plan:
            saving = replace(saving, together_ns=round(in_plan[i]))
        scale = self._replay.step_ns if self._usable else self._measured_ns
        worth = self._worth(i, turns) if suggestion.effects else suggestion.costs_ns
        worth_pct = 100.0 * worth / scale if worth is not None and scale else None
        return _waits_later(suggestion.priced(saving, _severity(worth_pct, suggestion, self._floors)))

    def _plan_step(self, turn: Turn, place: dict[int, int], turns: Sequence[Turn]) -> PlanStep:
        saved = max(t.saved for t in turns[: turns.index(turn) + 1])
        before = max((t.saved for t in turns[: turns.index(turn)]), default=0.0)
        template, values = self._note(turn, max(0.0, turn.saved - before))
        host = self._what_if(frozenset(t.fix for t in turns[: turns.index(turn) + 1])).host_step_ns
        return PlanStep(
            suggestions=(place[turn.fix],),
            rules=(self._found[turn.fix].rule_id,),
            predicted_step_ns=round(self._replay.step_ns - saved),
            note=template.format_map(values),
            note_template=template,
            note_values=values,
            predicted_host_step_ns=None if host is None else round(host),
        )

    def _note(self, turn: Turn, gain: float) -> tuple[str, dict[str, float]]:
        """Say of a member of a chain what it is worth by itself and together with the others; why others gain more."""
        step = self._replay.step_ns
        alone_pct = 100.0 * float(self._alone[turn.fix].ns or 0) / step
        if len(turn.group) < 2:
            gain_pct = 100.0 * gain / step
            if gain_pct < alone_pct + NOTHING_PCT:
                return "", {}
            waits = all(effect.kind in _WAITS_ONLY for effect in self._found[turn.fix].effects)
            key = "longer" if waits else "uncovered"
            return NOTES[key if self._replay.has_steps else f"{key}_whole"], {
                "gain_pct": gain_pct,
                "alone_pct": alone_pct,
            }
        position = turn.group.index(turn.fix) + 1
        values = {
            "alone_pct": alone_pct,
            "group_pct": 100.0 * turn.group_gain / step,
            "position": position,
            "members": len(turn.group),
        }
        if position == len(turn.group):
            return NOTES["last"], values
        return NOTES["nothing" if alone_pct < NOTHING_PCT else "little"], values


def _waits_later(suggestion: Suggestion) -> Suggestion:
    """Say where the rest of the freed time goes, of a fix that frees the CPU for longer than it saves."""
    gone_ms, saved_ns = suggestion.values.get("gone_ms"), suggestion.saving.ns
    if gone_ms is None or saved_ns is None or max(saved_ns, 0) / 1e6 >= (1 - NOTHING_PCT / 100) * gone_ms:
        return suggestion
    values = {**suggestion.values, "alone_ms": max(saved_ns, 0) / 1e6}
    return replace(suggestion, values=values, more=(*suggestion.more, WAITS_LATER[saved_ns <= 0]))


def _severity(pct: float | None, suggestion: Suggestion, floors: dict[str, str]) -> str:
    """Severity by what a suggestion can bring, at least the floor of its rule; notes are never headlined."""
    if suggestion.informational:
        return "low"
    level = 0 if pct is None or pct < MEDIUM_PCT else 1 if pct < HIGH_PCT else 2
    floor = floors.get(suggestion.rule_id, "low")
    return _SEVERITIES[max(level, _SEVERITIES.index(floor) if floor in _SEVERITIES else 0)]


def _floors(results: Sequence[RuleResult]) -> dict[str, str]:
    return {result.rule.id: result.rule.severity_floor for result in results}


def _device_unseen(trace: Trace) -> bool:
    """Launches most of which have no device work, or a file that breaks off: what a fix saves is unknown."""
    if trace.report.is_cut_off:
        return True
    view = view_of(trace)
    if trace.has_device_work:
        launches, (_, lost) = view.launches, view.idle_launches
        return len(lost) > LOST_LAUNCHES_SHARE * len(launches)
    return bool(len(trace.links.launched_by) or len(view.launches))


def _finished(
    trace: Trace,
    figures: Figures,
    replay: Replay | None,
    suggestions: Sequence[Suggestion],
    plan: Sequence[PlanStep] = (),
) -> Figures:
    """Figures with what the replay knows, and the verdict that follows from it."""
    error = replay.error_pct if replay is not None else None
    usable = replay is not None and is_usable(replay, figures)
    sustained = float(replay.step_ns) if replay is not None and usable else None
    known = [s.saving.pct for s in suggestions if s.saving.pct is not None and not s.informational]
    if replay is not None and plan:
        known.append(100.0 * (1 - plan[-1].predicted_step_ns / replay.step_ns))
    waits = _waits_pct(figures, replay) if replay is not None and usable else None
    if replay is not None and replay.contradicted:  # judged by the recorded period, and never called healthy
        verdict = final_verdict(trace, figures)
    else:
        quicker = quicker_device_pct(trace, figures, replay) if replay is not None and usable else None
        verdict = final_verdict(trace, figures, sustained, max(known) if known else None, waits, quicker)
    summary = replace(
        figures.summary,
        sustained_step_ns=sustained,
        replay_error_pct=error,
        held_out_error_pct=replay.held_out_pct if replay is not None and usable else None,
        verdict=verdict.code,
        verdict_text=verdict.text,
        verdict_template=verdict.template,
        verdict_values=verdict.values,
    )
    return replace(figures, summary=summary)


def _waits_pct(figures: Figures, replay: Replay) -> float:
    """What the loop would gain if no call waited for the device, percent of the sustained step."""
    calls = tuple(int(i) for i in figures.syncs.slice_id)
    if not calls:
        return 0.0
    return 100.0 * replay.what_if([Effect(EffectKind.REMOVE_WAIT, calls)], saving_only=True).saved_ns / replay.step_ns


def _silent(fraction: float, text: str) -> None:
    del fraction, text
