"""While a script runs on, what it has recorded can be opened."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from gui.main_window import MainWindow
from profiling.events import Progress


def test_a_saved_trace_is_offered_while_the_script_runs_on(window: MainWindow, tmp_path: Path) -> None:
    window.session.pageRequested.emit("output")
    page, capture = window.pages["output"], window.session.ask("capture")
    asked: list[tuple[list[Path], object]] = []
    window.session.open = lambda paths, folder=None: asked.append((paths, folder))  # type: ignore[method-assign]
    gathered = SimpleNamespace(traces=[])
    capture.run = SimpleNamespace(folder=str(tmp_path), gathered=gathered, gpus=SimpleNamespace(now=[]), running=False)
    try:
        capture.progress = Progress("window", 3, 1, 4)
        page._progressed()  # type: ignore[attr-defined]
        assert page.open_button.isHidden()  # type: ignore[attr-defined]
        capture.progress = Progress("done", 9)
        gathered.traces.append({"path": "/elsewhere/trace.json"})
        page._progressed()  # type: ignore[attr-defined]
        assert page.open_button.isHidden()  # type: ignore[attr-defined]  # it is not there yet
        assert "Stop is safe" not in page.phase.text()  # type: ignore[attr-defined]
        (tmp_path / "trace.json").write_text("{}")
        page._progressed()  # type: ignore[attr-defined]
        assert not page.open_button.isHidden()  # type: ignore[attr-defined]
        assert not page.choices.isHidden()  # type: ignore[attr-defined]
        assert "The trace is saved, Stop is safe now" in page.phase.text()  # type: ignore[attr-defined]
        assert "nothing of it is lost" in page.stop_button.toolTip()  # type: ignore[attr-defined]
        page.open_button.click()  # type: ignore[attr-defined]
        assert asked == [([tmp_path / "trace.json"], tmp_path)]
    finally:
        capture.run = None
