"""What someone who knows the program would say: cases in which a plain reading of the numbers is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.analysis import analyze
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.pricing import price
from core.suggestions import Outcome, Saving
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, sim, steps
from tests.core.rules.test_rules import CASES
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder


def _kernels(m: Machine, host_us: float) -> None:
    for _ in range(30):
        m.kernel_op("aten::relu", 5, host_us=host_us)


def test_a_cpu_that_does_other_work_between_launches_is_not_called_launch_bound() -> None:
    assert run_rule("launch-bound", sim(lambda m: _kernels(m, 40))()).outcome is Outcome.FOUND
    assert run_rule("launch-bound", sim(lambda m: _kernels(m, 900))()).outcome is Outcome.CLEAN


@pytest.mark.parametrize("count", [1, 2, 8])
def test_ranks_that_launch_slowly_are_judged_as_one_of_them(tmp_path: Path, count: int) -> None:
    files = []
    for rank in range(count):
        builder = TraceBuilder(pid=100 + rank, distributedInfo={"rank": rank, "world_size": count})
        for number in range(4):
            builder.step(number, number * 1000, 1000)
            for i in range(25):
                at = number * 1000 + i * 40
                builder.op("aten::relu", at, 36).launch("k", at=at + 20, call=3, start=at + 25, dur=5)
        files.append(builder.write(tmp_path / f"rank{rank}.json"))
    (found,) = run_rule("launch-bound", open_trace(files)).suggestions
    assert found.values["idle_pct"] == pytest.approx(87.5, abs=0.5)


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


def test_a_synchronisation_or_two_outside_any_loop_are_a_note() -> None:
    def program(times: int, marked: bool) -> list[bool]:
        def step(m: Machine) -> None:
            m.kernel_op("aten::mm", 500)
            m.device_synchronize()
            m.kernel_op("aten::mm", 500)

        made = sim(step, steps=times, marked=marked)()
        return [s.informational for s in run_rule("explicit-synchronize", made).suggestions]

    assert program(2, marked=False) == [True]
    assert program(5, marked=False) == [False]
    assert program(3, marked=True) == [False]


def test_products_of_attention_are_not_asked_to_pad_their_sequence() -> None:
    def program(inside: bool, outside: bool) -> Trace:
        builder = steps(3)
        shapes = {"Input_Dims": [[96, 3137, 64], [96, 64, 3137]], "Input_type": ["c10::Half", "c10::Half"]}
        head = {"Input_Dims": [[64, 768], [768, 30522]], "Input_type": ["c10::Half", "c10::Half"]}
        names = ["bmm", "div", "softmax", "bmm"] if inside else ["div", "softmax"]
        for i in range(3):
            every = [(f"aten::{n}", shapes if n == "bmm" else {}) for n in names]
            for k, (name, args) in enumerate([*every, ("aten::relu", {}), *([("aten::mm", head)] if outside else [])]):
                at = i * 1000 + 20 + k * 100
                builder.op(name, at, 40, **args).launch("gemm", at + 5, 5, at + 12, 80)
        return built(builder)

    assert run_rule("matmul-dims-misaligned", program(True, False)).outcome is not Outcome.FOUND
    found = run_rule("matmul-dims-misaligned", program(True, True)).suggestions
    assert [s.values["size"] for s in found] == ["768x30522"]


def _halves(*products: tuple[int, int, int, float], strides: Any = None) -> Trace:
    """Steps of products of half precision, each by M, K, N and the time of its kernel, us."""
    builder = steps(3, 4000.0)
    for i in range(3):
        at = i * 4000.0 + 20
        for m, k, n, us in products:
            args = {"Input_Dims": [[m, k], [k, n]], "Input_type": ["c10::Half"] * 2, "Input_Strides": strides}
            builder.op("aten::mm", at, 20, **args).launch("gemm", at + 5, 5, at + 12, us)
            at += us + 5
    return built(builder)


def test_products_of_odd_size_are_priced_by_a_faster_one_of_about_their_size() -> None:
    """512 x 1024 x 30522 in 2 ms; its padded form at the pace of 512 x 1024 x 16384 in 0.5 ms takes 0.93 ms."""
    odd, fast = (512, 1024, 30522, 2000), (512, 1024, 16384, 500)
    (found,) = run_rule("matmul-dims-misaligned", _halves(odd, fast)).suggestions
    assert [(e.kind.value, len(e.slices), round(e.factor, 3)) for e in found.effects] == [("scale_device", 3, 0.466)]
    assert "47 % of their time is left" in found.explanation
    slow, small = (512, 1024, 16384, 1200), (64, 64, 64, 0.2)
    (open_one,) = run_rule("matmul-dims-misaligned", _halves(odd, slow, small)).suggestions
    assert open_one.effects == ()
    assert "What that saves is not known: no product of fitting sizes" in open_one.explanation


def test_a_transposed_matrix_is_judged_by_the_size_that_lies_in_one_piece() -> None:
    """The gradient of a weight is x.T @ g: the number of rows of both, 141, is a batch and no size to pad."""
    gradient = [[1, 512], [2048, 1]]
    assert run_rule("matmul-dims-misaligned", _halves((512, 141, 2048, 900), strides=gradient)).suggestions == ()
    assert run_rule("matmul-dims-misaligned", _halves((512, 141, 2048, 900))).suggestions


def _allocating(call: str, in_steps: tuple[int, ...], of: int) -> Trace:
    builder = steps(of, 1000.0)
    for number in range(of):
        at = number * 1000.0
        builder.op("aten::mm", at + 20, 100).launch("gemm", at + 30, 5, at + 60, 400)
        if number in in_steps:
            for n in range(4):
                builder.runtime(call, at + 200 + 30 * n, 20)
    return built(builder)


def test_allocations_ordered_by_a_stream_wait_for_nothing() -> None:
    every = (0, 1, 2, 3)
    assert run_rule("allocation-in-step", _allocating("cudaFree", every, 4)).outcome is Outcome.FOUND
    for call in ("cudaMallocAsync", "cudaFreeAsync", "cudaMallocFromPoolAsync"):
        assert run_rule("allocation-in-step", _allocating(call, every, 4)).outcome is Outcome.CLEAN


def test_allocations_of_the_first_steps_alone_are_the_programs_growth() -> None:
    assert run_rule("allocation-in-step", _allocating("cudaMalloc", (0, 1), 6)).outcome is Outcome.CLEAN
    assert run_rule("allocation-in-step", _allocating("cudaMalloc", (1, 4), 6)).outcome is Outcome.FOUND


def _anomaly(above: str) -> Trace:
    builder = steps(3, 5000.0)
    for i in range(30):
        at = (i // 10) * 5000.0 + (i % 10) * 400 + 20
        if i in (3, 13):
            builder.python(above, at - 10, 60)
            builder.python("torch/autograd/anomaly_mode.py(80): __enter__", at, 10)
            builder.python("torch/fx/traceback.py(498): format_stack", at + 20, 10)
        builder.op("aten::mm", at + 100, 200)
        builder.launch("gemm", at + 105, 6, at + 112, 195)
    return built(builder)


def test_the_compiler_watches_for_anomalies_of_its_own_accord() -> None:
    mine = "train.py(30): train_step"
    theirs = "torch/_functorch/_aot_autograd/graph_capture_wrappers.py(470): inner_fn"
    assert run_rule("debug-mode-left-on", _anomaly(mine)).outcome is Outcome.FOUND
    assert run_rule("debug-mode-left-on", _anomaly(theirs)).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("frame", "outcome"), [("gradcheck", Outcome.FOUND), ("_allclose", Outcome.CLEAN)])
def test_gradients_that_are_checked_numerically_in_the_loop(frame: str, outcome: Outcome) -> None:
    builder = steps(gpu=None)
    for i in range(3):
        builder.python("train.py(9): step", 1000 * i + 5, 900)
        builder.python(f"torch/autograd/gradcheck.py(1999): {frame}", 1000 * i + 10, 500)
        builder.op("aten::mul", 1000 * i + 20, 400)
        builder.op("autograd::engine::evaluate_function: MulBackward0", 1000 * i + 600, 100)
    result = run_rule("debug-mode-left-on", built(builder))
    assert result.outcome is outcome
    assert [s.occurrences for s in result.suggestions] == ([3] if outcome is Outcome.FOUND else [])


def test_a_batch_norm_in_evaluation_keeps_the_bias() -> None:
    def convolutions(training: str) -> Trace:
        builder = steps(2, 1000.0)
        for number in range(2):
            at = number * 1000.0
            builder.op("aten::conv2d", at + 10, 60, Input_Dims=[[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []])
            builder.op(
                "aten::batch_norm",
                at + 100,
                50,
                Input_Dims=[[8, 16, 32, 32], [16], [16], [16], [16], [], [], [], []],
                **{"Concrete Inputs": ["", "", "", "", "", training, "0.1", "1e-05", "True"]},
            )
        return built(builder)

    assert run_rule("conv-bias-before-batch-norm", convolutions("True")).outcome is Outcome.FOUND
    assert run_rule("conv-bias-before-batch-norm", convolutions("False")).outcome is Outcome.CLEAN


def test_a_synchronised_batch_norm_without_other_ranks_is_an_ordinary_one() -> None:
    def layers(exchange: str) -> Trace:
        builder = steps(3, 1000.0)
        for number in range(3):
            for layer in range(2):
                at = number * 1000.0 + layer * 400 + 10
                builder.python(f"nn.Module: SyncBatchNorm_{layer}", at, 300)
                builder.op(exchange, at + 20, 50)
                builder.op("aten::batch_norm", at + 100, 60).launch("bn", at + 110, 5, at + 130, 50)
        return built(builder)

    assert run_rule("sync-batch-norm", layers("c10d::_allgather_base_")).outcome is Outcome.FOUND
    assert run_rule("sync-batch-norm", layers("aten::mul")).outcome is Outcome.CLEAN


def test_versions_of_a_compiled_function_that_all_exist_are_a_note() -> None:
    def program(m: Machine) -> None:
        for name in ("0/0", "0/1"):
            with m.op(f"Torch-Compiled Region: {name}"):
                m.kernel(50)

    (kept,) = run_rule("graph-break-or-recompile", sim(program)()).suggestions
    assert kept.informational
    assert "again" not in kept.headline

    def compiling(m: Machine) -> None:
        program(m)
        with m.op("compile_fx (dynamo_timed)", us=900):
            m.cpu(100)

    (late,) = run_rule("graph-break-or-recompile", sim(compiling)()).suggestions
    assert not late.informational
    assert "again while the program runs" in late.headline


@pytest.mark.parametrize(("python_us", "is_card"), [(150, True), (0, False)])
def test_graph_breaks_that_idle_the_gpu_are_a_card_of_what_they_cost(python_us: int, is_card: bool) -> None:
    builder = steps(4, 1000)
    for number in range(4):
        at = number * 1000.0
        for piece in range(3):
            start = at + 10 + (56 + python_us) * piece
            builder.op(f"Torch-Compiled Region: {piece}/0", start, 50)
            builder.launch("triton_poi_fused_add_0", at=start + 5, call=3, start=start + 10, dur=45)
        builder.op("aten::mm", at + 700, 20).launch("gemm", at=at + 705, call=3, start=at + 710, dur=100)
    analysis = analyze(built(builder))
    (found,) = [s for s in analysis.suggestions if s.rule_id == "graph-break-or-recompile"]
    assert found.headline == "torch.compile has cut the program into 3 pieces"
    assert found.informational is not is_card
    if is_card:
        # two cuts a step, 156 us each, in which the GPU works 5 us more
        assert found.costs_ns == pytest.approx(2 * 151_000)
        assert "31 % of it" in found.explanation
        assert found.severity == "high"


@pytest.mark.parametrize(("copy_us", "pinned"), [(12_000, False), (3_000, False), (12_000, True)])
def test_a_batch_that_blocks_and_is_not_overlapped_is_priced_with_both_fixes(
    tmp_path: Path, copy_us: float, pinned: bool
) -> None:
    """Without the wait the copy still takes turns with the kernels: alone, pinning it saves nothing here."""

    def program(m: Machine, _: int) -> None:
        if m.fixed("prefetch"):
            m.to_device(150_000_000, copy_us, pinned=True, non_blocking=True, stream=14)
        else:
            m.to_device(150_000_000, copy_us, pinned=pinned)
        for _ in range(10):
            m.kernel_op("aten::mm", 1_200)

    truth = simulate(program, steps=6, fixes=("prefetch",)).sustained_step_us
    analysis = analyze(open_trace(simulate(program, steps=6).write(tmp_path / "t.json")))
    assert analysis.figures.summary.verdict == "device_bound"
    assert analysis.suggestions[0].rule_id == "copy-not-overlapped"
    assert analysis.suggestions[0].fix.before.count("non_blocking") == 0
    assert analysis.plan[-1].predicted_step_ns == pytest.approx(1000 * truth, rel=0.02)
    waits = {s.rule_id: s.saving.pct for s in analysis.suggestions if s.rule_id != "copy-not-overlapped"}
    assert (waits["blocking-pinned-copy" if pinned else "pageable-batch-copy"] or 0) < 1


@pytest.mark.parametrize(("size", "pins"), [(16, False), (1 << 20, True)])
def test_nobody_is_told_to_pin_a_few_numbers(size: int, pins: bool) -> None:
    trace = steps()
    for i in range(3):
        trace.launch("work", at=1000 * i + 10, call=5, start=1000 * i + 20, dur=300)
        trace.op("aten::to", 1000 * i + 30, 400).op("aten::copy_", 1000 * i + 35, 390)
        trace.copy("HtoD (Pageable -> Device)", at=1000 * i + 40, call=380, start=1000 * i + 330, dur=80, bytes=size)
    (card,) = run_rule("pageable-batch-copy", built(trace)).suggestions
    assert ("pin_memory" in card.fix.after) is pins
    assert ("gains nothing" in card.explanation) is not pins


def test_a_step_that_only_ends_the_epoch_says_nothing_of_the_loader() -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

    def trace(batches: int, ended: bool) -> Trace:
        builder = TraceBuilder()
        for number in range(batches + ended):
            at = number * 1000.0
            builder.step(number, at, 990).range(name, at + 5, 800)
            if number < batches:
                builder.op("aten::mm", at + 820, 100)
        return built(builder)

    assert run_rule("loader-starves-step", trace(0, True)).outcome is Outcome.CLEAN
    single = run_rule("loader-starves-step", trace(1, True))
    assert single.outcome is Outcome.NOT_CHECKED
    assert "a single batch" in single.reason
    (found,) = run_rule("loader-starves-step", trace(3, True)).suggestions
    assert found.occurrences == 3


def test_a_kernel_below_two_operators_of_a_convolution_counts_once() -> None:
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000.0
        builder.step(number, at, 990)
        builder.op("aten::cudnn_convolution", at + 10, 40, Input_Dims=[[8, 3, 32, 32], [16, 3, 3, 3]])
        builder.launch("implicit_gemm", at + 20, 5, at + 60, 200)
        builder.op("aten::cudnn_convolution_backward", at + 100, 90, Input_Dims=[[8, 3, 32, 32]])
        builder.op("aten::cudnn_convolution_backward_weight", at + 110, 50, Input_Dims=[[8, 3, 32, 32]])
        builder.launch("wgrad", at + 120, 5, at + 300, 500)
        builder.op("aten::relu", at + 200, 40).launch("relu", at + 210, 5, at + 800, 100)
    (found,) = run_rule("algorithm-search-each-step", built(builder)).suggestions
    assert found.values["share_pct"] == pytest.approx(100 * 700 / 800)


def test_steps_that_were_worked_out_are_not_said_to_be_missing() -> None:
    builder = TraceBuilder()
    for number in range(5):
        at = number * 1000.0
        builder.op("aten::mm", at + 10, 60).launch("gemm", at + 20, 5, at + 40, 300)
        builder.range("Optimizer.step#SGD.step", at + 500, 100)
        builder.op("aten::add_", at + 510, 60)
    (found,) = run_rule("no-steps-marked", built(builder)).suggestions
    assert "worked out" in found.headline


@pytest.mark.parametrize(
    "name", ["execute_context_1(888_788544)_generation_0(0)", "execute_32_context_0(sq0)_generation_32(sq32)"]
)
def test_one_step_of_an_inference_engine_is_not_told_to_be_marked(name: str) -> None:
    builder = TraceBuilder().range(name, 0, 1000)
    builder.op("aten::mm", 10, 60).launch("gemm", 20, 5, 40, 300)
    (found,) = run_rule("no-steps-marked", built(builder)).suggestions
    assert "engine" in found.headline and name in found.explanation and "prof.step" not in found.fix.after
    assert [note.code for note in compute_figures(built(builder)).doctor if "engine" in note.title] == [
        "no-steps-marked"
    ]


def test_several_steps_of_an_inference_engine_stand_in_for_marked_ones() -> None:
    builder = TraceBuilder()
    for number in range(3):
        builder.range(f"execute_new_{number}_cached_{3 - number}", number * 1000, 900)
        builder.op("aten::mm", number * 1000 + 10, 60).launch("gemm", number * 1000 + 20, 5, number * 1000 + 40, 300)
    trace = built(builder)
    figures = compute_figures(trace)
    assert figures.steps.inferred.tolist() == [True] * 3
    assert run_rule("no-steps-marked", trace).outcome is Outcome.CLEAN
    assert "no-steps-marked" not in [note.code for note in figures.doctor]


def test_a_range_that_only_begins_like_one_of_an_engine_marks_nothing() -> None:
    builder = TraceBuilder().range("execute_plan", 0, 1000)
    builder.op("aten::mm", 10, 60).launch("gemm", 20, 5, 40, 300)
    (found,) = run_rule("no-steps-marked", built(builder)).suggestions
    assert "engine" not in found.headline and "prof.step" in found.fix.after


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("transformers/pipelines/pt_utils.py(249): __next__", "pipe(images, num_workers=4)"),
        ("transformers/trainer.py(1800): _inner_training_loop", "dataloader_num_workers=4"),
        ("train.py(3): transformers/pipelines/none", "num_workers=4, persistent_workers=True"),
    ],
)
def test_the_loader_is_given_workers_where_it_is_made(frame: str, words: str) -> None:
    builder = steps(4)
    for number in range(4):
        at = number * 1000.0
        builder.python("train.py(1): main", at, 980).python(frame, at + 5, 700)
        builder.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 600)
        builder.op("aten::mm", at + 720, 60).launch("gemm", at + 730, 5, at + 740, 100)
    (found,) = run_rule("loader-without-workers", built(builder)).suggestions
    assert words in found.fix.after


@pytest.mark.parametrize("rounds", [1, 6])
def test_a_card_about_a_marked_step_of_several_iterations_says_so(rounds: int) -> None:
    builder = TraceBuilder().step(1, 0, 6000)
    for number in range(rounds):
        at = number * 1000
        builder.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 800)
        builder.op("aten::mm", at + 820, 60).launch("gemm", at + 830, 5, at + 840, 100)
    (found,) = run_rule("loader-without-workers", built(builder)).suggestions
    assert ("holds about 5 iterations" in found.explanation) is (rounds == 6)
    assert [e.label for e in found.evidence if "per step" in e.label] == [] or rounds == 1


def test_of_several_ranks_the_evidence_is_of_the_one_that_idles_longest(tmp_path: Path) -> None:
    files = []
    for rank, kernel_us in enumerate((5, 20)):
        builder = TraceBuilder(pid=100 + rank, distributedInfo={"rank": rank, "world_size": 2})
        for number in range(4):
            builder.step(number, number * 1000, 1000)
            for i in range(25):
                at = number * 1000 + i * 40
                builder.op("aten::relu", at, 36).launch("k", at=at + 10, call=3, start=at + 15, dur=kernel_us)
        files.append(builder.write(tmp_path / f"rank{rank}.json"))
    (found,) = run_rule("launch-bound", open_trace(files)).suggestions
    idle = found.evidence[-1]
    assert idle.label == "GPU idle per step until the next launch, in the rank that idles longest"
    (alone,) = run_rule("launch-bound", open_trace(files[:1])).suggestions
    assert alone.evidence[-1].label == "GPU idle per step until the next launch"
    assert idle.value == alone.evidence[-1].value == pytest.approx(0.875, abs=0.005)  # ms of a step of one


@pytest.mark.parametrize(
    ("name", "collective", "words"),
    [
        ("aten::copy_", "", 'mode="reduce-overhead"'),
        ("DistributedDataParallel.forward", "ncclDevKernel_AllReduce", "DistributedDataParallel(torch.compile("),
        ("aten::copy_", "ncclDevKernel_AllToAll", "parts without collectives"),
        ("vllm::unified_attention", "", "enforce_eager=False"),
        ("vllm::unified_attention [execute_context_2(64)_generation_0(0)]", "", "max_num_batched_tokens"),
    ],
)
def test_advice_on_slow_launches_fits_the_program(name: str, collective: str, words: str) -> None:
    builder = steps(4)
    name, _, mark = name.rstrip("]").partition(" [")
    for number in range(4):
        if mark:
            builder.range(mark, number * 1000 + 1, 990)
        builder.range(name, number * 1000 + 1, 990) if "forward" in name else builder.op(name, number * 1000 + 1, 3)
        for i in range(24):
            at = number * 1000 + 5 + i * 40
            kernel = collective if collective and i == 23 else "k"
            builder.op("aten::relu", at, 36).launch(kernel, at=at + 10, call=3, start=at + 15, dur=5)
    (found,) = run_rule("launch-bound", built(builder)).suggestions
    assert words in found.fix.after


@pytest.mark.parametrize(("kernel_us", "call"), [(60, "submitJob"), (6, "submitJob"), (60, "")])
def test_a_call_of_any_runtime_that_takes_the_cpu_s_time_is_named(kernel_us: int, call: str) -> None:
    builder = steps(4)
    for number in range(4):
        for i in range(8):
            at = number * 1000 + 5 + i * 120
            builder.op("aten::mm", at, 115).kernel("k", at + 50, kernel_us, 100 * number + i + 1)
            builder.runtime(call or "cudaLaunchKernel", at + 5, 100 if call else 5, 100 * number + i + 1)
    found = run_rule("launch-bound", built(builder)).suggestions
    assert [("`submitJob`" in one.explanation, "81 % of the time in 32 calls" in one.explanation) for one in found] == (
        [(True, True)] if call else []
    )
    assert all(one.effects for one in found)  # a saving is foretold


@pytest.mark.parametrize(("orphans", "words"), [(3, "between two steps"), (30, "not lie at the border")])
def test_work_without_a_launch_lies_at_the_border_only_where_it_is_little(orphans: int, words: str) -> None:
    builder = TraceBuilder()
    for i in range(40):
        builder.launch("k", at=i * 100 + 1, call=3, start=i * 100 + 10, dur=20)
    for i in range(orphans):
        builder.kernel("lost", i * 100 + 50, 20, 90_000 + i)
    trace = built(builder)
    (found,) = run_rule("orphan-kernels", trace).suggestions
    assert words in found.fix.summary
    note = next(one for one in compute_figures(trace).doctor if one.code == "orphan-kernels")
    assert ("border of the recording; record more" in note.cure) is (orphans == 3)


@pytest.mark.parametrize("us", [1500, 60])
@pytest.mark.parametrize("place", ["loop", "loader"])
def test_operators_on_the_cpu_that_idle_the_gpu_are_no_slow_launching(us: int, place: str) -> None:
    """An augmentation of tensors in the CPU's memory, before the batch is moved; many short kernels after it."""

    def program(m: Machine) -> None:
        with m.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" if place == "loader" else "augment"):
            for _ in range(4):
                with m.op("aten::mul"):
                    m.cpu(us)
        for _ in range(40):
            m.kernel_op("aten::mm", 12)

    trace = sim(program, steps=5)()
    found = run_rule("model-on-cpu", trace).suggestions
    assert bool(found) is (us > 1000 and place == "loop")
    if found:
        assert "`aten::mul` computes on the CPU" in found[0].headline
        assert found[0].values["count"] == 4 * 5
        analysis = analyze(trace)
        assert analysis.suggestions[0].rule_id == "model-on-cpu"
        assert analysis.suggestions[0].saving.ns == pytest.approx(4 * 1e3 * us, rel=0.1)
        assert "launch-bound" not in {s.rule_id for s in analysis.suggestions}


def test_kernels_without_a_valid_duration_are_in_no_mean_of_a_rule() -> None:
    builder = steps(4)
    for i in range(4):
        for k in range(12):
            at = i * 1000 + 20 + 60 * k
            builder.op("aten::add", at, 50).launch("k", at + 5, 5, at + 12, 8 if k % 3 == 0 else -1)
    (found,) = run_rule("launch-bound", built(builder), {"min_kernels": 4}).suggestions
    assert (found.values["count"], found.values["typical_us"]) == (16, 8.0)


def test_a_note_promises_no_saving_that_its_severity_would_deny() -> None:
    trace = CASES["scalar-read-back"].found()
    result = run_rule("scalar-read-back", trace)
    figures = compute_figures(trace)
    (fix,) = price(trace, figures, [result]).suggestions
    noted = replace(result, suggestions=tuple(replace(s, informational=True) for s in result.suggestions))
    (note,) = price(trace, figures, [noted]).suggestions
    assert fix.saving.ns is not None
    assert (note.saving, note.severity) == (Saving(), "low")
