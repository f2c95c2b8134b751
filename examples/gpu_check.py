"""On a machine with a CUDA GPU: capture every stage of the reference story and check what must be found.

For each stage the script is profiled, its trace is analysed, and 200 steps are timed without a profiler. The table sets
the host step, the period and the sustained step beside the measured one. Small traces can be kept as samples, each with
a file that says where it comes from.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORY = ROOT / "examples" / "reference_story"
STAGES = range(8)
# Stages whose loss makes the host wait, by the rule that must say so.
EXPECTED = {
    0: ("constant-copied-each-step", "control-flow-on-device-tensor", "host-list-index"),
    1: ("control-flow-on-device-tensor", "host-list-index"),
    2: ("host-list-index",),
}
LARGEST_SAMPLE_BYTES = 3_000_000

TIMED = """
import runpy, sys, time, torch
sys.path.insert(0, {folder!r})
sys.argv = [{script!r}, "--steps", "{total}"]
seen = {{"n": 0}}
def hook(optimizer, args, kwargs):
    seen["n"] += 1
    if seen["n"] in (20, {total}):
        torch.cuda.synchronize()
        seen[seen["n"]] = time.perf_counter()
from torch.optim.optimizer import register_optimizer_step_post_hook
register_optimizer_step_post_hook(hook)
runpy.run_path({script!r}, run_name="__main__")
print("STEP_US", (seen[{total}] - seen[20]) / ({total} - 20) * 1e6)
"""


def device_names() -> list[str]:
    """GPUs that torch can use; empty without torch or without a GPU."""
    code = "import torch; [print(torch.cuda.get_device_name(i)) for i in range(torch.cuda.device_count())]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def timed_step_us(script: Path, steps: int) -> float | None:
    """Mean time of a step without a profiler, one synchronisation at each end."""
    code = TIMED.format(folder=str(script.parent), script=str(script), total=steps + 20)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("STEP_US "):
            return float(line.split()[1])
    print(done.stderr[-2000:], file=sys.stderr)
    return None


def capture(script: Path, runs: Path) -> Any:
    """Profile one stage."""
    from profiling.run import run_blocking
    from profiling.spec import Options, RunSpec

    options = Options(cuda_sync_events=True)
    return run_blocking(RunSpec(sys.executable, script=str(script), runs_root=str(runs), options=options, stdin="null"))


def analyze(trace: Path) -> dict[str, Any]:
    """What ``main.py analyze --json`` says."""
    command = [sys.executable, str(ROOT / "main.py"), "analyze", str(trace), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    print(done.stderr[-2000:], file=sys.stderr)
    return {}


def faults_of(stage: int, result: Any, found: dict[str, Any], measured_us: float | None) -> list[str]:
    """What is missing from a stage's capture, in words."""
    faults = [] if measured_us is not None else ["its steps could not be timed without the profiler"]
    if result.outcome != "ok" or result.trace is None:
        return [*faults, f"not captured: {result.words}"]
    if not found:
        return [*faults, "the trace could not be analysed"]
    if not found["trace"]["has_gpu"]:
        faults.append("no kernels in the trace (CUPTI?)")
    if len(found["steps"]) < 3:
        faults.append(f"only {len(found['steps'])} steps")
    if result.manifest["steps"]["wall_step_us"] is None:
        faults.append("the run timed no step without the profiler")
    rules = {suggestion["rule"] for suggestion in found["suggestions"]}
    expected = EXPECTED.get(stage, ())
    faults += [f"{rule} was not found" for rule in expected if rule not in rules]
    faults += [f"{rule} is still found" for rule in EXPECTED[0] if rule in rules and rule not in expected]
    if expected:
        if not found["sync_points"]:
            faults.append("no sync points")
        lines = lines_of_sync_calls(result.folder, f"stage{stage}.py")
        if len(lines) < len(expected):
            faults.append(f"exact lines of {len(expected)} synchronising calls, found {sorted(lines)}")
    return faults


def lines_of_sync_calls(folder: Path, file: str) -> set[int]:
    """Lines of a file of the user's that a synchronising call was seen in."""
    path = folder / "sync_lines.json"
    if not path.exists():
        return set()
    sources = [row["source"] for row in json.loads(path.read_text())["calls"] if row["source"]]
    return {source["line"] for source in sources if Path(source["file"]).name == file}


def keep_sample(result: Any, target: Path, origin: dict[str, Any]) -> None:
    """Compress a trace into the samples, if it is small, with its origin beside it."""
    packed = gzip.compress(result.trace.read_bytes(), 9, mtime=0)
    if len(packed) <= LARGEST_SAMPLE_BYTES:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed)
        target.with_name(target.name.removesuffix(".json.gz") + ".origin.json").write_text(json.dumps(origin, indent=2))
        print(f"  kept as {target} ({len(packed) / 1e6:.1f} MB)")
    else:
        print(f"  not kept: {len(packed) / 1e6:.1f} MB compressed")


def origin_of(result: Any, script: Path, device: str, measured_us: float | None) -> dict[str, Any]:
    """Where a sample comes from: recorded, not simulated; on what, with what, from which code."""
    known = result.manifest
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "recorded": True,
        "script": script.name,
        "device": device,
        "torch": known.get("torch"),
        "python": known.get("python"),
        "date": time.strftime("%Y-%m-%d", time.localtime(known.get("created"))),
        "revision": revision.stdout.strip() or None,
        "gpus": known.get("gpus"),
        "measured_step_us": measured_us,
    }


def show(value: float | None) -> str:
    """Microseconds as milliseconds."""
    return "      –" if value is None else f"{value / 1e3:7.2f}"


def main() -> int:
    """Check; return 0 when everything was found or no GPU is there, 1 when not, 130 when stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, nargs="*", default=list(STAGES))
    parser.add_argument("--steps", type=int, default=200, help="steps timed without the profiler")
    parser.add_argument("--runs", type=Path, default=ROOT / "demo-output" / "gpu-check")
    parser.add_argument("--keep-samples", type=Path, default=None, help="folder that receives small traces")
    options = parser.parse_args()
    names = device_names()
    if not names:
        print("gpu-check: torch sees no CUDA GPU on this machine, so there is nothing to check. Run it where one is.")
        return 0
    print(f"gpu-check on {names[0]}; times in ms per step")
    print("stage    host  period sustained measured  rules")
    bad = 0
    for stage in options.stages:
        script = STORY / f"stage{stage}.py"
        result = capture(script, options.runs)
        if result.outcome in ("stopped", "killed"):
            print(result.words)
            return 130
        found = analyze(result.trace) if result.trace is not None else {}
        summary = found.get("summary", {})
        measured = timed_step_us(script, options.steps)
        rules = ", ".join(s["rule"] for s in found.get("suggestions", [])[:4])
        figures = [show(summary.get(key)) for key in ("step_us", "period_us", "sustained_step_us")]
        print(f"    {stage} {' '.join(figures)}   {show(measured)}  {rules}")
        faults = faults_of(stage, result, found, measured)
        bad += len(faults)
        for line in [*(f"missing: {fault}" for fault in faults), *(f"note: {n}" for n in result.notices if faults)]:
            print(f"      {line}")
        if options.keep_samples is not None and result.trace is not None and not faults:
            origin = origin_of(result, script, names[0], measured)
            keep_sample(result, options.keep_samples / f"story_stage{stage}_measured.json.gz", origin)
    print("everything was found" if not bad else f"{bad} things are missing")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
