"""Switches that make a step slow on purpose are told, once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profiling._child_checks import Checks


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
