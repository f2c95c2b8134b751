"""Where the plan starts: which card is about what the verdict names, or that none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.analysis import Analysis
from core.kinds import GapCause

_WAITS = (
    "scalar-read-back tensor-read-back op-reads-back optimizer-read-back grad-norm-read-back grad-scaler-read-back "
    "control-flow-on-device-tensor data-dependent-shape event-wait explicit-synchronize host-index-tensor "
    "host-list-index loop-over-tensor-elements constant-copied-each-step allocation-in-step allocator-thrash "
    "debug-mode-left-on pageable-batch-copy blocking-pinned-copy synchronous-memcpy synchronous-memset "
    "many-tiny-copies copy-not-overlapped pinning-in-step"
)
_COPIES = (
    "pageable-batch-copy blocking-pinned-copy synchronous-memcpy many-tiny-copies copy-not-overlapped "
    "constant-copied-each-step"
)
_COMMUNICATION = (
    "communication-share exposed-communication all-reduce-while-accumulating many-small-collectives straggler "
    "sync-batch-norm data-parallel unused-parameter-search gloo-with-device-tensors"
)
_LOADER = "loader-starves-step loader-without-workers loader-workers-recreated"
_OPERATORS = (
    "launch-bound gpu-underfed single-tensor-optimizer gradients-zeroed fusible-kernel-sequence "
    "hand-written-composite-op unfused-cross-entropy unfused-attention object-built-in-step dtype-ping-pong "
    "layout-conversions float-batch-copied conv-bias-before-batch-norm evaluation-with-gradients compile-without-gain "
    "model-on-cpu checkpointing-trade environment-loop python-work-in-step tensor-grown-by-cat model-copied-in-step "
    "generation-without-cache"
)
# What each verdict names -> rules whose fix works on it. A rule that stands nowhere (a user's own) may be about it.
ANSWERS: Mapping[str, frozenset[str]] = {
    "communication_bound": frozenset(_COMMUNICATION.split()),
    "input_bound": frozenset(_LOADER.split()),
    "sync_bound": frozenset(_WAITS.split()),
    "host_bound": frozenset(
        f"{_OPERATORS} many-tiny-copies loop-over-tensor-elements debug-mode-left-on garbage-collection-stall "
        "graph-break-or-recompile lazy-initialisation algorithm-search-each-step unused-parameter-search data-parallel "
        "sync-batch-norm outlier-step profiler-overhead".split()
    ),
    "device_bound": frozenset(
        f"{_OPERATORS} {_COPIES} fp32-matmul-without-tf32 tensor-cores-unused double-precision-by-accident "
        "algorithm-search-each-step matmul-dims-misaligned grid-too-small low-occupancy dominant-kernel "
        "debug-mode-left-on sync-batch-norm".split()
    ),
}
KNOWN = frozenset().union(*ANSWERS.values())
_OF_THE_WHOLE = frozenset({"communication-share"})  # of several cards without a number, the one about all of the cause
_SMALL_PART = 0.1  # of the step: what is worth less is no answer to the largest cause

TEMPLATES: Mapping[str, str] = {
    "later_communication_bound": "Card {card} is about communication, the largest cause: the plan goes by what saves "
    "most next.",
    "later_input_bound": "Card {card} is about the data loader, the largest cause: the plan goes by what saves "
    "most next.",
    "later_sync_bound": "Card {card} is about the waits, the largest cause: the plan goes by what saves most next.",
    "later_host_bound": "Card {card} is about slow launching, the largest cause: the plan goes by what saves "
    "most next.",
    "later_device_bound": "Card {card} is about the device's own work, which sets the pace: the plan goes by what "
    "saves most next.",
    "small_part_communication_bound": "Card {card} is about a small part of communication, the largest cause. Most of "
    "it has a card without a number: how much of it can be hidden depends on the program.",
    "small_part": "Card {card} is about a small part of the largest cause. Most of that has a card without a number, "
    "since what its fix saves is unknown.",
    "unpriced_communication_bound": "Communication, the largest cause, has a card without a number: how much of it can "
    "be hidden depends on the program. The numbered cards are about other time.",
    "unpriced": "The largest cause has a card without a number, since what its fix saves is unknown. The numbered "
    "cards are about other time.",
    "none_communication_bound": "No card is about communication, the largest cause: no rule found a mechanical fix. "
    "Look at what could run beside it, at fewer or larger messages, and at slower ranks.",
    "none_input_bound": "No card is about the data loader, the largest cause: no rule found a fix. Look at what it "
    "does for each batch: reading, decoding, transforms.",
    "none_sync_bound": "No card is about the waits for the device, the largest cause: no rule found a fix. The table "
    "of sync points has each of them.",
    "none_host_bound": "No card is about launches that come late, the largest cause: no rule found a fix. The gaps of "
    "the device on the timeline show what the CPU did meanwhile.",
    "none_host_python": "No card is about the Python between the launches, the largest cause: no rule found a fix. The "
    "flame graph shows what ran there.",
    "none_device_bound": "No card is about the device's own work, which sets the pace: no rule found a fix. Look at "
    "batch size, precision, and the largest kernels.",
}


@dataclass(frozen=True)
class Lead:
    """A sentence as a template with values; ``card`` is the position of the suggestion that it speaks of, or -1."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    card: int = -1


def lead(analysis: Analysis) -> Lead | None:
    """Say how a plan answers its verdict; None where its first card does, or where there is nothing to say.

    That is so without a plan (`core.analysis.outlook` speaks then), where the verdict names no cause, and where a rule
    whose subject is unknown here comes before any that answers.
    """
    verdict, found = analysis.figures.summary.verdict, analysis.suggestions
    numbers, answers = analysis.numbers(), ANSWERS.get(verdict)
    planned = [i for step in analysis.plan for i in step.suggestions]
    if answers is None or not planned:
        return None
    first = next((i for i in planned if found[i].rule_id in answers or found[i].rule_id not in KNOWN), -1)
    if first == planned[0]:
        return None
    if first >= 0 and found[first].rule_id not in KNOWN:
        return None
    open_ones = (i for i, s in enumerate(found) if s.rule_id in answers and not s.informational and s.saving.ns is None)
    other = min(open_ones, key=lambda i: found[i].rule_id not in _OF_THE_WHOLE, default=-1)
    if first >= 0:
        savings = (found[i].saving for i in planned if found[i].rule_id in answers)
        worth_ns = sum(one.together_ns or one.ns or 0 for one in savings)
        if other >= 0 and worth_ns < _SMALL_PART * (analysis.figures.summary.sustained_step_ns or 0):
            words = TEMPLATES.get(f"small_part_{verdict}", TEMPLATES["small_part"])
            return Lead(words, {"card": numbers[first]}, other)
        return Lead(TEMPLATES[f"later_{verdict}"], {"card": numbers[first]}, first)
    if other >= 0:
        words = TEMPLATES.get(f"unpriced_{verdict}", TEMPLATES["unpriced"])
        return Lead(words, card=other)
    if verdict == "host_bound" and _is_python(analysis):
        return Lead(TEMPLATES["none_host_python"])
    return Lead(TEMPLATES[f"none_{verdict}"])


def _is_python(analysis: Analysis) -> bool:
    """Whether Python between the launches takes the largest part of what the host costs."""
    idle = analysis.figures.budget.idle_by_cause_ns
    return idle.get(int(GapCause.PYTHON), 0) > max(idle.get(int(c), 0) for c in (GapCause.LAUNCH, GapCause.COMPILE))
