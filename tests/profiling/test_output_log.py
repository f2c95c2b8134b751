"""The output that is kept has an end, also where a script writes without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiling import output_log
from profiling.output_log import OutputLog
from profiling.run import Run
from profiling.spec import RunSpec


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OutputLog:
    monkeypatch.setattr(output_log, "LIMIT_BYTES", 10)
    return OutputLog(tmp_path / "output.log")


def test_what_is_beyond_the_limit_is_left_out_and_said(log: OutputLog, tmp_path: Path) -> None:
    with log:
        assert log.write(b"12345") == 5
        for more in (b"67890abc", b"d", b"efg"):
            with pytest.raises(OSError, match="longer than"):
                log.write(more)
    assert (tmp_path / "output.log").read_bytes() == b"1234567890"


def test_a_run_keeps_the_end_of_the_output_for_its_errors(log: OutputLog, tmp_path: Path) -> None:
    run = Run(RunSpec("python", str(Path(__file__))))
    run._log = log
    for _ in range(3):
        run._take_output("stderr", b"12345678", "")
    assert "longer than" in run._log_error
    assert bytes(run._errors) == b"12345678" * 3
    log.close()
    assert (tmp_path / "output.log").read_bytes() == b"1234567812"
