"""Cases of the rules on waits, copies and the input pipeline."""

from __future__ import annotations

from core.trace import Trace
from tests.core.rules.kit import Case, built, by_step, sim, steps, work
from tests.simulator import Machine
from tests.simulator.machine import DTOH

BATCH = 20_000_000


def _with(action):  # type: ignore[no-untyped-def]
    """Work, the action in the middle, work again."""

    def program(m: Machine) -> None:
        work(m)
        action(m)
        work(m)

    return sim(program)


def _cpu_item(m: Machine) -> None:
    with m.op("aten::item"), m.op("aten::_local_scalar_dense"):
        m.cpu(1)


def _cpu_nonzero(m: Machine) -> None:
    with m.op("aten::is_nonzero"):
        _cpu_item(m)


def _fresh(m: Machine) -> None:
    for name in ("aten::empty", "aten::to", "aten::lift_fresh"):
        with m.op(name):
            pass


def _constant(m: Machine) -> None:
    _fresh(m)
    m.to_device(40)


def _once(m: Machine, number: int) -> None:
    work(m)
    if number == 3:
        _constant(m)
    work(m)


def _index(fresh: bool, moved: bool):  # type: ignore[no-untyped-def]
    def action(m: Machine) -> None:
        if fresh:
            _fresh(m)
        with m.op("aten::index"):
            if moved:
                m.to_device(8192)
            m.kernel(4)

    return action


def _mask(m: Machine) -> None:
    with m.op("aten::index"), m.op("aten::nonzero"):
        m.kernel(3)
        m.copy(DTOH, 8)


def _masked_fill(m: Machine) -> None:
    with m.op("aten::index_put_"), m.op("aten::masked_fill_"):
        m.kernel(3)


def _unique(reads: bool):  # type: ignore[no-untyped-def]
    def action(m: Machine) -> None:
        with m.op("aten::_unique2"):
            m.kernel(3)
            if reads:
                m.copy(DTOH, 8)

    return action


def _to_on_cpu(m: Machine) -> None:
    with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
        m.cpu(5)


def _pin(m: Machine) -> None:
    with m.op("aten::pin_memory"), m.op("aten::_pin_memory"):
        m.cpu(200)


def _pin_elsewhere(m: Machine) -> None:
    with m.background("pin thread"):
        _pin(m)


def _event(m: Machine) -> None:
    m.event_synchronize(m.event_record())


def _norms(m: Machine) -> None:
    for _ in range(2):
        m.kernel_op("aten::_foreach_norm", 5)


def _norm_item(m: Machine) -> None:
    _norms(m)
    m.item()


def _scaler(m: Machine) -> None:
    m.kernel_op("aten::_amp_foreach_non_finite_check_and_unscale_", 5)


def _scaler_item(m: Machine) -> None:
    _scaler(m)
    m.item()


def _optimizer(action):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        with m.range("Optimizer.step#Adafactor.step"):
            work(m)
            action(m)

    return program


def _synchronous(call: str, us: float) -> Trace:
    builder = steps()
    for i in range(3):
        at = i * 1000.0
        builder.launch("gemm", at + 20, 5, at + 30, 300)
        builder.op("aten::custom_copy", at + 40, us + 20)
        if "set" in call:
            builder.runtime(call, at + 45, us, 10 + i).memset(at + 331, 2, 10 + i, bytes=1 << 20)
        else:
            builder.copy("HtoD (Pageable -> Device)", at + 45, us, at + 331, us - 290, bytes=1 << 20, name=call)
        builder.launch("gemm", at + 80 + us, 5, at + 90 + us, 100)
    return built(builder)


def _tiny(times: int):  # type: ignore[no-untyped-def]
    def action(m: Machine) -> None:
        for _ in range(times):
            m.to_device(128, pinned=True, non_blocking=True)

    return action


def _allocate(m: Machine) -> None:
    m.malloc()
    m.free()


def _allocate_first(m: Machine, number: int) -> None:
    work(m)
    if number == 2:
        _allocate(m)


def _launches(blocking: bool) -> Trace:
    builder = steps(3, 5000.0)
    for i in range(30):
        at = (i // 10) * 5000.0 + (i % 10) * 400 + 20
        builder.op("aten::mm", at, 300)
        builder.launch("gemm", at + 5, 205 if blocking else 6, at + 12, 195)
    return built(builder)


def _loader(us: float, workers: int):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        m.loader(us, workers)
        work(m)
        m.device_synchronize()

    return sim(program, steps=5)


def _workers(times: int) -> Trace:
    builder = TraceStacks = steps(3, 10_000.0)
    for i in range(times):
        at = i * 20_000.0 + 50
        builder.python("train.py(5): main", at, 900)
        builder.python("torch/utils/data/dataloader.py(400): _get_iterator", at + 10, 800)
        builder.python("torch/utils/data/dataloader.py(1000): __init__", at + 20, 700)
    return built(TraceStacks)


def _big_copy(overlapped: bool):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        if overlapped:
            work(m, 2000, 4)
            m.to_device(60_000_000, pinned=True, non_blocking=True, stream=9)
        else:
            m.to_device(60_000_000, pinned=True, non_blocking=True)
            work(m, 2000, 4)
        m.device_synchronize()

    return sim(program)


def _normalise(passes: int):  # type: ignore[no-untyped-def]
    def program(m: Machine) -> None:
        with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
            m.kernel(900)
        for _ in range(passes):
            m.kernel_op("aten::div", 900)
        work(m)

    return sim(program)


CASES = {
    "scalar-read-back": Case(_with(lambda m: m.item()), _with(_cpu_item)),
    "pageable-batch-copy": Case(
        _with(lambda m: m.to_device(BATCH)), _with(lambda m: m.to_device(BATCH, pinned=True, non_blocking=True))
    ),
    "explicit-synchronize": Case(_with(lambda m: m.device_synchronize()), _with(lambda m: None)),
    "constant-copied-each-step": Case(_with(_constant), by_step(_once)),
    "control-flow-on-device-tensor": Case(_with(lambda m: m.is_nonzero()), _with(_cpu_nonzero)),
    "host-list-index": Case(_with(_index(True, True)), _with(_index(True, False))),
    "host-index-tensor": Case(_with(_index(False, True)), _with(_index(False, False))),
    "data-dependent-shape": Case(_with(_mask), _with(_masked_fill)),
    "op-reads-back": Case(_with(_unique(True)), _with(_unique(False))),
    "tensor-read-back": Case(_with(lambda m: m.to_host(4096)), _with(_to_on_cpu)),
    "blocking-pinned-copy": Case(
        _with(lambda m: m.to_device(BATCH, pinned=True)),
        _with(lambda m: m.to_device(BATCH, pinned=True, non_blocking=True)),
    ),
    "pinning-in-step": Case(_with(_pin), _with(_pin_elsewhere)),
    "event-wait": Case(_with(_event), _with(lambda m: m.event_record())),
    "debug-mode-left-on": Case(lambda: _launches(True), lambda: _launches(False)),
    "grad-scaler-read-back": Case(_with(_scaler_item), _with(_scaler)),
    "optimizer-read-back": Case(sim(_optimizer(lambda m: m.item())), sim(_optimizer(_cpu_item))),
    "grad-norm-read-back": Case(_with(_norm_item), _with(_norms)),
    "synchronous-memcpy": Case(lambda: _synchronous("cudaMemcpy", 400), lambda: _synchronous("cudaMemcpyAsync", 400)),
    "synchronous-memset": Case(lambda: _synchronous("cudaMemset", 200), lambda: _synchronous("cudaMemset", 8)),
    "many-tiny-copies": Case(_with(_tiny(30)), _with(_tiny(3))),
    "allocation-in-step": Case(_with(_allocate), by_step(_allocate_first)),
    "loader-without-workers": Case(_loader(3000, 0), _loader(20, 0)),
    "loader-starves-step": Case(_loader(9000, 2), _loader(200, 4)),
    "loader-workers-recreated": Case(lambda: _workers(2), lambda: _workers(1)),
    "copy-not-overlapped": Case(_big_copy(False), _big_copy(True)),
    "float-batch-copied": Case(_normalise(3), _normalise(1)),
}
