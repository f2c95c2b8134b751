"""Finds the rules, runs each by itself, and reports what became of every one."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import core.rules
from core import memory
from core.errors import Cancelled
from core.figures.model import Figures
from core.importing.forked import Forked
from core.importing.reader import FileReader
from core.kinds import HOST_CALLS, SliceKind
from core.own_run import lacking, no_steps_cure, no_steps_reason
from core.recorded import has_shapes
from core.rule_tools.giant import with_iterations
from core.source import SourceFinder
from core.suggestions import Needs, NotChecked, Outcome, Rule, RuleContext, RuleResult, Suggestion, numbered
from core.time_limit import TookTooLong, within
from core.trace import Trace

Progress = Callable[[float, str], None]
OnResult = Callable[[RuleResult], None]
_OF_USERS = "steplens_user_rules"  # their modules stand in no other process
OWN_RULE_S = 20.0  # longest time of one rule of the user's: ours take a tenth of it on the largest traces


@dataclass(frozen=True)
class LoadedRule:
    """A rule ready to run, or one that could not be loaded (``error``)."""

    rule: Rule
    module: ModuleType | None
    error: str = ""
    details: str = ""
    own: bool = False  # of the user's

    @cached_property
    def defaults(self) -> Mapping[str, float]:
        """Values of its parameters where nobody sets any."""
        return {p.name: p.default for p in self.rule.params}

    @cached_property
    def needs(self) -> int:
        """What it needs, as a plain number: a flag takes ten times as long to look into."""
        return self.rule.needs.value


def load_rules(
    extra_folders: Iterable[Path] = (), meanwhile: Callable[[], None] | None = None
) -> tuple[LoadedRule, ...]:
    """Load our rules and those of the folders that the user has allowed.

    Parameters
    ----------
    extra_folders
        Folders with rule files of the same form as ours. Their code is *run*: pass only folders the user has allowed.
    meanwhile
        Called again and again while a file of theirs is loaded; may raise, which ends the loading.

    Returns
    -------
    tuple[LoadedRule, ...]
        In order of module name, ours first. A file that cannot be loaded is there with its error.
    """
    loaded = list(_own_rules())
    taken = {item.rule.id for item in loaded}
    for folder in extra_folders:
        if not Path(folder).is_dir():
            continue
        for path in sorted(Path(folder).glob("*.py")):
            if path.name.startswith("_"):
                continue
            item = _load_file(path, meanwhile)
            if item.rule.id in taken and not item.error:
                item = LoadedRule(item.rule, None, f"the rule id {item.rule.id} is taken already ({path})")
            taken.add(item.rule.id)
            loaded.append(item)
    return tuple(loaded)


@cache
def _own_rules() -> tuple[LoadedRule, ...]:
    """Our rules: they do not change while the program runs."""
    return tuple(_load_module(f"core.rules.{i.name}", i.name) for i in pkgutil.iter_modules(core.rules.__path__))


def _load_module(name: str, stem: str) -> LoadedRule:
    try:
        return _checked(importlib.import_module(name), stem)
    except Exception as error:  # one broken file must never hide the others
        return _broken(stem, error)


def _load_file(path: Path, meanwhile: Callable[[], None] | None = None) -> LoadedRule:
    name = f"{_OF_USERS}.{path.parent.name}.{path.stem}"
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses of the file look themselves up here
        loader = spec.loader
        within(OWN_RULE_S, lambda: loader.exec_module(module), meanwhile)
        return replace(_checked(module, path.stem), own=True)
    except TookTooLong as error:
        sys.modules.pop(name, None)
        return LoadedRule(Rule(path.stem.replace("_", "-"), path.stem), None, _left_out(error))
    except (Cancelled, KeyboardInterrupt):
        raise
    except BaseException as error:  # a file of the user's may raise anything
        sys.modules.pop(name, None)
        return _broken(path.stem, error)


def _checked(module: ModuleType, stem: str) -> LoadedRule:
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, Rule) or not callable(getattr(module, "check", None)):
        raise TypeError(f"{stem}: a rule file must have RULE (a Rule) and check (a function)")
    return LoadedRule(rule, module)


def _broken(stem: str, error: BaseException) -> LoadedRule:
    rule = Rule(stem.replace("_", "-"), stem)
    return LoadedRule(rule, None, _said(error), traceback.format_exc())


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its text fails in turn
        return type(error).__name__


def run_rules(
    trace: Trace,
    figures: Figures,
    *,
    source: SourceFinder | None = None,
    on_result: OnResult | None = None,
    progress: Progress | None = None,
    params: Mapping[str, Mapping[str, float]] | None = None,
    extra_folders: Iterable[Path] = (),
    ahead: Forked[tuple[RuleResult, ...]] | None = None,
) -> tuple[RuleResult, ...]:
    """Run every rule on a trace.

    Parameters
    ----------
    trace, figures
        What the rules look at.
    source
        Finds lines of code; one without any allowed folder when omitted.
    on_result
        Called with each result as soon as its rule has ended.
    progress
        Called with the fraction done and the rule's id; may raise `Cancelled`, which ends the run.
    params
        Rule id -> parameter name -> value, over the defaults.
    extra_folders
        Allowed folders with the user's own rules.
    ahead
        What `rules_ahead` has begun.

    Returns
    -------
    tuple[RuleResult, ...]
        One per rule. A rule that raises is FAILED with its traceback and never hides the others.
    """
    shared: dict[str, Any] = {}
    finder = source if source is not None else SourceFinder(trace)
    missing = _missing_reasons(trace, figures)
    report = progress or _silent
    ours = _own_rules()
    results = _of_fork(ahead, report, on_result) if ahead is not None else []
    for at, item in enumerate(_ours_first(tuple(extra_folders), partial(report, 1.0, ""))):
        if at < len(results):
            continue
        tell = partial(report, min(at / len(ours), 1.0), item.rule.id)
        tell()
        values = item.defaults
        if item.own or (params and item.rule.id in params):
            values = {**values, **(params or {}).get(item.rule.id, {})}
        context = RuleContext(trace, figures, values, finder, shared)
        result = _run_own(item, context, missing, tell) if item.own else _run_one(item, context, missing)
        if item.own and result.outcome is Outcome.FAILED:
            shared = {}  # one that was left behind must not change what the others look at
        results.append(result)
        if on_result is not None:
            on_result(result)
    report(1.0, "")
    return tuple(results)


def rules_ahead(
    trace: Trace,
    figures: Figures,
    source: SourceFinder | None = None,
    params: Mapping[str, Mapping[str, float]] | None = None,
) -> Forked[tuple[RuleResult, ...]]:
    """Begin to run our rules on a large trace beside what else there is to do, where a process can be forked for it."""

    def work(tell: Callable[[tuple[float, str]], None]) -> tuple[RuleResult, ...]:
        memory.hand_back_large()
        if isinstance(trace.reader, FileReader):
            trace.reader.start_anew()
        return run_rules(trace, figures, source=source, params=params, progress=lambda done, what: tell((done, what)))

    return Forked(work, worthwhile=len(trace.slices) >= memory.MANY)


def _of_fork(ahead: Forked[tuple[RuleResult, ...]], report: Progress, on_result: OnResult | None) -> list[RuleResult]:
    """Results of our rules, none where the fork has come to nothing."""
    latest = (0.0, "")

    def hear(news: tuple[float, str] | None) -> None:
        nonlocal latest
        latest = news or latest
        report(*latest)

    found = [replace(one, rule=item.rule) for one, item in zip(ahead.result(hear) or (), _own_rules(), strict=False)]
    if on_result is not None:
        for result in found:
            on_result(result)
    return found


def _ours_first(folders: Sequence[Path], meanwhile: Callable[[], None]) -> Iterator[LoadedRule]:
    """All rules; files of the user's are not even loaded before ours have run: that may take as long as they like."""
    yield from _own_rules()
    if folders:
        yield from load_rules(folders, meanwhile)[len(_own_rules()) :]


def _silent(fraction: float, what: str) -> None:
    del fraction, what


def _run_own(
    item: LoadedRule, ctx: RuleContext, missing: Mapping[int, str], meanwhile: Callable[[], None]
) -> RuleResult:
    """Run a rule of the user's, which may hang: when its time is up it is left out, and the others go on."""
    try:
        return within(OWN_RULE_S, lambda: _run_one(item, ctx, missing), meanwhile)
    except TookTooLong as error:
        return RuleResult(item.rule, Outcome.FAILED, _left_out(error))


def _left_out(error: TookTooLong) -> str:
    return f"{error}, left out"


def _run_one(item: LoadedRule, ctx: RuleContext, missing: Mapping[int, str]) -> RuleResult:
    rule = item.rule
    if item.module is None:
        return RuleResult(rule, Outcome.FAILED, item.error, details=item.details)
    if not len(ctx.trace.slices):
        return RuleResult(rule, Outcome.NOT_CHECKED, "The trace holds no slices.")
    lacking = [reason for need, reason in missing.items() if need & item.needs]
    if lacking:
        return RuleResult(rule, Outcome.NOT_CHECKED, " ".join(lacking))
    try:
        found = item.module.check(ctx)
        if found == []:
            return RuleResult(rule, Outcome.CLEAN)
        wrong = [s for s in found if not isinstance(s, Suggestion)]
        if wrong:
            raise TypeError(f"check returned {type(wrong[0]).__name__}, not Suggestion")
        for suggestion in found:  # a template that lacks a value must fail here, not in the window
            _ = (suggestion.headline, suggestion.explanation)
        if item.own:
            _check_slices(found, len(ctx.trace.slices))
            _check_portable(item, found)
    except NotChecked as why:
        return RuleResult(rule, Outcome.NOT_CHECKED, str(why))
    except (Cancelled, KeyboardInterrupt):
        raise
    except BaseException as error:  # a rule of the user's may raise anything
        return RuleResult(rule, Outcome.FAILED, _said(error), details=traceback.format_exc())
    told = numbered(with_iterations(one, ctx.figures) for one in found)
    return RuleResult(rule, Outcome.FOUND if found else Outcome.CLEAN, suggestions=told)


def _check_slices(found: Iterable[Suggestion], count: int) -> None:
    """Refuse evidence and effects that point nowhere: they would fail in the pricing, or in the window."""
    for suggestion in found:
        for slices in [e.slices for e in suggestion.evidence] + [e.slices for e in suggestion.effects]:
            wrong = [i for i in slices if not isinstance(i, (int, np.integer)) or not 0 <= i < count]
            if wrong or not slices:
                seen = wrong[0] if wrong else "none"
                raise ValueError(f"slices of {suggestion.headline!r} must be numbers of slices, not {seen!r}")


def _check_portable(item: LoadedRule, found: Iterable[Suggestion]) -> None:
    """Refuse what cannot be handed to another process: one such value would cost the results of all rules."""
    try:
        packed = pickle.dumps((item.rule, tuple(found)))
    except Exception as error:
        raise TypeError(f"a suggestion must hold plain values only ({_said(error)})") from error
    if _OF_USERS.encode() in packed:
        raise TypeError("a suggestion must hold plain values only, none of a class that the rule file defines")


def _missing_reasons(trace: Trace, figures: Figures) -> dict[int, str]:
    """What this trace lacks, each (as in `LoadedRule.needs`) with the reason and how to record it."""
    kinds = {int(kind) for kind in SliceKind if (trace.slices.kind == int(kind)).any()}
    out: dict[Needs, str] = {}
    if not trace.has_device_work:
        out[Needs.DEVICE] = _no_device_reason(trace, kinds)
    else:
        if not any(kind in kinds for kind in HOST_CALLS):
            out[Needs.CALLS] = "The trace holds no calls of the GPU's runtime, so what the CPU waits for is unknown."
        if SliceKind.KERNEL not in kinds:
            out[Needs.KERNELS] = "The GPU's work in this trace is copies only: there is no kernel."
    if SliceKind.CPU_OP not in kinds:
        out[Needs.OPS] = "The trace holds no operators. Record with ProfilerActivity.CPU."
    if not len(figures.steps):
        out[Needs.STEPS] = (
            "No steps are marked and none could be worked out. "
            "Call prof.step() once per iteration of the training loop."
        )
        if reason := no_steps_reason(trace):
            out[Needs.STEPS] = f"{reason} {no_steps_cure(trace)}"
    if SliceKind.PYTHON not in kinds:
        out[Needs.STACKS] = "The trace holds no Python stacks. Record with torch.profiler.profile(with_stack=True)."
    if not has_shapes(trace):
        out[Needs.SHAPES] = "The trace holds no tensor shapes. Record with torch.profiler.profile(record_shapes=True)."
    if not len(trace.memory):
        out[Needs.MEMORY] = "The trace holds no memory events. Record with torch.profiler.profile(profile_memory=True)."
    for option, need in (("shapes", Needs.SHAPES), ("memory", Needs.MEMORY)):
        if need in out and option in lacking(trace):
            out[need] = f"The script ended before the chosen steps; what is recorded of it is without {option}."
    if len({int(r) for r in trace.processes.rank if r >= 0}) < 2:
        out[Needs.RANKS] = "Only one rank is open. Open the traces of several ranks together."
    return {need.value: reason for need, reason in out.items()}


def _no_device_reason(trace: Trace, kinds: set[int]) -> str:
    if trace.report.is_cut_off:
        return "The file ends early: the GPU's work, if there was any, came after the cut. Record or copy it again."
    if any(kind in kinds for kind in HOST_CALLS):
        return (
            "The trace has calls to the GPU's runtime but no GPU work was recorded, so what the GPU did is unknown. "
            "Record with ProfilerActivity.CUDA, on a machine where profiling the GPU is allowed."
        )
    if trace.meta.devices:
        return (
            "The trace names a GPU but holds no GPU work. "
            "Either nothing ran on it, or it was recorded without ProfilerActivity.CUDA."
        )
    if SliceKind.CPU_OP not in kinds:
        return "The trace holds no GPU work."
    return "The trace holds no GPU work: it was recorded on the CPU only."
