"""Analysing a trace, stage by stage, next to opening it in the same run.

    python -m benchmarks analysis [--events 20000 200000] [--trace FILE ...] [--repeat 3]

Every trace is opened (without cache) and analysed in a process of its own, after a small generated one that warms
imports and caches up; the best of the repeats counts per stage. CPU time is that of the process and of the
workers that help with opening.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.generate import write_trace
from benchmarks.measure import Missing, Sample, machine, run

STAGES = ("load", "figures", "rules", "pricing")
FIGURES_AND_PRICING, RULES = 0.25, 0.25  # budgets, as shares of the time to load

_SCRIPT = """
import gc, json, resource, sys, time
from pathlib import Path
from core.analysis import analyze
from core.importing import open_trace
def now():
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use), time.perf_counter()
def measure(path):
    gc.collect()
    marks = [now()]
    trace = open_trace(path)
    marks.append(now())
    last = analyze(trace, on_partial=lambda partial: marks.append(now()))
    marks.append(now())
    return trace, last, marks
measure(Path(sys.argv[1]))
trace, analysis, marks = measure(Path(sys.argv[2]))
values = {"seconds": marks[-1][1] - marks[0][1], "slices": len(trace.slices), "fixes": sum(bool(s.effects) for s in
analysis.suggestions)}
for name, (cpu, wall), (cpu_to, wall_to) in zip(sys.argv[3].split(), marks, marks[1:]):
    values[name] = cpu_to - cpu
    values[name + "_wall"] = wall_to - wall
print(json.dumps(values))
"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks analysis")
    parser.add_argument("--events", type=int, nargs="*", default=[20_000, 200_000], help="sizes of generated traces")
    parser.add_argument("--trace", type=Path, nargs="*", default=[], help="real traces to measure as well")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    print(machine())
    print("\n| trace | slices | priced fixes | load CPU s | figures | rules | pricing | figures + pricing | wall |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="steplens-bench-") as text:
        small = Path(text) / "small.json"
        with small.open("wb") as file:
            write_trace(file, 5_000)
        for events in options.events:
            path = Path(text) / f"{events}.json"
            with path.open("wb") as file:
                write_trace(file, events)
            _report(f"{events:,} events (generated)", small, path, options.repeat)
            path.unlink()
        for trace in options.trace:
            _report(trace.name.split(".")[0], small, trace, options.repeat)
    print(
        f"\nShares are of the CPU time to load; wanted: figures and pricing together at most {FIGURES_AND_PRICING}, "
        f"rules at most {RULES}. *Wall* is figures and pricing together, of the wall time to load."
    )


def _report(title: str, small: Path, path: Path, repeat: int) -> None:
    samples: list[Sample] = []
    for _ in range(repeat):
        try:
            samples.append(run(_SCRIPT, str(small), str(path), " ".join(STAGES)))
        except Missing as error:
            print(f"| {title} | not measured: {error} |", flush=True)
            return
    best = {name: min(sample.extra[name] for sample in samples) for name in samples[0].extra}
    load = best["load"]
    parts = " | ".join(f"{best[name] / load:.2f}" for name in STAGES[1:])
    both = (best["figures"] + best["pricing"]) / load
    wall = (best["figures_wall"] + best["pricing_wall"]) / best["load_wall"]
    print(
        f"| {title} | {best['slices']:,.0f} | {best['fixes']:.0f} | {load:.2f} | {parts} | {both:.2f} | {wall:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
