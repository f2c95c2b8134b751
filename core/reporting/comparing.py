"""What ``compare`` prints, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from core.compare import GONE, NEW, SAME, Comparison, Difference, Side
from core.judging import GAIN_PCT
from core.reporting.json import suggestion_values, summary_values, trace_values, us
from core.reporting.phrases import place, verdict_word
from core.reporting.text import PLAIN, Page, clip
from core.reporting.units import count, duration, percent
from core.same_program import Condition
from core.trace import Trace

FORMAT = "steplens.comparison/1"
TABLES = ("operators", "kernels", "ranges", "sync_points")
TOP_ROWS = 10


def document(before: Trace, after: Trace, found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values (docs/headless.md)."""
    return {
        "format": FORMAT,
        "before": {"trace": trace_values(before), "summary": summary_values(found.before)},
        "after": {"trace": trace_values(after), "summary": summary_values(found.after)},
        "step_change_pct": found.step_change_pct,
        "step_change_of": (found.step or (None,))[0],
        "outcome": found.outcome,
        "noise": list(found.noise),
        "wall_step_us": {"before": us(found.wall_ns[0]), "after": us(found.wall_ns[1])},
        "differs": [{"what": d.code, "before": d.before, "after": d.after} for d in found.differs],
        "recording": _recording(found.recording),
        "cut_off": list(found.cut_off),
        "per_step": found.per_step,
        **{name: [_row(row) for row in getattr(found, name)] for name in TABLES},
        "suggestions": [{"state": c.state, **suggestion_values(c.either)} for c in found.suggestions],
    }


def _recording(found: Condition | None) -> dict[str, list[str]] | None:
    if found is None:
        return None
    return {"before": _listed(found.before), "after": _listed(found.after)}


def _listed(words: str) -> list[str]:
    return words.split(", ") if words else []


def _row(row: Difference) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "delta_us": us(row.delta_ns),
        "before": _side(row.before),
        "after": _side(row.after),
    }


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "calls": side.calls,
        "total_us": us(side.total_ns),
        "self_us": us(side.self_ns),
        "calls_per_step": side.calls_per_step,
        "total_us_per_step": us(side.total_per_step_ns),
        "self_us_per_step": us(side.self_per_step_ns),
    }


def report(before: Trace, after: Trace, found: Comparison, page: Page = PLAIN) -> str:
    """Return a comparison for a person at a terminal."""
    sections = (
        _head(before, after, found, page),
        _summary(before, after, found, page),
        _suggestions(found, page),
        *(_table(title, getattr(found, name), found.per_step, page) for title, name in _TITLES),
    )
    return "\n".join(line.rstrip() for section in sections for line in section) + "\n"


_TIMELESS = {
    (): "No step time of one kind is known of both traces, so whether it became faster is unknown.",
    ("before",): "The trace before has no step time, so whether it became faster is unknown.",
    ("after",): "The trace after has no step time, so whether it became faster is unknown.",
    (
        "before",
        "after",
    ): "Neither trace has a step time, so whether it became faster is unknown. Call prof.step() after "
    "each iteration in both.",
}
_TITLES = (
    ("Sync points (waiting)", "sync_points"),
    ("Ranges", "ranges"),
    ("Kernels and copies", "kernels"),
    ("Operators (with everything below them)", "operators"),
)


def _head(before: Trace, after: Trace, found: Comparison, page: Page) -> Iterator[str]:
    yield page.paint(f"before  {clip(str(before.path), page.width - 8)}", "dim")
    yield page.paint(f"after   {clip(str(after.path), page.width - 8)}", "dim")
    yield ""
    for side in found.cut_off:
        yield page.paint(f"The trace {side} breaks off: what came after that is in no figure.", "yellow")
    if found.differs:
        yield from (page.paint(line, "yellow") for line in page.wrap(_differs(found)))
    if found.recording is not None:
        yield from (page.paint(line, "yellow") for line in page.wrap(_recorded(found.recording)))
    pair = found.step
    if pair is None:
        yield from page.wrap(_TIMELESS[found.timeless])
        return
    outcome = found.outcome
    if outcome == "same":
        said = f"No difference: the {_STEPS[pair[0]]} is {duration(pair[2])} in both, within {GAIN_PCT:g} %."
        yield page.paint(said, "bold")
        return
    word, colour = _OUTCOMES[outcome]
    if found.differs and outcome != "unclear":
        word, colour = ("Shorter" if outcome == "faster" else "Longer"), "dim"
    text = f"{word}: {_went(pair)}.{_steps(found)}"
    yield from (page.paint(line, "bold", colour) for line in page.wrap(text))
    other = found.contradiction
    if other is not None:
        yield from (
            page.paint(line, "yellow") for line in page.wrap(f"But {_went(other)}: they contradict each other.")
        )
    for reason in found.noise:
        yield from page.wrap(_NOISE[reason])


_STEPS = {"wall": "unprofiled step", "sustained": "sustained step", "period": "period", "host": "host step"}
_OUTCOMES = {"faster": ("Faster", "green"), "slower": ("Slower", "red"), "unclear": ("Unclear", "yellow")}
_NOISE = {
    "repeat": "The rounds of this script show that runs of the same code differ by as much.",
    "same_code": "Both runs had the same sources and arguments: they differ by chance, and this is how much.",
    "spread": "The steps of a run differ so much among themselves that this difference says little.",
    "recording": "So the recorded steps cannot tell which is faster: compare runs with the same options.",
    "pace": "Other programs had the processor while steps were timed, or its own pace moved between the runs, by more "
    "than this. Measure again.",
    "machine": "A step without the profiler took longer than one with it: other programs were busy, or the steps "
    "that were not recorded have more to do. Measure again.",
}


def _steps(found: Comparison) -> str:
    """On how many steps the figures rest, where that differs."""
    counts = (found.before.steps, found.after.steps)
    return f" Steps recorded: {counts[0]} and {counts[1]}." if counts[0] != counts[1] and all(counts) else ""


def _went(pair: tuple[str, float, float]) -> str:
    """How one of the step times changed."""
    name, before_ns, after_ns = pair
    factor = max(before_ns, after_ns) / min(before_ns, after_ns)
    times = f", {factor:.3g} x" if factor >= 1.05 else ""
    change = f"{_signed(100.0 * (after_ns - before_ns) / before_ns)} %{times}"
    return f"the {_STEPS[name]} went from {duration(before_ns)} to {duration(after_ns)} ({change})"


_CODES = {
    "script": "the script",
    "arguments": "the arguments",
    "environment": "variables that were set",
    "steps": "what ends a step",
    "device": "the device",
    "torch": "the torch version",
    "rank": "the rank",
    "simulated": "how the trace was made",
    "shapes": "the input shapes",
}


def _differs(found: Comparison) -> str:
    words = "; ".join(
        f"{_CODES[d.code]} ({clip(d.before, 60) or 'none'} and {clip(d.after, 60) or 'none'})" for d in found.differs
    )
    return f"These two differ in more than a fix: {words}. A change of time says little about the code."


def _recorded(found: Condition) -> str:
    return (
        f"What was recorded differs ({found.before or 'nothing more'} before; {found.after or 'nothing more'} after): "
        "the profiler takes another share of the step, and a suggestion that needs what one lacks is only in the other."
    )


def _summary(before: Trace, after: Trace, found: Comparison, page: Page) -> Iterator[str]:
    yield from page.title(
        "Per step" if found.before.steps or found.after.steps else "Whole traces (no steps are known)"
    )
    yield page.paint(f"  {'':<16}{'before':>12}{'after':>12}{'change':>12}", "dim")
    rows = (
        ("host step", "step_ns", duration),
        ("device step", "device_step_ns", duration),
        ("period", "period_ns", duration),
        ("sustained step", "sustained_step_ns", duration),
        ("GPU busy", "gpu_busy_pct", percent),
        ("sync points", "sync_points_per_step", count),
        ("sync wait", "sync_wait_ns_per_step", duration),
        ("kernels", "kernels_per_step", count),
    )
    for name, field, show in rows:
        left, right = (getattr(side, field) for side in (found.before, found.after))
        change = "" if left is None or right is None else _change(float(left), float(right), field)
        yield f"  {name:<16}{show(left):>12}{show(right):>12}{change:>12}"
    left, right = found.wall_ns
    if left is not None or right is not None:
        change = "" if left is None or right is None else _change(left, right, "wall_step_ns")
        yield f"  {'no profiler':<16}{duration(left):>12}{duration(right):>12}{change:>12}"
    verdicts = [verdict_word(trace, side.verdict) for trace, side in ((before, found.before), (after, found.after))]
    yield f"  {'verdict':<16}{' → '.join(dict.fromkeys(verdicts))}"


def _change(before: float, after: float, field: str) -> str:
    if field.endswith("_pct"):
        return "same" if abs(after - before) < 0.5 else f"{_signed(after - before)} points"
    if not before:
        return "" if not after else "new"
    change = 100 * (after - before) / before
    return "same" if abs(change) < 0.5 else f"{_signed(change)} %"


def _signed(value: float) -> str:
    return f"{value:+.0f}".replace("-", "−")


def _suggestions(found: Comparison, page: Page) -> Iterator[str]:
    words = {GONE: ("vanished", "green"), NEW: ("appeared", "red"), SAME: ("still there", "dim")}
    counts = Counter(change.state for change in found.suggestions)
    if not counts:
        return
    yield from page.title(f"Suggestions: {', '.join(f'{counts[state]} {word}' for state, (word, _) in words.items())}")
    for change in found.suggestions:
        word, colour = words[change.state]
        where = f" — {place(change.source)}" if change.source else ""
        first, *rest = page.wrap(f"{change.either.headline}{where}", " " * 16, f"  {word:<14}")
        yield page.paint(first, colour)
        yield from (page.paint(line, colour) for line in rest)


def _table(title: str, rows: tuple[Difference, ...], per_step: bool, page: Page) -> Iterator[str]:
    differing = [row for row in rows if row.state != SAME]
    if not rows:
        return
    unit = "per step" if per_step else "of the whole trace, since steps are unknown on one side"
    if not differing:
        yield from page.title(f"{title}: no difference")
        return
    yield from page.title(f"{title}, {unit}")
    yield page.paint(f"  {'before':>10}{'after':>10}{'change':>11}{'calls':>15}  name", "dim")
    for row in differing[:TOP_ROWS]:
        left, right = (_time(side, per_step) for side in (row.before, row.after))
        sign = "+" if row.delta_ns > 0 else "−" if row.delta_ns < 0 else ""
        delta = f"{sign}{duration(abs(row.delta_ns))}"
        calls = " → ".join(_calls(side, per_step) for side in (row.before, row.after))
        mark = {NEW: "new: ", GONE: "gone: "}.get(row.state, "")
        name = clip(mark + row.name, max(16, page.width - 50))
        line = f"  {left:>10}{right:>10}{delta:>11}{calls:>15}  {name}"
        yield page.paint(line, "red" if row.delta_ns > 0 else "green")
    if len(differing) > TOP_ROWS:
        yield page.paint(f"  and {len(differing) - TOP_ROWS} more (compare --json lists every one)", "dim")


def _time(side: Side | None, per_step: bool) -> str:
    if side is None:
        return "–"
    return duration(side.total_per_step_ns if per_step else side.total_ns)


def _calls(side: Side | None, per_step: bool) -> str:
    if side is None:
        return "–"
    return count(side.calls_per_step if per_step else side.calls)
