"""One verdict per trace, and the sentence that says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.figures.model import Budget, Summary
from core.kinds import GapCause
from core.words import fill

# A device that works nine tenths of the time sets the pace: less than a tenth is left to be won on the host.
DEVICE_BOUND_SHARE = 0.90
# Somewhat less than that is still mostly the device's time: what idles is the headline only where the replay shows
# that a fix would win back at least half of it. Else both are named, so that one percent more or less is no cliff.
MOSTLY_DEVICE_SHARE, WON_BACK_SHARE = 0.80, 0.5
# Below a tenth of the time no single cause of idling deserves to be the headline.
CAUSE_SHARE = 0.10
# A second cause with at least half of the first one's time is named beside it.
SECOND_SHARE = 0.5
# Where what nothing explains takes nearly as long as the largest cause, it may as well be the larger one.
NEARLY_TOP = 0.95
# Nothing to say to a trace whose best suggestion saves less than this.
HEALTHY_SAVING_PCT = 3.0
# Idle time after a wait looks like slow launching, because the CPU starts again with an empty queue. Where the replay
# without waits wins back at least half of it (and a twentieth of the step), the waits are its cause.
WAITS_SHARE, WAITS_LEAST_PCT = 0.5, 5.0
# What half the device work must bring at least to a loop whose pace the device sets.
QUICKER_LEAST_PCT = 5.0

# Causes of idling by the verdict that they lead to.
GROUPS: Mapping[str, tuple[GapCause, ...]] = {
    "input_bound": (GapCause.LOADER,),
    "sync_bound": (GapCause.SYNC, GapCause.COPY, GapCause.ALLOC),
    "communication_bound": (GapCause.COMMUNICATION,),
    "host_bound": (GapCause.LAUNCH, GapCause.PYTHON, GapCause.COMPILE, GapCause.COLLECTOR),
    "unknown": (GapCause.UNKNOWN, GapCause.QUEUED),
}
# Two pieces of device work have one gap between them: no pace of anything, where no step is marked around them.
MIN_WORK = 3
# A recording that mostly starts up says nothing about the loop: not where one step, or none, is all that it holds.
START_UP_SHARE = 0.5
# With so many launches whose work is not in the trace, idle time is as likely to be work that was not recorded.
LOST_LAUNCHES_SHARE = 0.5
# Of several devices of one program, the others work so much less than the one that never idles.
UNEVEN_SHARE = 0.7
# Of what several devices of one program do, so little more than the time in which any works: they hardly overlap.
IN_TURN_SHARE = 1.25
# Without a device, a loader that takes so much of the CPU's step is the headline.
LOADER_SHARE = 0.3

TEMPLATES: Mapping[str, str] = {
    "healthy": "The device works {busy_pct:.0f} % of the time, and nothing that was found is known to save more than "
    "{limit_pct:.0f} %.",
    "device_bound": "The device works {busy_pct:.0f} % of the time: only less or faster device work makes the step "
    "faster.",
    "device_copies": "The device works {busy_pct:.0f} % of the time, but in {share_pct:.0f} % it only copies from or "
    "to the host and computes nothing: copies that run beside the computation make the step faster.",
    "mostly_device": "The device works {busy_pct:.0f} % of the time: less or faster device work counts most. The other "
    "{idle_pct:.0f} % are the most that can be won on the CPU.",
    "device_paced": "The device sets the pace: the CPU queues each step faster than the device works it off. It works "
    "{busy_pct:.0f} % of the time; the other {idle_pct:.0f} % pass between kernels that are queued already, so that "
    "fewer or larger ones help, too.",
    "input_bound": "The device waits for the data loader {share_pct:.0f} % of the time.",
    "sync_bound": "The device idles {share_pct:.0f} % of the time because the CPU waits for it instead of queueing "
    "the next work.",
    "sync_refill": "By the replay the step would be {share_pct:.0f} % shorter without the CPU's waits for the device: "
    "while it waits it queues nothing, so the device runs dry and then waits for the next launches.",
    "communication_bound": "Communication that nothing overlaps takes {share_pct:.0f} % of the time.",
    "communication_and_launch": "Communication that nothing overlaps takes {share_pct:.0f} % of the time; for another "
    "{idle_pct:.0f} % the device idles because the CPU does not launch its work fast enough.",
    "host_launch": "The device idles {share_pct:.0f} % of the time because the CPU does not launch its work fast "
    "enough.",
    "host_python": "The device idles {share_pct:.0f} % of the time because the CPU launches its work late, mostly for "
    "the Python code between its launches.",
    "host_compile": "The device idles {share_pct:.0f} % of the time because the CPU launches its work late, mostly "
    "while code is compiled or loaded.",
    "start_up": "Start-up takes {share_pct:.0f} % of the recording and no steps are marked, so the pace of the loop is "
    "unknown; savings are rough figures for the rest of the recording.",
    "start_up_step": "Start-up takes {share_pct:.0f} % of the only step that counts: code is compiled or loaded in it, "
    "which happens once. The pace of the loop is unknown; savings are rough figures.",
    "too_little": "The trace holds {count} {count|piece|pieces} of device work and no steps: too little to judge a "
    "program by.",
    "unknown_cause": "For {share_pct:.0f} % of the time the device idles and nothing recorded says why.",
    "unknown_no_stacks": "For {share_pct:.0f} % of the time the device idles and nothing recorded says why: Python "
    "stacks (with_stack=True) would show what the CPU did meanwhile.",
    "held_up": "For {held_pct:.0f} % of the time the device idles with work launched already. What held that work up "
    "is not in the trace: another rank, stream or process, or events that were not recorded.",
    "begun_late": "Once its first recorded work runs, the device works {rest_pct:.0f} % of the time. Before, for "
    "{lead_pct:.0f} % of the recording, that work was launched and had to wait: the device probably worked off what "
    "had been launched before the recording began.",
    "launches_lost": "Of the launches {lost_pct:.0f} % have no device work in the trace: their events were lost. How "
    "busy the device was is unknown.",
    "captured": "Of the launches {captured_pct:.0f} % were captured into a graph and ran nothing: this records how the "
    "graph is made. Record steps that replay it to see their pace.",
    "no_device_events": "The trace names a GPU but holds none of its work, so how busy it was is unknown.",
    "one_device": "GPU {device:.0f} works {busy_pct:.0f} % of the time and sets the pace; the others work "
    "{rest_pct:.0f} % of it: the work is shared out unevenly.",
    "in_turn": "The devices work in turn: {together_pct:.0f} % of the time one of them works, each {each_pct:.0f} % on "
    "average. Only what runs on several of them at once makes the step faster: micro-batches (a pipeline), or a share "
    "of each batch for every device.",
    "foreign_device": "The names in this trace speak of a device, but its events are not of the kinds that "
    "torch.profiler writes: how busy that device was is unknown.",
    "left_alone": "The calls of the GPU's runtime were recorded, and none of them launches anything: the program "
    "computed on the CPU and left the GPU alone.",
    "cpu_only": "The trace holds CPU work only, so there is no device to be kept busy.",
    "loader_cpu": "The data loader takes {share_pct:.0f} % of the step.",
    "cut_off": "The file ends early: what came after is missing, and GPU work may be among it. What is left is shown, "
    "but what limits the step cannot be judged from it.",
    "empty": "This trace has no events: nothing was recorded in its window.",
}


SAME_BUSY_POINTS = 2.0  # two shares of a device that differ by less are told as one


def values_shown(summary: Summary) -> dict[str, float]:
    """Values of a verdict's sentence, its busy share as the figures beside it say it.

    The verdict goes by the share of the loop's pace, the figure is of the steps recorded: they can differ by a little.
    """
    values, shown = dict(summary.verdict_values), summary.gpu_busy_pct
    busy = values.get("busy_pct")
    if busy is None or shown is None or "device" in values or abs(busy - shown) >= SAME_BUSY_POINTS:
        return values
    if "idle_pct" in values:
        values["idle_pct"] = 100.0 - shown
    return {**values, "busy_pct": shown}


@dataclass(frozen=True)
class Verdict:
    """The verdict, its sentence, and the sentence as a template with values (for translation)."""

    code: str
    template: str
    values: Mapping[str, float]

    @property
    def text(self) -> str:
        """The sentence in English."""
        return fill(self.template, self.values)


def _verdict(code: str, template: str, **values: float) -> Verdict:
    return Verdict(code, TEMPLATES[template], values)


def judge(
    budget: Budget,
    exposed_communication_ns: float | None = None,
    sustained_ns: float | None = None,
    best_saving_pct: float | None = None,
    waits_saving_pct: float | None = None,
    held_lead_ns: float = 0.0,
    has_stacks: bool = True,
    exposed_copy_ns: float = 0.0,
    queue_grows: bool = False,
    quicker_device_pct: float | None = None,
) -> Verdict | None:
    """Judge a trace with device work by its budget; None when there is none.

    Parameters
    ----------
    budget
        One step's time by busy and causes of idling, ns.
    exposed_communication_ns, exposed_copy_ns
        Parts of the busy time in which only collectives ran, and only copies between host and device.
    sustained_ns
        Sustained step time where the replay knows it: the loop's true pace, by which the device's share is measured.
    best_saving_pct
        Best saving of any priced suggestion; with it, a device-bound trace can be called healthy.
    waits_saving_pct
        What the loop would gain if no call waited for the device, from the replay.
    held_lead_ns
        Part of the idle time before the recording's first work, in which that was launched already.
    has_stacks
        Whether Python was recorded.
    queue_grows
        Whether the CPU queues steps faster than the device works them off (`core.figures.stepping.queue_grows`).
    quicker_device_pct
        What the loop would gain if the device needed half the time, from the replay.
    """
    if budget.period_ns is None or budget.busy_ns is None or budget.period_ns <= 0:
        return None
    busy, shares = _shares(budget, float(exposed_communication_ns or 0.0), sustained_ns)
    top = _largest(shares, waits_saving_pct)
    alone = busy - shares["communication_bound"]
    if alone >= DEVICE_BOUND_SHARE or shares[top] < CAUSE_SHARE:
        copies = exposed_copy_ns / budget.period_ns
        if copies >= CAUSE_SHARE:  # whether or not a rule knows a fix
            return _verdict("device_bound", "device_copies", busy_pct=100.0 * busy, share_pct=100.0 * copies)
        if best_saving_pct is not None and best_saving_pct < HEALTHY_SAVING_PCT:
            return _verdict("healthy", "healthy", busy_pct=100.0 * busy, limit_pct=HEALTHY_SAVING_PCT)
        return _verdict("device_bound", "device_bound", busy_pct=100.0 * busy)
    if alone >= MOSTLY_DEVICE_SHARE and top == "host_bound" and queue_grows:
        return _verdict("device_bound", "device_paced", busy_pct=100.0 * busy, idle_pct=100.0 * (1.0 - busy))
    won_back_pct = max(best_saving_pct or 0.0, waits_saving_pct or 0.0)
    if alone >= MOSTLY_DEVICE_SHARE and _counts_most(top, shares[top], won_back_pct, quicker_device_pct):
        return _verdict("device_bound", "mostly_device", busy_pct=100.0 * busy, idle_pct=100.0 * (1.0 - busy))
    if top == "host_bound":
        least = max(WAITS_LEAST_PCT, 100.0 * shares[top] * WAITS_SHARE)
        if waits_saving_pct is not None and waits_saving_pct >= least:
            return _verdict("sync_bound", "sync_refill", share_pct=min(waits_saving_pct, 100.0 * sum(shares.values())))
        return _host(budget, 100.0 * shares[top])
    if top == "unknown":
        return _unexplained(budget, 100.0 * shares[top], held_lead_ns, has_stacks)
    return _simple(top, shares)


def _counts_most(top: str, share: float, won_back_pct: float, quicker_device_pct: float | None) -> bool:
    """Whether the work of a device that works most of the time counts most, though it idles for some cause."""
    paced = quicker_device_pct is None or quicker_device_pct >= QUICKER_LEAST_PCT
    won_back = won_back_pct >= 100.0 * WON_BACK_SHARE * share
    return paced and not won_back and top not in ("communication_bound", "unknown")


def _shares(budget: Budget, exposed_ns: float, sustained_ns: float | None) -> tuple[float, dict[str, float]]:
    """The device's share of the pace, and that of each verdict's causes."""
    period = float(budget.period_ns or 0)
    busy_ns = float(budget.busy_ns or 0)
    pace = period
    if sustained_ns and sustained_ns >= busy_ns:
        pace = float(sustained_ns)
    busy = min(busy_ns / pace, 1.0)
    shares = {code: sum(budget.idle_by_cause_ns.get(c, 0) for c in causes) / period for code, causes in GROUPS.items()}
    shares["communication_bound"] += exposed_ns / period
    # A loop that runs on at the sustained pace idles less than the recorded window, by a common factor.
    idle_then, idle_now = 1.0 - busy, 1.0 - busy_ns / period
    if idle_now > 0:
        scale = min(idle_then / idle_now, 1.0)
        shares = {code: share * (scale if code != "communication_bound" else 1.0) for code, share in shares.items()}
    return busy, shares


def _largest(shares: Mapping[str, float], waits_saving_pct: float | None) -> str:
    """Verdict with the largest share; unknown, where what nothing explains is nearly as large.

    A loader that sets the pace takes up what waits leave: where the replay without them wins back next to nothing, the
    loader stands before them.
    """
    top = max(shares, key=lambda code: shares[code])
    nothing_won = waits_saving_pct is not None and waits_saving_pct < WAITS_LEAST_PCT
    if top == "sync_bound" and nothing_won and shares["input_bound"] >= CAUSE_SHARE:
        return "input_bound"
    return "unknown" if shares["unknown"] >= NEARLY_TOP * shares[top] else top


def _simple(top: str, shares: Mapping[str, float]) -> Verdict:
    """Name the largest cause, and slow launching beside communication: the plan may well begin with that."""
    if top == "communication_bound" and shares["host_bound"] >= SECOND_SHARE * shares[top]:
        idle_pct = 100.0 * shares["host_bound"]
        return _verdict(top, "communication_and_launch", share_pct=100.0 * shares[top], idle_pct=idle_pct)
    return _verdict(top, top, share_pct=100.0 * shares[top])


def _unexplained(budget: Budget, share_pct: float, held_lead_ns: float, has_stacks: bool) -> Verdict:
    """Say as much of unexplained idling as is known: whether work had been launched, and what to record."""
    held, rest = (float(budget.idle_by_cause_ns.get(cause, 0)) for cause in (GapCause.QUEUED, GapCause.UNKNOWN))
    period, busy = float(budget.period_ns or 1), float(budget.busy_ns or 0)
    if held <= rest:
        share_pct *= rest / max(held + rest, 1.0)  # what was launched already is no riddle that stacks would solve
        return _verdict("unknown", "unknown_cause" if has_stacks else "unknown_no_stacks", share_pct=share_pct)
    if held_lead_ns > held / 2 and period > held_lead_ns:
        lead_pct, rest_pct = 100.0 * held_lead_ns / period, 100.0 * busy / (period - held_lead_ns)
        return _verdict("unknown", "begun_late", lead_pct=lead_pct, rest_pct=min(rest_pct, 100.0))
    return _verdict("unknown", "held_up", held_pct=100.0 * held / period)


def _host(budget: Budget, share_pct: float) -> Verdict:
    """Say which kind of host work it is; a recording without steps that mostly starts up is not judged."""
    idle = budget.idle_by_cause_ns
    most = max(GROUPS["host_bound"], key=lambda cause: idle.get(cause, 0))
    if most == GapCause.COMPILE:
        if is_start_up(budget):
            return _verdict("unknown", "start_up_step", share_pct=100.0 * idle[most] / float(budget.period_ns or 1))
        if budget.basis == "window":
            return _verdict("unknown", "start_up", share_pct=100.0 * idle[most] / float(budget.period_ns or 1))
        return _verdict("host_bound", "host_compile", share_pct=share_pct)
    return _verdict("host_bound", "host_python" if most == GapCause.PYTHON else "host_launch", share_pct=share_pct)


def is_start_up(budget: Budget) -> bool:
    """Whether all that is known of the loop is one step that mostly starts up: its pace is then unknown.

    Where several steps compile, they compile again and again, which is their pace.
    """
    loading = budget.idle_by_cause_ns.get(int(GapCause.COMPILE), 0)
    one = budget.basis != "window" and budget.steps == 1
    return one and loading >= START_UP_SHARE * float(budget.period_ns or 1)


def judge_uneven(verdict: Verdict, busy_pct: Mapping[int, float]) -> Verdict:
    """Say that one of several devices of a program is never idle: what the mean of them says is then no cause."""
    if len(busy_pct) < 2 or verdict.code in ("communication_bound", "healthy"):
        return verdict
    device = max(busy_pct, key=lambda one: busy_pct[one])
    most, rest = busy_pct[device], [share for one, share in busy_pct.items() if one != device]
    mean = sum(rest) / len(rest)
    if most < 100.0 * DEVICE_BOUND_SHARE or mean > UNEVEN_SHARE * most:
        return verdict
    return _verdict("device_bound", "one_device", device=device, busy_pct=most, rest_pct=mean)


def judge_in_turn(
    verdict: Verdict,
    budget: Budget,
    any_busy_ns: float | None,
    devices: int,
    waits_saving_pct: float | None = None,
) -> Verdict:
    """Say that several devices of a program never work at once, where one or another always does.

    Each then idles with work launched that waits for another one's, as in a model whose parts lie on several devices;
    not where the waits of the CPU are what keeps them apart.
    """
    if verdict.code in ("communication_bound", "healthy") or not any_busy_ns or not budget.period_ns:
        return verdict
    each, together = float(budget.busy_ns or 0) / budget.period_ns, min(any_busy_ns / budget.period_ns, 1.0)
    if (waits_saving_pct or 0.0) >= 100.0 * WON_BACK_SHARE * (1.0 - each):
        return verdict
    if together < DEVICE_BOUND_SHARE or each * devices > IN_TURN_SHARE * together:
        return verdict
    return _verdict("device_bound", "in_turn", together_pct=100.0 * together, each_pct=100.0 * each)


def judge_too_little(count: int) -> Verdict:
    """Judge nothing: so little device work has no pace."""
    return _verdict("unknown", "too_little", count=count)


def judge_cut_off() -> Verdict:
    """Judge nothing: a file that breaks off holds no fair share of any kind of work."""
    return _verdict("unknown", "cut_off")


def judge_lost(lost_pct: float) -> Verdict:
    """Judge nothing: what most launches started is not in the trace."""
    return _verdict("unknown", "launches_lost", lost_pct=lost_pct)


def judge_captured(captured_pct: float) -> Verdict:
    """Judge nothing: most launches were captured into a graph, which is done once and not in every step."""
    return _verdict("unknown", "captured", captured_pct=captured_pct)


def judge_without_device(
    names_device: bool, loader_share: float | None, has_slices: bool, left_alone: bool = False, foreign: bool = False
) -> Verdict:
    """Judge a trace without device work.

    ``left_alone``: operators and calls of the runtime were recorded, and no call launches anything. ``foreign``: tracks
    are named as another program names a device's.
    """
    if not has_slices:
        return _verdict("unknown", "empty")
    if foreign:
        return _verdict("unknown", "foreign_device")
    if left_alone:
        return _verdict("unknown", "left_alone")
    if names_device:
        return _verdict("unknown", "no_device_events")
    if loader_share is not None and loader_share >= LOADER_SHARE:
        return _verdict("input_bound", "loader_cpu", share_pct=100.0 * loader_share)
    return _verdict("unknown", "cpu_only")
