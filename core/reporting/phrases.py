"""Words that the report has in common with the page: verdicts, causes, places, savings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from core.analysis import Analysis
from core.engine_steps import engine_steps
from core.figures.lookup import view_of
from core.figures.model import Summary
from core.figures.rounds import HEALTHY_BUT, outliers_told
from core.figures.shares import LaunchCosts, device_label, device_shares, is_foreign, step_threads, steps_covered_ns
from core.kinds import GapCause
from core.plan_lead import lead
from core.reporting.rounds_told import rounds_told
from core.reporting.units import UNKNOWN, duration, percent
from core.run_folder import run_of
from core.source import lines_in_words
from core.suggestions import PlanStep, Saving, SourceRef, Suggestion
from core.trace import Trace
from core.unprofiled import WITHIN, Slowed, hidden_by, slowed
from core.words import LONGEST_NAME, THIN, counted, cut, fill, grouped

VERDICTS = {
    "healthy": "Healthy",
    "host_bound": "Host-bound",
    "device_bound": "Device-bound",
    "input_bound": "Input-bound",
    "sync_bound": "Sync-bound",
    "communication_bound": "Communication-bound",
    "unknown": "Unknown",
}
BUSY = {
    "busy": "device busy",
    "computing": "busy: computing",
    "communication_only": "busy: communication only",
    "copies_only": "busy: copies only",
}
CAUSES = {  # as the bar of the window calls them
    GapCause.LOADER: "idle: data loader",
    GapCause.SYNC: "idle: after a wait of the CPU",
    GapCause.LAUNCH: "idle: launches",
    GapCause.PYTHON: "idle: Python",
    GapCause.COPY: "idle: blocking copy",
    GapCause.COMPILE: "idle: compiling or loading modules",
    GapCause.COLLECTOR: "idle: garbage collector",
    GapCause.COMMUNICATION: "idle: communication",
    GapCause.ALLOC: "idle: memory allocation",
    GapCause.QUEUED: "idle: launched, but held up",
    GapCause.UNKNOWN: "idle: cause unknown",
}
MOST_DEVICES, MOST_STREAMS = 8, 4  # named one by one in a line of the report
LONGEST_LINE = 4000  # characters of a text that holds names of anybody's
_WORD = re.compile(r"\S+")
SMALL_MISS_PCT, OWN_MISS_PCT = 15.0, 2.0  # of predictions for steps that were held back, and of the recording itself
OTHER_WINDOW_PCT = 1.5  # from here on two shares of the same work need a word on what each is of


KEPT = "\n" + THIN  # that Python does not call printable


def printable(text: str) -> str:
    """Names come from the trace: no control character of theirs reaches the terminal, nor more than fills a page."""
    if len(text) > LONGEST_NAME:
        text = _WORD.sub(lambda found: cut(found[0]), text)
        text = "\n".join(cut(line, LONGEST_LINE) for line in text.split("\n"))
    return "".join(c if c.isprintable() or c in KEPT else "\N{REPLACEMENT CHARACTER}" for c in text)


def place(source: SourceRef | None) -> str:
    """Return ``file:line in function``; other lines that are meant, or could be, follow; a function's start says so."""
    if source is None:
        return ""
    if source.exact:
        about = f", also {lines_in_words(source.also)}" if source.also else ""
    else:
        about = f" (or {lines_in_words(source.candidates)})" if source.candidates else " (about)"
    return f"{cut(source.file)}:{source.line} in {cut(source.function)}{about}"


def budget_title(analysis: Analysis) -> str:
    """Heading of the budget: of one step's period, of a step where no period is known, or of all that was recorded."""
    budget = analysis.figures.budget
    length = duration(budget.period_ns)
    what = f"the recorded {length} go" if budget.basis == "window" else f"a {budget.basis} of {length} goes"
    return f"Where {what}, seen from the device"


def no_sync_points(trace: Trace) -> str:
    """What the absence of sync points means: without calls in the trace nobody knows whether the CPU waits."""
    view = view_of(trace)
    if view.saw_calls:
        return "none, the CPU never waits for the device"
    if len(view.host_calls):
        return "unknown, since the calls of this device's runtime are not known to StepLens"
    return "unknown, since no calls of the device's runtime were recorded"


def verdict_word(trace: Trace, verdict: str) -> str:
    """The verdict in a word or two, the same as in the window: a CPU recording is no riddle."""
    if verdict == "unknown" and not trace.report.is_cut_off and not trace.has_device_work:
        if not len(trace.slices):
            return "No events"
        return "No device work" if trace.meta.devices or is_foreign(trace) else "CPU only"
    return VERDICTS.get(verdict, verdict)


def verdict_head(trace: Trace, analysis: Analysis) -> tuple[str, bool]:
    """That word, and whether it is restricted: steps that are no part of the verdict took much of the time."""
    verdict, (outliers, _) = analysis.figures.summary.verdict, outliers_told(analysis.figures)
    if verdict == "healthy" and outliers:
        return fill(HEALTHY_BUT, {"count": outliers}), True
    return verdict_word(trace, verdict), False


def trace_facts(trace: Trace, times: str) -> list[str]:
    """What a trace is, for the line below its name: size, devices (``times`` stands before a name), torch and ranks."""
    start_ns, end_ns = trace.span_ns
    names = Counter(device.name for device in trace.meta.devices)
    facts = [counted(trace.report.events_read, "event"), duration(end_ns - start_ns)]
    facts += [name if n == 1 else f"{n} {times} {name}" for name, n in names.items()]
    facts += [f"torch {trace.meta.torch_version}"] if trace.meta.torch_version else []
    return facts + _rank_facts(trace)


def _rank_facts(trace: Trace) -> list[str]:
    """Which rank a trace is of, or how many files it is made of and of which ranks; empty for one that names none."""
    of = f" of {trace.meta.world_size}" if trace.meta.world_size is not None else ""
    if len(trace.sources) == 1:
        return [] if trace.meta.rank is None else [f"rank {trace.meta.rank}{of}"]
    ranks = sorted({rank for rank in trace.processes.rank.tolist() if rank >= 0})
    named = ", ".join(map(str, ranks[:MOST_DEVICES])) + (" ..." if len(ranks) > MOST_DEVICES else "")
    return [counted(len(trace.sources), "file") + (f" (ranks {named}{of})" if ranks else "")]


def no_steps_words(trace: Trace) -> str:
    """Why there is no time per step."""
    if len(engine_steps(trace)):
        return "The recording holds one step of an inference engine: all times are of this step."
    return "No step is marked in this trace, so times per step are unknown."


def steps_in_means(analysis: Analysis) -> str:
    """Over which steps the means are taken: ``9 of 10 steps``."""
    summary, counted_steps = analysis.figures.summary, int(analysis.figures.step_figures.counted.sum())
    kind = "inferred step" if summary.inferred else "step"
    whole = counted(summary.steps, kind)
    return whole if counted_steps == summary.steps else f"{grouped(counted_steps)} of {whole}"


def launch_words(costs: LaunchCosts) -> str:
    """What is said beside the cost of a launch."""
    words = "on the CPU (median); work starts {delay_ms:time} later; at most {depth} queued"
    return fill(words, {"delay_ms": costs.delay_ns / 1e6, "depth": grouped(costs.queue_depth_max)})


def replay_words(summary: Summary) -> str:
    """How far the predictions can be trusted: by steps that were held back, and where it is off, by all of them."""
    own, held_out = summary.replay_error_pct, summary.held_out_error_pct
    if own is None or summary.sustained_step_ns is None:
        return ""
    if held_out is None:
        said = "How far to trust the predictions is unknown: testing them takes four counted steps of one loop."
    elif held_out <= SMALL_MISS_PCT:
        said = f"Predictions were tested: from one half of the steps they came within {percent(held_out)} of the other."
    else:
        said = (
            f"Predictions were tested: from one half of the steps they missed the other by {percent(held_out)}. The "
            "steps differ that much among themselves, so take the savings as a rough guide and run the fixed copy."
        )
    off = f" The recording itself, replayed, is off by {percent(abs(own))}." if abs(own) > OWN_MISS_PCT else ""
    return said + off


def busy_basis(analysis: Analysis) -> str:
    """What the busy share is of, where it is not of the counted steps."""
    summary = analysis.figures.summary
    known = summary.gpu_busy_pct is not None
    return "of the whole recording" if known and (summary.inferred or not summary.steps) else ""


def busy_lines(trace: Trace, analysis: Analysis) -> list[str]:
    """What lies behind one figure for the device's use: each device, each stream, the device's own span."""
    shares = device_shares(trace, analysis.figures)
    lines = []
    if len(shares) > 1:
        each = ", ".join(
            f"{device_label(trace, share.device)} {percent(share.busy_pct)}" for share in shares[:MOST_DEVICES]
        )
        more = f" and {len(shares) - MOST_DEVICES} more" if len(shares) > MOST_DEVICES else ""
        lines.append(f"the mean of {each}{more}")
    for share in shares[:MOST_DEVICES]:
        streams = [s for s in share.streams if s.busy_pct > 0]
        if len(streams) > 1:
            name = f"{device_label(trace, share.device)}, " if len(shares) > 1 else ""
            each = ", ".join(
                f"stream {s.stream if s.stream >= 0 else UNKNOWN}: {percent(s.busy_pct)}"
                for s in streams[:MOST_STREAMS]
            )
            more = f" and {len(streams) - MOST_STREAMS} more" if len(streams) > MOST_STREAMS else ""
            lines.append(f"{name}{each}{more} (they can work at once)")
    budget, said = analysis.figures.budget, analysis.figures.summary.gpu_busy_pct
    if budget.basis == "period" and budget.period_ns and budget.busy_ns is not None and said is not None:
        paced = 100.0 * budget.busy_ns / budget.period_ns
        if abs(paced - said) >= OTHER_WINDOW_PCT:
            lines.append(f"of the host's steps; of the period below, {percent(paced)}")
    if len(shares) == 1 and busy_basis(analysis):
        lines.append(f"{percent(shares[0].own_busy_pct)} from its first to its last work")
    return lines


def step_thread_lines(trace: Trace, analysis: Analysis) -> list[str]:
    """The steps of each thread, where several threads run steps."""
    threads = step_threads(trace, analysis.figures)
    covered = steps_covered_ns(analysis.figures)
    if len(threads) < 2 or covered is None:
        return []
    ranks = [f" of rank {one.rank}" if one.rank >= 0 else "" for one in threads]
    each = ", ".join(
        f"thread {one.thread}{rank}: {counted(one.steps, 'step')} of {duration(one.step_ns)}"
        for one, rank in list(zip(threads, ranks, strict=True))[:MOST_DEVICES]
    )
    each += f" and {len(threads) - MOST_DEVICES} more" if len(threads) > MOST_DEVICES else ""
    return [f"steps by thread (means): {each}; together they cover {duration(covered)}"]


@dataclass(frozen=True)
class Amounts:
    """How the plan's savings and steps are written: as times with a unit, or as shares of the recorded step.

    Shares are what a plan can promise where the profiler itself slows the step down much (`core.unprofiled`).
    """

    unit: str
    recorded_ns: float | None = None  # the step that shares are of; None for times

    def saved(self, saved_ns: float) -> str:
        """A saving: ``−294 µs``, ``−12 %``."""
        return f"−{duration(saved_ns) if not self.recorded_ns else percent(100 * saved_ns / self.recorded_ns)}"

    def worth(self, saving: Saving, saved_ns: float) -> str:
        """A saving with what it is: ``up to`` where it is a bound, ``≈`` where it is rough, as the window has it."""
        return {"bounded": "up to ", "rough": "≈ "}.get(saving.basis or "", "") + self.saved(saved_ns)

    def alone(self, suggestion: Suggestion) -> str:
        """What a suggestion saves alone, with the basis; empty where that is unknown."""
        saving = suggestion.saving
        if saving.ns is None:
            return ""
        if saving.ns <= 0:
            return f"alone saves nothing, {saving.basis}"
        most, known = ("up to ", "") if saving.basis == "bounded" else ("", f", {saving.basis}")
        if self.recorded_ns:
            share = percent(100 * saving.ns / self.recorded_ns)
            return f"alone saves {most}{share} of the recorded step{known}"
        share = f" ({percent(saving.pct)})" if saving.pct is not None else ""
        return f"alone saves {most}{duration(saving.ns)}{share}{self.unit}{known}"

    def then(self, step_ns: float) -> str:
        """The step after a fix."""
        if self.recorded_ns:
            return f"then {percent(100 * step_ns / self.recorded_ns)} of the recorded step"
        return f"then {duration(step_ns)}{self.unit}"

    def whole(self, now_ns: float, end_ns: float) -> str:
        """The step now and after the plan: ``1.2 ms → 822 µs per step``."""
        if self.recorded_ns:
            return f"{self.saved(now_ns - end_ns)} of the recorded step"
        return f"{duration(now_ns)} → {duration(end_ns)} per step"


def in_chain(suggestion: Suggestion, step: PlanStep | None) -> str:
    """What a fix saves with those it belongs to, where alone it saves less than half of that; else empty.

    Its severity is by what they bring together: beside its own saving that would look like a mistake.
    """
    values = step.note_values if step is not None else {}
    if "members" not in values or 2 * (suggestion.saving.pct or 0.0) >= values["group_pct"]:
        return ""
    others = values["members"] - 1
    with_whom = "the other fix" if others == 1 else f"the {others} other fixes"
    return f"{percent(values['group_pct'])} together with {with_whom} of its chain"


def amounts(trace: Trace, analysis: Analysis) -> Amounts:
    """How to write the savings of a plan."""
    found = _slowed(trace, analysis)
    return Amounts(saving_unit(analysis), found.recorded_ns if found is not None else None)


def saving_unit(analysis: Analysis) -> str:
    """What a saving is of: of a step where steps are known, else of the recording, or of the part that is replayed."""
    if analysis.figures.summary.steps:
        return " per step"
    part = analysis.replayed_ns
    return " of the whole recording" if part is None else f" of the {duration(part)} from its first device work on"


LEFT_OUT = "not in the plan: after its fixes this saves less than 1 % more"
NOTHING_ELSE = "Nothing else was found that would save 1 % or more."
LEFT_OUT_NOTE = "Not in the plan: after its fixes this saves less than 1 % more."


def occurrences(suggestion: Suggestion) -> str:
    """How often a fault was seen, and in how many steps where steps are known."""
    steps = len(suggestion.steps)
    times = f"seen {grouped(suggestion.occurrences)} times" if suggestion.occurrences != 1 else "seen once"
    return f"{times} in {grouped(steps)} steps" if steps > 1 else f"{times} in one step" if steps else times


def note_rows(notes: Iterable[Suggestion]) -> list[str]:
    """One line for each note with its place; the range tells those apart that would read the same."""
    told = list(notes)
    same = Counter(note.headline for note in told)
    rows: Counter[str] = Counter()
    for note in told:
        where, inside = place(note.source), str(note.values.get("range") or "").strip("# \t")
        if not where and inside and same[note.headline] > 1:
            where = f"in the range {inside}"
        rows[f"{note.headline} — {where}" if where else note.headline] += 1
    return [row if times == 1 else f"{row} ({times} places)" for row, times in rows.items()]


def plan_words(trace: Trace, analysis: Analysis) -> list[str]:
    """Sentences above the cards of a plan: what the times are worth, and how the cards answer the verdict."""
    found = lead(analysis)
    words = [slowed_words(trace, analysis), _uneven_words(analysis)] if analysis.plan else []
    words += rounds_told(run_of(trace.path)) if trace.sources else []
    if found is not None:
        words.append(fill(found.template, found.values))
        if found.card >= 0:
            words[-1] += f" It is called “{analysis.suggestions[found.card].headline}”."
    return [w for w in words if w]


def _uneven_words(analysis: Analysis) -> str:
    """That the recorded steps differ by more than all of the plan saves; empty where they do not."""
    now = analysis.figures.summary.sustained_step_ns
    saved = 100.0 * (1.0 - analysis.plan[-1].predicted_step_ns / now) if now else 0.0
    spread = hidden_by(analysis, saved) if now else None
    return "" if spread is None else WITHIN.format(spread=percent(spread), saving=percent(saved))


def slowed_words(trace: Trace, analysis: Analysis) -> str:
    """What the plan is worth without the profiler, where that slows the step down much; empty elsewhere."""
    found = _slowed(trace, analysis)
    if found is None:
        return ""
    return found.template.format(**{name: duration(ns) for name, ns in found.times.items()})


def _slowed(trace: Trace, analysis: Analysis) -> Slowed | None:
    run = run_of(trace.path) if trace.sources else None
    return slowed(trace, analysis, run.wall_step_ns if run is not None else None)
