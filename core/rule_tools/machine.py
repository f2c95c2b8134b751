"""What is known of the machine that a run was recorded on, and of the loader's workers on it."""

from __future__ import annotations

import ast
from pathlib import Path

from core.own_run import own_run
from core.trace import Trace

CORES = "The machine of this run has {cores} {cores|core|cores}."
MOST_BYTES = 1_000_000  # of a source that is read


def cores_of(trace: Trace) -> int | None:
    """Cores of the machine of the app's own run; None where that is unknown."""
    run = own_run(trace)
    return run.cores if run is not None else None


def workers_in_sources(trace: Trace) -> int | None:
    """Most workers that a loader in the run's own sources is given; None where that cannot be read off them."""
    run = own_run(trace)
    if run is None:
        return None
    found = [workers for path in run.sources.values() for workers in _workers_in(path, run.cores)]
    return None if not found or None in found else max(n for n in found if n is not None)


def _workers_in(path: Path, cores: int | None) -> list[int | None]:
    """Workers of each call of a `DataLoader` that names them; None for one that is worked out elsewhere."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return [None]
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "DataLoader"]
    given = [word.value for call in calls for word in call.keywords if word.arg == "num_workers"]
    return [_value(value, cores) for value in given]


def _value(node: ast.expr, cores: int | None) -> int | None:
    """Value of a number, of the count of cores, and of the least of such; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):  # os.cpu_count() or 1
        return _value(node.values[0], cores)
    if isinstance(node, ast.Call) and _name(node.func) == "cpu_count":
        return cores
    if isinstance(node, ast.Call) and _name(node.func) == "min" and node.args:
        values = [_value(one, cores) for one in node.args]
        return None if None in values else min(n for n in values if n is not None)
    return None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
