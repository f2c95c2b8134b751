"""Prints the table of rounds of the whole reference story, from its shipped traces: predicted beside what came of it.

    python -m examples.story_table

The prediction of a row is made from the trace of the stage before, by replaying it without the fault; the outcome is
read from the stage's own trace. The traces are simulated for a GPU, and were not made by that replay.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.judging import judge
from core.project import Iteration, figures_of, predicted_step
from core.run_folder import finder_for

SAMPLES = Path(__file__).resolve().parents[1] / "resources" / "samples"
# What each stage repairs: words, and the suggestions of the stage before that say so (rule, function).
REPAIRS = (
    ("as it was", ()),
    ("class weights kept on the device", (("constant-copied-each-step", "forward"),)),
    ("labels checked in the data set", (("control-flow-on-device-tensor", "weighted_nll"),)),
    ("index made on the device", (("host-list-index", "weighted_nll"),)),
    ("nn.NLLLoss", (("hand-written-composite-op", "weighted_nll"),)),
    ("loss object built once", (("object-built-in-step", "forward"),)),
    ("nn.CrossEntropyLoss", (("hand-written-composite-op", "log_softmax"), ("unfused-cross-entropy", "forward"))),
)
HEADS = ("stage", "what was fixed", "sustained step", "host step", "GPU busy", "sync points", "predicted", "came",
         "prediction", "found at")  # fmt: skip


def main() -> None:
    """Print the table."""
    print("| " + " | ".join(HEADS) + " |")
    print("|---" * len(HEADS) + "|")
    before: tuple[Analysis, Iteration] | None = None
    for stage, (words, repaired) in enumerate(REPAIRS):
        trace = open_trace(SAMPLES / f"story_stage{stage}_simulated.json.gz")
        analysis = analyze(trace, source=finder_for(trace))
        row, places = Iteration(stage, "", 0.0, figures=figures_of(analysis, None)), ""
        outcome = ("", "", "")
        if before is not None:
            chosen = [_find(before[0], rule, function) for rule, function in repaired]
            predicted = _predicted(before[0], chosen)
            places = ", ".join(_place(before[0], index) for index in chosen)
            row = Iteration(stage, "", 0.0, before[1].number, (), predicted, figures=row.figures)
            found = judge(before[1], row)
            held = _words(found.outcome, found.off_by_pct)
            outcome = (_signed(found.predicted_pct), _signed(found.measured_pct), held)
        f = row.figures
        syncs = "unknown" if f.sync_points is None else f"{f.sync_points:.0f}"
        cells = (str(stage), words, _us(f.sustained_ns), _us(f.host_ns), _pct(f.gpu_busy_pct), syncs)
        print("| " + " | ".join((*cells, *outcome, places)) + " |")
        before = (analysis, row)


def _find(analysis: Analysis, rule: str, function: str) -> int:
    for index, s in enumerate(analysis.suggestions):
        if s.rule_id == rule and s.source is not None and s.source.function == function:
            return index
    raise LookupError(f"{rule} is not suggested for {function}")


def _predicted(analysis: Analysis, chosen: list[int]) -> float | None:
    """Step after all that a stage repairs; where the plan does not begin with just these, that of the largest alone."""
    together = predicted_step(analysis, chosen)
    if together is not None:
        return together
    alone = [step for index in chosen if (step := predicted_step(analysis, [index])) is not None]
    return min(alone, default=None)


def _place(analysis: Analysis, index: int) -> str:
    source = analysis.suggestions[index].source
    return f"{PurePath(source.file).name}:{source.line} {source.function}" if source is not None else ""


def _words(outcome: str, off_by: float | None) -> str:
    off = "" if off_by is None else f" ({off_by:+.1f} points)"
    return {"right": "held"}.get(outcome, outcome) + off


def _us(ns: float | None) -> str:
    return "unknown" if ns is None else f"{ns / 1000:.0f} µs"


def _pct(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} %"


def _signed(pct: float | None) -> str:
    return "unknown" if pct is None else f"{pct:+.1f} %"


if __name__ == "__main__":
    main()
