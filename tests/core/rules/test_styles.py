"""Faults as people write them: each rule on the shapes that its first form missed, a near miss, and the trap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.suggestions import EffectKind, Outcome, RuleResult
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, sim, steps, work
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder

CPU = {"deviceProperties": []}


def _found(result: RuleResult) -> bool:
    return result.outcome is Outcome.FOUND


# ------------------------------------------------------------------------------------------------ loops


def _rounds(names: tuple[str, ...], rounds: int, frame_each: bool = False) -> Trace:
    """A loop in one call of a function, or one call of a module per round."""
    builder = steps(3, 10_000.0, **CPU)
    for number in range(3):
        at = number * 10_000.0 + 10
        builder.python("train.py(5): pairs", at, 9_900)
        for one in range(rounds):
            start = at + 10 + one * len(names) * 20
            if frame_each:
                builder.python("nn.Module: Block_0", start, len(names) * 20 - 1)
            for k, name in enumerate(names):
                builder.op(f"aten::{name}", start + k * 20 + 1, 15)
    return built(builder)


_LONG = ("select", "select", "sub", "mul", "sum", "add", "sqrt", "add")


def test_a_loop_with_long_rounds_is_one_where_one_call_takes_all_the_pieces() -> None:
    (found,) = run_rule("loop-over-tensor-elements", _rounds(_LONG, 20)).suggestions
    assert found.values["repeats"] == 20
    assert found.values["period"] == 8
    assert not _found(run_rule("loop-over-tensor-elements", _rounds(_LONG, 8)))


def test_the_layers_of_a_model_are_no_loop_over_a_tensor() -> None:
    assert not _found(run_rule("loop-over-tensor-elements", _rounds(_LONG, 20, frame_each=True)))


def test_rounds_that_differ_are_a_loop_too() -> None:
    builder = steps(3, 10_000.0, **CPU)
    for number in range(3):
        at = number * 10_000.0 + 10
        builder.python("train.py(5): pairs", at, 9_900)
        for one in range(20):
            names = (
                "select",
                "select",
                "sub",
                "norm",
                "select",
                "select",
                "eq",
                *(("pow",) if one % 3 else ("rsub", "clamp")),
            )
            for k, name in enumerate(names):
                builder.op(f"aten::{name}", at + 10 + one * 200 + k * 20, 15)
    (found,) = run_rule("loop-over-tensor-elements", built(builder)).suggestions
    assert found.effects[0].kind is EffectKind.REMOVE_WORK


def test_a_loop_over_a_recurrent_cell_is_given_to_the_module_for_sequences() -> None:
    (found,) = run_rule("loop-over-tensor-elements", _rounds(("select", "lstm_cell", "linear"), 20)).suggestions
    assert "nn.LSTM(" in found.fix.after
    assert found.effects[0].is_assumed
    (plain,) = run_rule("loop-over-tensor-elements", _rounds(("select", "mul", "linear"), 20)).suggestions
    assert "LSTM" not in plain.fix.after


def test_the_line_of_a_loop_is_that_of_its_head(tmp_path: Path) -> None:
    body = "    total = 0\n    for i in range(len(x)):\n        total += x[i]\n    return total\n"
    source = f"\n\n\n\ndef pairs(x, y):\n{body}"
    (tmp_path / "train.py").write_text(source)
    found = run_rule("loop-over-tensor-elements", _rounds(_LONG, 20), roots=(tmp_path,)).suggestions[0]
    assert found.source is not None
    assert (found.source.line, found.source.exact) == (7, True)


# --------------------------------------------------------------------------------- attention, bias, chains


def _row(*names: str, us: float = 200) -> Callable[[], Trace]:
    def program(m: Machine) -> None:
        work(m, 100)
        for name in names:
            m.kernel_op(f"aten::{name}", us)
        work(m, 100)

    return sim(program)


def test_a_mask_made_where_it_is_used_does_not_hide_attention() -> None:
    rule = "unfused-attention"
    assert _found(run_rule(rule, _row("einsum", "mul", "bitwise_not", "masked_fill", "softmax", "dropout", "einsum")()))
    assert _found(run_rule(rule, _row("bmm", "div", "ones", "tril", "eq", "masked_fill", "softmax", "bmm")()))
    assert not _found(run_rule(rule, _row("einsum", "mul", "bitwise_not", "relu", "softmax", "linear", "einsum")()))


def _convolution(*between: str) -> Trace:
    builder = steps(2)
    for number in range(2):
        at = number * 1000.0
        builder.op("aten::conv2d", at + 10, 60, Input_Dims=[[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []])
        for k, name in enumerate(between):
            builder.op(f"aten::{name}", at + 80 + 10 * k, 5)
        builder.op("aten::batch_norm", at + 120, 50, Input_Dims=[[8, 16, 32, 32], [16], [16], [16], [16]])
    return built(builder)


def _network(source: Path) -> Trace:
    """Three steps of two convolutions with a bias, each before a batch norm, called at the same lines."""
    builder = steps(3)
    dims = [[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []]
    for number in range(3):
        at = number * 1000.0
        builder.python(f"{source}(7): forward", at + 5, 500)
        for k in range(2):
            builder.python(f"nn.Module: Conv2d_{k}", at + 10 + 200 * k, 80)
            builder.op("aten::conv2d", at + 12 + 200 * k, 60, Input_Dims=dims)
            builder.op("aten::batch_norm", at + 110 + 200 * k, 50, Input_Dims=[[8, 16, 32, 32], [16], [16], [16], [16]])
    return built(builder)


def test_a_needless_bias_is_counted_by_module_and_found_where_it_is_made(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        self.a = nn.Conv2d(3, 16, 3)\n"
        "        self.b = nn.Conv2d(3, 16, 3)\n"
        "        self.c = nn.Conv2d(3, 16, 3, bias=False)\n\n"
        "    def forward(self, x):\n"
        "        return self.nb(self.b(self.na(self.a(x))))\n"
    )
    trace = _network(source)
    (seen,) = run_rule("conv-bias-before-batch-norm", trace).suggestions
    (made,) = run_rule("conv-bias-before-batch-norm", trace, roots=(tmp_path,)).suggestions
    assert seen.values["count"] == made.values["count"] == 2
    assert seen.source is not None and made.source is not None
    assert (seen.source.function, made.source.function) == ("forward", "__init__")
    assert (made.source.line, made.source.also, made.source.exact) == (3, (4,), True)
    assert seen.key == made.key


def test_the_counter_of_batches_between_convolution_and_norm_is_passed_over() -> None:
    rule = "conv-bias-before-batch-norm"
    assert _found(run_rule(rule, _convolution("add_")))  # num_batches_tracked, in training
    assert not _found(run_rule(rule, _convolution("add_", "relu")))
    assert not _found(run_rule(rule, _convolution("relu")))


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ("exp sum div log", "log-softmax"),
        ("exp sum log sub", "log-softmax"),
        ("exp sum div", "softmax"),
        ("mean std sub mul add div add", "layer norm"),
        ("mean std sub add div", "layer norm"),
        ("mean var sub add sqrt div", "layer norm"),
        ("index index mul sum neg index sum div", "a negative log-likelihood loss"),
    ],
)
def test_ways_to_write_a_built_in_are_known(names: str, what: str) -> None:
    found = run_rule("hand-written-composite-op", _row(*names.split())()).suggestions
    assert [s.values["what"] for s in found] == [what]  # once: a shorter chain inside it is not reported as well
    if "std" in names:
        assert "n - 1" in found[0].fix.risk


@pytest.mark.parametrize("names", ["exp sum mul log", "mean sub add div", "std sub div"])
def test_other_arithmetic_is_no_built_in(names: str) -> None:
    assert not _found(run_rule("hand-written-composite-op", _row(*names.split())()))


# ------------------------------------------------------------------------------------- zeroing, collecting


def _zeroed(frame: str, tensors: int = 4) -> Trace:
    builder = steps(3, **CPU)
    for number in range(3):
        at = number * 1000.0 + 10
        builder.python("train.py(3): step", at, 900).python(frame, at + 10, 300)
        for k in range(tensors):
            builder.op("aten::zero_", at + 20 + 50 * k, 30)
    return built(builder)


@pytest.mark.parametrize(("frame", "evaluations"), [("train.py(40): validate", 1), ("train.py(40): log", 0)])
@pytest.mark.parametrize("always", [False, True])
def test_what_made_a_step_longer_is_named(frame: str, evaluations: int, always: bool) -> None:
    builder = TraceBuilder()
    for i in range(6):
        long = i == 3
        builder.step(i + 1, 10_000 * i, 6000 if long else 1000).op("aten::mm", 10_000 * i + 10, 50)
        if long or always:
            builder.python(frame, 10_000 * i + 100, 800).python(
                "torch/nn/modules/module.py(2900): eval" if evaluations else "log.py(3): write", 10_000 * i + 110, 50
            )
    (card,) = run_rule("outlier-step", built(builder)).suggestions
    assert card.values["evaluations"] == (0 if always else evaluations)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("save_us", [400, 10])
def test_checkpoints_of_ordinary_steps_are_a_card_where_they_take_time(every: int, save_us: int) -> None:
    builder = TraceBuilder(gpu=None, **CPU)
    for i in range(6):
        at = 2000 * i
        builder.step(i + 1, at, 1500).python("train.py(3): main", at, 1490).op("aten::mm", at + 10, 900)
        if i % every == 0:
            builder.python("torch/serialization.py(944): save", at + 1000, save_us)
            builder.python("torch/serialization.py(1183): _save", at + 1002, save_us - 5)
    cards = [s for s in run_rule("outlier-step", built(builder)).suggestions if not s.informational]
    assert len(cards) == (1 if save_us > 100 else 0)
    for card in cards:
        assert card.values["count"] == 6 // every
        assert card.values["share_pct"] == pytest.approx(100 * 400 / 1500 / every)


@pytest.mark.parametrize("other", [5000, 1000])
def test_a_first_step_that_another_resembles_is_no_warm_up(other: int) -> None:
    """The recording begins with an evaluation, and there is another."""
    builder = TraceBuilder()
    for i in range(8):
        length = {0: 5000, 5: other}.get(i, 1000)
        builder.step(i + 1, 10_000 * i, length).op("aten::mm", 10_000 * i + 10, 50)
        if length == 5000:
            builder.python("train.py(40): evaluate", 10_000 * i + 100, 4500)
    trace = built(builder)
    warm, odd = (run_rule(rule, trace).suggestions for rule in ("warmup-captured", "outlier-step"))
    assert bool(warm) is (other == 1000)
    assert [note.values["evaluations"] for note in odd] == ([2] if other == 5000 else [])


@pytest.mark.parametrize(("cleared", "found"), [(3, True), (4, False), (0, False)])
@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("marked", [True, False])
def test_gradients_that_the_loop_itself_clears(cleared: int, found: bool, update: bool, marked: bool) -> None:
    """As many as the backward pass made: others that are cleared beside them leave it open."""
    builder = steps() if marked else TraceBuilder()
    for i in range(3):
        for k in range(3):
            builder.op("torch::autograd::AccumulateGrad", 1000 * i + 10 * k, 5)
        builder.op("aten::zeros", 1000 * i + 50, 8).op("aten::zero_", 1000 * i + 52, 4)
        for k in range(cleared):
            if update:
                builder.op("aten::sub_", 1000 * i + 100 + 20 * k, 5)
            builder.op("aten::zero_", 1000 * i + 110 + 20 * k, 5)
    result = run_rule("gradients-zeroed", built(builder))
    assert _found(result) is found
    if found:
        (card,) = result.suggestions
        assert card.occurrences == 9
        assert "p.grad = None" in card.fix.after


def test_a_modules_own_zero_grad_counts() -> None:
    (found,) = run_rule("gradients-zeroed", _zeroed("torch/nn/modules/module.py(2990): zero_grad")).suggestions
    assert found.fix.before.startswith("model.")
    assert not _found(run_rule("gradients-zeroed", _zeroed("torch/nn/modules/module.py(2990): zero_grad", 1)))
    assert not _found(run_rule("gradients-zeroed", _zeroed("buffers.py(9): zero_grad")))


def _collected(us: float, name: str = "<built-in function collect>") -> Trace:
    builder = steps(3, 20_000.0, **CPU)
    for number in range(3):
        at = number * 20_000.0 + 10
        builder.python("train.py(3): step", at, 19_000)
        builder.op("aten::mm", at + 10, 2000)
        builder.python(name, at + 5000, us)
    return built(builder)


def test_a_call_of_the_garbage_collector_in_the_step_is_found_without_its_own_events() -> None:
    (found,) = run_rule("garbage-collection-stall", _collected(9000)).suggestions
    assert found.values["count"] == 3
    assert run_rule("garbage-collection-stall", _collected(100)).outcome is Outcome.NOT_CHECKED
    assert run_rule("garbage-collection-stall", _collected(9000, "mine.py(3): collect")).outcome is Outcome.NOT_CHECKED


# ------------------------------------------------------------------------------------ anomalies, evaluation


def _nan_checks(parent: str) -> Trace:
    builder = steps(3, **CPU)
    for number in range(3):
        for k in range(4):
            at = number * 1000.0 + 10 + 200 * k
            builder.op(parent, at, 180)
            for n, name in enumerate(("isnan", "any", "item")):
                builder.op(f"aten::{name}", at + 20 + 40 * n, 30)
    return built(builder)


def test_looks_for_nan_below_the_nodes_of_the_backward_pass_are_anomaly_detection() -> None:
    (found,) = run_rule(
        "debug-mode-left-on", _nan_checks("autograd::engine::evaluate_function: MmBackward0")
    ).suggestions
    assert "anomaly" in found.headline
    assert [e.kind for e in found.effects] == [EffectKind.REMOVE_WORK]
    assert not _found(run_rule("debug-mode-left-on", _nan_checks("train_step")))  # a check of the user's own


def _evaluating(*, linked_all: bool, numbers: bool, in_steps: int = 4, compiler: str = "") -> Trace:
    """Each step trains on two layers; the first steps put two more layers through, as an evaluation does."""
    builder = steps(4, **CPU)
    number = 0
    for step in range(4):
        at = step * 1000.0 + 10
        for k in range(4 if step < in_steps else 2):
            number += 1
            own = numbers or k < 2
            builder.op("aten::linear", at + 100 * k, 80, **({"Sequence number": number} if own else {}))
            if k >= 2 and compiler:
                add = builder.op if compiler == "PythonDispatchMode" else builder.python
                add(compiler, at + 100 * k - 1, 83)
            if k < 2 or linked_all:
                builder.autograd(at + 100 * k, builder.tid, at + 500 + 100 * k, builder.tid)
        for k in range(4):
            builder.op("autograd::engine::evaluate_function: AddmmBackward0", at + 500 + 100 * k, 80)
    return built(builder)


def test_a_forward_pass_beside_the_training_whose_graph_nobody_uses() -> None:
    rule = "evaluation-with-gradients"
    (found,) = run_rule(rule, _evaluating(linked_all=False, numbers=True)).suggestions
    assert "nothing uses" in found.headline
    assert not _found(run_rule(rule, _evaluating(linked_all=True, numbers=True)))  # all of it is trained on
    assert not _found(run_rule(rule, _evaluating(linked_all=False, numbers=False)))  # under no_grad
    assert not _found(run_rule(rule, _evaluating(linked_all=False, numbers=True, in_steps=1)))  # once is a check


@pytest.mark.parametrize("compiler", ["PythonDispatchMode", "torch/_dynamo/convert_frame.py(900): compile_inner"])
def test_operators_that_the_compiler_tries_while_it_traces_are_no_forward_pass(compiler: str) -> None:
    traced = _evaluating(linked_all=False, numbers=True, compiler=compiler)
    assert not _found(run_rule("evaluation-with-gradients", traced))


# ------------------------------------------------------------------------------ double precision, checkpoints


def _products(kind: str, **header: object) -> Trace:
    builder = steps(3, record_shapes=1, **header)
    for number in range(3):
        for k in range(4):
            at = number * 1000.0 + 10 + 200 * k
            builder.op("aten::mm", at, 180, Input_Dims=[[8, 8], [8, 8]], Input_type=[kind, kind])
    return built(builder)


def test_double_precision_is_told_on_a_cpu_from_the_types() -> None:
    rule = "double-precision-by-accident"
    (found,) = run_rule(rule, _products("double", **CPU)).suggestions
    assert "GPU" not in found.explanation
    assert found.effects[0].factor == 0.5
    assert run_rule(rule, _products("float", **CPU)).outcome is Outcome.CLEAN
    assert run_rule(rule, _products("double")).outcome is Outcome.NOT_CHECKED  # a GPU may have done the work


def _recomputed(node: str, inside: str) -> Trace:
    builder = steps(2, 2000.0)
    for number in range(2):
        at = number * 2000.0 + 10
        builder.op("aten::linear", at, 100).launch("gemm", at + 10, 5, at + 30, 60)
        builder.op(f"autograd::engine::evaluate_function: {node}", at + 500, 600).op(node, at + 510, 580)
        builder.op(f"aten::{inside}", at + 520, 100).launch("gemm", at + 530, 5, at + 550, 60)
        builder.op("aten::mm", at + 700, 100).launch("gemm", at + 710, 5, at + 730, 60)
        builder.memory(at + 30, 1000, 1_000_000, 2_000_000, device=0)
    return built(builder)


def test_checkpoints_that_are_not_reentrant_compute_layers_at_the_start_of_a_node() -> None:
    rule = "checkpointing-trade"
    trace = _recomputed("AddmmBackward0", "linear")
    (found,) = run_rule(rule, trace).suggestions
    assert {trace.name(i) for i in found.effects[0].slices} == {"aten::linear"}  # the node's own product stays
    assert not _found(run_rule(rule, _recomputed("AddmmBackward0", "sum")))
    assert not _found(run_rule(rule, _recomputed("MyFunctionBackward", "linear")))  # a function of the user's own


# ------------------------------------------------------------------------------------ searches, constructors


def _convolutions(same: bool, waits: bool = False, shapes: bool = True) -> Trace:
    builder = TraceBuilder(record_shapes=int(shapes))
    for number in range(3):
        at = number * 1000.0
        builder.step(number + 1, at, 990)
        for k in range(3):
            size = 32 if same else 32 + number
            dims = {"Input_Dims": [[8, 3, size, size], [16, 3, 3, 3]]} if shapes else {}
            builder.op("aten::cudnn_convolution", at + 10 + 100 * k, 80, **dims)
            builder.launch("xmma_fprop", at + 20 + 100 * k, 5, at + 30 + 100 * k, 60)
            if waits:
                builder.runtime("cudaEventSynchronize", at + 40 + 100 * k, 20)
    return built(builder)


def test_constant_shapes_without_a_search_are_a_note() -> None:
    rule = "algorithm-search-each-step"
    (found,) = run_rule(rule, _convolutions(same=True)).suggestions
    assert found.informational
    assert "not in the trace" in found.explanation
    assert not _found(run_rule(rule, _convolutions(same=False)))
    assert not _found(run_rule(rule, _convolutions(same=True, shapes=False)))
    (searching,) = run_rule(rule, _convolutions(same=False, waits=True)).suggestions
    assert not searching.informational


def _constructed(caller: str, own: str = "") -> Trace:
    builder = steps(3, **CPU)
    for number in range(3):
        at = number * 1000.0 + 10
        builder.python("train.py(3): step", at, 900)
        builder.python(caller, at + 10, 700)
        if own:
            builder.python(own, at + 20, 600)
        builder.python("torch/nn/modules/linear.py(96): __init__", at + 30, 500)
        builder.op("aten::uniform_", at + 50, 400)
    return built(builder)


def test_what_a_library_builds_for_itself_is_not_the_users_to_move() -> None:
    rule = "object-built-in-step"
    assert _found(run_rule(rule, _constructed("model.py(20): forward")))
    assert not _found(run_rule(rule, _constructed("torch/optim/lr_scheduler.py(100): step")))


def test_a_class_of_the_users_own_is_named_where_it_is_made_not_where_it_is_defined() -> None:
    (found,) = run_rule(
        "object-built-in-step", _constructed("model.py(20): forward", "model.py(4): __init__")
    ).suggestions
    assert found.source is not None
    assert (found.source.function, found.source.line) == ("forward", 20)


# -------------------------------------------------------------------------------------------------- printing


def _printed(frame: str) -> Trace:
    def program(m: Machine) -> None:
        work(m)
        stack = (m.frame("train.py", 8, "step"), m.frame("torch/_tensor_str.py", 500, frame))
        with stack[0], stack[1], m.op("aten::masked_select"), m.op("aten::nonzero"):
            m.copy("DtoH", 8, pinned=True)
        work(m)

    return sim(program)()


def test_all_that_printing_a_tensor_does_is_one_fault() -> None:
    assert _found(run_rule("tensor-read-back", _printed("_str")))
    assert not _found(run_rule("data-dependent-shape", _printed("_str")))


def test_an_optimizer_that_works_on_one_vector_is_not_called_tensor_by_tensor() -> None:
    def trained(optimizer: str) -> Trace:
        def program(m: Machine) -> None:
            work(m)
            with m.range(f"Optimizer.step#{optimizer}.step"):
                for _ in range(60):
                    m.kernel_op("aten::mul_", 3)

        return sim(program)()

    assert _found(run_rule("single-tensor-optimizer", trained("Adam")))
    assert not _found(run_rule("single-tensor-optimizer", trained("LBFGS")))


def test_all_that_an_optimizer_starts_tensor_by_tensor_is_priced() -> None:
    def program(m: Machine) -> None:
        work(m)
        with m.range("Optimizer.step#Lamb.step"):
            for _ in range(60):
                for name in ("mul_", "linalg_vector_norm", "div"):
                    m.kernel_op(f"aten::{name}", 3)

    trace = sim(program)()
    (found,) = run_rule("single-tensor-optimizer", trace).suggestions
    assert found.values["per_step"] == 180
    assert len(found.effects[0].slices) == 180 * len(found.steps)


def test_on_a_cpu_foreach_is_advised_for_small_tensors_only() -> None:
    def trained(optimizer: str, us: float) -> RuleResult:
        builder = steps(3, 20_000.0, **CPU)
        for number in range(3):
            at = number * 20_000.0 + 10
            builder.range(f"Optimizer.step#{optimizer}.step", at, 19_000)
            for k in range(60):
                builder.op("aten::mul_", at + 10 + 300 * k, us)
        return run_rule("single-tensor-optimizer", built(builder))

    (small,) = trained("RMSprop", 5).suggestions
    assert small.effects[0].factor == 0.6
    assert "fused form" not in small.explanation
    assert not _found(trained("RMSprop", 200))  # as measured: no faster, or slower
    assert trained("Adam", 200).suggestions[0].effects[0].factor == 0.5  # has a fused form
