"""What a script says of itself that spoils its times, told before it runs; it is read, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from profiling.preflight import Remark
from profiling.sentences import Sentence, say

LARGEST_BYTES = 300_000  # parsing more takes longer than the look is worth
BLOCKING = "CUDA_LAUNCH_BLOCKING"


def remarks_of_script(path: str) -> tuple[Remark, ...]:
    """Anomaly detection and blocking launches that a script turns on; nothing where it cannot be read.

    Parameters
    ----------
    path
        The script's file; files that it imports are not looked at.
    """
    try:
        with open(path, "rb") as source:
            content = source.read(LARGEST_BYTES + 1)
        tree = ast.parse(content) if len(content) <= LARGEST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        tree = None
    found: dict[str, Remark] = {}
    for node in ast.walk(tree) if tree is not None else ():
        for key, cure in _of(node):
            line = getattr(node, "lineno", 0)
            found.setdefault(key, Remark("warn", say(key, line=line), cure))
    return tuple(found.values())


def _of(node: ast.AST) -> Iterator[tuple[str, Sentence]]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        on = _is_true(node.args[0]) if node.args else any(k.arg == "mode" and _is_true(k.value) for k in node.keywords)
        wished = any(k.arg == "detect_anomaly" and _is_true(k.value) for k in node.keywords)  # Lightning's Trainer
        if name == "detect_anomaly" or (name == "set_detect_anomaly" and on) or wished:
            yield "script-anomaly", say("cure-turn-off")
    elif isinstance(node, ast.Assign) and getattr(node.value, "value", None) == "1":
        names = [getattr(target.slice, "value", None) for target in node.targets if isinstance(target, ast.Subscript)]
        if BLOCKING in names:
            yield "script-blocking", say("cure-unset")


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
