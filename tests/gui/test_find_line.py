"""One click on "Find the line": the script runs again with marks, and the suggestion gets its exact line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.suggestions import SourceRef, Suggestion
from gui import find_line
from gui.opening import Opener
from gui.panels.output import OutputPage
from gui.session import Document, Session
from gui.settings import Settings
from profiling import manifest
from profiling.spec import Options, RunSpec, Schedule
from tests.profiling import light
from tests.trace_builder import TraceBuilder

SCRIPT = """\
import torch

def pick(log_probs, target):
    assert target.max() < 10
    rows = range(target.shape[0])
    return -log_probs[rows, target]

class Loss(torch.nn.Module):
    def forward(self, x, target):
        log_probs = x - x.exp().sum(-1).log().unsqueeze(-1)
        return pick(log_probs, target).mean()

model = torch.nn.Linear(64, 10)
loss = Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(24):
    optimizer.zero_grad()
    loss(model(torch.randn(32, 64)), torch.arange(32) % 10).backward()
    optimizer.step()
"""


@pytest.fixture
def session(qapp: QApplication) -> Iterator[Session]:
    """A session that profiles, opens and diagnoses."""
    from gui.capture import install

    made, settings = Session(), Settings()
    install(made, settings)
    made.opener = Opener(made, settings, made)  # type: ignore[attr-defined]
    yield made
    made.deleteLater()


def diagnosed(session: Session, count: int) -> bool:
    """So many documents are open, and the newest one's diagnosis is done."""
    shown = session.current
    return len(session.documents) == count and shown is not None and bool(shown.analysis) and not shown.analysis_running


@pytest.mark.torch
def test_one_click_finds_the_line(
    session: Session, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in light.write(tmp_path).items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    capture = session.ask("capture")
    page = OutputPage(session)
    qtbot.addWidget(page)
    first = RunSpec(
        sys.executable, script=str(script), runs_root=str(tmp_path / "runs"), stdin="pipe",
        schedule=Schedule(1, 1, 3, 1), options=Options(memory=False),
    )  # fmt: skip
    capture.start(first)
    qtbot.waitUntil(lambda: diagnosed(session, 1), timeout=120_000)
    document = session.current
    assert document is not None
    assert document.analysis is not None
    index = next((i for i, s in enumerate(document.analysis.suggestions) if find_line.function_of(s)[1] == "pick"), -1)
    source = document.analysis.suggestions[index].source
    assert index >= 0
    assert source is not None
    assert "marked" not in source.reason  # read from the code so far, not recorded
    rule = document.analysis.suggestions[index].rule_id
    pages: list[str] = []
    session.pageRequested.connect(pages.append)
    session.ask("find_line", document, index)
    assert capture.running
    assert pages == ["output"]
    assert page.title.text() == "Finding the line: train.py"
    assert capture.spec.line_ranges == ("train.py:pick",)
    assert (capture.spec.schedule, capture.spec.options) == (first.schedule, first.options)
    qtbot.waitUntil(lambda: diagnosed(session, 2), timeout=120_000)
    assert any("marks of the lines" in notice for notice in capture.result.notices)
    shown = session.current
    assert shown is not None
    found = shown.suggestion(shown.current_suggestion)
    assert found is not None
    assert found.rule_id == rule
    assert found.source is not None
    assert "marked" in found.source.reason
    assert (found.source.exact, found.source.line, found.source.function) == (True, 6, "pick")
    assert "train.py:6" in session.status


def test_a_run_without_stacks_is_searched_with_them(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement's mark holds the head of a loop, where a batch is fetched: a stack names it."""
    capture, folder = session.ask("capture"), tmp_path / "run"
    folder.mkdir()
    (tmp_path / "train.py").write_text("")
    first = RunSpec(sys.executable, script=str(tmp_path / "train.py"), options=Options(stacks=False, shapes=False))
    manifest.write(folder, {"format": manifest.FORMAT, "spec": first.to_json()})
    document = Document(TraceBuilder(gpu=None).op("aten::mm", 0, 10).build())
    document.run_folder = folder
    document.set_analysis(Analysis(compute_figures(document.trace), (Suggestion("rule", "Title"),)))
    started: list[RunSpec] = []
    monkeypatch.setattr(capture, "start", started.append)
    monkeypatch.setattr(capture, "is_own", lambda _: True)
    capture.find_line(document, 0)
    assert [spec.options for spec in started] == [Options(stacks=True, shapes=False)]


def test_a_run_with_variables_asks_for_them(session: Session) -> None:
    assert find_line.needs_the_user({"env": ["TOKEN"]})
    assert not find_line.needs_the_user({"env": []})


def test_the_suggestion_is_recognised_in_the_new_trace() -> None:
    exact = Suggestion("a", "", source=SourceRef("/home/me/train.py", 6, "pick", True))
    other = Suggestion("a", "", source=SourceRef("train.py", 2, "forward", True))
    sought = find_line.Sought("a", "a|train.py:pick", ("train.py", "pick"))
    assert find_line.best(sought, [other, Suggestion("b", ""), exact]) == 2
    assert find_line.best(sought, [Suggestion("b", "")]) == -1
    assert "train.py:6" in find_line.outcome_words(exact)
    assert "not found" in find_line.outcome_words(Suggestion("a", ""))
