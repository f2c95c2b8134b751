"""Operators by shapes, line and stack; device work by operator and launch; all add up to the tables by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import orjson
import pytest

from core.errors import Cancelled, TraceError
from core.figures.compute import compute_figures
from core.figures.grouping import (
    Grouped,
    device_work_by_operator,
    operators_by_line,
    operators_by_shapes,
    shapes,
)
from core.figures.launches import by_launch, launch_columns, read_launches
from core.figures.model import StatTable
from core.importing import open_trace
from core.importing.bulk import event_texts
from core.trace import Trace
from tests.shared import SHARED, needs_shared
from tests.trace_builder import TraceBuilder


def told(trace: Trace, grouped: Grouped) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(name, label) -> calls, host total us, device total us."""
    stats, found = grouped.stats, {}
    for row in range(len(stats)):
        label = grouped.labels[grouped.label_id[row]] if grouped.label_id[row] >= 0 else "?"
        label += " backward" if grouped.backward[row] else ""
        times = int(stats.host_total_ns[row]) // 1000, int(stats.device_total_ns[row]) // 1000
        found[trace.strings[int(stats.name_id[row])], label] = (int(stats.calls[row]), *times)
    return found


def adds_up(trace: Trace, grouped: Grouped, whole: StatTable) -> None:
    for field in ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"):
        sums = np.bincount(grouped.stats.name_id, weights=getattr(grouped.stats, field), minlength=len(trace.strings))
        assert sums[whole.name_id].astype(np.int64).tolist() == getattr(whole, field).tolist(), field


def shaped(path: Path) -> Trace:
    made = TraceBuilder()
    made.op("aten::mm", 0, 10, Input_Dims=[[4, 8], [8, 2]])
    made.op("aten::mm", 20, 30, Input_Dims=[[4, 8], [8, 2], [], []])
    made.op("aten::mm", 60, 5, Input_Dims=[[1, 8], [8, 2]])
    made.op("aten::item", 70, 5, Input_Dims=[[]])
    made.op("aten::mm", 80, 5)
    made.op('"Input Dims": [[9]]', 90, 5)
    return made.build(path)


def test_shapes_are_read_from_the_file(tmp_path: Path) -> None:
    trace = shaped(tmp_path / "t.json")
    found = told(trace, operators_by_shapes(trace))
    assert found["aten::mm", "[4, 8], [8, 2]"] == (2, 40, 0)
    assert found["aten::mm", "[1, 8], [8, 2]"] == (1, 5, 0)
    assert found["aten::item", "[]"] == (1, 5, 0)
    assert found["aten::mm", "?"] == (1, 5, 0)
    assert found['"Input Dims": [[9]]', "?"] == (1, 5, 0)  # a name is no argument
    adds_up(trace, operators_by_shapes(trace), compute_figures(trace).operators)


def test_packed_files_are_read_front_to_back(tmp_path: Path) -> None:
    plain = shaped(tmp_path / "t.json")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((tmp_path / "t.json").read_bytes()))
    packed = open_trace(tmp_path / "t.json.gz")
    assert told(packed, operators_by_shapes(packed)) == told(plain, operators_by_shapes(plain))


def test_texts_are_those_of_the_events(tmp_path: Path) -> None:
    trace = shaped(tmp_path / "t.json")
    ids = np.arange(len(trace.slices), dtype=np.int32)[::-1].copy()
    texts = dict(event_texts(trace, ids))
    assert sorted(texts) == list(range(len(ids)))
    assert all(orjson.loads(text) == trace.event(int(ids[place])) for place, text in texts.items())


def test_without_shapes_nothing_is_known(tmp_path: Path) -> None:
    trace = TraceBuilder().op("aten::mm", 0, 10).build(tmp_path / "t.json")
    assert not operators_by_shapes(trace).known
    assert not operators_by_line(trace).known


def test_a_changed_file_is_told(tmp_path: Path) -> None:
    trace = shaped(tmp_path / "t.json")
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(TraceError):
        operators_by_shapes(trace)


def test_reading_can_be_called_off(tmp_path: Path) -> None:
    def stop(fraction: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        operators_by_shapes(shaped(tmp_path / "t.json"), stop)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[[4, 8], [8, 2], [], []]", "[4, 8], [8, 2]"),
        (b"[[],[]]", "[]"),
        (b"[]", ""),
        (b"[[], [3]]", "[], [3]"),
        (b"[[[2, 3], [4]], []]", "[[2, 3], [4]]"),
        (b"[[4", "[[4"),
    ],
)
def test_how_shapes_are_written(text: bytes, words: str) -> None:
    assert shapes(text) == words


def lines() -> TraceBuilder:
    made = TraceBuilder(with_stack=1)
    made.python("train.py(1): main", 0, 200).python("train.py(9): loss", 10, 80)
    made.python("torch/nn/functional.py(3): nll", 20, 60)
    made.op("aten::mm", 30, 10).op("aten::mm", 100, 20).op("aten::mm", 300, 7)
    return made


def test_lines_are_those_of_ones_own_code() -> None:
    trace = lines().build()
    found = told(trace, operators_by_line(trace))
    assert found == {
        ("aten::mm", "train.py(9): loss"): (1, 10, 0),
        ("aten::mm", "train.py(1): main"): (1, 20, 0),
        ("aten::mm", "?"): (1, 7, 0),
    }
    stacks = told(trace, operators_by_line(trace, frames=5))
    assert ("aten::mm", "train.py(9): loss ← train.py(1): main") in stacks


def test_the_backward_pass_has_the_line_of_the_forward_pass() -> None:
    made = TraceBuilder(with_stack=1).python("train.py(1): main", 0, 200)
    made.op("aten::mm", 30, 10).op("MmBackward0", 300, 50, tid=7).op("aten::t", 310, 5, tid=7)
    made.autograd(32, made.tid, 301, 7)
    trace = made.build()
    found = told(trace, operators_by_line(trace))
    assert found["MmBackward0", "train.py(1): main backward"] == (1, 50, 0)
    assert found["aten::t", "train.py(1): main backward"] == (1, 5, 0)
    assert found["aten::mm", "train.py(1): main"] == (1, 10, 0)


def test_old_call_stacks_give_lines(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("aten::mm", 0, 10, Call_stack="torch/nn/functional.py(3): nll;train.py(42): <module>")
    trace = made.build(tmp_path / "t.json")
    assert told(trace, operators_by_line(trace)) == {("aten::mm", "train.py(42): <module>"): (1, 10, 0)}


def launched() -> TraceBuilder:
    made = TraceBuilder()
    made.op("aten::mm", 0, 100).op("aten::add", 200, 100)
    size = {"grid": [8, 1, 1], "block": [128, 2, 1], "registers_per_thread": 40, "blocks_per_SM": 0.5}
    made.launch("gemm", at=10, call=5, start=20, dur=30, **size, **{"est. achieved occupancy %": 20})
    size["grid"] = [16, 1, 1]
    made.launch("gemm", at=30, call=5, start=60, dur=10, **size, **{"est. achieved occupancy %": 60})
    made.launch("fill", at=210, call=5, start=220, dur=10)
    made.launch("gemm", at=230, call=5, start=250, dur=5)
    return made


def test_device_work_by_operator() -> None:
    trace = launched().build()
    found = told(trace, device_work_by_operator(trace))
    assert found == {
        ("gemm", "aten::mm"): (2, 0, 40),
        ("fill", "aten::add"): (1, 0, 10),
        ("gemm", "aten::add"): (1, 0, 5),
    }


def test_how_kernels_were_launched(tmp_path: Path) -> None:
    trace = launched().build(tmp_path / "t.json")
    stats, launches = compute_figures(trace).kernels, read_launches(trace)
    columns = launch_columns(trace, launches, stats)
    gemm = [trace.strings[int(i)] for i in stats.name_id].index("gemm")
    fill = 1 - gemm
    assert columns.shapes[gemm] == 2 and columns.grid[gemm] == "8" and columns.block[gemm] == "128×2"
    assert columns.registers[gemm] == 40
    assert columns.occupancy_pct[gemm] == pytest.approx((20 * 30 + 60 * 10) / 40)
    assert columns.blocks_per_sm[gemm] == 0.5
    assert (columns.grid[fill], columns.shapes[fill], columns.occupancy_pct[fill]) == ("", 0, -1)
    grouped = by_launch(trace, launches)
    assert sorted(told(trace, grouped).values()) == [(1, 0, 5), (1, 0, 10), (1, 0, 10), (1, 0, 30)]
    fine = launch_columns(trace, launches, grouped.stats, grouped.label_id)
    assert sorted(fine.grid) == ["", "", "16", "8"]
    assert set(fine.shapes.tolist()) == {0, 1}


@needs_shared
@pytest.mark.parametrize("name", ["d01_v100_resnet50_2021_nw0.json.gz", "d08_h100_bert_small_2025.json.gz"])
def test_recorded_traces_add_up(name: str) -> None:
    trace = open_trace(SHARED / "traces" / name)
    figures = compute_figures(trace)
    by_shapes = operators_by_shapes(trace)
    assert by_shapes.known
    adds_up(trace, by_shapes, figures.operators)
    adds_up(trace, operators_by_line(trace), figures.operators)
    adds_up(trace, device_work_by_operator(trace), figures.kernels)
    adds_up(trace, by_launch(trace, read_launches(trace)), figures.kernels)
