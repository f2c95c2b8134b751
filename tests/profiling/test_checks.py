"""Switches that make a step slow on purpose are told, once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiling._child_checks import Checks
from profiling.script_remarks import remarks_of_script


class Told:
    """Stands in for the report."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def notice(self, key: str, **values: Any) -> None:
        self.keys.append(key)


@pytest.mark.parametrize(
    ("value", "devices", "expected"),
    [("1", ["cuda"], ["launch-blocking"]), ("1", [], []), ("0", ["cuda"], []), ("", ["cuda"], [])],
)
def test_launches_that_block(
    monkeypatch: pytest.MonkeyPatch, value: str, devices: list[str], expected: list[str]
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
    told = Told()
    Checks(SimpleNamespace(), told).on_trace(devices, __file__ + ".none")
    assert told.keys == expected


def test_anomaly_detection_is_told_when_it_comes_on_and_only_once() -> None:
    told, switch = Told(), {"on": False}
    checks = Checks(SimpleNamespace(is_anomaly_enabled=lambda: switch["on"]), told)
    checks.on_step()
    assert told.keys == []
    switch["on"] = True
    checks.on_step()
    checks.on_step()
    assert told.keys == ["anomaly"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.autograd.set_detect_anomaly(True)", ["script-anomaly 2"]),
        ("with autograd.detect_anomaly(check_nan=False):\n    pass", ["script-anomaly 1"]),
        ("t = Trainer(max_steps=3,\n            detect_anomaly=True)", ["script-anomaly 1"]),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'", ["script-blocking 2"]),
        ("torch.autograd.set_detect_anomaly(False)\n# torch.autograd.set_detect_anomaly(True)", []),
        ("os.environ['CUDA_LAUNCH_BLOCKING'] = '0'\nset_detect_anomaly(mode=debug)", []),
        ("not Python at all", []),
    ],
)
def test_what_a_script_says_of_itself_that_spoils_its_times(tmp_path: Path, source: str, expected: list[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(source)
    found = remarks_of_script(str(script))
    assert [f"{remark.text.key} {remark.text.values['line']}" for remark in found] == expected  # type: ignore[attr-defined]
    assert all(remark.cure for remark in found)
    assert remarks_of_script(str(tmp_path)) == ()
