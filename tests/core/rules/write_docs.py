"""Writes the table of `docs/rules.md` anew from the rules: ``python -m tests.core.rules.write_docs``."""

from __future__ import annotations

from pathlib import Path

from core.rule_runner import load_rules
from core.suggestions import Needs

DOCS = Path(__file__).resolve().parents[3] / "docs" / "rules.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->"
GROUPS = {
    "Waits and copies": "scalar-read-back control-flow-on-device-tensor constant-copied-each-step host-list-index "
    "host-index-tensor data-dependent-shape op-reads-back tensor-read-back pageable-batch-copy blocking-pinned-copy "
    "pinning-in-step explicit-synchronize event-wait debug-mode-left-on grad-scaler-read-back optimizer-read-back "
    "grad-norm-read-back synchronous-memcpy synchronous-memset many-tiny-copies allocation-in-step",
    "Input pipeline": "loader-without-workers loader-starves-step loader-workers-recreated copy-not-overlapped "
    "float-batch-copied",
    "The CPU's part": "launch-bound hand-written-composite-op object-built-in-step unfused-cross-entropy "
    "compile-without-gain graph-break-or-recompile loop-over-tensor-elements single-tensor-optimizer gradients-zeroed "
    "garbage-collection-stall unfused-attention lazy-initialisation fusible-kernel-sequence python-work-in-step "
    "environment-loop tensor-grown-by-cat generation-without-cache model-copied-in-step",
    "Kernels": "fp32-matmul-without-tf32 tensor-cores-unused matmul-dims-misaligned conv-bias-before-batch-norm "
    "layout-conversions algorithm-search-each-step grid-too-small low-occupancy dtype-ping-pong gpu-underfed "
    "dominant-kernel double-precision-by-accident model-on-cpu",
    "Memory": "memory-near-limit allocator-thrash memory-creep evaluation-with-gradients checkpointing-trade",
    "Several GPUs": "data-parallel communication-share exposed-communication all-reduce-while-accumulating "
    "gloo-with-device-tensors unused-parameter-search straggler many-small-collectives sync-batch-norm",
    "The recording itself": "no-steps-marked warmup-captured gpu-events-missing orphan-kernels steps-truncated "
    "crossing-slices clock-skew invalid-json stacks-missing outlier-step profiler-overhead two-profilers enqueue-time "
    "data-not-recorded",
}
WORDS = {
    Needs.OPS: "operators",
    Needs.DEVICE: "GPU work",
    Needs.CALLS: "runtime calls",
    Needs.KERNELS: "kernels",
    Needs.STEPS: "steps",
    Needs.STACKS: "stacks",
    Needs.SHAPES: "shapes",
    Needs.MEMORY: "memory events",
    Needs.RANKS: "several ranks",
}


def table() -> str:
    rules = {item.rule.id: item for item in load_rules()}
    out: list[str] = []
    for group, ids in GROUPS.items():
        out += [f"### {group}\n", "| rule | finds | needs | thresholds |", "|---|---|---|---|"]
        for rule_id in ids.split():
            item = rules[rule_id]
            first = ((item.module.__doc__ if item.module else "") or "").strip().splitlines()[0].replace("``", "`")
            needs = ", ".join(text for need, text in WORDS.items() if need in item.rule.needs) or "any trace"
            params = "; ".join(f"`{p.name}` {p.default:g} {p.unit}" for p in item.rule.params)
            out.append(f"| `{rule_id}` | {first} | {needs} | {params} |".replace("  ", " "))
        out.append("")
    return "\n".join(out)


def main() -> None:
    text = DOCS.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    DOCS.write_text(head + BEGIN + table() + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
