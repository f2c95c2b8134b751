"""The report of ``analyze`` for a person at a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.analysis import OUTLOOKS, Analysis, outlook
from core.device_words import devices_word
from core.engine_steps import engine_steps
from core.figures.busy_parts import busy_parts
from core.figures.shares import launch_costs
from core.fixes.of_run import changed_lines, edits_for_run
from core.fixes.propose import ProposedEdit
from core.kinds import GapCause
from core.own_run import no_steps_cure, no_steps_reason
from core.reporting import cpu_time
from core.reporting.phrases import (
    BUSY,
    CAUSES,
    LEFT_OUT,
    NOTHING_ELSE,
    Amounts,
    amounts,
    budget_title,
    busy_basis,
    busy_lines,
    in_chain,
    launch_words,
    no_steps_words,
    no_sync_points,
    note_rows,
    occurrences,
    place,
    plan_words,
    printable,
    replay_words,
    step_thread_lines,
    steps_in_means,
    trace_facts,
    verdict_head,
)
from core.reporting.sync_groups import sync_groups
from core.reporting.units import UNKNOWN, count, duration, measure, percent
from core.run_folder import finder_for, run_of
from core.set_aside import SetAside
from core.source import SourceFinder
from core.suggestions import Outcome, RuleResult, Suggestion
from core.trace import Trace
from core.words import grouped

STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32", "cyan": "36"}
TOP_SYNCS = 8


@dataclass(frozen=True)
class Page:
    """Where the text goes: its width in columns and whether it may be coloured."""

    width: int = 100
    colour: bool = False

    def paint(self, text: str, *styles: str) -> str:
        """Return the text in these styles, untouched where colour is off."""
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(STYLES[s] for s in styles)}m{text}\x1b[0m"

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """Fold a paragraph to the width; ``first`` is the indent of its first line."""
        width = max(30, self.width)
        lines: list[str] = []
        for paragraph in printable(text).splitlines() or [""]:
            lines += textwrap.wrap(
                paragraph,
                width,
                initial_indent=indent if first is None or lines else first,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
        return lines

    def title(self, text: str) -> list[str]:
        """Return a section's heading, with the blank line before it."""
        return ["", *(self.paint(line, "bold") for line in self.wrap(text))]


PLAIN = Page()


def clip(text: str, columns: int) -> str:
    """Shorten to that many columns, keeping both ends of a long name."""
    text = printable(text).replace("\n", " ")
    if len(text) <= columns:
        return text
    tail = columns // 3
    return f"{text[: columns - tail - 1]}…{text[-tail:]}" if columns > 8 else text[:columns]


def report(
    trace: Trace,
    analysis: Analysis,
    page: Page = PLAIN,
    finder: SourceFinder | None = None,
    every: bool = False,
    aside: SetAside = (),
) -> str:
    """Return the whole report; ``every``: also what saves next to nothing; ``aside``: what `set_aside` took out."""
    sections = (
        _head(trace, page),
        _verdict(trace, analysis, page),
        _step_times(trace, analysis, page),
        _budget(analysis, page),
        _plan(trace, analysis, page, every, bool(aside)),
        _set_aside(aside, page),
        _other_suggestions(analysis, page),
        _sync_points(trace, analysis, page, finder or finder_for(trace)),
        cpu_time.lines(trace, analysis, page),
        _doctor(analysis, page),
        _not_checked(analysis, page),
    )
    return "\n".join(line.rstrip() for section in sections for line in section) + "\n"


def _head(trace: Trace, page: Page) -> Iterator[str]:
    yield page.paint(clip(trace.path.name, page.width), "bold")
    yield from (page.paint(line, "dim") for line in page.wrap(" · ".join(trace_facts(trace, "x"))))
    if trace.meta.simulated:
        yield page.paint("This trace was written by a simulator: it was not recorded on a device.", "yellow")


def _verdict(trace: Trace, analysis: Analysis, page: Page) -> Iterator[str]:
    summary = analysis.figures.summary
    word, but = verdict_head(trace, analysis)
    colour = "yellow" if but else {"healthy": "green", "unknown": "yellow"}.get(summary.verdict, "red")
    yield ""
    yield page.paint(word, "bold", colour)
    if words := cpu_time.verdict_text(trace, analysis):
        yield from page.wrap(words, "  ")
    if "replay" in analysis.notes:
        yield from page.wrap("Please report it with the traceback that STEPLENS_DEBUG=1 shows.", "  ")


def _step_times(trace: Trace, analysis: Analysis, page: Page) -> Iterator[str]:
    summary = analysis.figures.summary
    yield from page.title("Step times")
    if not summary.steps:
        words = no_steps_words(trace)
        cure = "Call prof.step() at the end of every iteration, or let `main.py profile` do it."
        if own := no_steps_reason(trace):
            words, cure = own, no_steps_cure(trace)
        yield from page.wrap(words if len(engine_steps(trace)) else f"{words} {cure}", "  ")
    else:
        yield page.paint(f"  means over {steps_in_means(analysis)}", "dim")
    wall = run.wall_step_ns if (run := run_of(trace.path)) is not None else None
    rows = [  # the one to go by first; the others say what else is called a step's time
        ("sustained step", summary.sustained_step_ns, "the one to go by: the loop's own pace"),
        ("host step", summary.step_ns, "a step as the CPU sees it" + ("" if summary.inferred else " (ProfilerStep)")),
    ]
    if wall is not None:
        rows.append(("wall step", wall, "by the clock, without the profiler"))
    if trace.has_device_work or trace.meta.devices:
        rows += [
            ("period", summary.period_ns, "from one step's device work to the next one's"),
            ("device step", summary.device_step_ns, "first to last device work launched in a step"),
        ]
    for name, value, meaning in rows if summary.steps else ():
        yield f"  {name:<15}{duration(value):>10}   {page.paint(clip(meaning, max(20, page.width - 30)), 'dim')}"
    if words := replay_words(summary):
        yield from (page.paint(line, "dim") for line in page.wrap(words, "    "))
    if summary.enqueue_bound:
        yield from page.wrap(
            "The CPU runs ahead of the device here: the host step is only the time to enqueue a step, not to do it.",
            "  ",
        )
    kernels = f"kernels alone {percent(summary.kernel_busy_pct)}" if summary.kernel_busy_pct is not None else ""
    kernels = "; ".join(part for part in (kernels, busy_basis(analysis)) if part)
    busy = percent(summary.gpu_busy_pct) if trace.has_device_work else f"{UNKNOWN}: no device work was recorded"
    yield f"  {devices_word(trace) + ' busy':<15}{busy:>10}   {page.paint(kernels, 'dim')}"
    for line in (*busy_lines(trace, analysis), *step_thread_lines(trace, analysis)):
        yield from page.wrap(line, "    ")
    if summary.kernels_per_step is not None:
        yield f"  {'kernels':<15}{count(summary.kernels_per_step):>10}   {page.paint('per step', 'dim')}"
    if (costs := launch_costs(analysis.figures)) is not None:
        words = clip(launch_words(costs), max(20, page.width - 30))
        yield f"  {'launch call':<15}{duration(costs.call_ns):>10}   {page.paint(words, 'dim')}"


def _budget(analysis: Analysis, page: Page) -> Iterator[str]:
    budget = analysis.figures.budget
    if not budget.period_ns or budget.busy_ns is None:
        return
    yield from page.title(budget_title(analysis))
    parts = [(BUSY[part], time_ns) for part, time_ns in busy_parts(analysis.figures).items()]
    busy_names = {name for name, _ in parts}
    idle = sorted(budget.idle_by_cause_ns.items(), key=lambda item: -item[1])
    parts += [(CAUSES[GapCause(cause)], time_ns) for cause, time_ns in idle if time_ns > 0]
    name_columns = max(len(name) for name, _ in parts)
    room = max(8, min(40, page.width - name_columns - 24))
    for name, time_ns in parts:
        share = time_ns / budget.period_ns
        bar = page.paint(_bar(share, room), "cyan" if name in busy_names else "red")
        yield f"  {name:<{name_columns}}  {duration(time_ns):>9} {percent(100 * share):>6}  {bar}"


def _bar(share: float, columns: int) -> str:
    eighths = round(max(0.0, min(1.0, share)) * columns * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def _plan(trace: Trace, analysis: Analysis, page: Page, every: bool, is_part: bool) -> Iterator[str]:
    edits = edits_for_run(run_of(trace.path), analysis.suggestions)
    unit = amounts(trace, analysis)
    listed = [i for i, s in enumerate(analysis.suggestions) if not s.informational]
    small = set() if every else {i for i in listed if analysis.is_small(i)}
    now = analysis.figures.summary.sustained_step_ns
    if analysis.plan and now is not None:
        whole = unit.whole(now, analysis.plan[-1].predicted_step_ns)
        yield from page.title(f"The plan: {whole}, predicted by replay")
    else:
        yield from page.title("Suggestions")
    if key := outlook(trace, analysis):
        yield from page.wrap(NOTHING_ELSE if is_part else OUTLOOKS[key], "  ")
    for words in plan_words(trace, analysis):
        yield from page.wrap(words, "  ")
    after = {i: step for step in analysis.plan for i in step.suggestions}
    numbers = analysis.numbers()
    for i in analysis.in_order(i for i in listed if i not in small):
        step = after.get(i)
        number = f"{numbers[i]}." if i in numbers else "–"
        then = step.predicted_step_ns if step is not None else None
        beside = LEFT_OUT if analysis.is_left_out(i) else in_chain(analysis.suggestions[i], step)
        yield from _card(analysis.suggestions[i], number, then, page, edits.get(i), unit, beside)
        if step is not None and step.note:
            yield from page.wrap(step.note, "     ")
    if small:
        yield ""
        words = f"{len(small)} more would save less than 1 % each (analyze --all shows them)."
        yield from (page.paint(line, "dim") for line in page.wrap(words, "  "))


def _set_aside(aside: SetAside, page: Page) -> Iterator[str]:
    if not aside:
        return
    yield from page.title("Not counted in the plan")
    for suggestion, words in aside:
        where = f" — {place(suggestion.source)}" if suggestion.source else ""
        yield from page.wrap(f"{suggestion.headline}{where}", "    ", "  · ")
        yield from (page.paint(line, "dim") for line in page.wrap(words, "    "))


def _card(
    suggestion: Suggestion,
    number: str,
    predicted_ns: int | None,
    page: Page,
    edit: ProposedEdit | None,
    unit: Amounts,
    beside: str = "",
) -> Iterator[str]:
    colour = {"high": "red", "medium": "yellow"}.get(suggestion.severity, "cyan")
    yield ""
    first, *rest = page.wrap(suggestion.headline, "     ", f"  {number:<3}")
    yield page.paint(first, "bold", colour)
    yield from (page.paint(line, "bold", colour) for line in rest)
    saving = suggestion.saving
    if saving.ns is None:
        facts = [f"{suggestion.severity}", "saving unknown"]
    else:
        facts = [suggestion.severity, unit.alone(suggestion)]
        if saving.together_ns is not None and saving.together_ns != saving.ns:
            more = unit.worth(saving, saving.together_ns) if saving.together_ns > 0 else "nothing"
            facts.append(f"{more} in the plan")
    if predicted_ns is not None:
        facts.append(unit.then(predicted_ns))
    facts.append(occurrences(suggestion))
    if beside:
        facts.append(beside)
    yield from page.wrap(" · ".join(facts), "     ")
    if suggestion.source is not None:
        yield "     " + page.paint(clip(place(suggestion.source), page.width - 5), "cyan")
    if suggestion.why:
        yield from page.wrap(suggestion.explanation, "     ")
    for evidence in suggestion.evidence:
        yield from page.wrap(f"{evidence.label}: {measure(evidence.value, evidence.unit)}", "         ", "       · ")
    yield from _fix(suggestion, page) if edit is None else _own_fix(edit, page)


def _fix(suggestion: Suggestion, page: Page) -> Iterator[str]:
    fix = suggestion.fix
    if fix.summary:
        yield from page.wrap(f"Fix: {fix.summary}", "     ")
    for sign, code, colour in (("-", fix.before, "red"), ("+", fix.after, "green")):
        for line in code.splitlines():
            yield page.paint(f"       {sign} {printable(line)}", colour)
    if fix.risk:
        yield from page.wrap(f"Risk: {fix.risk}", "     ")


def _own_fix(edit: ProposedEdit, page: Page) -> Iterator[str]:
    """The fix as a diff of the user's own code."""
    yield from page.wrap(f"Fix: {edit.summary}", "     ")
    colours = {"-": ("red",), "+": ("green",)}
    for line in changed_lines(edit.diff):
        yield page.paint(f"       {printable(line[:1])} {printable(line[1:])}", *colours.get(line[:1], ()))
    yield from page.wrap(f"Risk: {edit.risk}", "     ")


def _other_suggestions(analysis: Analysis, page: Page) -> Iterator[str]:
    notes = [s for s in analysis.suggestions if s.informational]
    if not notes:
        return
    yield from page.title("Also seen")
    for row in note_rows(notes):
        yield from page.wrap(row, "    ", "  · ")


def _sync_points(trace: Trace, analysis: Analysis, page: Page, finder: SourceFinder) -> Iterator[str]:
    syncs, summary = analysis.figures.syncs, analysis.figures.summary
    if not trace.has_device_work and not len(syncs):
        return
    if not len(syncs):
        yield from page.title(f"Sync points: {no_sync_points(trace)}")
        return
    per_step = ""
    if summary.sync_points_per_step is not None:
        per_step = f" in all; {count(summary.sync_points_per_step)} per step"
        if summary.sync_wait_ns_per_step is not None:
            per_step += f", waiting {duration(summary.sync_wait_ns_per_step)}"
    yield from page.title(f"Sync points: {grouped(len(syncs))}{per_step}")
    groups, in_all = sync_groups(trace, analysis, finder, TOP_SYNCS)
    yield page.paint(f"  {'waiting':>9} {'calls':>6}  call, operator, place", "dim")
    for group in groups:
        operator = f"in {group.op}" if group.op else ""
        text = "  ".join(part for part in (group.call, operator, place(group.source)) if part)
        yield f"  {duration(group.wait_ns):>9} {grouped(group.calls):>6}  {clip(text, page.width - 20)}"
    if in_all > len(groups):
        yield page.paint(f"  and {in_all - len(groups)} more kinds (analyze --json lists every one)", "dim")


def _doctor(analysis: Analysis, page: Page) -> Iterator[str]:
    if not analysis.figures.doctor:
        return
    yield from page.title("Things to know before trusting a figure")
    rows = {" ".join(t for t in (n.title, n.consequence, n.cure) if t): n.severity for n in analysis.figures.doctor}
    for row, severity in rows.items():
        yield from page.wrap(row, "    ", "  ! " if severity != "info" else "  · ")


def _not_checked(analysis: Analysis, page: Page) -> Iterator[str]:
    outcomes = Counter(r.outcome for r in analysis.rules)
    if not outcomes:
        return
    yield from page.title(
        f"Rules: {outcomes[Outcome.FOUND]} found something, {outcomes[Outcome.CLEAN]} found nothing, "
        f"{outcomes[Outcome.NOT_CHECKED]} could not be checked"
        + (f", {outcomes[Outcome.FAILED]} failed" if outcomes[Outcome.FAILED] else "")
    )
    for outcome, words in ((Outcome.FAILED, "failed: "), (Outcome.NOT_CHECKED, "")):
        for reason, ids in _by_reason(r for r in analysis.rules if r.outcome is outcome):
            yield from page.wrap(f"{words}{reason or 'no reason given'} ({', '.join(ids)})", "    ", "  · ")


def _by_reason(results: Iterable[RuleResult]) -> list[tuple[str, list[str]]]:
    reasons: dict[str, list[str]] = defaultdict(list)
    for result in results:
        reasons[result.reason].append(result.rule.id)
    return [(reason, sorted(ids)) for reason, ids in reasons.items()]
