"""A step that runs compiled code is not told to compile as if it did not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.suggestions import Suggestion
from core.trace import Trace
from tests.core.rules.kit import run_rule, sim, work
from tests.simulator import Machine


def _launches(compiled: str, kernel: str = "elementwise_kernel") -> Callable[[], Trace]:
    """Many short kernels, ten of them launched by a compiled region where there is one."""

    def program(m: Machine) -> None:
        for _ in range(40):
            m.kernel_op("aten::add", 3, "elementwise_kernel", host_us=40)
        if compiled:
            with m.op(compiled):
                for _ in range(10):
                    m.kernel_op("aten::mul", 3, kernel, host_us=40)

    return sim(program)


def _bound(trace: Trace) -> Suggestion:
    (found,) = run_rule("launch-bound", trace).suggestions
    return found


@pytest.mark.parametrize("compiled", ["CompiledFunction", "Torch-Compiled Region: 0/0"])
def test_compiled_code_is_named_with_what_it_launches(compiled: str) -> None:
    found = _bound(_launches(compiled)())
    assert f"compiled code already ({compiled}), which launches 30 of these kernels" in found.explanation
    assert found.fix.before.startswith("model = torch.compile(")
    assert "compile the rest" in found.fix.summary


def test_a_kernel_of_inductor_is_compiled_code() -> None:
    found = _bound(_launches("some::op", "triton_poi_fused_add_mul_0")())
    assert "(triton_poi_fused_add_mul_0), which launches 30 of these kernels" in found.explanation


def test_a_step_without_compiled_code_is_told_to_compile() -> None:
    for name in ("", "some::op"):
        found = _bound(_launches(name)())
        assert "already" not in found.explanation
        assert found.fix.before == "model = Net().cuda()"


def _sequences(m: Machine) -> None:
    for _ in range(6):
        for name in ("aten::add", "aten::mul", "aten::tanh", "aten::sub", "aten::div"):
            m.kernel_op(name, 60, "vectorized_elementwise_kernel<4>")
        m.kernel_op("aten::mm", 60)


@pytest.mark.parametrize("compiled", [True, False])
def test_sequences_in_compiled_code_need_more_than_to_be_compiled(compiled: bool) -> None:
    def program(m: Machine) -> None:
        work(m, 100, 1)
        if not compiled:
            _sequences(m)
        with m.op("CompiledFunction"):
            work(m, 100, 1)
            if compiled:
                _sequences(m)

    (found,) = run_rule("fusible-kernel-sequence", sim(program)()).suggestions
    count = 90 if compiled else 0
    assert f"compiled code already (CompiledFunction), which launches {count} of these kernels" in found.explanation
    assert ("torch.compile(block)" in found.fix.after) != compiled
    assert ("backend that fuses" in found.fix.summary) == compiled
