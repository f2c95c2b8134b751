"""Writes the simulated stages of the story to ``resources/samples``: ``python -m tests.story.write_samples``."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.story.program import ARTICLE, SMALL, STAGES, Size, run_stage

SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "samples"
ARTICLE_STAGES = (0, 2, 3, 6)  # enough to show that the host step falls and the pace does not


def sample_path(stage: int, size: Size = SMALL) -> Path:
    """Sample of one stage."""
    return SAMPLES / f"{size.name}_stage{stage}_simulated.json.gz"


def main() -> None:
    """Write all samples."""
    SAMPLES.mkdir(exist_ok=True)
    for size, stages in ((SMALL, STAGES), (ARTICLE, ARTICLE_STAGES)):
        for stage in stages:
            path = sample_path(stage, size)
            path.write_bytes(gzip.compress(run_stage(stage, size, sustained=False).to_json(), 9, mtime=0))
            print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
