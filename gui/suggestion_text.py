"""A suggestion in words: where, how often, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QCoreApplication

from core.analysis import OUTLOOKS, Analysis, outlook
from core.recorded import is_of_first_steps, left_out
from core.suggestions import Suggestion
from core.trace import Trace
from core.unprofiled import BUSY, WITHIN, Slowed, hidden_by, longer, slowed
from gui import text
from gui.session import ALLOWED, CHOSEN, DISMISSED, DONE, LATER, SET_ASIDE, Document, Session

translate = QCoreApplication.translate


def place(suggestion: Suggestion) -> str:
    """File, line and how often; the function where the line is not exact."""
    parts = []
    if suggestion.source is not None:
        where = text.place(suggestion.source.file, suggestion.source.line)
        function = suggestion.source.function
        if suggestion.source.exact:
            parts += [where, function]
        else:  # only the line of the function's def is known
            parts.append(f"{function} ({where})" if function else where)
    elif suggestion.values.get("op_path"):
        parts.append(text.elided(_operator(suggestion), 60))
    parts.append(_how_often(suggestion))
    if suggestion.informational:
        parts.append(translate("plan", "note"))
    return " · ".join(p for p in parts if p)


def operators_and_range(suggestion: Suggestion) -> tuple[str, str]:
    """The way down to what blocks, and the name of the range that it ran in, without its ornament; "" without one."""
    path, written = str(suggestion.values.get("op_path", "")), str(suggestion.values.get("range") or "")
    if written and path.endswith("]"):  # there it stands with its digits left out
        path = path.rpartition(" [")[0] or path
    return path, written.strip("# \t")


def _operator(suggestion: Suggestion) -> str:
    """The operator, and the range that it ran in, as words; without a range, the way down to what blocks."""
    path, inside = operators_and_range(suggestion)
    if not inside:
        return path
    return translate("plan", "{operator} in the range {range}").format(
        operator=suggestion.values.get("op") or path, range=inside
    )


def _how_often(suggestion: Suggestion) -> str:
    if suggestion.occurrences <= 0:
        return ""
    steps = len(suggestion.steps)
    if steps > 1 and suggestion.occurrences < steps:
        words = translate("plan", "{count} {count|time|times} in {steps} steps")
        return text.counted(words, suggestion.occurrences, steps=text.count(steps))
    if steps > 1 and suggestion.occurrences == steps:
        return translate("plan", "once per step")
    if steps > 1:
        return text.counted(translate("plan", "{count} {count|time|times} per step"), suggestion.occurrences / steps)
    return translate("plan", "{count} times").format(count=suggestion.occurrences) if suggestion.occurrences > 1 else ""


def saving(analysis: Analysis | None, index: int, suggestion: Suggestion, step_ns: float | None = None) -> str:
    """What it saves in the plan, after the fixes above it (alone where there is no plan), and how sure that is.

    Empty for a note. The reports show the same number. With ``step_ns`` it is said as a share of that step.
    """
    priced = suggestion.saving
    if suggestion.informational:
        return ""
    if priced.ns is None and not priced.together_ns:
        return "…" if analysis is not None and analysis.awaits_prices else text.unknown()
    if analysis is not None and analysis.is_left_out(index):
        return translate("plan", "saves <1 %")
    best = (priced.ns or 0) if priced.together_ns is None else priced.together_ns
    if best <= 0:
        return translate("plan", "nothing more") if (priced.ns or 0) > 0 else translate("plan", "nothing alone")
    return _worth(suggestion, best, step_ns)


def _worth(suggestion: Suggestion, saved_ns: float, step_ns: float | None) -> str:
    words = text.saving(saved_ns) if not step_ns else text.change(-100.0 * saved_ns / step_ns)
    if suggestion.saving.basis == "bounded":
        return translate("plan", "up to {saving}").format(saving=words)
    return ("≈ " if suggestion.saving.basis == "rough" else "") + words


def basis(analysis: Analysis | None, index: int, suggestion: Suggestion, step_ns: float | None = None) -> str:
    """What kind of number `saving` is: alone, or after the fixes above; then with what it saves alone."""
    priced = suggestion.saving
    if suggestion.informational or priced.ns is None:
        return ""
    if priced.together_ns is None and (analysis is None or not analysis.is_left_out(index)):
        return translate("plan", "alone") if priced.ns > 0 else ""
    if priced.ns <= 0:
        if (priced.together_ns or 0) <= 0:  # that was said
            return _in_chain(analysis, index)
        return translate("plan", "alone nothing")
    alone = _worth(suggestion, priced.ns, step_ns)
    if alone == saving(analysis, index, suggestion, step_ns):
        return ""
    return translate("plan", "alone {saving}").format(saving=alone)


def _in_chain(analysis: Analysis | None, index: int) -> str:
    """What a fix that saves nothing by itself saves with the others of its chain: its severity is by that."""
    for step in analysis.plan if analysis is not None else ():
        if index in step.suggestions and "members" in step.note_values:
            share = text.percent(step.note_values["group_pct"])
            return translate("plan", "{share} with its chain").format(share=share)
    return ""


def saves(analysis: Analysis | None, index: int, suggestion: Suggestion) -> str:
    """What it saves alone and after the fixes before it, and how that is known."""
    priced, lines = suggestion.saving, list[str]()
    if suggestion.informational and priced.ns is None:  # a note promises nothing
        return ""
    assumed = any(effect.is_assumed for effect in suggestion.effects)
    steps = analysis is None or analysis.figures.summary.steps > 0
    rough = translate("plan", "a rough figure: the replay does not fit this trace well")
    if assumed:
        rough = translate("plan", "a rough figure: it rests on the assumption stated above")
    elif not steps:
        rough = translate("plan", "a rough figure: no steps are marked, so what one step takes is unknown")
    elif analysis is not None and analysis.figures.summary.inferred:
        rough = translate("plan", "a rough figure: the steps are not marked but inferred")
    basis = {
        "replayed": translate("plan", "from a replay of this trace"),
        "measured": translate("plan", "measured in this trace"),
        "bounded": translate("plan", "an upper bound"),
        "rough": rough,
    }
    if priced.ns is None and analysis is not None and analysis.awaits_prices:
        lines.append(translate("plan", "What it saves is being worked out."))
    elif priced.ns is None:
        lines.append(translate("plan", "What it saves is unknown: this trace does not tell."))
    elif priced.ns <= 0:
        lines.append(
            translate("plan", "Alone it saves nothing, {basis}.").format(basis=basis.get(priced.basis or "", "?"))
        )
    else:
        share = f" ({text.percent(priced.pct)})" if priced.pct is not None else ""
        part = analysis.replayed_ns if analysis is not None else None
        words = (
            translate("plan", "Alone it saves {time}{share} a step, {basis}.")
            if steps
            else translate("plan", "Alone it saves {time}{share} of the whole recording, {basis}.")
            if part is None
            else translate("plan", "Alone it saves {time}{share} of the {part} from the first device work on, {basis}.")
        )
        why = basis.get(priced.basis or "", "?")
        saved = text.duration(priced.ns)
        lines.append(words.format(time=saved, share=share, part=text.duration(part or 0), basis=why))
    if priced.together_ns is not None and priced.together_ns != priced.ns:
        lines.append(
            translate("plan", "In the plan, after the fixes above it, it saves {time} more.").format(
                time=text.duration(priced.together_ns)
            )
            if priced.together_ns > 0
            else translate("plan", "In the plan, after the fixes above it, it saves nothing more.")
        )
    if analysis is not None and analysis.is_left_out(index):
        lines.append(
            translate("plan", "It is not in the plan: after the fixes of the plan it saves less than 1 % more.")
        )
    for step in analysis.plan if analysis else ():
        if index in step.suggestions and step.note:
            lines.append(translate("rules", step.note))
    return " ".join(lines)


def message(session: Session, document: Document) -> str:
    """What stands above the cards: what is going on, what is missing, or what the times are worth; often nothing."""
    analysis = document.analysis
    if document.analysis_error is not None:
        return translate("plan", "The diagnosis failed, so there is no plan. The timeline and the tables can be used.")
    own = document.analysis_running and analysis is not None and analysis.awaits_own_rules
    if analysis is None or (document.analysis_running and not analysis.suggestions and not own):
        return translate("plan", "Looking for what could be faster…")
    if document.analysis_running and not own:
        return translate("plan", "Working out what each fix saves…")
    words = nothing_found(document.trace, analysis)
    if not words and (much := slowed_plan(session, document)):
        words = slower(much)
    if not words and not document.trace.has_device_work:
        words = translate("plan", "No device work was recorded: these are about the CPU's own time.")
    waits = translate("plan", "Your own rules are still at work.") if own else ""
    said = (waits, first_steps(document.trace), _doubts(session, document, analysis), words)
    return " ".join(part for part in said if part)


def _doubts(session: Session, document: Document, analysis: Analysis) -> str:
    """What a plan's saving may be hidden by: steps that differ by more, a machine that was busy; often nothing."""
    sentences = []
    now = analysis.figures.summary.sustained_step_ns
    if now and analysis.plan:
        sentences.append(within(analysis, 100.0 * (now - analysis.plan[-1].predicted_step_ns) / now))
    wall = _wall(session, document)
    recorded = longer(analysis, wall)
    if recorded is not None:
        words = translate("rules", BUSY)
        sentences.append(words.format(wall=text.duration(wall), recorded=text.duration(recorded)))
    return " ".join(s for s in sentences if s)


def within(analysis: Analysis, saving_pct: float) -> str:
    """That the recorded steps differ by more than a saving; nothing where they do not."""
    spread = hidden_by(analysis, saving_pct)
    if spread is None:
        return ""
    words = translate("rules", WITHIN)
    return words.format(spread=text.percent(spread), saving=text.percent(saving_pct))


def is_promise(analysis: Analysis | None, index: int, suggestion: Suggestion) -> bool:
    """Whether a card's saving is one to count on: there is one, and the recorded steps differ by less than it."""
    priced = suggestion.saving
    best = max(priced.ns or 0, priced.together_ns or 0)
    if suggestion.informational or best <= 0 or (analysis is not None and analysis.is_left_out(index)):
        return False
    now = analysis.figures.summary.sustained_step_ns if analysis is not None else None
    return analysis is None or not now or hidden_by(analysis, 100.0 * best / now) is None


def _wall(session: Session, document: Document) -> float | None:
    """The step without the profiler, where the run measured it."""
    found: float | None = (
        document.run.wall_step_ns if document.run is not None else session.ask("wall_step_ns", document)
    )
    return found


def first_steps(trace: Trace) -> str:
    """That the steps are not those that were to be recorded; nothing where they are."""
    if not is_of_first_steps(trace):
        return ""
    words = translate(
        "plan",
        "The script ended or was stopped before the chosen steps: these are its first ones, with their start-up and "
        "without {left_out}. Run it again for a plan to go by.",
    )
    return words.format(left_out=", ".join(left_out(trace)) or "–")


def slowed_plan(session: Session, document: Document) -> Slowed | None:
    """How much the profiler slows the step of a plan down, where the run has measured that and it is much."""
    if document.analysis is None or not document.analysis.plan:
        return None
    return slowed(document.trace, document.analysis, _wall(session, document))


def slower(found: Slowed) -> str:
    """What the plan is worth without the profiler."""
    return translate("rules", found.template).format(**{name: text.duration(ns) for name, ns in found.times.items()})


def became(state: Any) -> str:
    """What became of a fix (`gui.loop_own.FixState`), in a few words for its card; nothing where it was not applied."""
    if state is None:
        return ""
    if state.kind == "applied":
        return translate("plan", "in your file, not measured yet")
    if state.kind == "running":
        return translate("plan", "round {number} is running").format(number=state.number)
    judged = state.judged
    change = text.change(judged.measured_pct) if judged is not None and judged.measured_pct is not None else ""
    if not change:
        words = translate("plan", "ran in round {number}: what it brought is unknown")
    elif judged.is_gain is None:
        words = translate("plan", "measured in round {number}: unclear ({change})")
    elif judged.is_gain:
        words = translate("plan", "measured in round {number}: {change}")
    else:
        words = translate("plan", "measured in round {number}: no gain ({change})")
    if state.differs is not None:
        words = translate("plan", "{words}, the losses differ from step {step} on").format(
            words=words, step=state.differs
        )
    if state.fixes > 1:
        words = translate("plan", "{words}, {count} fixes together").format(words=words, count=state.fixes)
    if state.kind == "undone":
        words = translate("plan", "undone; {words}").format(words=words)
    elif state.made is not None:
        words = translate("plan", "in your file; {words}").format(words=words)
    return words.format(number=state.number, change=change)


def measured(states: Sequence[Any]) -> str:
    """The step that one round measured with all of these fixes (`gui.loop_own.FixState`); nothing where none did."""
    first = states[0] if states else None
    judged = first.judged if first is not None else None
    if first is None or judged is None or any(s is None or s.number != first.number for s in states):
        return ""
    if judged.before_ns is None or judged.after_ns is None:
        return ""
    words = (
        translate("plan", "With those ticked, measured without the profiler: {before} → {after}.")
        if judged.measure == "wall"
        else translate("plan", "With those ticked, measured: {before} → {after}.")
    )
    if judged.is_gain is None:
        words += " " + translate("plan", "What of that is their doing is unclear.")
    return words.format(before=text.duration(judged.before_ns), after=text.duration(judged.after_ns))


def nothing_found(trace: Trace, analysis: Analysis) -> str:
    """What to say where no card has anything to offer; nothing where one has."""
    key, figures = outlook(trace, analysis), analysis.figures
    words = translate("plan", OUTLOOKS[key]) if key else ""
    if key and any(analysis.is_small(index) for index in range(len(analysis.suggestions))):
        words = " ".join((words, translate("plan", "What would save less stands under “Smaller”.")))
    of_cpu = figures.cpu_time
    if (
        key == "no_device"
        and of_cpu is not None
        and any(table.host_total_ns.any() for table in (of_cpu.operators, of_cpu.modules, of_cpu.python))
    ):  # the plan shows the CPU's own time there
        words = " ".join((words, translate("plan", "What the CPU does is shown below.")))
    return words


def falling(now: float, analysis: Analysis, left_out: Sequence[bool]) -> list[float]:
    """Step times in ns: now, then after each step of the plan that is not left out: such a one brings nothing."""
    values, before = [now], now
    for step, is_out in zip(analysis.plan, left_out, strict=True):
        after = float(step.predicted_step_ns)
        if not is_out:
            values.append(values[-1] - (before - after))
        before = after
    return values


def is_proved(fix_state: Any) -> bool:
    """Whether a run has shown that a fix saves something and keeps the losses (`gui.loop_own.FixState`)."""
    judged = fix_state.judged if fix_state is not None and fix_state.kind == "measured" else None
    return judged is not None and judged.is_gain is True and fix_state.differs is None


def mark(state: str, reason: str, fix_state: Any) -> str:
    """What the user made of a suggestion, or what became of its fix: a few words for its card."""
    allowed = translate("plan", "allowed: {reason}").format(reason=reason) if reason else translate("plan", "allowed")
    dismissed = (
        translate("plan", "dismissed: {reason}").format(reason=reason) if reason else translate("plan", "dismissed")
    )
    marks = {
        ALLOWED: allowed,
        DONE: translate("plan", "done by you, not measured"),
        CHOSEN: translate("plan", "ticked"),
        DISMISSED: dismissed,
        LATER: translate("plan", "later"),
    }
    known, result = marks.get(state, ""), became(fix_state)
    return " · ".join(w for w in (known, result) if w) if state in (LATER, *SET_ASIDE) else result or known


def set_aside(document: Document) -> dict[str, str]:
    """Keys of what was allowed or dismissed, with what a report says of it: reports are in English."""
    found = {}
    for key, state in document.suggestion_state.items():
        if state in SET_ASIDE:
            reason = document.dismiss_reason.get(key, "")
            found[key] = f"{state}: {reason}" if reason else state
    return found
