"""One self-contained page: no script, nothing loaded from anywhere, every text of the trace escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape

from core.analysis import OUTLOOKS, Analysis, outlook
from core.device_words import devices_word
from core.figures.busy_parts import busy_parts
from core.figures.model import StatTable
from core.fixes.of_run import changed_lines, edits_for_run
from core.fixes.propose import ProposedEdit
from core.kinds import GapCause
from core.reporting import cpu_time, picture
from core.reporting.page_style import style
from core.reporting.phrases import (
    BUSY,
    CAUSES,
    LEFT_OUT_NOTE,
    NOTHING_ELSE,
    Amounts,
    amounts,
    budget_title,
    busy_basis,
    busy_lines,
    in_chain,
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
from core.reporting.text import clip
from core.reporting.units import count, duration, measure, percent
from core.run_folder import finder_for, name_of, run_of
from core.set_aside import SetAside
from core.source import SourceFinder
from core.suggestions import Outcome, Suggestion
from core.trace import Trace
from core.words import grouped

TOP_ROWS = 15
NAME_CHARACTERS = 400  # a name of a table; templates can be a hundred times as long
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LEGEND = (
    ("op", "operator"),
    ("runtime", "runtime call"),
    ("range", "range"),
    ("kernel", "kernel"),
    ("memcpy", "copy"),
    ("comm", "communication"),
)


def e(text: object) -> str:
    """Escape a text for HTML, control characters made visible."""
    return escape(printable(str(text)), quote=True)


def page(trace: Trace, analysis: Analysis, finder: SourceFinder | None = None, aside: SetAside = ()) -> str:
    """Return the whole page; ``aside`` is what `core.set_aside` took out of the analysis: it is listed apart."""
    sections = (
        _head(trace),
        _verdict(trace, analysis),
        _times(trace, analysis),
        _budget(analysis),
        _timeline(trace, analysis),
        _plan(trace, analysis, aside),
        _cpu_time(trace, analysis),
        _syncs(trace, analysis, finder or finder_for(trace)),
        _doctor(analysis),
        _tables(trace, analysis),
        _rules(analysis),
    )
    body = "\n".join(part for section in sections for part in section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{e(name_of(trace))} · StepLens</title>\n<style>{style()}</style></head>\n"
        f"<body>\n{body}\n<footer>Written by StepLens from {e(trace.path.name)}. Figures are means over the counted "
        "steps unless said otherwise; unknown is what the trace does not tell.</footer>\n</body></html>\n"
    )


def _head(trace: Trace) -> Iterator[str]:
    yield f'<h1>{e(name_of(trace))}</h1><p class="faint">{e(" · ".join(trace_facts(trace, "×")))}</p>'
    if trace.meta.simulated:
        yield '<p class="warn">This trace was written by a simulator: it was not recorded on a device.</p>'


def _verdict(trace: Trace, analysis: Analysis) -> Iterator[str]:
    (word, but), words = verdict_head(trace, analysis), cpu_time.verdict_text(trace, analysis)
    colour = {"healthy": "saved", "unknown": "warn"}.get(analysis.figures.summary.verdict, "wait")
    colour = "warn" if but else colour
    yield f'<div class="verdict"><b class="{colour}">{e(word)}</b><span>{e(words)}</span></div>'


def _times(trace: Trace, analysis: Analysis) -> Iterator[str]:
    summary = analysis.figures.summary
    tiles = [
        (
            "Sustained step",
            duration(summary.sustained_step_ns),
            "the one to go by: the loop's pace if it ran for ever",
            True,
        ),
        ("Host step", duration(summary.step_ns), "a step as the CPU sees it", False),
    ]
    run = run_of(trace.path)
    if run is not None and run.wall_step_ns is not None:
        tiles.append(("Wall, no profiler", duration(run.wall_step_ns), "a step by the clock, not recorded", False))
    if trace.has_device_work or trace.meta.devices:  # of a recording of the CPU alone they cannot be known
        busy = f"any work on the device {busy_basis(analysis)}".strip()
        tiles += [
            ("Device step", duration(summary.device_step_ns), "first to last device work of a step", False),
            ("Period", duration(summary.period_ns), "from one step's device work to the next", False),
            (f"{devices_word(trace)} busy", percent(summary.gpu_busy_pct), busy, False),
            ("Sync wait", *_sync_wait(analysis), False),
        ]
    yield '<div class="tiles">'
    for name, value, note, main in tiles:
        yield (
            f'<div class="tile{" main" if main else ""}"><div class="name">{e(name)}</div>'
            f'<div class="value">{e(value)}</div><div class="sub">{e(note)}</div></div>'
        )
    yield "</div>"
    told = f"Means over {steps_in_means(analysis)}." if summary.steps else no_steps_words(trace)
    yield f'<p class="{"faint" if summary.steps else "warn"}">{told}</p>'
    lines = [words] if (words := replay_words(summary)) else []
    lines += [f"{devices_word(trace)} busy: {line}" for line in busy_lines(trace, analysis)]
    yield from (f'<p class="faint">{e(line)}</p>' for line in (*lines, *step_thread_lines(trace, analysis)))
    if summary.enqueue_bound:
        yield (
            '<p class="warn">The CPU runs ahead of the device here: the host step is only the time to enqueue a step, '
            "not to do it.</p>"
        )
    if not trace.has_device_work:
        yield '<p class="warn">No device work was recorded: what the device did is unknown, not 0 %.</p>'


def _sync_wait(analysis: Analysis) -> tuple[str, str]:
    """Waits of the CPU with what they are of: a step, or, where none is known, the recording."""
    figures, summary = analysis.figures, analysis.figures.summary
    if not len(figures.steps) and len(figures.syncs):
        return duration(int(figures.syncs.wait_ns.sum())), f"in all, in {count(len(figures.syncs))} sync points"
    points = summary.sync_points_per_step
    return duration(summary.sync_wait_ns_per_step), (
        "per step" if points is None else f"per step, in {count(points)} sync points"
    )


def _budget(analysis: Analysis) -> Iterator[str]:
    budget = analysis.figures.budget
    if not budget.period_ns or budget.busy_ns is None:
        return
    parts: list[tuple[str, str, float]] = [
        (part, BUSY[part], time_ns) for part, time_ns in busy_parts(analysis.figures).items()
    ]
    for cause, idle_ns in sorted(budget.idle_by_cause_ns.items(), key=lambda item: -item[1]):
        if idle_ns > 0:
            parts.append((GapCause(cause).name.lower(), CAUSES[GapCause(cause)], idle_ns))
    yield f"<h2>{e(budget_title(analysis))}</h2>"
    yield '<div class="picture"><svg viewBox="0 0 1132 34" role="img" aria-label="Device time by cause">'
    x = 0.0
    for look, name, time_ns in parts:
        width = 1132 * time_ns / budget.period_ns
        label = f"{name} {duration(time_ns)}"
        yield f'<rect class="g-{look}" x="{x:.1f}" y="0" width="{max(width - 1, 0.5):.1f}" height="34" rx="3">'
        yield f"<title>{e(label)}</title></rect>"
        x += width
    yield "</svg></div>"
    items = (
        f'<li><i class="g-{look}"></i>{e(name)} <b>{e(duration(time_ns))}</b> '
        f'<span class="faint">{e(percent(100 * time_ns / budget.period_ns))}</span></li>'
        for look, name, time_ns in parts
    )
    yield f'<ul class="legend">{"".join(items)}</ul>'


def _timeline(trace: Trace, analysis: Analysis) -> Iterator[str]:
    if not len(trace.slices):
        return
    window = picture.typical_step(trace, analysis.figures)
    title = "One typical step" if len(analysis.figures.steps) else "The trace"
    shown = f"{window.name}, {duration(window.end_ns - window.start_ns)}"
    yield f'<h2>{title} <span class="faint">{e(shown)}</span></h2>'
    yield f'<div class="picture">{picture.draw(trace, analysis.figures)}</div>'
    items = (f'<li><i style="background:var(--k-{look})"></i>{name}</li>' for look, name in LEGEND)
    wait = '<li><i style="background:var(--wait)"></i>the CPU waits for the device</li>'
    yield f'<ul class="legend">{"".join(items)}{wait}</ul>'


def _plan(trace: Trace, analysis: Analysis, aside: SetAside) -> Iterator[str]:
    edits, unit = edits_for_run(run_of(trace.path), analysis.suggestions), amounts(trace, analysis)
    now = analysis.figures.summary.sustained_step_ns
    listed = [i for i, s in enumerate(analysis.suggestions) if not s.informational]
    small = {i for i in listed if analysis.is_small(i)}
    heading = "What to do"
    if analysis.plan and now is not None:
        heading += f": {unit.whole(now, analysis.plan[-1].predicted_step_ns)}, predicted"
    yield f"<h2>{e(heading)}</h2>"
    if key := outlook(trace, analysis):
        colour = ' class="saved"' if key == "healthy" and not aside else ""
        yield f"<p{colour}>{e(NOTHING_ELSE if aside else OUTLOOKS[key])}</p>"
    yield from (f"<p>{e(words)}</p>" for words in plan_words(trace, analysis))
    if analysis.plan and now:
        yield picture.falling_bars([now, *(float(p.predicted_step_ns) for p in analysis.plan)], bool(unit.recorded_ns))
    numbers, after = analysis.numbers(), {i: step for step in analysis.plan for i in step.suggestions}
    for i in analysis.in_order(i for i in listed if i not in small):
        step = after.get(i)
        then = step.predicted_step_ns if step is not None else None
        note = step.note if step is not None else LEFT_OUT_NOTE if analysis.is_left_out(i) else ""
        gain = _gain(analysis, i, unit)
        beside = in_chain(analysis.suggestions[i], step)
        yield _card(analysis.suggestions[i], str(numbers.get(i, "–")), gain, then, note, edits.get(i), unit, beside)
    if small:
        names = "".join(f"<li>{e(analysis.suggestions[i].headline)}</li>" for i in sorted(small))
        yield f"<details><summary>{len(small)} more would save less than 1 % each</summary><ul>{names}</ul></details>"
    if aside:
        rows = "".join(f'<li>{e(s.headline)} <span class="dim">{e(words)}</span></li>' for s, words in aside)
        yield f"<h3>Not counted in the plan</h3><ul>{rows}</ul>"
    notes = [s for s in analysis.suggestions if s.informational]
    if notes:
        yield "<h3>Also seen</h3><ul>" + "".join(f"<li>{e(row)}</li>" for row in note_rows(notes)) + "</ul>"


def _gain(analysis: Analysis, index: int, unit: Amounts) -> str:
    """What a card saves in the plan, after the fixes above it, or alone where there is no plan; and which of these."""
    suggestion = analysis.suggestions[index]
    saving = suggestion.saving
    if saving.ns is None:
        return '<span class="gain faint">saving unknown</span>'
    if analysis.is_left_out(index):
        return '<span class="gain faint">saves &lt;1 %</span>'
    saved = saving.ns if saving.together_ns is None else saving.together_ns
    basis = "alone" if saving.together_ns is None else "in the plan"
    if saved > 0:
        return f'<span class="gain saved">{e(unit.worth(saving, saved))} <small class="faint">{basis}</small></span>'
    return f'<span class="gain faint">{"nothing alone" if saving.ns <= 0 else "nothing more"}</span>'


def _card(
    suggestion: Suggestion,
    number: str,
    gain: str,
    predicted_ns: int | None,
    note: str,
    edit: ProposedEdit | None,
    unit: Amounts,
    beside: str = "",
) -> str:
    then = "" if predicted_ns is None else unit.then(predicted_ns)
    facts = [suggestion.severity, occurrences(suggestion), unit.alone(suggestion), then, beside]
    parts = [
        '<section class="card"><header><h3>',
        f'<span class="number">{e(number)}</span>' if number else "",
        f"{e(suggestion.headline)}</h3>{gain}</header>",
        f'<p class="faint">{e(" · ".join(filter(None, facts)))}</p>',
    ]
    if suggestion.source is not None:
        parts.append(f'<p class="mono dim">{e(place(suggestion.source))}</p>')
    if suggestion.why:
        parts.append(f"<p>{e(suggestion.explanation)}</p>")
    if note:
        parts.append(f'<p class="dim">{e(note)}</p>')
    if suggestion.evidence:
        rows = (f"<li>{e(x.label)}: {e(measure(x.value, x.unit))}</li>" for x in suggestion.evidence)
        parts.append(f'<ul class="dim">{"".join(rows)}</ul>')
    parts.append(_fix(suggestion) if edit is None else _own_fix(edit))
    return "".join(parts) + "</section>"


def _fix(suggestion: Suggestion) -> str:
    fix = suggestion.fix
    parts = [f"<p><b>Fix.</b> {e(fix.summary)}</p>"] if fix.summary else []
    if fix.before or fix.after:
        rows = [f'<div class="del">- {e(line)}</div>' for line in fix.before.splitlines()]
        rows += [f'<div class="add">+ {e(line)}</div>' for line in fix.after.splitlines()]
        parts.append(f'<div class="diff mono">{"".join(rows)}</div>')
    if fix.risk:
        parts.append(f'<p class="faint">Risk: {e(fix.risk)}</p>')
    if fix.url.startswith("https://"):
        parts.append(f'<p class="faint"><a href="{e(fix.url)}" rel="noreferrer">{e(fix.url)}</a></p>')
    return "".join(parts)


def _own_fix(edit: ProposedEdit) -> str:
    """The fix as a diff of the user's own code."""
    looks = {"-": "del", "+": "add"}
    rows = (f'<div class="{looks.get(x[:1], "")}">{e(x[:1])} {e(x[1:])}</div>' for x in changed_lines(edit.diff))
    return (
        f'<p><b>Fix.</b> {e(edit.summary)}</p><p class="mono dim">{e(edit.path)}</p>'
        f'<div class="diff mono">{"".join(rows)}</div><p class="faint">Risk: {e(edit.risk)}</p>'
    )


def _cpu_time(trace: Trace, analysis: Analysis) -> Iterator[str]:
    found, words = cpu_time.sections(trace, analysis), cpu_time.loader_words(trace, analysis)
    if found or words:
        yield f"<h2>{cpu_time.TITLE}</h2>" + (f"<p>{e(words)}</p>" if words else "")
    for section in found:
        yield f'<h3>{e(section.title)}</h3><p class="faint">{e(section.note)}</p>'
        rows = ((duration(p.time_ns), percent(p.share_pct), count(p.calls), p.name) for p in section.parts)
        yield _table(("time", "share", "calls", "name"), rows, 3)


def _syncs(trace: Trace, analysis: Analysis, finder: SourceFinder) -> Iterator[str]:
    if not trace.has_device_work and not len(analysis.figures.syncs):
        return
    yield "<h2>Sync points</h2>"
    if not len(analysis.figures.syncs):
        words = no_sync_points(trace)
        yield f"<p>{e(words[0].upper() + words[1:])}.</p>"
        return
    rows = (
        (duration(g.wait_ns), grouped(g.calls), g.call, g.op, place(g.source))
        for g in sync_groups(trace, analysis, finder, TOP_ROWS)[0]
    )
    yield _table(("waiting", "calls", "call", "operator", "place"), rows, 2)


def _doctor(analysis: Analysis) -> Iterator[str]:
    if not analysis.figures.doctor:
        return
    yield "<h2>Things to know before trusting a figure</h2>"
    for note in dict.fromkeys((n.severity, n.title, n.consequence, n.cure) for n in analysis.figures.doctor):
        severity, title, consequence, cure = note
        odd = "" if severity == "info" else " odd"
        yield f'<div class="note{odd}"><b>{e(title)}</b> {e(consequence)} <span class="dim">{e(cure)}</span></div>'


def _tables(trace: Trace, analysis: Analysis) -> Iterator[str]:
    figures = analysis.figures
    yield "<h2>What ran</h2>"
    for title, table, device in (
        ("Kernels and copies", figures.kernels, True),
        ("Operators", figures.operators, False),
        ("Ranges", figures.ranges, False),
    ):
        if len(table):
            total = f"{min(TOP_ROWS, len(table))} of {len(table)}"
            yield f'<details{" open" if device else ""}><summary>{title} <span class="faint">{total}</span></summary>'
            head, rows = _stat_rows(trace, table, device)
            yield _table(head, rows, len(head) - 1) + "</details>"


def _stat_rows(trace: Trace, table: StatTable, device: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    rows: list[tuple[str, ...]] = []
    times: tuple[int, ...]
    has_device = trace.has_device_work
    for i in range(min(TOP_ROWS, len(table))):
        name, calls = clip(trace.strings[int(table.name_id[i])], NAME_CHARACTERS), grouped(int(table.calls[i]))
        if device:
            times = (int(table.device_total_ns[i]), int(table.min_ns[i]), int(table.max_ns[i]))
        else:
            below = (int(table.device_total_ns[i]),) if has_device else ()  # unknown, not 0, where none was recorded
            times = (int(table.host_total_ns[i]), int(table.host_self_ns[i]), *below, int(table.max_ns[i]))
        rows.append((duration(times[0]), calls, *map(duration, times[1:]), name))
    if device:
        return ("total", "calls", "shortest", "longest", "name"), rows
    return ("CPU total", "calls", "CPU self", *(("device below",) if has_device else ()), "longest", "name"), rows


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], numbers: int) -> str:
    """A table whose first columns are numbers."""
    cells = "".join(f"<th{_right(i < numbers)}>{e(name)}</th>" for i, name in enumerate(head))
    lines = (
        "<tr>" + "".join(f"<td{_right(i < numbers)}>{e(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _right(number: bool) -> str:
    return ' class="num"' if number else ' class="mono"'


def _rules(analysis: Analysis) -> Iterator[str]:
    if not analysis.rules:
        return
    outcomes = Counter(r.outcome for r in analysis.rules)
    yield (
        f"<h2>What was checked</h2><p>{outcomes[Outcome.FOUND]} rules found something, {outcomes[Outcome.CLEAN]} found "
        f"nothing, {outcomes[Outcome.NOT_CHECKED]} could not be checked.</p>"
    )
    left = [r for r in analysis.rules if r.outcome in (Outcome.NOT_CHECKED, Outcome.FAILED)]
    if left:
        yield "<details><summary>What was not checked, and why</summary>"
        yield _table(("rule", "reason"), [(r.rule.id, r.reason) for r in left], 0) + "</details>"
