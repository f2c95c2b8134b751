"""Launching a script through the profiler here, against the same script with ``torch.profiler`` written into it.

Both record five steps with the same options and write the trace. What the launcher does besides is counted: finding
the steps, recording the first ones in case the script is short, exact lines, the run's folder. Both train the same
number of steps: those that are timed without the profiler are steps of the script's own, not added ones.

With ``--marks`` it is told instead what marking every statement of the script's files costs: the median recorded step
with marks over that without, both of the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import machine
from profiling.run import Run
from profiling.spec import RunSpec, Schedule

STORY = Path(__file__).resolve().parents[1] / "examples" / "reference_story"
BUDGET = 1.05
MARKS_BUDGET = 1.3
# The story's loop ends a step with each optimizer's step; the profiler is stepped there, as a user would write it.
PLAIN = """
import runpy, sys
sys.path.insert(0, {folder!r})
sys.argv = [{script!r}, "--steps", "{steps}"]
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile, schedule
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
with profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True,
             schedule=schedule(wait={wait}, warmup=1, active=5, repeat=1),
             on_trace_ready=lambda done: done.export_chrome_trace({trace!r})) as prof:
    register_optimizer_step_post_hook(lambda *_: prof.step())
    runpy.run_path({script!r}, run_name="__main__")
"""


def timed(work) -> tuple[float, float]:
    """Wall seconds and processor seconds of everything that ``work`` starts and does."""
    before, began = os.times(), time.perf_counter()
    work()
    after, ended = os.times(), time.perf_counter()
    return ended - began, sum(after[:4]) - sum(before[:4])


def plain(script: Path, steps: int, folder: Path) -> None:
    code = PLAIN.format(
        folder=str(script.parent), script=str(script), steps=steps, wait=20, trace=str(folder / "t.json")
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def launched(script: Path, steps: int, folder: Path) -> None:
    argv = ("--steps", str(steps))
    run = Run(RunSpec(sys.executable, script=str(script), argv=argv, runs_root=str(folder), stdin="null"))
    run.start()
    result = run.wait()
    assert result is not None
    assert result.outcome == "ok", result.words
    assert result.trace is not None


def marked(script: Path, steps: int, folder: Path) -> tuple[float, int, float]:
    """How many times as long a recorded step is with marks, how many statements have one, and the step (us)."""
    argv = ("--steps", str(steps))
    spec = RunSpec(
        sys.executable, script=str(script), argv=argv, runs_root=str(folder), stdin="null", line_ranges=("*.py:*",),
        measure_wall=False, schedule=Schedule(active=15),
    )  # fmt: skip
    run = Run(spec)
    run.start()
    result = run.wait()
    assert result is not None
    assert result.outcome == "ok", result.words
    row = result.manifest["line_ranges"]
    return row["cost_ratio"], row["statements"], result.manifest["steps"]["profiled_step_us"]


def report_marks(script: Path, steps: int, rounds: int, folder: Path) -> None:
    rows = [marked(script, steps, folder) for _ in range(rounds)]
    ratios = sorted(row[0] for row in rows)
    print(machine())
    print(
        f"{script.name}, {rows[0][1]} statements marked, step of {statistics.median(r[2] for r in rows) / 1e3:.1f} ms"
    )
    print(f"  with / without marks: {statistics.median(ratios):.3f} (budget {MARKS_BUDGET})", end="")
    print(f"   of each run: {[round(ratio, 3) for ratio in ratios]}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks capture", description=__doc__)
    parser.add_argument("--stage", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--marks", action="store_true", help="what marking every statement costs")
    options = parser.parse_args(arguments)
    script = STORY / f"stage{options.stage}.py"
    if options.marks:
        with tempfile.TemporaryDirectory(prefix="steplens-bench-") as name:
            report_marks(script, options.steps, options.rounds, Path(name))
        return
    rows: dict[str, list[tuple[float, float]]] = {"plain": [], "launched": []}
    with tempfile.TemporaryDirectory(prefix="steplens-bench-") as name:
        for round_ in range(options.rounds):
            ways = [("plain", plain), ("launched", launched)]
            for way, work in ways if round_ % 2 == 0 else ways[::-1]:  # whoever is first finds the cooler caches
                rows[way].append(timed(lambda work=work: work(script, options.steps, Path(name))))
    print(machine())
    print(f"{script.name}, {options.steps} steps, medians of {options.rounds} alternating rounds")
    for way, samples in rows.items():
        wall, cpu = (statistics.median(column) for column in zip(*samples, strict=True))
        print(
            f"  {way:9} {wall:7.2f} s wall {cpu:7.2f} s processor   wall of each: {[round(s[0], 1) for s in samples]}"
        )
    ratios = [
        statistics.median(row[k] for row in rows["launched"]) / statistics.median(row[k] for row in rows["plain"])
        for k in (0, 1)
    ]
    print(f"  launched / plain: {ratios[0]:.3f} wall, {ratios[1]:.3f} processor (budget {BUDGET})")


if __name__ == "__main__":
    main(sys.argv[1:])
