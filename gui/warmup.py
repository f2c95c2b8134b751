"""Importing what an opened trace needs before it is needed, away from the GUI thread.

The modules of the timeline and the panels take as long to import as dozens of frames. A thread of its own reads them
while the person looks at the start page, or while the trace is being read.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
import threading

from core import memory
from gui import binding, helpers, panels

log = logging.getLogger(__name__)

SWITCH_S = 0.0002  # how long a working thread keeps the interpreter while the GUI thread wants it (5 ms by default)
# The package of the importers first, here and where a trace is opened: Python locks a part of a package before the
# package, and two threads of which each holds what the other one waits for would find it half made.
MODULES = (
    "core.importing",
    "numpy.ma",  # which numpy itself imports with the first `np.unique`
    "gui.timeline.view",
    "gui.document_page",
    "core.run_folder",
    "core.analysis",
    "core.search",
    "gui.models.slice_facts",
    "gui.models.range_stats",
)
IN_THREADS = ("core.pricing", "core.figures.compute", "core.rule_runner")  # where no helper process does that work

_lock = threading.Lock()
_begun, _ended = threading.Event(), threading.Event()


def share_interpreter() -> None:
    """Let the GUI thread have the interpreter soon when it asks for it, whatever else is at work.

    Threads also share one heap, and large columns are handed back as soon as they are let go.
    """
    sys.setswitchinterval(SWITCH_S)
    memory.share_arena()
    memory.hand_back_large()


def start() -> None:
    """Begin in a thread of its own, which ends with the process (from the GUI thread)."""
    if not _begun.is_set():
        _begun.set()
        binding.when_made(threading.Thread(target=finish, name="warm-up", daemon=True).start)


def finish() -> None:
    """Import everything that is still missing; at the end of it the GUI thread imports nothing large any more.

    Safe from any thread: a second caller waits for the first.
    """
    binding.wait_made()
    with _lock:
        if _ended.is_set():
            return
        helpers.wait_started()  # two threads that import leave the GUI thread a third of the interpreter
        gc.freeze()  # nor need a collection meanwhile look through what is there already
        names = (*MODULES, *(f"gui.panels.{name}" for name in panels.PANELS))
        if not helpers.wanted():
            names += IN_THREADS
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:  # who needs the module gets the error where it can be shown
                log.exception("warm-up of %s", name)
        gc.freeze()  # what is there now stays: no collection need look through it again, which takes dozens of ms
        _ended.set()
