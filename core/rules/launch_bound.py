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

import numpy as np

from core.figures.device import busy_windows
from core.figures.lookup import view_of
from core.figures.steps import step_source
from core.kinds import GapCause, SliceKind
from core.rule_tools.compiled import with_compiled
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32

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


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the whole program once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    kernels = _launched_alone(facts)
    if busy is None:
        raise NotChecked("The use of the GPU is unknown in this trace.")
    if len(kernels) < ctx.params["min_kernels"] or busy >= ctx.params["max_busy_pct"]:
        return []
    if (typical_us := float(np.median(ctx.trace.slices.dur_ns[kernels])) / 1e3) > ctx.params["max_kernel_us"]:
        return []
    by_launch, blamed = _idle_by_launching(facts)
    share = by_launch / max(_device_time_ns(facts), 1)
    if share < ctx.params["min_share"]:
        return []
    tops = _outermost_ops(facts)
    host_us = total_ns(facts, tops) / len(kernels) / 1e3
    if host_us > ctx.params["max_host_us"]:
        return []
    launches = facts.trace.links.launch_of[kernels][:400]
    found = suggestion(
        ctx,
        RULE.id,
        "The CPU launches too slowly: the GPU is busy {busy_pct:.0f} %",
        "The typical one of {count} {count|kernel|kernels} lasts {typical_us:time}, but the CPU spends "
        "{host_us:time} in "
        "operators for each kernel that it starts. So the GPU finishes its work and waits for the next launch: "
        "{idle_pct:.0f} % of the time it was idle until the CPU, still in operators or Python, launched more. The "
        "saving assumes that "
        "a graph leaves {left_pct:.0f} % of the CPU's part.",
        _FIX,
        [
            evidence(facts, "Kernels", len(kernels), "", kernels),
            evidence(facts, "Typical (median) duration", typical_us, "us", kernels),
            evidence(facts, "GPU idle until the next launch", by_launch / 1e6, "ms", blamed or launches),
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
    return [with_compiled(facts, found, kernels, _COMPILED)]


def _launched_alone(facts: Facts) -> I32:
    """Kernels with a launch of their own: those of a CUDA graph share one, and a graph is the cure already."""
    launch = facts.trace.links.launch_of[facts.kernels]
    _, inverse, counts = np.unique(launch, return_inverse=True, return_counts=True)
    alone: I32 = facts.kernels[(launch < 0) | (counts[inverse] == 1)]
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
    gaps = facts.figures.gaps
    inside = np.ones(len(gaps), dtype=bool)
    if facts.n_steps:
        inside = (gaps.step_id >= 0) & facts.use_steps[np.maximum(gaps.step_id, 0)]
    inside &= np.isin(gaps.cause, (GapCause.LAUNCH, GapCause.PYTHON))
    blamed = gaps.blame_id[inside]
    return int((gaps.end_ns - gaps.start_ns)[inside].sum()), [int(b) for b in blamed[blamed >= 0][:400]]


def _outermost_ops(facts: Facts) -> list[int]:
    """Operators directly on a thread that launch something, inside the steps: what a graph would replay."""
    ops = facts.in_steps(facts.of_kind(SliceKind.CPU_OP))
    ops = ops[facts.trace.slices.parent_id[ops] < 0]
    launching: list[int] = ops[facts.device_counts(ops) > 0].tolist()
    return launching
