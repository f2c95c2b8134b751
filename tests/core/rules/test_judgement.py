"""What someone who knows the program would say: cases in which a plain reading of the numbers is wrong."""

from __future__ import annotations

from core.suggestions import Outcome
from tests.core.rules.kit import run_rule, sim
from tests.simulator import Machine


def _kernels(m: Machine, host_us: float) -> None:
    for _ in range(30):
        m.kernel_op("aten::relu", 5, host_us=host_us)


def test_a_cpu_that_does_other_work_between_launches_is_not_called_launch_bound() -> None:
    assert run_rule("launch-bound", sim(lambda m: _kernels(m, 40))()).outcome is Outcome.FOUND
    assert run_rule("launch-bound", sim(lambda m: _kernels(m, 900))()).outcome is Outcome.CLEAN


def test_kernels_of_a_graph_are_not_launched_one_by_one() -> None:
    def program(m: Machine) -> None:
        m.kernel_op("aten::relu", 5, host_us=60)
        m.cpu(500)
        m.graph([4.0] * 60)

    assert run_rule("launch-bound", sim(program)()).outcome is Outcome.CLEAN


def test_allocations_of_a_program_without_steps_are_a_note() -> None:
    def program(m: Machine) -> None:
        for _ in range(12):
            m.malloc()
            m.kernel_op("aten::relu", 50)

    marked = run_rule("allocation-in-step", sim(program)())
    once = run_rule("allocation-in-step", sim(program, steps=2, marked=False)())
    assert [s.informational for s in marked.suggestions] == [False]
    assert [s.informational for s in once.suggestions] == [True]
    assert "Steps" not in once.suggestions[0].headline


def test_an_optimizer_made_of_others_is_counted_once() -> None:
    def program(m: Machine) -> None:
        m.kernel_op("aten::mm", 100)
        with m.range("Optimizer.step#Combined.step"), m.range("Optimizer.step#SGD.step"):
            for _ in range(60):
                m.kernel_op("aten::add_", 3)

    found = run_rule("single-tensor-optimizer", sim(program)()).suggestions
    assert len(found) == 1
    assert found[0].values["per_step"] == 60
