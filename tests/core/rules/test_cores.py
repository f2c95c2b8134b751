"""No more workers are advised than the machine of a run has cores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.run_folder import read_run
from core.suggestions import Suggestion
from tests.core.rules.kit import run_rule
from tests.core.rules.test_cpu_only import _work, on_cpu
from tests.simulator import Machine


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, rule: str, cores: int, code: str) -> Suggestion:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"format": "steplens.run/1", "environment": {"cpu_count": cores}}))
    (folder / "train.py").write_text(f"import os\nloader = DataLoader(data, num_workers={code})\n")
    run = read_run(folder)
    assert run is not None
    assert run.cores == cores
    run = replace(run, sources={"train.py": folder / "train.py"})
    monkeypatch.setattr("core.rule_tools.machine.own_run", lambda _: run)

    def program(m: Machine) -> None:
        m.loader(9000, 0 if rule == "loader-without-workers" else 2)
        _work(m)

    (found,) = run_rule(rule, on_cpu(program)()).suggestions
    return found


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (16, 4)])
def test_a_loader_without_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, workers: int) -> None:
    found = told(monkeypatch, tmp_path / "run", "loader-without-workers", cores, "0")
    assert f"assumes {workers} worker" in found.explanation
    assert f"machine of this run has {cores} core" in found.explanation
    assert f"num_workers={workers}," in found.fix.after


@pytest.mark.parametrize(
    ("cores", "code", "advised"),
    [(2, "2", 0), (2, "min(4, os.cpu_count() or 1)", 0), (3, "2", 3), (16, "2", 4), (2, "args.workers", 2)],
)
def test_a_loader_with_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, code: str, advised: int
) -> None:
    found = told(monkeypatch, tmp_path / "run", "loader-starves-step", cores, code)
    if advised:
        assert f"num_workers={advised}," in found.fix.after
        assert found.fix.before != found.fix.after.replace("\n    ", "")
        assert f"num_workers={advised})" not in found.fix.before
        assert found.effects
    else:
        assert "num_workers" not in found.fix.after
        assert "2 workers and the machine of this run 2 cores" in found.explanation
        assert not found.effects
