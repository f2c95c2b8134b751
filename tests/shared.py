"""Where the collection of real traces and fault cases lies, when it does: beside the checkout, never in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("STEPLENS_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TRACES = SHARED / "traces"
TRUTH = SHARED / "truth"
CASES = SHARED / "cases"
ORACLES = SHARED / "oracles"

needs_shared = pytest.mark.skipif(
    not TRACES.is_dir(), reason=f"the collection of real traces is not at {SHARED} (set STEPLENS_SHARED)"
)


def trace_path(trace_id: str) -> Path:
    """File of a trace by the start of its name (``d01``); skips the test when it is not there."""
    found = sorted(TRACES.glob(f"{trace_id}_*.json*")) if TRACES.is_dir() else []
    if not found:
        pytest.skip(f"trace {trace_id} is not at {TRACES}")
    return found[0]


def case_path(case: str, name: str = "") -> Path:
    """Folder (or file in it) of a fault case by the start of its name (``01``); skips the test when absent."""
    found = sorted(CASES.glob(f"{case}-*")) if CASES.is_dir() else []
    if not found:
        pytest.skip(f"case {case} is not at {CASES}")
    return found[0] / name if name else found[0]
