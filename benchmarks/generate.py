"""Kineto-shaped traces of any size, from a seed: stacks, shapes, memory events, launches, flows, two threads.

    python -m benchmarks.generate OUT.json --events 2000000 [--seed 1] [--gzip]

The text has Kineto's own layout (one event over several lines, the same keys in the same order), so that what is
measured on it is what happens on real files. The same seed and size give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

_PID, _TID, _BACKWARD = 24248, 24248, 24270
_LAYERS = ("conv1", "bn1", "relu", "layer1.0", "layer1.1", "layer2.0", "layer2.1", "layer3.0", "layer4.0", "fc")
_KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >"
    "(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)",
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
    "ampere_sgemm_128x64_tn",
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float, 512>)",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1",
)
_OPS = ("aten::conv2d", "aten::batch_norm", "aten::relu_", "aten::add_", "aten::linear", "aten::mul", "aten::copy_")
_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42505273344,
      "computeMajor": 8, "computeMinor": 0, "numSms": 108
    }
  ],
  "record_shapes": 1, "with_stack": 1, "profile_memory": 1,
  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1751410836000000000,
  "traceEvents": [
"""
_TAIL = """
  ],
  "traceName": "generated.json"
}
"""


class _Writer:
    """Writes events; ``now`` is the CPU clock in ns, ``gpu`` the device's."""

    def __init__(self, write: Callable[[str], Any], rng: random.Random) -> None:
        self._write, self.rng = write, rng
        self.now = 5_000_000_000_123
        self.gpu = self.now
        self.count = 0
        self.external = self.correlation = self.python = 0
        self._first = True

    def event(self, text: str) -> None:
        self._write(text if self._first else ",\n" + text)
        self._first = False
        self.count += 1

    def slice(self, cat: str, name: str, pid: int, tid: int, start: int, dur: int, args: str) -> None:
        self.event(
            f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {start // 1000}.{start % 1000:03d}, "dur": {dur // 1000}.{dur % 1000:03d},\n'
            f'    "args": {{\n      {args}\n    }}\n  }}'
        )

    def flow(self, phase: str, number: int, pid: int, tid: int, at: int, cat: str = "ac2g") -> None:
        end = ', "bp": "e"' if phase == "f" else ""
        self.event(
            f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, '
            f'"ts": {at // 1000}.{at % 1000:03d},\n    "cat": "{cat}", "name": "{cat}"{end}\n  }}'
        )

    def memory(self, tid: int, size: int) -> None:
        at = self.now
        total = 4 << 30
        self.event(
            f'  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {_PID}, '
            f'"tid": {tid},\n    "ts": {at // 1000}.{at % 1000:03d},\n    "args": {{\n      '
            f'"Total Reserved": {2 * total}, '
            f'"Total Allocated": {total}, "Bytes": {size}, "Addr": {139926520725504 + size}, "Device Id": 0, '
            f'"Device Type": 1, "Ev Idx": {self.count}\n    }}\n  }}'
        )

    def launch(self, tid: int) -> None:
        rng = self.rng
        self.correlation += 1
        start, dur = self.now, rng.randrange(2000, 9000)
        self.now += dur
        number, external = self.correlation, self.external
        self.slice("cuda_runtime", "cudaLaunchKernel", _PID, tid, start, dur,
                   f'"External id": {external}, "cbid": 211, "correlation": {number}')  # fmt: skip
        begin = max(self.gpu, start + 4000)
        work = rng.randrange(1500, 60000)
        self.gpu = begin + work + rng.randrange(0, 900)
        self.flow("s", number, _PID, tid, start)
        grid = rng.randrange(1, 4096)
        self.slice("kernel", rng.choice(_KERNELS), 0, 7, begin, work,
                   f'"External id": {external}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
                   f'"correlation": {number}, "registers per thread": 32, "shared memory": 0, "blocks per SM": 3.76, '
                   f'"warps per SM": 7.53, "grid": [{grid}, 1, 1], "block": [128, 1, 1], '
                   f'"est. achieved occupancy %": 24')  # fmt: skip
        self.flow("f", number, 0, 7, begin)

    def op(self, name: str, tid: int, depth: int) -> None:
        """One op with ops in it and, at the bottom, a launch. Children are written first, as Kineto may."""
        rng = self.rng
        self.external += 1
        external, start = self.external, self.now
        self.now += rng.randrange(800, 4000)
        n = rng.randrange(8, 512)
        if depth:
            self.op(name + "_impl" if rng.random() < 0.5 else rng.choice(_OPS), tid, depth - 1)
        else:
            if rng.random() < 0.4:
                self.memory(tid, 512 * n)
            self.launch(tid)
        self.now += rng.randrange(300, 2000)
        self.slice("cpu_op", name, _PID, tid, start, self.now - start,
                   f'"External id": {external},"Record function id": 0, "Concrete Inputs": ["", ""], '
                   f'"Input type": ["float", "float"], "Input Strides": [[{n}, 1], [1, {n}]], '
                   f'"Input Dims": [[{n}, {n}], [{n}, 64]], "Ev Idx": {self.count}')  # fmt: skip

    def frames(self, names: list[str], body: Callable[[], None]) -> None:
        """Python frames around what ``body`` writes."""
        if not names:
            body()
            return
        self.python += 1
        own, start = self.python, self.now
        self.now += self.rng.randrange(400, 3000)
        self.frames(names[1:], body)
        self.now += self.rng.randrange(200, 1500)
        parent = f'"Python parent id": {own - 1}, ' if own > 1 else ""
        self.slice("python_function", names[0], _PID, _TID, start, self.now - start,
                   f'{parent}"Python id": {own}, "Ev Idx": {self.count}')  # fmt: skip


def _step(out: _Writer, number: int, stop: int) -> None:
    rng = out.rng
    start = out.now

    def ops() -> None:
        for _ in range(4):
            out.op(rng.choice(_OPS), _TID, rng.randrange(0, 3))

    for layer in _LAYERS:
        for block in range(3):
            if out.count >= stop:
                break
            frames = [
                "train.py(57): train",
                "torch/nn/modules/module.py(1511): _wrapped_call_impl",
                f"nn.Module: {layer}_{block}",
                f"model.py({rng.randrange(20, 60)}): forward",
            ]
            out.frames(frames, ops)
    out.slice(
        "user_annotation",
        f"ProfilerStep#{number}",
        _PID,
        _TID,
        start,
        out.now - start,
        f'"External id": {out.external}',
    )
    resume = out.now
    for _ in range(len(_LAYERS) * 2):
        if out.count >= stop:
            break
        number_of_flow = out.external + 1
        at = out.now
        out.flow("s", number_of_flow, _PID, _TID, start + 10, "fwdbwd")
        out.flow("f", number_of_flow, _PID, _BACKWARD, at, "fwdbwd")
        out.op("autograd::engine::evaluate_function: ConvolutionBackward0", _BACKWARD, 2)
    out.now = max(resume, out.now) + rng.randrange(5000, 50000)


def write_trace(file: IO[bytes], events: int, seed: int = 1) -> int:
    """Write a trace of about ``events`` events; returns how many there are."""
    parts: list[str] = [_HEAD]
    out = _Writer(parts.append, random.Random(seed))
    for pid, label in ((_PID, "CPU"), (0, "GPU 0")):
        for what, key in (("process_name", "name"), ("process_labels", "labels")):
            value = "python" if key == "name" else label
            out.event(
                f'  {{\n    "name": "{what}", "ph": "M", "ts": 5000000000.000, "pid": {pid}, "tid": 0,\n'
                f'    "args": {{\n      "{key}": "{value}"\n    }}\n  }}'
            )
    number = 1
    while out.count < events:
        _step(out, number, events)
        number += 1
        file.write("".join(parts).encode())
        parts.clear()
    parts.append(_TAIL)
    file.write("".join(parts).encode())
    return out.count


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description="Write a Kineto-shaped trace.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gzip", action="store_true")
    options = parser.parse_args(arguments)
    with gzip.open(options.out, "wb", 6) if options.gzip else options.out.open("wb") as file:
        count = write_trace(file, options.events, options.seed)
    print(f"{options.out}: {count} events, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
