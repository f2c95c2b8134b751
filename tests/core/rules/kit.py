"""What the tests of rules share: traces made by code, and rules run on them one by one."""

from __future__ import annotations

import atexit
import importlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from core.figures.compute import compute_figures
from core.importing import open_trace
from core.rule_runner import LoadedRule, _missing_reasons, _run_one
from core.source import SourceFinder
from core.source_lines import LineRecord
from core.suggestions import RuleContext, RuleResult
from core.trace import Trace
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder

# rules read arguments from the file, so the files stay until the tests have ended
_FOLDER = tempfile.TemporaryDirectory(prefix="rules-")
atexit.register(_FOLDER.cleanup)
_NUMBER = count()

Program = Callable[[Machine], None]


@dataclass(frozen=True)
class Case:
    """A trace that must trigger a rule, and one that nearly does."""

    found: Callable[[], Trace]
    near: Callable[[], Trace]


def keep(data: bytes) -> Trace:
    """Open bytes of JSON as a trace whose file stays."""
    path = Path(_FOLDER.name) / f"{next(_NUMBER)}.json"
    path.write_bytes(data)
    return open_trace(path)


def built(builder: TraceBuilder) -> Trace:
    return keep(builder.to_json())


def sim(program: Program, **options: Any) -> Callable[[], Trace]:
    """Three simulated steps of a program."""

    def make() -> Trace:
        settings: dict[str, Any] = {"steps": 3, "sustained": False} | options
        return keep(simulate(lambda m, number: program(m), **settings).to_json())

    return make


def by_step(program: Callable[[Machine, int], None], **options: Any) -> Callable[[], Trace]:
    """As `sim` for a program that looks at the step's number (2, 3, 4)."""

    def make() -> Trace:
        settings: dict[str, Any] = {"steps": 3, "warmup": 0, "sustained": False} | options
        return keep(simulate(program, **settings).to_json())

    return make


def work(m: Machine, us: float = 300.0, times: int = 3) -> None:
    """Some ordinary work for the device."""
    for _ in range(times):
        m.kernel_op("aten::mm", us, "ampere_fp16_s16816gemm_fp16_128x64_ldg8_stages_64x3_tn")


def run_rule(
    rule_id: str,
    trace: Trace,
    params: Mapping[str, float] | None = None,
    roots: tuple[Path, ...] = (),
    lines: LineRecord | None = None,
) -> RuleResult:
    """Run one rule as the runner does."""
    module = importlib.import_module("core.rules." + rule_id.replace("-", "_"))
    figures = compute_figures(trace)
    values = {p.name: p.default for p in module.RULE.params} | dict(params or {})
    context = RuleContext(trace, figures, values, SourceFinder(trace, roots, lines))
    return _run_one(LoadedRule(module.RULE, module), context, _missing_reasons(trace, figures))


def steps(n: int = 3, us: float = 1000.0, **header: Any) -> TraceBuilder:
    """A builder with n marked steps of ``us`` each, from 0 on."""
    builder = TraceBuilder(**header)
    for i in range(n):
        builder.step(i + 1, i * us, us - 10)
    return builder
