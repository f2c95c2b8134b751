"""Runs a script for a test and keeps what was seen."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiling.events import Progress
from profiling.processes import descendants
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
    left: set[int] = field(default_factory=set)  # processes that are still there

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


def run_script(
    script: Path | str,
    root: Path,
    *argv: str,
    limit_s: float = 120,
    stop: bool = False,
    answers: Mapping[str, str] | None = None,
    **changes: Any,
) -> Seen:
    """Run a script to its end under this interpreter; ``stop`` asks it to end once a trace was written."""
    if answers:
        changes["stdin"] = "pipe"
    changes.setdefault("stdin", "null")
    target = {} if "module" in changes else {"script": str(script)}
    run, seen = start(RunSpec(sys.executable, argv=argv, runs_root=str(root), **target, **changes))
    for prompt, line in (answers or {}).items():
        _until(lambda prompt=prompt: prompt in seen.stdout, limit_s)  # type: ignore[misc]
        run.write_stdin(line)
    if stop:
        _until(lambda: bool(run.gathered.traces), limit_s)
        run.stop()
        run.wait(60)
    result = run.wait(limit_s)
    if result is None:
        run.stop(now=True)
        result = run.wait(10)
        raise AssertionError(f"the run did not end: {seen.phases} {seen.stderr[-2000:]}")
    seen.result = result
    assert run._process is not None
    seen.left = descendants(run._process.pid)
    return seen


def _until(condition: Callable[[], bool], limit_s: float) -> None:
    """Look again and again until something is so."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
