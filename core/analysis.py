"""Everything computed from a trace, in the order in which the window needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.figures.model import Figures
from core.figures.rounds import outliers_told
from core.suggestions import PlanStep, RuleResult, Saving, Suggestion
from core.trace import Trace

if TYPE_CHECKING:
    from core.source import SourceFinder

Progress = Callable[[float, str], None]  # fraction 0..1, what is being done; raises Cancelled to stop

WORTH_PCT = 1.0  # a saving below this share of the step is noise: shown only when asked for
_NEARLY_ALL = 0.98  # of a recording: what is replayed is then called the whole of it
FIGURES_END, RULES_END = 0.2, 0.5  # where each stage ends on the progress bar, as measured on large traces


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of `analyze`: figures, the priced suggestions best first, the plan, and every rule's outcome."""

    figures: Figures
    suggestions: tuple[Suggestion, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    aside: frozenset[str] = frozenset()  # keys of suggestions that were set aside: the plan is priced without them
    awaits_prices: bool = False  # what the fixes save is still being worked out
    awaits_own_rules: bool = False  # all is there but what the user's own rules, still at work, may find

    def is_small(self, index: int) -> bool:
        """Whether a suggestion saves too little to be shown unasked; an unknown saving is not called small.

        What is in the plan never is: there it may belong to others that save nothing without it.
        """
        suggestion = self.suggestions[index]
        if suggestion.key in self.aside or any(index in step.suggestions for step in self.plan):
            return False
        saving, summary = suggestion.saving, self.figures.summary
        if suggestion.informational or suggestion.severity != "low" or saving.pct is None:
            return False
        step = summary.sustained_step_ns or summary.period_ns or summary.step_ns
        together_pct = 100.0 * saving.together_ns / step if saving.together_ns and step else 0.0
        return max(saving.pct, together_pct) < WORTH_PCT

    def numbers(self) -> dict[int, int]:
        """Numbers of the suggestions, counted from 1, by their positions: their places in the plan.

        One outside the plan has none. Without a plan all that are listed are numbered, the small ones last.
        """
        planned = [i for step in self.plan for i in step.suggestions]
        if not planned:
            listed = [i for i, s in enumerate(self.suggestions) if not s.informational and s.key not in self.aside]
            planned = sorted(listed, key=self.is_small)
        return {i: number for number, i in enumerate(planned, 1)}

    def in_order(self, positions: Iterable[int]) -> list[int]:
        """Positions of suggestions in the order in which they are shown; without a plan the small ones come last."""
        numbers = {} if self.plan else self.numbers()
        return sorted(positions, key=lambda i: (numbers.get(i, len(numbers) + 1), i))

    def is_left_out(self, index: int) -> bool:
        """Whether a fix saves something alone, and next to nothing after those of the plan: so it is not in it."""
        suggestion = self.suggestions[index]
        saving = suggestion.saving if self.plan and suggestion.key not in self.aside else Saving()
        return saving.together_ns is None and (saving.ns or 0) > 0

    @property
    def replayed_ns(self) -> int | None:
        """What savings are a share of where no step is marked and the replay leaves out the start-up.

        Time from the first device work to the end of the last, ns; None where that is the whole recording, where a step
        is known, or where nothing was priced.
        """
        whole, summary = self.figures.budget.period_ns, self.figures.summary
        known = [s.saving for s in self.suggestions if s.saving.ns and s.saving.pct]
        if summary.steps or not known or not whole:
            return None
        largest = max(known, key=lambda saving: saving.ns or 0)
        base = round(100.0 * (largest.ns or 0) / (largest.pct or 100.0))
        return base if base < _NEARLY_ALL * whole else None

    def headlined(self) -> tuple[int, ...]:
        """Positions of the suggestions that are shown unasked: no notes, and none that saves next to nothing."""
        found = enumerate(self.suggestions)
        return tuple(i for i, s in found if not s.informational and not self.is_small(i))


# What to say where no suggestion has anything to offer, by `outlook`; sentences that agree with the verdict.
OUTLOOKS: Mapping[str, str] = {
    "cut_off": "The file ends early, so what a fix would save is unknown: there is no plan.",
    "empty": "There is nothing to diagnose. Check that the profiled code ran between start and stop of the profiler.",
    "no_device": "No device work was recorded, so nothing can be said about waits for a device, and nothing was found "
    "that would save the CPU's time.",
    "healthy": "Healthy: nothing that StepLens checks would save 1 % or more. To go faster, look at the kernels "
    "themselves: batch size, precision, or the model.",
    "healthy_but": "Nothing that StepLens checks would save 1 % or more of an ordinary step. What made some steps far "
    "longer is among the notes.",
    "device": "The device sets the pace, and no rule found a fix that would save 1 % or more. To go faster, look at "
    "the kernels themselves: batch size, precision, or the model.",
    "limited": "No rule found a fix that would save 1 % or more. The longest gaps of the device on the timeline show "
    "where the time goes that the verdict names.",
    "unknown": "No rule found a fix that would save 1 % or more, and what limits the pace cannot be told from this "
    "trace. The notes on the recording say what to record.",
    "unknown_bare": "No rule found a fix that would save 1 % or more, and what limits the pace cannot be told from "
    "this trace. The verdict and the rules that could not be checked say what to record.",
}


def outlook(trace: Trace, analysis: Analysis) -> str:
    """Key of `OUTLOOKS` for a finished analysis, "" where a suggestion is worth showing.

    The one place that decides these words: whatever shows them says the same, and nothing that the verdict denies.
    """
    if trace.report.is_cut_off:
        return "cut_off"
    if analysis.headlined():
        return ""
    if not len(trace.slices):
        return "empty"
    if not trace.has_device_work:
        return "no_device"
    known = {"healthy": "healthy", "device_bound": "device", "unknown": "unknown"}
    key = known.get(analysis.figures.summary.verdict, "limited")
    if key == "unknown" and not any(s.informational for s in analysis.suggestions):  # no notes to point to
        return "unknown_bare"
    return "healthy_but" if key == "healthy" and outliers_told(analysis.figures)[0] else key


OnPartial = Callable[[Analysis], object]


def analyze(
    trace: Trace,
    *,
    figures: Figures | None = None,
    progress: Progress | None = None,
    on_partial: OnPartial | None = None,
    source: SourceFinder | None = None,
    params: Mapping[str, Mapping[str, float]] | None = None,
    extra_folders: Iterable[Path] = (),
) -> Analysis:
    """Compute figures, run the rules, and price what they found.

    Parameters
    ----------
    trace, figures
        An opened trace, and its figures where they are known already.
    progress
        Called with the fraction done and what is being done; may raise `Cancelled`, which ends the analysis.
    on_partial
        Called after each stage but the last: figures first, then unpriced suggestions, or those of our own rules with
        their prices before the user's, however slow, run. It may return the same figures in other memory.
    source
        Finds lines of code; one that reads no file when omitted.
    params
        Rule id -> parameter name -> value, over the rules' defaults.
    extra_folders
        Folders with the user's own rules, whose code is run: only ones that the user has allowed.

    Returns
    -------
    Analysis
        What could not be computed is unknown in it (None, -1 or a rule that was not checked), never invented.
    """
    from core.figures.compute import compute_figures
    from core.figures.lookup import view_of
    from core.pricing import price
    from core.replay.ahead import replay_ahead
    from core.rule_runner import load_rules, rules_ahead, run_rules

    report, view = progress or _silent, view_of(trace)  # held to the end: figures and pricing share its columns
    figures = figures or compute_figures(trace, progress=_part(report, 0.0, FIGURES_END))
    if on_partial is not None and isinstance(moved := on_partial(Analysis(figures)), Figures):
        figures = moved
    view.let_go()
    ahead = rules_ahead(trace, figures, source, params)  # nothing may be forked once the replay has a thread
    priced, own_folders = (
        partial(price, trace, figures, replay=replay_ahead(trace, figures, ahead.started)),
        tuple(extra_folders),
    )
    results = run_rules(
        trace, figures, source=source, params=params, extra_folders=own_folders, ahead=ahead,
        on_result=_first_rules(priced, on_partial, len(load_rules()) if own_folders else 0),
        progress=_part(report, FIGURES_END, RULES_END),
    )  # fmt: skip
    if on_partial and not own_folders:
        on_partial(_unpriced(figures, results))
    view.let_go()
    analysis = priced(results, _part(report, RULES_END, 1.0))
    report(1.0, "")
    return analysis


def _unpriced(figures: Figures, results: Sequence[RuleResult]) -> Analysis:
    return Analysis(figures, tuple(s for r in results for s in r.suggestions), rules=tuple(results), awaits_prices=True)


def _first_rules(
    priced: Callable[[Sequence[RuleResult]], Analysis], on_partial: OnPartial | None, count: int
) -> Callable[[RuleResult], None]:
    """Gather outcomes of rules, and tell about the first ``count`` of them together, with what their fixes save."""
    first: list[RuleResult] = []

    def collect(result: RuleResult) -> None:
        first.append(result)
        if on_partial is not None and len(first) == count:
            on_partial(replace(priced(tuple(first)), awaits_own_rules=True))

    return collect


def _part(progress: Progress, start: float, end: float) -> Progress:
    """Progress of one stage, as a stretch of the whole."""

    def report(fraction: float, text: str = "") -> None:
        progress(start + (end - start) * min(max(fraction, 0.0), 1.0), text)

    return report


def _silent(fraction: float, text: str) -> None:
    """Progress nobody watches."""
