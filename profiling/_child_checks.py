"""Looks for switches that make a training step slow on purpose, so that nobody measures them unawares.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import os

ANOMALY = (
    "Anomaly detection is on (torch.autograd.set_detect_anomaly or detect_anomaly): every backward operation is "
    "checked, and the device waits each time. Turn it off before measuring."
)
BLOCKING = (
    "CUDA_LAUNCH_BLOCKING=1 is set: every launch waits for its kernel, so that the times are not the true ones. "
    "Unset it before measuring."
)


class Checks:
    """Looks at what can change while the script runs; each thing is told once.

    Parameters
    ----------
    torch, report
        The module and a ``Report``.
    """

    def __init__(self, torch, report):
        self._report = report
        self._anomaly = getattr(torch, "is_anomaly_enabled", None)

    def on_step(self):
        """An optimizer stepped or a step began."""
        if self._anomaly is not None and self._anomaly():
            self._anomaly = None
            self._report.notice("anomaly", ANOMALY)

    def on_trace(self, devices):
        """A recording is kept that holds these kinds of devices."""
        if "cuda" in devices and os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            self._report.notice("launch-blocking", BLOCKING)
