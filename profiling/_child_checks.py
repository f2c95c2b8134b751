"""Looks for switches that make a training step slow on purpose, so that nobody measures them unawares.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import os
import re

OF_THE_GPU = re.compile(rb'"cat": ?"(?:kernel|gpu_|cuda_|overhead)')  # what only CUPTI can tell
PIECE_BYTES = 1 << 22


class Checks:
    """Looks at what can change while the script runs; each thing is told once.

    Parameters
    ----------
    torch, report
        The module and a ``Report``.
    """

    def __init__(self, torch, report):
        self._report = report
        self._waited = False
        self._anomaly = getattr(torch, "is_anomaly_enabled", None)

    def on_step(self):
        """An optimizer stepped or a step began."""
        if self._anomaly is not None and self._anomaly():
            self._anomaly = None
            self._report.notice("anomaly")

    def on_wait(self, steps):
        """``steps``: of one optimizer, while another one was waited for that never stepped; else 0."""
        if steps and not self._waited:
            self._waited = True
            self._report.notice("optimizer-waited", steps=steps)

    def on_trace(self, devices, path):
        """A recording of these kinds of devices was written to ``path``."""
        if "cuda" not in devices:
            return
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            self._report.notice("launch-blocking")
        if not tells_of_gpu(path):
            self._report.notice("gpu-unrecorded")


def tells_of_gpu(path):
    """Whether a trace holds anything of a GPU; true where it cannot be read."""
    try:
        with open(path, "rb") as source:
            end = b""
            while True:
                piece = source.read(PIECE_BYTES)
                if not piece:
                    return False
                if OF_THE_GPU.search(end + piece):
                    return True
                end = piece[-64:]
    except OSError:
        return True
