"""The words of the doctor: one entry per thing that it may say, as templates with named values.

The key is the note's code, with a variant behind a slash where one code has several texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class NoteText(NamedTuple):
    """Severity (info, warning, error), what is so, what it means for the figures, and what to do."""

    severity: str
    title: str
    consequence: str
    cure: str


_RECORD_STEPS = "Give the profiler a schedule and call prof.step() at the end of every iteration."
_UNKNOWN_BUSY = "How busy the device was is unknown; it is not 0 %."
_WARM_UP = "Give the schedule wait and warmup steps, so that the recording begins in the steady state."

TEXTS: Mapping[str, NoteText] = {
    "no-steps-marked": NoteText(
        "warning",
        "The trace has no step markers.",
        "Step times, and all figures per step, are unknown.",
        _RECORD_STEPS,
    ),
    "no-steps-marked/own": NoteText(
        "warning",
        "{reason}",
        "Step times, and all figures per step, are unknown.",
        "{cure}",
    ),
    "no-steps-marked/inferred": NoteText(
        "warning",
        "The trace has no step markers.",
        "{count} {count|iteration was|iterations were} worked out from annotations, loader or optimizer marks; "
        "{count|it is|they are} called inferred.",
        _RECORD_STEPS,
    ),
    "no-steps-marked/engine": NoteText(
        "info",
        "The recording holds one step of an inference engine.",
        "All times and savings are of this step; whether others are like it is unknown.",
        "Profile while the engine works on several requests: its steps are found by its own marks.",
    ),
    "no-steps-marked/giant": NoteText(
        "warning",
        "The only marked step holds about {count} {count|iteration|iterations}.",
        "Its time and all figures per step are those of all of them together.",
        _RECORD_STEPS,
    ),
    "warmup-captured": NoteText(
        "info",
        "Warm-up is in the recording.",
        "{count} of {steps} {steps|step|steps} {count|is|are} left out of the means.",
        _WARM_UP,
    ),
    "warmup-captured/start-up": NoteText(
        "warning",
        "The device waits {share:.0f} % of the recorded time for code to be compiled or loaded.",
        "That happens once; the recording says little about the steps after it.",
        _WARM_UP,
    ),
    "steps-truncated": NoteText(
        "info",
        "Steps at the border of the recording are cut off.",
        "{count} of {steps} {steps|step|steps} {count|is|are} left out of the means.",
        "Record more steps.",
    ),
    "steps-truncated/all": NoteText(
        "info",
        "Steps at the border of the recording are cut off.",
        "No step is left without a fault, so that the means are taken over faulty ones.",
        "Record more steps.",
    ),
    "steps-truncated/lost": NoteText(
        "warning",
        "The device work of some steps is not in the trace.",
        "{count} of {steps} {steps|step|steps} {count|is|are} left out of the means.",
        "Record fewer steps at once, or with larger profiler buffers.",
    ),
    "outlier-step": NoteText(
        "info",
        "{count} {count|step takes|steps take} far longer than the others.",
        "{count|It is|They are} left out of the means.",
        "Look at what {count|it does|they do} besides: a checkpoint, an evaluation, logging.",
    ),
    "uneven-steps": NoteText(
        "warning",
        "The recorded steps take {low_ms:time} to {high_ms:time}; the middle half of them differs by {share:.0f} %.",
        "A mean stands for few of them, and a saving of a few percent is less than what they differ by.",
        "Something else may have used this machine, or each step has other work to do. Close other programs, or record "
        "more steps.",
    ),
    "gpu-events-missing/launched": NoteText(
        "error",
        "{count} {count|kernel was|kernels were} launched, but no device work was recorded.",
        _UNKNOWN_BUSY,
        "Record ProfilerActivity.CUDA; allow the counters to users (NVreg_RestrictProfilingToAdminUsers=0, or run as "
        "administrator); let no second profiler run; on WSL update the driver.",
    ),
    "gpu-events-missing/none": NoteText(
        "warning",
        "The trace knows of a GPU but holds no device work.",
        _UNKNOWN_BUSY,
        "Record ProfilerActivity.CUDA, and see whether the model and its inputs are on the device.",
    ),
    "held-up-work": NoteText(
        "info",
        "For {share:.0f} % of the time the device shows no work although some was launched.",
        "What held it back is not in the trace: another rank, another stream or process, or events that were not "
        "recorded. It is charged to nobody.",
        "Record all ranks over the same steps, and every stream; with larger profiler buffers, or fewer steps at once.",
    ),
    "held-up-work/lead": NoteText(
        "info",
        "For {share:.0f} % of the recording its first device work was launched and did not run.",
        "The device probably worked off what had been launched before the recording began; it may not have been idle.",
        _WARM_UP,
    ),
    "orphan-kernels": NoteText(
        "info",
        "{orphans} {orphans|piece of device work has|pieces of device work have} no launch in the trace; "
        "{launches} {launches|launch has|launches have} no device work in it.",
        "Such work is counted as work, but in no step and under no operator.",
        "Usually they lie at the border of the recording; record more steps, or with larger profiler buffers.",
    ),
    "orphan-kernels/work": NoteText(
        "info",
        "{orphans} {orphans|piece of device work has|pieces of device work have} no launch in the trace.",
        "Such work is counted as work, but in no step and under no operator.",
        "Usually it lies at the border of the recording; record more steps, or with larger profiler buffers.",
    ),
    "orphan-kernels/launches": NoteText(
        "info",
        "{launches} {launches|launch has|launches have} no device work in the trace.",
        "The device was a little busier than it seems.",
        "Usually they lie at the border of the recording; record more steps, or with larger profiler buffers.",
    ),
    "orphan-kernels/most": NoteText(
        "info",
        "{orphans} {orphans|piece of device work has|pieces of device work have} no launch in the trace.",
        "Such work is counted as work, but in no step and under no operator.",
        "So much does not lie at the border of the recording: the calls that launched it, or what links them to it, "
        "were not recorded. Record with a newer torch, and a newer profiler of this device.",
    ),
    "orphan-kernels/no-launches": NoteText(
        "info",
        "No launch was recorded for any of the {orphans} {orphans|piece|pieces} of device work.",
        "Each counts in the step in which it starts, and under no operator.",
        "Record ProfilerActivity.CPU as well: launches and operators come with it.",
    ),
    "orphan-kernels/many": NoteText(
        "warning",
        "{launches} of {all} {all|launch|launches} {launches|has|have} no device work in the trace.",
        "The device was probably busier than it seems.",
        "Record fewer steps at once, or with larger profiler buffers.",
    ),
    "graph-captured": NoteText(
        "info",
        "{launches} of {all} {all|launch|launches} {launches|was|were} captured into a graph.",
        "A captured launch runs nothing, so this time is that of making the graph, once, not that of a step.",
        "Record steps after the capture, when the graph is replayed.",
    ),
    "clock-skew": NoteText(
        "warning",
        "{count} {count|piece of device work starts before it is|pieces of device work start before they are} "
        "launched.",
        "The clocks of host and device disagree; launch delays and waits are off by as much.",
        "Update the driver and PyTorch; record again.",
    ),
    "stacks-missing": NoteText(
        "warning",
        "Python stacks were asked for, but the trace holds none.",
        "No finding can name the line of code behind it.",
        "Some versions lose them (Python 3.11 and 3.12, torch before 2.3): update PyTorch, record again.",
    ),
    "data-not-recorded": NoteText(
        "info",
        "Not recorded: {missing}.",
        "Rules that need it are not checked; what was not recorded is unknown, not 0.",
        "Record again with what you need.",
    ),
    "data-not-recorded/failed": NoteText(
        "warning",
        "{how}",
        "What was recorded until then is shown.",
        "Cure the error, then run it again.",
    ),
    "data-not-recorded/lacking": NoteText(
        "info",
        "Not recorded: {missing}, though chosen.",
        "The script ended before the chosen steps, and its first ones are recorded without. Rules that need it are not "
        "checked.",
        "Run it again, and let it record the chosen steps.",
    ),
    "data-not-recorded/early": NoteText(
        "warning",
        "These are the first steps of the script, not the chosen ones.",
        "It ended or was stopped before those were recorded. Start-up is in these times, and what you asked for is "
        "lacking here: {left_out}.",
        "Run it again until the run's page says that the trace is saved, or skip fewer steps.",
    ),
    "profiler-overhead": NoteText(
        "warning",
        "The profiler's own work takes {share:.0f} % of the recording.",
        "Host times are longer than they are without it.",
        "Record without stacks, shapes and memory, and compare.",
    ),
    "profiler-overhead/stacks": NoteText(
        "info",
        "{count} {count|Python call was|Python calls were} recorded, {rate:.0f} in a millisecond.",
        "Recording each of them slows the CPU down; the device's times do not change.",
        "Before working on the CPU side, record once without stacks and compare the step times.",
    ),
    "two-profilers": NoteText(
        "warning",
        "The script starts a profiler of its own inside the recording.",
        "The inner one takes over the session: device work after it may be missing.",
        "Switch the script's own profiler off while recording.",
    ),
    "enqueue-time": NoteText(
        "warning",
        "The step markers measure how long it takes to queue a step, not how long a step takes.",
        "The CPU runs ahead of the device; the marked step time says nothing about throughput.",
        "Judge by the period or the sustained step time, or measure the loop by the wall clock.",
    ),
}
