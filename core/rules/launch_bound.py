"""The GPU waits for the CPU to launch its many short kernels.

What it finds
-------------
A GPU that is idle for much of the time while the CPU is busy in operators and launches (not waiting, not in the
loader), with short kernels that start about as soon as they are launched: the queue is empty.

Why it costs time
-----------------
Starting a kernel costs the CPU some 5 to 20 us. Where the kernels themselves last no longer, the GPU finishes each
before the next arrives.

Blind spots
-----------
Recording stacks and shapes slows the CPU itself down and makes any program look more launch-bound than it is: compare
with a light recording. Waits and the loader leave the same gaps; they are told apart by what the CPU did, and they
have rules of their own.

How to fix
----------
Larger batches; ``torch.compile(mode='reduce-overhead')`` or CUDA graphs, which replay all launches at once; fused
operators and optimizers.

Sources
-------
HolisticTraceAnalysis (launch statistics, queue length); PyTorch performance tuning guide 'CUDA graphs'; calibration
of gpu-idle tools (mean kernel of at most 25 us).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from core import sets
from core.engine_steps import engine_steps
from core.figures.device import busy_windows
from core.figures.lookup import of_kinds, view_of
from core.figures.steps import step_source
from core.kinds import HOST_CALLS, GapCause, SliceKind
from core.rule_tools.collective_kinds import DDP, marked
from core.rule_tools.communication import collectives
from core.rule_tools.compiled import with_compiled
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.host_compute import host_compute
from core.rule_tools.report import evidence, suggestion, total_ns
from core.sets import among
from core.suggestions import Effect, EffectKind, Evidence, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32, Bool

RULE = Rule(
    id="launch-bound",
    title="The GPU waits for the CPU's launches",
    needs=Needs.DEVICE | Needs.KERNELS | Needs.CALLS,
    params=(
        Param("max_busy_pct", 80, "% of the time", "above it the GPU has little left to gain from faster launches"),
        Param("max_kernel_us", 25, "us", "the typical (median) kernel: a launch with its operator costs about as much"),
        Param(
            "max_host_us",
            300,
            "us per kernel",
            "a CPU that needs longer does other work than launching: no graph helps",
        ),
        Param("min_share", 0.2, "share of the time idle by launching", "below it other causes dominate"),
        Param("min_kernels", 20, "kernels", "a handful of launches says nothing about a program"),
        Param("min_call", 0.3, "share of the step", "one call of the runtime that takes so much of it is named"),
        Param("calls_left", 0.5, "of the calls", "how many fewer can be started is unknown; half is assumed"),
        Param(
            "graph_factor", 0.1, "of the CPU time", "what is left of the CPU's part when a graph replays the launches"
        ),
    ),
)

_URL = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_RISK = (
    "CUDA graphs need constant shapes and no read-back inside; recording with stacks makes the CPU look slower than it "
    "is."
)
_FIX = Fix(
    "Give the GPU more work per launch, or launch it all at once.",
    "model = Net().cuda()",
    'model = torch.compile(Net().cuda(), mode="reduce-overhead")   # CUDA graphs\n# or simply a larger batch',
    _URL,
    _RISK,
)
_COMPILED = Fix(
    "Replay what is compiled as CUDA graphs, compile the rest of the step, or give the GPU more work per launch.",
    "model = torch.compile(Net().cuda())",
    'model = torch.compile(Net().cuda(), mode="reduce-overhead")   # CUDA graphs\n# or simply a larger batch',
    _URL,
    _RISK,
)
_WRAPPED = Fix(
    "Compile the model before DistributedDataParallel wraps it, or give the GPU more work per launch.",
    "model = DistributedDataParallel(Net().cuda())",
    "model = DistributedDataParallel(torch.compile(Net().cuda()))   # compiled before it is wrapped\n"
    "# or simply a larger batch",
    "https://pytorch.org/docs/stable/notes/ddp.html",
    "CUDA graphs do not reach over collectives: compiling joins kernels and launches the rest from fewer operators.",
)
_EXCHANGING = Fix(
    "Compile the parts between the collectives, or give the GPU more work per launch.",
    "model.dense = Net().cuda()",
    "model.dense = torch.compile(Net().cuda())   # parts without collectives, one by one\n# or simply a larger batch",
    _URL,
    "A graph breaks at a collective; CUDA graphs do not reach over it.",
)
_EXCHANGING_COMPILED = Fix(
    "Compile the rest of the step as well, or give the GPU more work per launch: CUDA graphs do not reach over the "
    "collectives.",
    risk="Each graph break starts compiled code anew.",
)
_VLLM = Fix(
    "Let vLLM capture its decoding steps as CUDA graphs, as it does unless told otherwise, or serve more requests at "
    "once.",
    "llm = LLM(model=name, enforce_eager=True)",
    "llm = LLM(model=name, enforce_eager=False)   # on the command line: leave out --enforce-eager",
    "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",
    "Captured graphs take memory and time at the start.",
)
_VLLM_PROMPTS = Fix(
    "Let vLLM compile the model and capture CUDA graphs, as it does unless told otherwise; read several prompts in one "
    "step.",
    _VLLM.before,
    "llm = LLM(model=name, enforce_eager=False)   # on the command line: leave out --enforce-eager\n"
    "# more prompts in one step: max_num_batched_tokens=16384",
    _VLLM.url,
    "A step of more tokens than the largest captured size runs compiled, but without a graph; graphs take memory.",
)
_READS_PROMPTS = re.compile(r"context_[1-9]")  # the engine's own name of its step
_VLLM_NAME = r"^vllm(/|::|\.)"

_CALL = "The CPU spends {call_pct:.0f} % of the time in {calls} {calls|call|calls} of `{call}`, {call_ms:time} each."


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the whole program once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    kernels = _launched_alone(facts)
    if busy is None:
        raise NotChecked("The use of the GPU is unknown in this trace.")
    if len(kernels) < ctx.params["min_kernels"] or busy >= ctx.params["max_busy_pct"]:
        return []
    typical_us = sets.median(ctx.trace.slices.dur_ns[kernels]) / 1e3
    by_launch, blamed = _idle_by_launching(facts)
    by_launch -= host_compute(facts).idle_ns  # that is no launching: it has a rule of its own
    share = by_launch / max(_device_time_ns(facts), 1)
    if share < ctx.params["min_share"]:
        return []
    slow = _slow_call(ctx, facts)
    if typical_us > ctx.params["max_kernel_us"]:
        return [_by_call(ctx, facts, slow, {"idle_pct": 100.0 * share, "typical_us": typical_us})] if len(slow) else []
    tops = _outermost_ops(facts)
    host_us = total_ns(facts, tops) / len(kernels) / 1e3
    if host_us > ctx.params["max_host_us"]:
        return []
    launches = facts.trace.links.launch_of[kernels][:400]
    usual, compiled = _fixes(facts)
    found = suggestion(
        ctx,
        RULE.id,
        "The CPU launches too slowly: the GPU is busy {busy_pct:.0f} %",
        "The typical one of {count} {count|kernel|kernels} lasts {typical_us:time}, but the CPU spends "
        "{host_us:time} in "
        "operators for each kernel that it starts. So the GPU finishes its work and waits for the next launch: "
        "for {idle_pct:.0f} % of the time it was idle until the CPU, still in operators or Python, launched more. The "
        "saving assumes that "
        "a graph leaves {left_pct:.0f} % of the CPU's part.",
        usual,
        [
            evidence(facts, "Kernels", len(kernels), "", kernels),
            evidence(facts, "Typical (median) duration", typical_us, "us", kernels),
            _idle(facts, by_launch, blamed or launches.tolist()),
        ],
        values={
            "busy_pct": busy,
            "count": len(kernels),
            "typical_us": typical_us,
            "host_us": host_us,
            "idle_pct": 100.0 * share,
            "left_pct": 100.0 * ctx.params["graph_factor"],
        },
        anchors=tops,
        at=-1,
        occurrences=len(kernels),
        effects=[Effect(EffectKind.SCALE_HOST, tuple(tops), ctx.params["graph_factor"])],
    )
    if len(slow):
        found = replace(found, values={**found.values, **_call_values(facts, slow)}, more=(*found.more, _CALL))
    return [with_compiled(facts, found, kernels, compiled)]


def _slow_call(ctx: RuleContext, facts: Facts) -> I32:
    """Calls of the runtime of the one name that takes most of the CPU's step; none where that is not much.

    Calls that wait for the device are left out: they have rules of their own.
    """
    calls = facts.in_steps(facts.of_kind(*HOST_CALLS))
    calls = calls[~among(calls, facts.figures.syncs.slice_id)]
    if not len(calls):
        return calls
    names = facts.trace.slices.name_id[calls]
    took = np.bincount(names, weights=facts.trace.slices.dur_ns[calls])
    found: I32 = calls.compress(names == np.argmax(took))
    return found if took.max() >= ctx.params["min_call"] * facts.window_ns else found[:0]


def _call_values(facts: Facts, calls: I32) -> dict[str, Any]:
    spent = total_ns(facts, calls)
    return {
        "call": facts.trace.name(int(calls[0])),
        "calls": len(calls),
        "call_pct": min(100.0 * spent / max(facts.window_ns, 1), 100.0),
        "call_ms": spent / len(calls) / 1e6,
    }


def _by_call(ctx: RuleContext, facts: Facts, calls: I32, values: dict[str, Any]) -> Suggestion:
    """The suggestion where the work is not small, and one call of the runtime is what takes the time."""
    longest = int(calls[np.argmax(facts.trace.slices.dur_ns[calls])])
    return suggestion(
        ctx,
        RULE.id,
        "Launching takes {call_pct:.0f} % of the CPU's step: `{call}`",
        "The GPU idles {idle_pct:.0f} % of the time until the CPU launches more, though its work is not small "
        "(typically {typical_us:time}). The CPU spends {call_pct:.0f} % of the time in {calls} {calls|call|calls} of "
        "`{call}`, {call_ms:time} each. The saving assumes that {calls_left_pct:.0f} % of these calls are left.",
        Fix(
            "Start fewer and larger pieces of work per step: a larger batch, fused operators, a compiled model. What "
            "this call prepares each time, the makers of the device's runtime know.",
            url=_URL,
        ),
        [evidence(facts, "Calls of the runtime", len(calls), "", calls)],
        values=values | _call_values(facts, calls) | {"calls_left_pct": 100.0 * ctx.params["calls_left"]},
        anchors=calls,
        at=longest,
        effects=[Effect(EffectKind.SCALE_HOST, tuple(calls.tolist()), ctx.params["calls_left"])],
    )


def _fixes(facts: Facts) -> tuple[Fix, Fix]:
    """What fits the program: the usual advice, and that where part of the step is compiled already."""
    if len(facts.matching(_VLLM_NAME, SliceKind.PYTHON, SliceKind.CPU_OP, SliceKind.RANGE)):
        prompts = any(_READS_PROMPTS.search(facts.trace.name(step)) for step in engine_steps(facts.trace).tolist())
        return (_VLLM_PROMPTS, _VLLM_PROMPTS) if prompts else (_VLLM, _VLLM)
    if not len(collectives(facts)):
        return _FIX, _COMPILED
    return _WRAPPED if marked(facts, DDP) else _EXCHANGING, _EXCHANGING_COMPILED


def _idle(facts: Facts, by_launch: int, shown: list[int]) -> Evidence:
    """The idle time as savings count it: per step; of several ranks, of the one that idles longest."""
    sources = len(facts.trace.sources)
    if facts.n_steps < 2:
        return evidence(facts, "GPU idle until the next launch", by_launch / 1e6, "ms", shown)
    if sources < 2:
        each_ms = facts.per_step(by_launch) / 1e6
        return evidence(facts, "GPU idle per step until the next launch", each_ms, "ms", shown)
    gaps, view, rows = facts.figures.gaps, view_of(facts.trace), _by_launching(facts)
    steps = np.bincount(step_source(view, facts.figures.steps)[facts.use_steps], minlength=sources)
    lengths, most_ms = (gaps.end_ns - gaps.start_ns)[rows], 0.0
    for one in steps.nonzero()[0].tolist():
        took = lengths[np.isin(gaps.device[rows], view.devices_of_source(one))].sum()
        most_ms = max(most_ms, float(took) / int(steps[one]) / 1e6)
    return evidence(
        facts, "GPU idle per step until the next launch, in the rank that idles longest", most_ms, "ms", shown
    )


def _launched_alone(facts: Facts) -> I32:
    """Kernels with a launch of their own: those of a CUDA graph share one, and a graph is the cure already."""
    launch = facts.trace.links.launch_of[facts.kernels]
    ordered = np.sort(launch)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    alone: I32 = facts.kernels[(launch < 0) | ~among(launch, shared)]
    return alone


def _device_time_ns(facts: Facts) -> int:
    """Analysed time of all devices together, ns: that of each file for each device that it recorded."""
    view, steps = view_of(facts.trace), facts.figures.steps
    if len(facts.trace.sources) < 2:
        return facts.window_ns * max(len(view.devices), 1)
    if not facts.n_steps:
        return sum(spans.total_ns for spans in busy_windows(view, steps).values())
    took = np.where(facts.use_steps, steps.end_ns - steps.start_ns, 0)
    of_file = np.bincount(step_source(view, steps), weights=took, minlength=len(facts.trace.sources))
    return int(sum(of_file[one] * len(view.devices_of_source(one)) for one in range(len(of_file))))


def _idle_by_launching(facts: Facts) -> tuple[int, list[int]]:
    """Idle time of the device while the CPU was launching or in Python, ns, and the CPU slices to blame."""
    gaps, inside = facts.figures.gaps, _by_launching(facts)
    blamed = gaps.blame_id[inside]
    idle = int(gaps.end_ns.sum(where=inside) - gaps.start_ns.sum(where=inside))
    return idle, [int(b) for b in blamed[blamed >= 0][:400]]


def _by_launching(facts: Facts) -> Bool:
    """bool[k]: gaps of the counted steps in which the CPU was launching or in Python."""
    gaps = facts.figures.gaps
    inside = of_kinds(gaps.cause, (GapCause.LAUNCH, GapCause.PYTHON))
    if facts.n_steps:
        inside &= np.append(facts.use_steps, False)[gaps.step_id]  # the last one for gaps in no step, whose row is -1
    return inside


def _outermost_ops(facts: Facts) -> list[int]:
    """Operators directly on a thread that launch something, inside the steps: what a graph would replay."""
    ops = facts.of_kind(SliceKind.CPU_OP)
    ops = facts.in_steps(ops.compress(facts.trace.slices.parent_id[ops] < 0))
    launching: list[int] = ops[facts.device_counts(ops) > 0].tolist()
    return launching
