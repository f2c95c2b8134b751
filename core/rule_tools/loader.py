"""The time a step spends in the data loader."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.kinds import GapCause, SliceKind
from core.rule_tools.facts import Facts, ids_tuple
from core.rule_tools.intervals import covered_ns, union
from core.rule_tools.making import called_name
from core.suggestions import Evidence, RuleContext, Suggestion
from core.tables import I32, Bool

WITH_WORKERS = "_MultiProcessingDataLoaderIter"  # the iterator class of a loader with worker processes


def loader_calls(facts: Facts, iterator: str = "") -> I32:
    """int32[k]: calls of data loaders (of one iterator class) that fetch a batch."""
    pattern = rf"^enumerate\(DataLoader\)#{iterator}\.__next__" if iterator else r"^enumerate\(DataLoader\)#"
    return facts.matching(pattern, SliceKind.RANGE, SliceKind.CPU_OP)


@dataclass(frozen=True)
class LoaderFinding:
    """Loader slices of the counted steps, and what they cost."""

    slices: tuple[int, ...]
    effect_slices: tuple[int, ...]
    per_step_ns: float
    idle_ns: float  # per step, while no device work ran; the whole time where the device is unknown
    step_ns: float
    n_steps: int
    period_ns: float = 0.0  # of which the idle time is a part, as in the budget; 0 where it is of the loader's calls

    def values(self) -> dict[str, Any]:
        """Named values for texts."""
        count = max(len(self.slices), 1)
        return {
            "count": len(self.slices),
            "share_pct": min(100.0 * self.per_step_ns / max(self.step_ns, 1.0), 100.0),
            "steps": self.n_steps,
            "wait_ms": self.per_step_ns / 1e6,
            "each_ms": self.per_step_ns * self.n_steps / count / 1e6,
            "idle_ms": self.idle_ns / 1e6,
            "period_ms": self.period_ns / 1e6,
        }


def loader_finding(facts: Facts, iterator: str, min_share: float) -> LoaderFinding | None:
    """Loader calls of this iterator class, when they take at least ``min_share`` of the step with the device idle.

    Parameters
    ----------
    facts
        Look-ups.
    iterator
        ``_SingleProcessDataLoaderIter`` or ``_MultiProcessingDataLoaderIter``.
    min_share
        Share of the step.
    """
    trace = facts.trace
    ids = facts.in_steps(loader_calls(facts, iterator))
    ids = ids[with_work(facts)[facts.figures.step_of[ids]]]
    if not len(ids) or not facts.n_steps:
        return None
    dur = trace.slices.dur_ns[ids]
    per_step = float(dur.sum()) / facts.n_steps
    step = float((facts.figures.steps.end_ns - facts.figures.steps.start_ns)[facts.use_steps].mean())
    idle = per_step - busy_inside(facts, ids) / facts.n_steps
    if min(idle, per_step) < min_share * step:
        return None
    shown, period = _idle_of_budget(facts, ids) or (idle, 0.0)
    return LoaderFinding(ids_tuple(ids), tuple(ids.tolist()), per_step, shown, step, facts.n_steps, period)


def _idle_of_budget(facts: Facts, ids: I32) -> tuple[float, float] | None:
    """The device's idle time for the loader and the period that it is of, as the budget and the verdict say them, ns.

    None where these are not all of the loaders that it counts, and where it is not of steps.
    """
    budget = facts.figures.budget
    if budget.basis == "window" or not budget.idle_by_cause_ns.get(int(GapCause.LOADER)):
        return None
    every = facts.in_steps(loader_calls(facts))
    every = every[with_work(facts)[facts.figures.step_of[every]]]
    if len(every) != len(ids):
        return None
    return float(budget.idle_by_cause_ns[int(GapCause.LOADER)]), float(budget.period_ns or 0)


def with_work(facts: Facts) -> Bool:
    """bool[n_steps + 1]: steps in which anything but the loader runs; the last entry is for what is in no step.

    A step that only asks for the batch after the last one, and so ends the epoch, says nothing of the training.
    """
    step_of = facts.figures.step_of
    ops = facts.of_kind(SliceKind.CPU_OP)
    ops = ops[~facts.within_ranges(ops, loader_calls(facts))]
    out = np.zeros(len(facts.figures.steps) + 1, dtype=bool)
    out[step_of[ops]] = True
    out[step_of[facts.trace.device_ids]] = True
    out[-1] = False
    return out


def busy_inside(facts: Facts, ids: Any) -> float:
    """Time inside these CPU slices during which some device work ran, ns; 0 when there is none recorded."""
    trace = facts.trace
    work = trace.device_ids
    if not len(work):
        return 0.0
    runs = union(trace.slices.start_ns[work], trace.end_ns[work])
    return float(covered_ns(runs, trace.slices.start_ns[ids], trace.end_ns[ids]).sum())


def workers_factor(found: LoaderFinding, speed: float, of_period: bool = False) -> float:
    """Left of the loader's time when batches are prepared beside the step.

    A batch then takes ``speed`` times its present cost (the loader's own time, or the whole period where workers
    already exist and set the pace), and only what exceeds the rest of the step is still waited for.
    """
    rest = max(found.step_ns - found.per_step_ns, 0.0)
    cost = (found.step_ns if of_period else found.per_step_ns) * speed
    left = max(cost - rest, 0.0)
    return float(min(max(left / max(found.per_step_ns, 1.0), 0.01), 1.0))


IDLE_OF_PERIOD = "Of its period of {period_ms:time} the GPU idles {idle_ms:time} for the loader."
IDLE_OF_STEP = "Of its step of {period_ms:time} the GPU idles {idle_ms:time} for the loader."
IDLE_OF_CALLS = "During {idle_ms:time} of a step's wait the GPU has nothing to do."


def with_idle(facts: Facts, found: LoaderFinding, made: Suggestion) -> Suggestion:
    """Add how long the GPU idles for the loader; nothing where none of its work was recorded."""
    if not facts.trace.has_device_work:
        return made
    label, words = "of it, the GPU had nothing to do", IDLE_OF_CALLS
    if found.period_ns:
        whole = facts.figures.budget.basis == "period"
        label = "GPU idle for the loader, per period" if whole else "GPU idle for the loader, per step"
        words = IDLE_OF_PERIOD if whole else IDLE_OF_STEP
    shown = Evidence(label, round(found.idle_ns / 1e6, 6), "ms", found.slices)
    return replace(made, evidence=(*made.evidence, shown), more=(*made.more, words))


def worker_call(workers: float, *, pinned: bool, more: str = "") -> str:
    """The fix as code, with as many workers as its text says; pinned memory only where a GPU copies from it."""
    pin = ", pin_memory=True" if pinned else ""
    return (
        f"loader = DataLoader(\n    data, batch_size=32, num_workers={max(round(workers), 1)}, {more}"
        f"persistent_workers=True{pin}\n)"
    )


def where_loader_is_made(ctx: RuleContext, found: Suggestion) -> Suggestion:
    """A suggestion with the line that makes the loader, where the source says which: that is what has to be changed."""
    loop = found.source
    made = ctx.source.of_walked(loop, _makes_loader) if loop is not None else None
    if loop is None or made is None:
        return found
    return replace(found, source=made, values={**found.values, "seen_in": loop.function})


def _makes_loader(call: ast.Call) -> bool:
    return called_name(call) == "DataLoader"
