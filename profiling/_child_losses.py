"""Keeps the losses of the steps, so that two runs under one seed can be compared.

A loss is what ``backward()`` is called on. Its value is read when the script has ended, so nothing waits for the
device; the hook takes itself away before the window is recorded, so that the trace shows nothing of it, and comes back
after it. Where results were asked for, it stays (a Python frame around each backward pass), and the parameters that an
optimizer steps are summed up as well: once the script has ended, and after a chosen step.
Runs in the user's interpreter: standard library and torch only.
"""

import contextlib
import functools
import json
import os

MOST = 2000
MOST_PARAMETERS = 20_000


class Losses:
    """Notes the tensors that ``Tensor.backward`` is called on, up to the steps that are recorded.

    Parameters
    ----------
    torch, recorder
        The module, and the recorder whose phase says when to stop.
    path
        File that receives the values.
    last_phases
        Phases in which the hook takes itself away, unless parameters are wished for.
    parameters
        Keep sums of the parameters too.
    parameters_after
        Number of steps after which they are summed up as well; 0 for the end alone.
    """

    def __init__(self, torch, recorder, in_folder, last_phases, parameters=False, parameters_after=0):
        self.torch, self.recorder, self._in_folder = torch, recorder, in_folder
        self.recorded_phases = last_phases
        self.last_phases = () if parameters else last_phases
        self.steps = []  # number of the step that each loss is of
        self.after = parameters_after
        self.at_step = None  # what came of that
        self.pid = os.getpid()
        self.kept = []
        self._original = None
        self._hook = None
        self._optimizers = set()  # ids of those whose parameters are kept
        self._parameters = []  # storage only: what an optimizer does to a parameter in place is seen
        self._wanted = parameters

    def install(self):
        """Hook in; before any other hook of ``backward``, which then wraps this one and gives it back."""
        tensor, losses = self.torch.Tensor, self
        original = self._original = tensor.backward

        @functools.wraps(original)
        def backward(self, *args, **kwargs):
            losses.take(self)
            return original(self, *args, **kwargs)

        self._hook = tensor.backward = backward
        self.recorder.on_phase = self.on_phase
        if self.after:
            self.recorder.on_counted = self.on_counted
        if self._wanted:
            from torch.optim.optimizer import register_optimizer_step_pre_hook

            register_optimizer_step_pre_hook(self._keep_parameters)

    def _keep_parameters(self, optimizer, args, kwargs):
        if id(optimizer) not in self._optimizers and os.getpid() == self.pid:
            self._optimizers.add(id(optimizer))
            found = [p.data for group in optimizer.param_groups for p in group["params"]]
            self._parameters += found[: MOST_PARAMETERS - len(self._parameters)]

    def _sums(self):
        """Sum and length (square root of the sum of squares) of each parameter, in double precision."""
        double = self.torch.float64
        sums = []
        for p in self._parameters:
            size = self.torch.linalg.vector_norm(p.detach(), dtype=double if p.is_floating_point() else None)
            pair = (float(p.sum(dtype=double)), float(size))
            sums.append(list(pair) if all(v - v == 0 for v in pair) else None)
        return sums

    def on_phase(self, phase):
        """The recorder went on: after the window, the hook comes back."""
        wanted = self._hook is not None and phase not in self.last_phases and len(self.kept) < MOST
        if wanted and self.torch.Tensor.backward is self._original and os.getpid() == self.pid:
            self.torch.Tensor.backward = self._hook

    def on_counted(self, number):
        """A step has ended. Summing up waits for the device: outside of what is timed or recorded, or not at all."""
        if number != self.after or self.at_step is not None or os.getpid() != self.pid:
            return
        self.at_step = {"step": number}
        if self.recorder.phase in self.recorded_phases:
            self.at_step["reason"] = "recorded"
            return
        clocked = self.recorder.clock.runs
        if clocked:
            self.recorder.clock.stop()
        try:
            self.at_step["sums"] = self._sums()
        except Exception as error:  # a device without float64, say
            self.at_step["reason"] = repr(error)
        if clocked:
            self.recorder.clock.start()

    def take(self, loss):
        """Keep a loss; its storage only, since the graph behind it must be free to go."""
        if self.recorder.phase in self.last_phases or len(self.kept) >= MOST or os.getpid() != self.pid:
            self.remove()
            return
        self.kept.append(loss.data if loss.numel() == 1 else None)
        self.steps.append(self.recorder.number)

    def remove(self):
        """Take the hook away, unless another one has been put on top of it."""
        if self.torch.Tensor.backward is self._hook:
            self.torch.Tensor.backward = self._original

    def write(self):
        """Read the values and write them; a device in a bad state costs the losses, not the run."""
        self.remove()
        self._hook = None
        if not (self.kept or self._parameters) or os.getpid() != self.pid:
            return
        values = []
        for loss in self.kept:
            value = None if loss is None else float(loss)
            values.append(value if value is not None and value - value == 0 else None)  # inf and nan are no JSON
        recorded = not self.last_phases
        content = {"format": "steplens.losses/1", "values": values, "steps": self.steps, "recorded": recorded}
        if self.at_step is not None:
            content["parameters_after"] = self.at_step
        if self._wanted:
            with contextlib.suppress(Exception):  # a device without float64, say: then the losses alone are kept
                content["parameters"] = self._sums()
        path = self._in_folder("losses.json")
        partial = path + ".partial"
        with open(partial, "w", encoding="utf-8") as handle:
            json.dump(content, handle)
        os.replace(partial, path)
