"""What profiling says to a person: a key, an English template with named values, and the values of the case.

This package knows no toolkit, so it cannot translate; whoever shows a :class:`Sentence` can, it carries
all three. As it is, it is English text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONTEXT = "profiling"  # under which translations of the templates are kept


def QT_TRANSLATE_NOOP(context: str, words: str) -> str:  # the extractor of translations finds the texts by this name
    """Return a text as it is."""
    return words


class Sentence(str):
    """Text in English that knows what it is made from.

    Attributes
    ----------
    key
        Stable name of what is said; empty for a text that nobody here wrote.
    template
        The English words, with values in braces as ``str.format`` takes them.
    values
        Named values; a value may be a sentence itself.
    """

    key: str
    template: str
    values: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {"id": self.key, "template": self.template, "values": {k: str(v) for k, v in self.values.items()}}


def say(key: str, /, **values: Any) -> Sentence:
    """The sentence of this key with its values filled in; a value that lacks is shown as a question mark."""
    template = TEMPLATES[key]
    made = Sentence(template.format_map(_Known(values)))
    made.key, made.template, made.values = key, template, values
    return made


def joined(*sentences: str) -> Sentence:
    """Several sentences as one text."""
    parts = {f"part_{number}": part for number, part in enumerate(s for s in sentences if s)}
    made = Sentence(" ".join(parts.values()))
    made.key, made.template, made.values = "", " ".join("{" + name + "}" for name in parts), parts
    return made


class _Known(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


TEMPLATES = {
    # What a run's recording lacks, and why
    "workers": QT_TRANSLATE_NOOP(
        "profiling",
        "The data loader's worker processes are not in the trace: what they do is unknown, only how long the training "
        "waits for them can be seen.",
    ),
    "whole": QT_TRANSLATE_NOOP(
        "profiling", "No step was found, so the first {seconds} seconds after torch was imported are recorded."
    ),
    "anew": QT_TRANSLATE_NOOP(
        "profiling",
        "No step ended for {seconds} seconds, so the recording was cut and began again ({times}×): other programs had "
        "the processor, or the script did something else between its steps.",
    ),
    "lines": QT_TRANSLATE_NOOP("profiling", "The exact lines could not be written: {error}"),
    "script-trace-copy": QT_TRANSLATE_NOOP("profiling", "A trace of the script's own profiler was not copied: {error}"),
    "script-trace": QT_TRANSLATE_NOOP("profiling", "The script's own profiler left no trace: {error}"),
    "script-traces": QT_TRANSLATE_NOOP(
        "profiling", "What the script's own profiler recorded is kept in the run's folder, too: {names}."
    ),
    "more-traces": QT_TRANSLATE_NOOP(
        "profiling",
        "Beside the trace that is opened, the run's folder holds those of other windows or processes: {names}.",
    ),
    "script-profiler-never-stepped": QT_TRANSLATE_NOOP(
        "profiling", "The script's own profiler never became active because prof.step() was not called."
    ),
    "script-profiler-idle": QT_TRANSLATE_NOOP("profiling", "The script's own profiler never became active."),
    "not-written": QT_TRANSLATE_NOOP("profiling", "What came of the run could not be written down: {error}"),
    "recording": QT_TRANSLATE_NOOP("profiling", "The recording failed: {error}"),
    "unsaved": QT_TRANSLATE_NOOP(
        "profiling", "The trace could not be written: {error}. Look at the run's folder, or choose another one."
    ),
    "unsaved-full": QT_TRANSLATE_NOOP(
        "profiling",
        "The trace could not be written, since the disk is full ({error}). Delete old runs or choose another folder.",
    ),
    "unsaved-large": QT_TRANSLATE_NOOP(
        "profiling",
        "The trace could not be written, since files may not be so large here ({error}). Raise the limit (ulimit -f), "
        "or record fewer steps.",
    ),
    "log-cut": QT_TRANSLATE_NOOP(
        "profiling", "The script's output could not be kept whole in the run's folder: {error}"
    ),
    "watching": QT_TRANSLATE_NOOP(
        "profiling", "StepLens itself failed while the script ran, so that what came of it is not all known: {error}"
    ),
    "no-torch": QT_TRANSLATE_NOOP("profiling", "The script did not use torch: nothing was recorded."),
    "nothing-ran": QT_TRANSLATE_NOOP(
        "profiling", "Nothing of torch ran while the script was recorded, so there is no trace."
    ),
    "children": QT_TRANSLATE_NOOP(
        "profiling", "Training ran in child processes that were not recorded; the trace shows the parent only."
    ),
    "children-stacks": QT_TRANSLATE_NOOP(
        "profiling",
        "Training ran in forked processes that were not recorded, since Python stacks were being recorded when they "
        "began, which does not survive a fork. Record without stacks to have them, or start them by spawn.",
    ),
    "children-device": QT_TRANSLATE_NOOP(
        "profiling",
        "Training ran in forked processes that were not recorded: the profiler of a torch with GPU support does not "
        "survive a fork. Start them by spawn to have them.",
    ),
    "children-many": QT_TRANSLATE_NOOP(
        "profiling", "Many processes trained: of those without a rank, only the first {number} that did were recorded."
    ),
    "commands": QT_TRANSLATE_NOOP(
        "profiling",
        "No step was seen, and the script started another command ({command}). What it starts through a shell, under "
        "another interpreter or as a launcher of ranks is not recorded: record that command itself.",
    ),
    "killed-early": QT_TRANSLATE_NOOP(
        "profiling",
        "A trace is written when its steps are over; what was recorded until then was in the memory of the script. "
        "A short window from the first step on (nothing to skip, no warm-up, one step) is written the earliest.",
    ),
    "cut": QT_TRANSLATE_NOOP("profiling", "The script ended while its trace was being written: the trace is cut off."),
    "optimizer-waited": QT_TRANSLATE_NOOP(
        "profiling",
        "An optimizer did not step while another one stepped {steps} times, so it is not waited for. The first step of "
        "this run covers those {steps}.",
    ),
    "steps-unknown": QT_TRANSLATE_NOOP(
        "profiling",
        "Nothing told where a step ends: no optimizer of torch.optim, no data loader, no call of a module, no "
        "backward(). So the trace has no step marks, and is without {left_out}. To have those too, record the whole "
        "run (A step is: No steps; or --steps whole). To have steps, let the script call prof.step() of a "
        "torch.profiler of its own.",
    ),
    "no-steps": QT_TRANSLATE_NOOP("profiling", "No complete step was found, so the trace has no step marks."),
    "early": QT_TRANSLATE_NOOP(
        "profiling",
        "The script ended before the steps that were to be recorded, so its first steps are shown, without {left_out}. "
        "Run it again with nothing to skip and no warm-up to record everything.",
    ),
    "left-out": QT_TRANSLATE_NOOP("profiling", "{left} and {out}"),
    # What spoils its times
    "anomaly": QT_TRANSLATE_NOOP(
        "profiling",
        "Anomaly detection is on (torch.autograd.set_detect_anomaly or detect_anomaly): every backward operation is "
        "checked, and the device waits each time. Turn it off before measuring.",
    ),
    "launch-blocking": QT_TRANSLATE_NOOP(
        "profiling",
        "CUDA_LAUNCH_BLOCKING=1 is set: every launch waits for its kernel, so that the times are not the true ones. "
        "Unset it before measuring.",
    ),
    "disturbed": QT_TRANSLATE_NOOP(
        "profiling",
        "A step took longer without the profiler ({wall}) than while it was recorded ({profiled}): something else used "
        "the machine meanwhile, or the loop had not reached its pace. Do not compare the two; record again with more "
        "steps to skip.",
    ),
    # Marks of lines
    "marks-none": QT_TRANSLATE_NOOP(
        "profiling", "No statement was marked: no function of the imported files has the name that was asked for."
    ),
    "marks-unknown": QT_TRANSLATE_NOOP(
        "profiling", "What the marks of the lines cost is not known: too few steps, or torch.compile is used."
    ),
    "marks-free": QT_TRANSLATE_NOOP("profiling", "The marks of the lines cost nothing that can be measured here."),
    "marks-cost": QT_TRANSLATE_NOOP("profiling", "The marks of the lines made a recorded step {times} times as long."),
    "marks-fewer": QT_TRANSLATE_NOOP("profiling", "Choose fewer functions to make it less."),
    # Where it ran
    "gpu-unrecorded": QT_TRANSLATE_NOOP(
        "profiling",
        "The script uses a GPU, and the trace holds nothing of it: either nothing ran there while it was recorded, or "
        "the profiler could not reach the GPU.",
    ),
    "cpu-asked": QT_TRANSLATE_NOOP(
        "profiling", "Everything ran on the CPU: the GPUs were hidden from the script, as was asked for."
    ),
    "cpu-build": QT_TRANSLATE_NOOP(
        "profiling", "Everything ran on the CPU: this torch is a CPU build, so there is no device to wait for."
    ),
    "cpu-unused": QT_TRANSLATE_NOOP(
        "profiling",
        "Everything ran on the CPU, although this torch is built for a GPU ({build}): the script sent nothing to one, "
        "or saw none. Look at its choice of device, at CUDA_VISIBLE_DEVICES and at the driver.",
    ),
    # How the script ended
    "ended-normally": QT_TRANSLATE_NOOP("profiling", "The script ended normally."),
    "ended-status": QT_TRANSLATE_NOOP("profiling", "The script ended with exit status {status}."),
    "ended-signal": QT_TRANSLATE_NOOP("profiling", "The script was ended by signal {number}."),
    "ended-killed": QT_TRANSLATE_NOOP("profiling", "The script was killed by signal {number} ({name})."),
    "ended-named": QT_TRANSLATE_NOOP("profiling", "The script was ended by signal {number} ({name})."),
    "not-followed": QT_TRANSLATE_NOOP("profiling", "The script did not follow the request to stop and was killed."),
    "stopped": QT_TRANSLATE_NOOP("profiling", "The script was stopped."),
    "kept": QT_TRANSLATE_NOOP("profiling", "What was recorded before is kept."),
    "no-trace": QT_TRANSLATE_NOOP("profiling", "No trace was recorded."),
    "SIGKILL": QT_TRANSLATE_NOOP(
        "profiling",
        "It was killed from outside; most often the system does that when memory runs out. "
        "Try a smaller batch or fewer loader workers, and record without memory and shapes.",
    ),
    "SIGSEGV": QT_TRANSLATE_NOOP("profiling", "It crashed in native code (a segmentation fault)."),
    "SIGABRT": QT_TRANSLATE_NOOP(
        "profiling", "It aborted in native code (a failed assertion or an uncaught C++ error)."
    ),
    "SIGBUS": QT_TRANSLATE_NOOP("profiling", "It crashed on a memory access; often shared memory is too small."),
    "SIGILL": QT_TRANSLATE_NOOP("profiling", "It used an instruction that this processor does not have."),
    "SIGFPE": QT_TRANSLATE_NOOP("profiling", "It crashed on an arithmetic error in native code."),
    "SIGINT": QT_TRANSLATE_NOOP("profiling", "It was interrupted."),
    "SIGTERM": QT_TRANSLATE_NOOP("profiling", "It was asked to end."),
    # What to do about an error
    "hint-module": QT_TRANSLATE_NOOP(
        "profiling",
        "The chosen interpreter has no module {package}. Install it there, or choose another interpreter.",
    ),
    "hint-gpu-memory": QT_TRANSLATE_NOOP(
        "profiling",
        "The GPU's memory is full. Try a smaller batch, record without memory and shapes, and look whether another "
        "program holds memory on this GPU.",
    ),
    "hint-memory": QT_TRANSLATE_NOOP(
        "profiling",
        "The machine's memory is full. Try a smaller batch or fewer loader workers, and record without memory and "
        "shapes.",
    ),
    "hint-crash": QT_TRANSLATE_NOOP(
        "profiling", "Run it alone: if it does not crash then, record without Python stacks, shapes and memory."
    ),
    "hint-privileges": QT_TRANSLATE_NOOP(
        "profiling",
        "The driver lets only administrators profile. Allow it for everyone with the module option "
        "NVreg_RestrictProfilingToAdminUsers=0 and restart, or run as administrator.",
    ),
    "hint-subscriber": QT_TRANSLATE_NOOP(
        "profiling",
        "Another profiler is attached to this process (Nsight, DCGM, a second torch.profiler). Close it and run again.",
    ),
    "hint-cupti": QT_TRANSLATE_NOOP(
        "profiling",
        "CUPTI, through which torch's profiler sees the GPU, could not be started; the output names its error. Mostly "
        "the driver is older than this torch needs, or a container hides a part of it: update it, or choose a torch "
        "built for it.",
    ),
    "hint-package": QT_TRANSLATE_NOOP(
        "profiling", "This file belongs to a package. Run it as a module instead (the launcher offers that)."
    ),
    "hint-input": QT_TRANSLATE_NOOP("profiling", "The script asks for input, and there was none to read."),
    "hint-kernel": QT_TRANSLATE_NOOP(
        "profiling",
        "A kernel failed earlier than this line: errors of kernels arrive late. Set CUDA_LAUNCH_BLOCKING=1 to find the "
        "true line (and take it away again before profiling).",
    ),
    "hint-driver": QT_TRANSLATE_NOOP(
        "profiling",
        "The driver and this build of torch do not fit together. Install a newer driver or a torch built for it.",
    ),
    "hint-driverless": QT_TRANSLATE_NOOP(
        "profiling", "There is no NVIDIA driver here. Install it, or let the script use the CPU."
    ),
    "hint-cpu-build": QT_TRANSLATE_NOOP(
        "profiling", "This torch is a CPU build. Choose an interpreter whose torch is built for a GPU."
    ),
    "hint-compiler": QT_TRANSLATE_NOOP(
        "profiling",
        "torch.compile writes C++ and needs a C++ compiler to build it: install one (g++ or clang; on Windows the "
        "build tools of Visual Studio), or name it in the variable CXX. Until then run it without torch.compile.",
    ),
    "hint-triton": QT_TRANSLATE_NOOP(
        "profiling",
        "torch.compile writes its kernels for a GPU in Triton, which this interpreter lacks or which does not know "
        "this GPU: install the triton that belongs to this torch. Until then run the script without torch.compile.",
    ),
    "hint-disk": QT_TRANSLATE_NOOP("profiling", "The disk is full."),
    "hint-worker": QT_TRANSLATE_NOOP(
        "profiling", "A loader's worker died. In a container, shared memory is often too small (--shm-size)."
    ),
    # Where the steps come from
    "source-script": QT_TRANSLATE_NOOP("profiling", "the script's own prof.step()"),
    "source-optimizer": QT_TRANSLATE_NOOP("profiling", "optimizer steps"),
    "source-loader": QT_TRANSLATE_NOOP("profiling", "iterations of the data loader"),
    "source-module": QT_TRANSLATE_NOOP("profiling", "calls of the outermost module"),
    "source-backward": QT_TRANSLATE_NOOP("profiling", "calls of backward()"),
    "source-whole": QT_TRANSLATE_NOOP("profiling", "none: the whole run is one window"),
    "source-none": QT_TRANSLATE_NOOP("profiling", "none were found"),
    # What an interpreter can do, before a run
    "python-alone": QT_TRANSLATE_NOOP("profiling", "Python {python}, no torch"),
    "python-cpu": QT_TRANSLATE_NOOP("profiling", "Python {python}, torch {torch}, CPU only"),
    "python-gpu": QT_TRANSLATE_NOOP(
        "profiling", "Python {python}, torch {torch}, {device} ({free} of {total} GiB free)"
    ),
    "python-gpus": QT_TRANSLATE_NOOP(
        "profiling", "Python {python}, torch {torch}, {device} ({free} of {total} GiB free) and {more} more"
    ),
    "torch-broken": QT_TRANSLATE_NOOP("profiling", "torch is there but cannot be imported: {error}"),
    "cure-install-anew": QT_TRANSLATE_NOOP("profiling", "Install it anew."),
    "torch-missing": QT_TRANSLATE_NOOP("profiling", "This interpreter has no torch."),
    "cure-install": QT_TRANSLATE_NOOP(
        "profiling", "Install it there ({python} -m pip install torch) or choose another interpreter."
    ),
    "torch-old": QT_TRANSLATE_NOOP("profiling", "torch {version} is too old."),
    "cure-newer": QT_TRANSLATE_NOOP("profiling", "torch 2.0 or newer is needed."),
    "torch-bare": QT_TRANSLATE_NOOP("profiling", "This torch was built without its profiler (Kineto)."),
    "cure-official": QT_TRANSLATE_NOOP("profiling", "Use an official build."),
    "build-cpu": QT_TRANSLATE_NOOP("profiling", "This torch is a CPU build: there is no device to wait for."),
    "cure-cuda-build": QT_TRANSLATE_NOOP("profiling", "A GPU can only be seen with a CUDA build of torch."),
    "gpu-unusable": QT_TRANSLATE_NOOP("profiling", "torch cannot use the GPU: {error}."),
    "cure-driver": QT_TRANSLATE_NOOP(
        "profiling",
        "Often the driver is older than this torch needs: update the driver or install a torch built for it.",
    ),
    "gpu-driverless": QT_TRANSLATE_NOOP("profiling", "There is no NVIDIA driver here: the run will use the CPU."),
    "cure-driverless": QT_TRANSLATE_NOOP("profiling", "Where there is a GPU, install its driver."),
    "gpu-unseen": QT_TRANSLATE_NOOP("profiling", "No GPU is visible: the run will use the CPU."),
    "cure-visible": QT_TRANSLATE_NOOP("profiling", "Look at CUDA_VISIBLE_DEVICES and the driver."),
    "blocking-set": QT_TRANSLATE_NOOP(
        "profiling",
        "CUDA_LAUNCH_BLOCKING=1 makes every launch wait for its kernel: the times will not be the true ones.",
    ),
    "script-anomaly": QT_TRANSLATE_NOOP(
        "profiling",
        "Line {line} of the script turns anomaly detection on: every backward operation is checked, and the device "
        "waits each time.",
    ),
    "cure-turn-off": QT_TRANSLATE_NOOP("profiling", "Turn it off before profiling."),
    "script-blocking": QT_TRANSLATE_NOOP(
        "profiling",
        "Line {line} of the script sets CUDA_LAUNCH_BLOCKING=1: every launch waits for its kernel, so that the times "
        "will not be the true ones.",
    ),
    "cure-unset": QT_TRANSLATE_NOOP("profiling", "Unset it before profiling."),
    "attached": QT_TRANSLATE_NOOP(
        "profiling", "Another profiler seems to be attached ({name} is set); only one can use CUPTI."
    ),
    "cure-outside": QT_TRANSLATE_NOOP("profiling", "Start this program outside of it."),
    "restricted": QT_TRANSLATE_NOOP(
        "profiling", "The driver may refuse profiling: it is restricted to administrators."
    ),
    "cure-restricted": QT_TRANSLATE_NOOP(
        "profiling",
        "Set the driver's option NVreg_RestrictProfilingToAdminUsers=0 (and restart), or run as administrator.",
    ),
    "disk-low": QT_TRANSLATE_NOOP(
        "profiling", "Only {free} MB are free where runs are kept; a trace takes 1 to 500 MB."
    ),
    "cure-disk": QT_TRANSLATE_NOOP("profiling", "Delete old runs or choose another folder."),
    # Why nothing could be started
    "interpreter-silent": QT_TRANSLATE_NOOP(
        "profiling", "The interpreter {path} did not answer within {seconds} seconds."
    ),
    "interpreter-dead": QT_TRANSLATE_NOOP("profiling", "The interpreter {path} cannot be started."),
    "interpreter-none": QT_TRANSLATE_NOOP("profiling", "{path} is no usable Python."),
    "cure-interpreter": QT_TRANSLATE_NOOP("profiling", "Choose another interpreter."),
    "cure-processes": QT_TRANSLATE_NOOP("profiling", "Close other programs: there is no room for a further process."),
    "cure-another": QT_TRANSLATE_NOOP("profiling", "Choose another one."),
    "no-run-folder": QT_TRANSLATE_NOOP("profiling", "No run folder can be made in {folder}."),
    "not-renamed": QT_TRANSLATE_NOOP("profiling", "This run cannot be renamed."),
    "cure-name": QT_TRANSLATE_NOOP("profiling", "A name is needed, and its run.json."),
    "no-schedule": QT_TRANSLATE_NOOP("profiling", "The schedule has no step to record."),
    "schedule-is": QT_TRANSLATE_NOOP("profiling", "skip {skip}, warm-up {warmup}, active {active}, repeat {repeat}"),
    "cure-schedule": QT_TRANSLATE_NOOP("profiling", "Active and repeat are at least 1, the others at least 0."),
    "one-target": QT_TRANSLATE_NOOP("profiling", "A run needs either a script or a module."),
    "cure-one": QT_TRANSLATE_NOOP("profiling", "Choose one of the two."),
    "step-source": QT_TRANSLATE_NOOP("profiling", "Unknown step source: {name}."),
    "cure-one-of": QT_TRANSLATE_NOOP("profiling", "One of {names}."),
    "names-no-gpu": QT_TRANSLATE_NOOP("profiling", "This names no GPU: {name}."),
    "cure-gpu": QT_TRANSLATE_NOOP("profiling", "Write 0, or 0,1, or none."),
    "input-mode": QT_TRANSLATE_NOOP("profiling", "Unknown way to connect the input: {name}."),
    "no-folder": QT_TRANSLATE_NOOP("profiling", "The working folder {path} does not exist."),
    "no-script": QT_TRANSLATE_NOOP("profiling", "The script {path} does not exist."),
    "is-notebook": QT_TRANSLATE_NOOP("profiling", "{path} is a notebook, not a script."),
    "no-notebook": QT_TRANSLATE_NOOP("profiling", "The notebook {path} cannot be read."),
    "cell-await": QT_TRANSLATE_NOOP(
        "profiling", "Cell {number} of {path} ({line}) uses await outside of a function, which no script can."
    ),
    "cure-await": QT_TRANSLATE_NOOP("profiling", "Put it into an async function and call that by asyncio.run(...)."),
    "cell-broken": QT_TRANSLATE_NOOP("profiling", "Cell {number} of {path} ({line}) is not valid Python."),
    "cure-cell": QT_TRANSLATE_NOOP("profiling", "Correct the cell and save the notebook."),
    "no-script-beside": QT_TRANSLATE_NOOP("profiling", "No script can be written beside {path}."),
    "cure-notebook": QT_TRANSLATE_NOOP("profiling", "Save it as a Python script, and choose that."),
    "cure-path": QT_TRANSLATE_NOOP("profiling", "Check the path."),
}
