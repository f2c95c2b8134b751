"""Profile stage 0 of the reference story, then show its trace: in the window, or as a picture where there is no screen.

Every step is a call of the program's own commands, as a person would type them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
SCRIPT = ROOT / "examples" / "reference_story" / "stage0.py"
SAMPLE = ROOT / "resources" / "samples" / "story_stage0_simulated.json.gz"


def has_screen() -> bool:
    """Whether a window could be seen."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def steplens(*arguments: str | Path, stdout: Path | None = None) -> int:
    """Run one command of main.py; return its exit status."""
    command = [sys.executable, str(ROOT / "main.py"), *map(str, arguments)]
    print("$ main.py", *arguments, flush=True)
    if stdout is None:
        return subprocess.run(command, check=False).returncode
    with stdout.open("wb") as file:
        return subprocess.run(command, check=False, stdout=file).returncode


def record() -> Path | None:
    """Run the example under the profiler; return its trace."""
    runs = OUTPUT / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    before = set(runs.iterdir())
    status = steplens("profile", SCRIPT, "--runs", runs)
    new = sorted(set(runs.iterdir()) - before)
    traces = sorted(trace for folder in new for trace in folder.glob("trace*.json*"))
    if status != 0 or not traces:
        print(f"demo: the example was not recorded (exit status {status})", file=sys.stderr)
        return None
    return traces[0]


def used_a_gpu(trace: Path) -> bool:
    """Whether the recording saw a device, as its run's manifest says."""
    manifest = json.loads((trace.parent / "run.json").read_text("utf-8"))
    return any(entry.get("devices") for entry in manifest.get("traces", ()))


def main() -> int:
    """Run the demonstration; return its exit status."""
    trace = record()
    if trace is None:
        return 1
    shown = {"": trace}
    if not used_a_gpu(trace):
        print("\nNo CUDA GPU here: the recording holds the CPU's side only. Beside it comes the same program as a")
        print("simulator sees it on a GPU, so that there are waits to look at.")
        shown["-simulated-gpu"] = SAMPLE
    if has_screen():
        return steplens(*reversed(shown.values()))
    written = []
    for suffix, path in shown.items():
        picture, report = OUTPUT / f"window{suffix}.png", OUTPUT / f"report{suffix}.txt"
        status = steplens("screenshot", path, picture) or steplens("analyze", path, stdout=report)
        if status:
            return status
        written += [picture, report]
    print("\nThere is no screen here. Written instead, the window's picture and the text report:")
    print(*(f"  {path}" for path in written), sep="\n")
    print(f"The trace, to open on another machine:\n  {trace}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
