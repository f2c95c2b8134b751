"""Where the CPU's time goes, for the reports of a trace in which no device worked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.analysis import Analysis
from core.figures.model import BREAKDOWN_PARTS, CpuTime, Figures, StatTable
from core.figures.rounds import more_words
from core.figures.verdict import TEMPLATES, values_shown
from core.reporting.phrases import printable
from core.reporting.units import count, duration, percent
from core.trace import Trace
from core.words import fill

if TYPE_CHECKING:
    from core.reporting.text import Page

TITLE = "Where the CPU time goes"
ROWS = 8
NAME_CHARACTERS = 60  # in a sentence
PER_STEP = "Per step (mean of the {count} counted {count|step|steps})"
OPERATORS = BREAKDOWN_PARTS.index("cpu_exec")
LOADER = BREAKDOWN_PARTS.index("dataloader")


@dataclass(frozen=True)
class Part:
    """A name with its time (ns), the share of all, and its calls: per counted step, or in all where none counts."""

    name: str
    time_ns: float
    share_pct: float
    calls: float


@dataclass(frozen=True)
class Section:
    """Parts of one kind, most time first; ``note`` says what the times are of."""

    title: str
    note: str
    parts: tuple[Part, ...]


SLOWEST_RANK = (
    "Rank {rank} arrives last in {count} {count|collective|collectives}: what the others wait for it, {lost_ms:time} "
    "in this recording, counts as communication."
)


def sections(trace: Trace, analysis: Analysis) -> list[Section]:
    """Operators by time of their own and modules with all that they call; none where a device worked."""
    of_cpu = analysis.figures.cpu_time
    if of_cpu is None:
        return []
    per = fill(PER_STEP, {"count": of_cpu.steps}) if of_cpu.steps else "In the whole recording"
    own = own_ns(of_cpu, of_cpu.operators)
    found = [
        _section(
            trace,
            of_cpu,
            "Operators",
            f"{per}, by time of their own, without what they call; of {duration(own)} in all.",
            own,
        ),
        _section(
            trace,
            of_cpu,
            "Modules",
            f"{per}, with all that they call; of {duration(of_cpu.whole_ns)}. One module's time holds its parts'.",
            of_cpu.whole_ns,
            whole=True,
        ),
    ]
    return [section for section in found if section.parts]


def own_ns(of_cpu: CpuTime, stats: StatTable) -> float:
    """What all of these names take of their own, ns: per step, or in the recording where no step counts."""
    return float(stats.host_self_ns.sum()) / max(of_cpu.steps, 1)


def largest(trace: Trace, figures: Figures) -> tuple[str, dict[str, str]]:
    """Sentence, as a template with its values, on what takes most of the CPU; empty where it is not the CPU's alone."""
    of_cpu = figures.cpu_time
    if of_cpu is None or figures.summary.verdict_template != TEMPLATES["cpu_only"]:
        return "", {}
    times = of_cpu.operators.host_self_ns
    if not len(times) or times.max() <= 0:
        return "", {}
    row = int(times.argmax())
    name = trace.strings[int(of_cpu.operators.name_id[row])]
    values = {
        "name": name if len(name) <= NAME_CHARACTERS else name[: NAME_CHARACTERS - 1] + "…",
        "most": percent(100 * float(times[row]) / float(times.sum())),
    }
    counted = figures.step_figures.counted
    parts = figures.step_figures.breakdown_ns[counted].sum(axis=0) if counted.any() else np.zeros(len(BREAKDOWN_PARTS))
    if parts.sum() <= 0:
        return "Of the operators' own time {name} takes the most, {most}.", values
    values["share"] = percent(100 * float(parts[OPERATORS]) / float(parts.sum()))
    return "Operators take {share} of a step; of their own time {name} takes the most, {most}.", values


REPLAY_FAILED = (
    "The replay of this trace failed ({error}), a fault of StepLens: the sustained step and all savings are missing, "
    "and what limits the pace is told from the device's gaps alone."
)


def further_words(trace: Trace, analysis: Analysis) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Sentences beside the verdict's own, as templates with their values.

    That the replay failed, a CPU's largest, what longer steps add, and which of several ranks the others wait for.
    """
    figures, error = analysis.figures, analysis.notes.get("replay", "")
    failed = (REPLAY_FAILED, {"error": error[:200]}) if error else ("", {})
    return failed, largest(trace, figures), more_words(trace, figures), _slowest_rank(analysis)


def _slowest_rank(analysis: Analysis) -> tuple[str, dict[str, Any]]:
    """Which rank arrives last, and how long the others wait for it; empty where that was not found."""
    found = next((one for one in analysis.suggestions if one.rule_id == "straggler"), None)
    return (SLOWEST_RANK, dict(found.values)) if found is not None else ("", {})


def verdict_text(trace: Trace, analysis: Analysis) -> str:
    """The verdict's sentence, for the CPU alone what takes most of it, and what longer steps add."""
    summary = analysis.figures.summary
    words = fill(summary.verdict_template, values_shown(summary)) if summary.verdict_template else summary.verdict_text
    further = (fill(template, values) for template, values in further_words(trace, analysis))
    return " ".join(w for w in (words, *further) if w)


def _section(trace: Trace, of_cpu: CpuTime, title: str, note: str, of_ns: float, *, whole: bool = False) -> Section:
    stats = of_cpu.modules if whole else of_cpu.operators
    times, steps = stats.host_total_ns if whole else stats.host_self_ns, max(of_cpu.steps, 1)
    parts = []
    for row in np.argsort(-times, kind="stable")[:ROWS].tolist():
        time_ns = float(times[row]) / steps
        if time_ns > 0 and of_ns > 0:
            name = trace.strings[int(stats.name_id[row])].removeprefix("nn.Module: ")
            parts.append(Part(name, time_ns, min(100 * time_ns / of_ns, 100.0), float(stats.calls[row]) / steps))
    return Section(title, note, tuple(parts))


def loader_words(trace: Trace, analysis: Analysis) -> str:
    """What the steps wait for the next batch; nothing where a device worked or they do not wait."""
    chosen = analysis.figures.step_figures.counted
    if trace.has_device_work or not chosen.any():
        return ""
    parts = analysis.figures.step_figures.breakdown_ns[chosen].sum(axis=0)
    if not parts[LOADER]:
        return ""
    share, time_ns = percent(100 * float(parts[LOADER]) / float(parts.sum())), float(parts[LOADER]) / int(chosen.sum())
    return f"The steps spend {share} of their time waiting for the next batch: {duration(time_ns)} per step."


def lines(trace: Trace, analysis: Analysis, page: Page) -> Iterator[str]:
    """Lines of the section for a report of text."""
    found, words = sections(trace, analysis), loader_words(trace, analysis)
    if not found and not words:
        return
    yield from page.title(TITLE)
    if words:
        yield from page.wrap(words, "  ")
    for section in found:
        yield from page.wrap(f"{section.title}. {section.note}", "  ")
        for part in section.parts:
            share = f"{duration(part.time_ns):>11} {percent(part.share_pct):>6} {count(part.calls):>8}x  "
            name = printable(part.name).replace("\n", " ")
            yield share + name[: max(20, page.width - len(share))]
