"""One step under CUDA's synchronisation warnings: the exact line of every call that waits for the device.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import json
import os
import sys
import warnings

MARK = "called a synchronizing"  # c10/cuda/CUDAFunctions.cpp, warn_or_error_on_sync
OWN_MARK = "Synchronization debug mode is a prototype"  # torch/csrc/cuda/Module.cpp: said once when the mode is set
OF_WARNINGS = ("warnings.py", "_py_warnings.py")  # frames of the module that shows them, since Python 3.14 the latter
MOST_WARNINGS = 2000
MOST_FRAMES = 40


def possible(torch):
    """Whether CUDA is in use and this torch can warn."""
    try:
        return torch.cuda.is_initialized() and hasattr(torch.cuda, "set_sync_debug_mode")
    except Exception:
        return False


class SyncWatch:
    """Collects the Python stack of each synchronising call.

    Parameters
    ----------
    torch
        The module.
    is_users
        Function from a file name to its absolute path where it is the user's code, else an empty string.
    """

    def __init__(self, torch, is_users):
        self._torch, self._is_users = torch, is_users
        self._before = None
        self._filters = None
        self.found = {}  # stack of (file, line, function), innermost first -> how often
        self.count = 0

    def start(self):
        """Warn from here on."""
        self._before = self._torch.cuda.get_sync_debug_mode()
        self._filters = warnings.catch_warnings()
        self._filters.__enter__()
        warnings.filterwarnings("always", message=".*" + MARK)
        warnings.filterwarnings("ignore", message=OWN_MARK)  # nobody but us asked for that mode
        self._show, warnings.showwarning = warnings.showwarning, self._on_warning
        self._torch.cuda.set_sync_debug_mode("warn")

    def stop(self):
        """Everything as it was."""
        if self._filters is None:
            return
        self._torch.cuda.set_sync_debug_mode(self._before)
        filters, self._filters = self._filters, None
        filters.__exit__(None, None, None)

    def _on_warning(self, message, category, filename, lineno, file=None, line=None):
        if MARK not in str(message):
            self._show(message, category, filename, lineno, file, line)
            return
        self.count += 1
        if len(self.found) >= MOST_WARNINGS:
            return
        stack, frame = [], sys._getframe(1)
        while frame is not None and len(stack) < MOST_FRAMES:
            code = frame.f_code
            if os.path.basename(code.co_filename) not in OF_WARNINGS:
                stack.append((code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
            frame = frame.f_back
        key = tuple(stack)
        self.found[key] = self.found.get(key, 0) + 1

    def save(self, path):
        """Write ``sync_lines.json``, see ``docs/capture.md``."""
        rows = []
        for stack, times in self.found.items():
            users = [f for f in stack if self._is_users(f[0])]
            source = dict(zip(("file", "line", "function"), users[0])) if users else None
            frames = [{"file": f, "line": n, "function": name} for f, n, name in stack]
            rows.append({"source": source, "times": times, "stack": frames})
        rows.sort(key=lambda row: -row["times"])
        partial = "%s.%d.partial" % (path, os.getpid())  # several ranks share the folder
        with open(partial, "w", encoding="utf-8", errors="backslashreplace") as out:
            json.dump({"format": "steplens.sync-lines/1", "warnings": self.count, "calls": rows}, out)
        os.replace(partial, path)
