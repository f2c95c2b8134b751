"""Profile stage 0 of the reference story, then show its trace: in the window, or as a picture where there is no screen.

Every step is a call of the program's own commands, as a person would type them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
SCRIPT = ROOT / "examples" / "reference_story" / "stage0.py"


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


def main() -> int:
    """Run the demonstration; return its exit status."""
    trace = record()
    if trace is None:
        return 1
    if has_screen():
        return steplens(trace)
    picture, report = OUTPUT / "window.png", OUTPUT / "report.txt"
    status = steplens("screenshot", trace, picture) or steplens("analyze", trace, stdout=report)
    if status == 0:
        print("\nThere is no screen here. Written instead:")
        print(f"  the window's picture  {picture}")
        print(f"  the text report       {report}")
        print(f"  the trace             {trace}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
