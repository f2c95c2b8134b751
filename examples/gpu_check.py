"""On a machine with a CUDA GPU: capture every stage of the reference story and check what must be found.

For each stage the script is profiled, its trace is analysed, and 200 steps are timed without a profiler. The table sets
the host step, the period and the sustained step beside the measured one. Small traces can be kept as samples, each with
a file that says where it comes from. What fails in one stage is told there; the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
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
LIMIT_S = 300.0  # for one capture, one timing, one analysis: many times what they take
WHOLE_BATCH, SMALL_BATCH = 1024, 128  # images; the whole one needs about 12 GB of the device's memory
WHOLE_BYTES = 16 << 30
BATCHES_HELD = 16  # by eight workers, in shared memory
IMAGE_BYTES = 3 * 256 * 256

TIMED = """
import runpy, sys, time, torch
sys.path.insert(0, {folder!r})
sys.argv = [{script!r}, "--steps", "{total}", "--batch", "{batch}"]
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


def look() -> tuple[list[Any], list[str]]:
    """GPUs that torch can use, and what is to be known about them and this torch."""
    from profiling.errors import ProfilingError
    from profiling.preflight import preflight

    try:
        found = preflight(sys.executable)
    except ProfilingError as error:
        return [], [str(error)]
    return list(found.devices), [found.words, *(f"{remark.text} {remark.cure}" for remark in found.remarks)]


def batch_for(free_bytes: int) -> int:
    """Images in a batch that this much of the device's memory has room for."""
    return WHOLE_BATCH if free_bytes >= WHOLE_BYTES else SMALL_BATCH


def shared_memory_note(batch: int) -> str:
    """That the workers of the loader may not find the shared memory they need; empty where they do."""
    needed = batch * IMAGE_BYTES * BATCHES_HELD
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:
        return ""
    told = f"/dev/shm has {free >> 20} MB free, the loader's workers may need {needed >> 20} MB (docker: --shm-size)"
    return told if free < needed else ""


def timed_step_us(script: Path, steps: int, batch: int, limit_s: float) -> float | None:
    """Mean time of a step without a profiler, one synchronisation at each end."""
    code = TIMED.format(folder=str(script.parent), script=str(script), total=steps + 20, batch=batch)
    for line in output_of([sys.executable, "-c", code], limit_s).splitlines():
        if line.startswith("STEP_US "):
            return float(line.split()[1])
    return None


def output_of(command: list[str], limit_s: float) -> str:
    """What a command prints; empty, with the end of its errors shown, where it fails or takes too long."""
    group = {} if sys.platform == "win32" else {"process_group": 0}  # its workers go with it
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, **group) as process:
        try:
            out, errors = process.communicate(timeout=limit_s)
        except BaseException as error:  # an interrupt does not reach a group of its own
            end(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            print(f"not over after {limit_s:.0f} s", file=sys.stderr)
            return ""
    if process.returncode == 0:
        return out
    print(errors[-2000:], file=sys.stderr)
    return ""


def end(process: subprocess.Popen[str]) -> None:
    """End a process and its workers."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def capture(script: Path, runs: Path, batch: int, limit_s: float) -> tuple[Any, bool]:
    """Profile one stage; returns the result, and whether it was ended because it took too long."""
    from profiling.interrupts import HandedOn
    from profiling.run import Run
    from profiling.spec import Options, RunSpec

    spec = RunSpec(
        sys.executable, script=str(script), argv=("--batch", str(batch)), runs_root=str(runs),
        options=Options(cuda_sync_events=True), stdin="null",
    )  # fmt: skip
    run = Run(spec)
    with HandedOn(run.stop) as signals:
        run.start()
        signals.begin()
        late, until = False, time.monotonic() + limit_s
        while (result := run.wait(0.5)) is None:
            if time.monotonic() > until and not late:
                late = True
                run.stop()
    return result, late


def analyze(trace: Path, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """What ``main.py analyze --json`` says; nothing where it fails."""
    out = output_of([sys.executable, str(ROOT / "main.py"), "analyze", str(trace), "--json"], limit_s)
    return dict(json.loads(out)) if out else {}


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


def check(stage: int, options: argparse.Namespace, device: str, batch: int) -> list[str] | None:
    """Capture, time and judge one stage, and print its line; returns what is missing, None where it was stopped."""
    script = STORY / f"stage{stage}.py"
    result, late = capture(script, options.runs, batch, options.limit)
    if result.outcome in ("stopped", "killed") and not late:
        print(result.words)
        return None
    found = analyze(result.trace, options.limit) if result.trace is not None else {}
    summary = found.get("summary", {})
    measured = timed_step_us(script, options.steps, batch, options.limit)
    rules = ", ".join(s["rule"] for s in found.get("suggestions", [])[:4])
    figures = [show(summary.get(key)) for key in ("step_us", "period_us", "sustained_step_us")]
    print(f"    {stage} {' '.join(figures)}   {show(measured)}  {rules}", flush=True)
    faults = [f"its capture was not over after {options.limit:.0f} s"] * late
    faults += faults_of(stage, result, found, measured)
    for line in [*(f"missing: {fault}" for fault in faults), *(f"note: {n}" for n in result.notices if faults)]:
        print(f"      {line}")
    if options.keep_samples is not None and result.trace is not None and not faults:
        origin = origin_of(result, script, device, measured)
        keep_sample(result, options.keep_samples / f"story_stage{stage}_measured.json.gz", origin)
    return faults


def main() -> int:
    """Check; return 0 when everything was found or no GPU is there, 1 when not, 130 when stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, nargs="*", default=list(STAGES))
    parser.add_argument("--steps", type=int, default=200, help="steps timed without the profiler")
    parser.add_argument("--batch", type=int, default=0, help="images in a batch (as many as the memory has room for)")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each part of a stage")
    parser.add_argument("--runs", type=Path, default=ROOT / "demo-output" / "gpu-check")
    parser.add_argument("--keep-samples", type=Path, default=None, help="folder that receives small traces")
    options = parser.parse_args()
    devices, told = look()
    if not devices:
        print("gpu-check: torch sees no CUDA GPU on this machine, so there is nothing to check. Run it where one is.")
        print("\n".join(told))
        return 0
    batch = options.batch or batch_for(devices[0].free_bytes)
    print("\n".join([*told, *filter(None, [shared_memory_note(batch)])]))
    print(f"gpu-check on {devices[0].name}, {batch} images a batch; times in ms per step")
    print("stage    host  period sustained measured  rules", flush=True)
    bad = 0
    for stage in options.stages:
        try:
            faults = check(stage, options, devices[0].name, batch)
        except Exception as error:  # the other stages are checked all the same
            traceback.print_exc()
            print(f"    {stage} missing: all of it ({type(error).__name__}: {error})", flush=True)
            faults = [str(error)]
        if faults is None:
            return 130
        bad += len(faults)
    print("everything was found" if not bad else f"{bad} things are missing")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
