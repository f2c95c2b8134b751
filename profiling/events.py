"""What the child reports while it runs, gathered into one state."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from profiling.sentences import TEMPLATES, Sentence, say

PHASE_WORDS = {
    "starting": "Starting the interpreter",
    "script": "Running, no training seen yet",
    "idle": "Waiting for the next step",
    "whole": "Recording the whole run",
    "early": "Recording the first steps, in case the script is short",
    "skip": "Passing over steps",
    "wall": "Timing steps without the profiler",
    "base": "Recording steps without marks, to know what the marks cost",
    "sync": "Looking for the lines that wait for the device",
    "prime": "Warming the profiler up",
    "window": "Recording the window",
    "saving": "Saving the trace",
    "done": "Window recorded, the script runs on",
    "ended": "Ended",
}


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Parameters
    ----------
    phase
        A key of :data:`PHASE_WORDS`.
    step
        Steps finished so far.
    done, total
        Of the phase, in steps; total 0 where no end is known.
    anew
        Why the recording had to begin again, until one is whole.
    """

    phase: str
    step: int = 0
    done: int = 0
    total: int = 0
    anew: Sentence | None = None

    @property
    def words(self) -> str:
        """The phase as a sentence."""
        return PHASE_WORDS.get(self.phase, self.phase)


@dataclass
class Gathered:
    """Everything the child said so far."""

    progress: Progress = Progress("starting")
    torch_version: str = ""
    device_build: str = ""  # CUDA or ROCm version that torch was built for; empty for a CPU build
    python_version: str = ""
    traces: list[dict[str, Any]] = field(default_factory=list)
    notices: dict[str, Sentence] = field(default_factory=dict)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    finished: bool = False
    foreign: bool = False
    elsewhere: set[str] = field(default_factory=set)
    forked: set[object] = field(default_factory=set)  # forked processes that trained and were to be recorded
    ended_by_us: bool = False
    leader: object = None
    led_by_rank: bool = False
    ranges: dict[str, Any] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> bool:
        """Take one event over; returns whether the progress changed."""
        kind = event.get("ev")
        before = self.progress
        if kind in ("phase", "step", "anew") and not self._leads(event):
            return False
        if kind == "started" and not event.get("spawned"):
            self.leader = event.get("pid")
            self.python_version = self.python_version or str(event.get("python", ""))
            if before.phase == "starting":
                self.progress = Progress("script")
        elif kind == "torch":
            self.torch_version = self.torch_version or str(event.get("version", ""))
            self.device_build = self.device_build or str(event.get("device_build") or "")
        elif kind == "phase":
            self.progress = Progress(str(event["phase"]), int(event.get("step", 0)))
        elif kind == "step":
            self.progress = Progress(str(event["phase"]), int(event["step"]), int(event["done"]), int(event["total"]))
        elif kind == "finished":
            self.finished = True
        else:
            self._take_other(str(kind), event)
        if self.progress.phase not in ("saving", "done", "ended"):
            self.progress = replace(self.progress, anew=self.notices.get("anew"))
        return self.progress != before

    def _leads(self, event: dict[str, Any]) -> bool:
        """Whether progress of this process is shown: the script's own, or the first rank that trains."""
        pid = event.get("pid")
        if pid != self.leader and not self.led_by_rank and self.progress.phase in ("script", "whole"):
            self.leader, self.led_by_rank = pid, True
        return pid == self.leader

    def _take_other(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "trace":
            self.traces = [known for known in self.traces if known.get("path") != event.get("path")]  # written anew
            self.traces.append(event)
        elif kind == "notice":
            values = event.get("values")
            if event.get("key") in TEMPLATES:
                self.notices[event["key"]] = say(event["key"], **(values if isinstance(values, dict) else {}))
        elif kind == "anew":
            self.notices["anew"] = say("anew", seconds=event.get("seconds"), times=event.get("times"))
        elif kind == "summary":
            self.summaries.append(event)
        elif kind == "sources":
            self.sources.update(map(str, event.get("files", ())))
        elif kind == "foreign":
            self.foreign = True
        elif kind == "work_elsewhere":
            self.elsewhere.add(str(event.get("how", "")))
            self.forked.discard(event.get("pid"))
        elif kind == "forked":
            self.forked.add(event.get("pid"))
        elif kind == "ending":
            self.ended_by_us = True
        elif kind == "ranges":
            self.ranges = event
        elif kind == "recording_failed":
            self.notices["recording"] = say("recording", error=event.get("error"))


class Tail:
    """Reads the lines that were appended to a file since the last look; the file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path  # may change, where the file is moved
        self._handle: IO[bytes] | None = (
            None  # kept open: what was deleted is read to its end, and is told from a new one
        )
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """New whole lines, as objects; broken ones are passed over."""
        found = self._read()
        try:
            if self._handle is not None and not os.path.samestat(os.fstat(self._handle.fileno()), self.path.stat()):
                self.close()  # it was deleted, and made anew
                found += self._read()
        except OSError:
            pass
        return found

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            self._handle.close()
        self._handle, self._offset = None, 0

    def _read(self) -> list[dict[str, Any]]:
        try:
            if self._handle is None:
                self._handle = self.path.open("rb")
            self._handle.seek(self._offset)
            content = self._handle.read()
        except OSError:
            return []
        end = content.rfind(b"\n") + 1
        self._offset += end
        found = []
        for line in content[:end].splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                found.append(event)
        return found
