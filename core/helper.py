"""A process of its own that reads and diagnoses one trace for a window, which therefore never waits for it.

The window's side is `gui.helper_process`. Requests: ``("open", path, cache_dir)``, or ``("adopt",)`` with a trace as a
parcel (`core.parcels`); then ``("analyze", rule_folders, source_folders)``, with folders that the user has allowed.
Answers: first of all ``("ready",)``; ``("progress", fraction, what)``; ``("failed", error)``; and ``("trace",)``,
``("partial",)`` and ``("done",)``, which a parcel follows.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from core import memory, parcels
from core.analysis import Analysis
from core.errors import Cancelled, TraceError
from core.figures.lookup import View
from core.figures.model import Figures
from core.trace import Trace

READY, PROGRESS, TRACE, PARTIAL, DONE, FAILED = "ready", "progress", "trace", "partial", "done", "failed"
OPEN, ADOPT, ANALYZE = "open", "adopt", "analyze"
_ending = threading.Event()  # the window is gone, or has called this off: only what is being written is finished


def serve(connection: Connection, lifeline: Connection) -> None:
    """Run in the helper: answer requests until the window closes the pipe, or is gone.

    Parameters
    ----------
    connection
        Two-way pipe for requests and answers.
    lifeline
        Nothing ever comes through it; it ends when the window does, however that ended.
    """
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the window, which then ends this
    memory.small_pages()
    memory.share_arena()  # before there is a thread: one that has a heap of its own hands it on to later ones
    threading.Thread(target=_end_with, args=(lifeline,), name="lifeline", daemon=True).start()
    from core import cache, rehearsal
    from core.importing import open_trace, pool  # noqa: F401 - imported while nobody waits for it

    pool.allow_in_child((connection, lifeline))
    with suppress(Exception):  # a real trace will tell what is wrong
        rehearsal.rehearse()
    gc.collect()
    gc.freeze()
    with suppress(EOFError, OSError):
        connection.send((READY,))
        _Server(connection).run()
    cache.finish()


def _end_with(lifeline: Connection) -> None:
    """Wait for the end of the window; then finish what is being written, and end, whatever else is going on."""
    from core import cache

    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    _ending.set()
    cache.finish()
    os._exit(0)


class _Server:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._trace: Trace | None = None
        self._view: View | None = None  # of the trace: what it has worked out is there for the diagnosis
        self._early: Figures | None = None  # worked out before they were asked for
        self._figures: Figures | None = None

    def run(self) -> None:
        """Answer one request after another; ends with EOFError or OSError when the window has hung up."""
        while True:
            request = self._connection.recv()
            try:
                if request[0] == OPEN:
                    self._open(*request[1:])
                elif request[0] == ADOPT:
                    self._trace = parcels.receive(self._connection)
                elif request[0] == ANALYZE:
                    self._analyze(*request[1:])
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the window must hear of it
                self._connection.send((FAILED, portable(error)))

    def _progress(self, fraction: float, what: str) -> None:
        if _ending.is_set():
            raise Cancelled
        self._connection.send((PROGRESS, fraction, what))

    def _open(self, paths: Path | Sequence[Path], cache_dir: Path | None) -> None:
        from core.importing import open_trace

        trace = open_trace(paths, progress=self._progress, cache_dir=cache_dir)
        for travels in ("end_ns", "extent_ns", "device_ids", "device_work_mask"):
            getattr(trace, travels)  # worked out now, and never held by a name here: it would outlast the trace
        memory.give_back()
        self._connection.send((TRACE,))
        self._trace = parcels.send(self._connection, trace)
        del trace
        memory.give_back()
        self._work_ahead()

    def _work_ahead(self) -> None:
        """Work the figures out while the window makes its page: it is going to ask for them."""
        from core.figures.compute import compute_figures
        from core.figures.lookup import view_of

        assert self._trace is not None
        self._view = view_of(self._trace)
        with suppress(Exception):  # told when they are asked for
            self._early = compute_figures(self._trace, progress=_unless_ending)

    def _take_early(self) -> Figures | None:
        """Hand the figures over, and hold them no longer."""
        figures, self._early = self._early, None
        return figures

    def _analyze(self, rule_folders: tuple[Path, ...] = (), source_folders: tuple[Path, ...] = ()) -> None:
        from core.analysis import analyze
        from core.run_folder import finder_for

        assert self._trace is not None
        found = analyze(
            self._trace,
            figures=self._take_early(),
            progress=self._progress,
            on_partial=self._send_partial,
            source=finder_for(self._trace, source_folders),
            extra_folders=rule_folders,
        )
        self._send_analysis(DONE, found)

    def _send_partial(self, analysis: Analysis) -> Figures | None:
        return self._send_analysis(PARTIAL, analysis)

    def _send_analysis(self, kind: str, analysis: Analysis) -> Figures | None:
        """Send what is new: of the figures, which are large, only what the window does not have yet.

        Returns
        -------
        The first time, the figures with the columns that are shared with the window.
        """
        known, self._figures = self._figures, analysis.figures
        new: Any = analysis.figures
        if known is not None:
            new = {
                field.name: getattr(analysis.figures, field.name)
                for field in fields(Figures)
                if getattr(analysis.figures, field.name) is not getattr(known, field.name)
            }
        else:
            memory.give_back()  # what was needed to work them out, before they are written once more
        rest = {f.name: getattr(analysis, f.name) for f in fields(Analysis) if f.name != "figures"}
        self._connection.send((kind,))
        twin, _ = parcels.send(self._connection, (new, rest))
        if known is None:
            self._figures = twin
        memory.give_back()
        return self._figures if known is None else None


def _unless_ending(fraction: float, what: str) -> None:
    """Progress that nobody waits for."""
    del fraction, what
    if _ending.is_set():
        raise Cancelled


def joined(content: tuple[Any, dict[str, Any]], known: Figures | None) -> Analysis:
    """Put together what `_Server` sent of an analysis, with the figures that came before it."""
    new, rest = content
    if isinstance(new, dict):
        assert known is not None
        new = replace(known, **new) if new else known
    return Analysis(new, **rest)


def portable(error: Exception) -> tuple[str, Any]:
    """Form of an error that survives the pipe; `restored` makes the error again."""
    if isinstance(error, TraceError):
        return "trace", (error.title, error.detail, error.hint, error.offset_bytes)
    text = "".join(traceback.format_exception(error))
    try:
        return "pickle", (pickle.dumps(error), text)
    except Exception:  # noqa: BLE001 - an error that cannot be pickled is still told
        return "text", (f"{type(error).__name__}: {error}", text)


def restored(form: tuple[str, Any]) -> BaseException:
    """Return the error behind `portable`'s form; where it happened is kept as a note of it."""
    kind, held = form
    if kind == "trace":
        return TraceError(*held)
    error: BaseException = RuntimeError(held[0])
    if kind == "pickle":
        try:
            error = pickle.loads(held[0])
        except Exception:  # noqa: BLE001 - its class cannot be made from what it kept
            error = RuntimeError(held[1].strip().rsplit("\n", 1)[-1])
    error.add_note(f"In the process that reads traces:\n{held[1]}")
    return error
