"""A fault at several lines of one function: the card names all of them."""

from __future__ import annotations

from pathlib import Path

from core.analysis import analyze
from core.importing import open_trace
from core.run_folder import finder_for
from tests.simulator import Machine, simulate

SCRIPT = """\
def train(loader, model):
    total, seen = 0.0, 0
    for x in loader:
        loss = model(x)
        total += loss.item()
        seen += (loss > 0).sum().item()
    return total, seen
"""


def test_reads_at_two_lines_of_a_function_are_both_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def step(m: Machine, _: int) -> None:
        with m.frame(str(script), 1, "train"):
            for _ in range(4):
                m.kernel_op("aten::mm", us=400)
            m.item()
            m.kernel_op("aten::gt", us=4)
            m.kernel_op("aten::sum", us=4)
            m.item()

    trace = open_trace(simulate(step).write(tmp_path / "trace.json"))
    found = analyze(trace, source=finder_for(trace, [tmp_path])).suggestions
    (card,) = [s for s in found if s.rule_id == "scalar-read-back"]
    assert card.source is not None
    assert (card.source.line, card.source.also, card.source.exact) == (5, (6,), True)
