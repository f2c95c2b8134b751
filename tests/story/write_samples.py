"""Writes the simulated stages of the story to ``resources/samples``: ``python -m tests.story.write_samples``."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.story.program import STAGES, run_stage

SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "samples"


def sample_path(stage: int) -> Path:
    return SAMPLES / f"story_stage{stage}_simulated.json.gz"


def main() -> None:
    SAMPLES.mkdir(exist_ok=True)
    for stage in STAGES:
        path = sample_path(stage)
        path.write_bytes(gzip.compress(run_stage(stage).to_json(), 9, mtime=0))
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
