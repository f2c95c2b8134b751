"""Runs a script for a test and keeps what was seen."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiling.events import Progress
from profiling.result import RunResult
from profiling.run import Run
from profiling.spec import RunSpec


@dataclass
class Seen:
    """A finished run and what its callbacks were given."""

    result: RunResult
    stdout: str
    stderr: str
    phases: list[str]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events of the trace that was recorded."""
        trace = self.result.trace
        assert trace is not None, (self.result.words, self.result.notices, self.stderr)
        return list(json.loads(trace.read_text("utf-8", "replace"), strict=False)["traceEvents"])

    def count(self, name: str) -> int:
        """How many slices of this name the trace has."""
        return Counter(e.get("name") for e in self.events if e.get("ph") == "X")[name]

    @property
    def steps(self) -> list[str]:
        """Names of the step marks, in time order."""
        marks = [e for e in self.events if str(e.get("name", "")).startswith("ProfilerStep#")]
        return [e["name"] for e in sorted(marks, key=lambda e: e["ts"])]


def start(spec: RunSpec) -> tuple[Run, Seen]:
    """Start a run whose callbacks are collected."""
    seen = Seen(None, "", "", [])  # type: ignore[arg-type]

    def on_output(stream: str, text: str) -> None:
        if stream == "stdout":
            seen.stdout += text
        else:
            seen.stderr += text

    def on_progress(progress: Progress) -> None:
        if not seen.phases or seen.phases[-1] != progress.phase:
            seen.phases.append(progress.phase)

    run = Run(spec, on_output, on_progress)
    run.start()
    return run, seen


def run_script(script: Path | str, root: Path, *argv: str, limit_s: float = 120, **changes: Any) -> Seen:
    """Run a script to its end under this interpreter."""
    changes.setdefault("stdin", "null")
    target = {} if "module" in changes else {"script": str(script)}
    run, seen = start(RunSpec(sys.executable, argv=argv, runs_root=str(root), **target, **changes))
    result = run.wait(limit_s)
    if result is None:
        run.stop(now=True)
        result = run.wait(10)
        raise AssertionError(f"the run did not end: {seen.phases} {seen.stderr[-2000:]}")
    seen.result = result
    return seen
