"""The runner: finds rules, says why one was not checked, and keeps a broken one from hiding the others."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import core.rules
from core.analysis import Analysis, analyze
from core.errors import Cancelled
from core.figures.compute import compute_figures
from core.rule_runner import load_rules, run_rules
from core.suggestions import Outcome, RuleResult
from core.time_limit import TookTooLong, within
from tests.core.rules.cases_recording import _unseen
from tests.core.rules.cases_waits import CASES
from tests.trace_builder import TraceBuilder

OURS = sum(file.stem != "__init__" for file in Path(core.rules.__file__).parent.glob("*.py"))
GOOD = '''
"""Finds every operator called aten::mm.

What it finds
-------------
Products.
"""
from core.suggestions import Evidence, Fix, Rule, Suggestion

RULE = Rule(id="my-products", title="Products")


def check(ctx):
    ids = [i for i in range(len(ctx.trace.slices)) if ctx.trace.name(i) == "aten::mm"]
    if not ids:
        return []
    seen = (Evidence("Products", len(ids), "", tuple(ids)),)
    return [Suggestion(RULE.id, "{count} products", {"count": len(ids)}, evidence=seen, fix=Fix("Fewer."))]
'''

DUMB = """

class Dumb(Exception):
    def __str__(self):
        raise ValueError("no words")
"""


def _results(folder: Path | None = None, **options: object) -> dict[str, RuleResult]:
    trace = CASES["scalar-read-back"].found()
    folders = (folder,) if folder else ()
    return {r.rule.id: r for r in run_rules(trace, compute_figures(trace), extra_folders=folders, **options)}  # type: ignore[arg-type]


def test_results_come_one_by_one_and_progress_ends_at_one() -> None:
    trace = CASES["scalar-read-back"].found()
    seen: list[str] = []
    told: list[float] = []
    results = run_rules(
        trace,
        compute_figures(trace),
        on_result=lambda r: seen.append(r.rule.id),
        progress=lambda fraction, _: told.append(fraction),
    )
    assert seen == [r.rule.id for r in results]
    assert len(seen) == len(set(seen)) == OURS
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_cancel_ends_the_run_at_once() -> None:
    trace = CASES["scalar-read-back"].found()

    def stop(fraction: float, _: str) -> None:
        if fraction > 0.1:
            raise Cancelled

    seen: list[RuleResult] = []
    with pytest.raises(Cancelled):
        run_rules(trace, compute_figures(trace), on_result=seen.append, progress=stop)
    assert 0 < len(seen) < 20


def test_a_rule_that_needs_what_is_missing_says_what_and_how_to_record_it() -> None:
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 50).build()
    results = {r.rule.id: r for r in run_rules(trace, compute_figures(trace))}
    expected = {
        "scalar-read-back": "CPU only",
        "object-built-in-step": "with_stack=True",
        "matmul-dims-misaligned": "GPU",
        "conv-bias-before-batch-norm": "record_shapes=True",
        "memory-creep": "prof.step()",
        "memory-near-limit": "profile_memory=True",
        "straggler": "GPU",
    }
    for rule, words in expected.items():
        assert results[rule].outcome is Outcome.NOT_CHECKED
        assert words in results[rule].reason


def test_without_gpu_work_but_with_launches_the_reason_is_another() -> None:
    trace = _unseen(True)
    results = {r.rule.id: r for r in run_rules(trace, compute_figures(trace))}
    assert "ProfilerActivity.CUDA" in results["scalar-read-back"].reason
    assert results["gpu-events-missing"].outcome is Outcome.FOUND


def test_a_parameter_can_be_changed_by_rule() -> None:
    trace = CASES["many-tiny-copies"].found()
    figures = compute_figures(trace)
    strict = {"many-tiny-copies": {"min_per_step": 1000.0}}
    by_default = {r.rule.id: r.outcome for r in run_rules(trace, figures)}
    changed = {r.rule.id: r.outcome for r in run_rules(trace, figures, params=strict)}
    assert by_default["many-tiny-copies"] is Outcome.FOUND
    assert changed["many-tiny-copies"] is Outcome.CLEAN


def test_a_rule_of_the_users_runs_like_ours(tmp_path: Path) -> None:
    (tmp_path / "my_products.py").write_text(GOOD)
    (tmp_path / "_helper.py").write_text("raise SystemExit")  # names with an underscore are no rules
    result = _results(tmp_path)["my-products"]
    assert result.outcome is Outcome.FOUND
    assert result.suggestions[0].headline == "18 products"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def check(:", "SyntaxError"),
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("x = 1", "must have RULE"),
        ("raise SystemExit(3)", "SystemExit"),
        (GOOD.replace("return []", "return 1 / 0").replace("aten::mm", "nothing"), "ZeroDivisionError"),
        (GOOD.replace('{"count": len(ids)}', "{}"), "KeyError"),
        (GOOD.replace("return [Suggestion", "return [str, Suggestion"), "not Suggestion"),
        (GOOD.replace("tuple(ids)", "(10**9,)"), "must be numbers of slices"),
        (GOOD.replace("tuple(ids)", "('first',)"), "must be numbers of slices"),
        (GOOD.replace("if not ids", "raise SystemExit('no')\n    if not ids"), "SystemExit: no"),
        (GOOD.replace("if not ids", "raise GeneratorExit('no')\n    if not ids"), "GeneratorExit: no"),
        (GOOD + "\n\nclass Mine(BaseException):\n    pass\n\n\nraise Mine('no')\n", "Mine: no"),
        (GOOD.replace("if not ids", "raise Dumb\n    if not ids") + DUMB, "Dumb"),
        (GOOD.replace("len(ids)}", "Plain(len(ids))}") + "\n\nclass Plain(int):\n    pass\n", "plain values only"),
        (GOOD.replace("len(ids)}", "len(ids), 'f': lambda: 1}"), "plain values only"),
    ],
)
def test_a_broken_rule_fails_alone_and_visibly(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "my_products.py").write_text(text)
    results = _results(tmp_path)
    broken = [r for r in results.values() if r.outcome is Outcome.FAILED]
    assert len(broken) == 1
    assert words in broken[0].reason
    assert broken[0].rule.id == "my-products"
    assert results["scalar-read-back"].outcome is Outcome.FOUND


def test_a_rule_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("my-products", "scalar-read-back"))
    loaded = [r for r in load_rules((tmp_path,)) if r.rule.id == "scalar-read-back"]
    assert [bool(r.error) for r in loaded] == [False, True]
    assert "taken already" in loaded[1].error


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert len(load_rules((tmp_path / "none",))) == OURS


def test_ours_are_shown_before_the_users_have_run(tmp_path: Path) -> None:
    (tmp_path / "my_products.py").write_text(GOOD)
    trace = CASES["scalar-read-back"].found()
    seen: list[Analysis] = []
    last = analyze(trace, on_partial=seen.append, extra_folders=(tmp_path,))
    assert [len(part.rules) for part in seen] == [0, OURS]
    assert [part.awaits_own_rules for part in (*seen, last)] == [False, True, False]
    assert "my-products" in {r.rule.id for r in last.rules} - {r.rule.id for r in seen[1].rules}
    ours = {s.rule_id: s.saving for s in last.suggestions if s.rule_id != "my-products"}
    assert {s.rule_id: s.saving for s in seen[1].suggestions} == ours  # with what they save, and the verdict
    assert any(saving.ns is not None for saving in ours.values())
    assert seen[1].figures.summary.sustained_step_ns == last.figures.summary.sustained_step_ns is not None
    seen.clear()
    analyze(trace, on_partial=seen.append)
    assert [len(part.rules) for part in seen] == [0, OURS]
    assert [part.awaits_prices for part in (*seen, last)] == [False, True, False]


HANGING = {
    "busy": GOOD.replace("my-products", "my-busy").replace("    ids = [", "    while True:\n        pass\n    ids = ["),
    "deaf": GOOD.replace("my-products", "my-deaf").replace(
        "    ids = [", "    import threading\n    threading.Event().wait()\n    ids = ["
    ),
    "never_loaded": "while True:\n    pass\n",
}


@pytest.mark.parametrize("name", list(HANGING))
def test_a_rule_that_hangs_is_left_out_and_the_rest_is_priced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.rule_runner.OWN_RULE_S", 0.3)
    (tmp_path / f"{name}.py").write_text(HANGING[name])
    (tmp_path / "zz_good.py").write_text(GOOD)
    trace = CASES["scalar-read-back"].found()
    early: list[int] = []
    analysis = analyze(
        trace, extra_folders=[tmp_path], on_partial=lambda a: early.append(len(a.rules)), progress=lambda *_: None
    )
    assert early[1] == len(load_rules())  # ours were told before a file of the user's was loaded
    outcomes = {r.rule.id: r for r in analysis.rules}
    hung = outcomes.get(f"my-{name}") or outcomes["never-loaded"]
    assert hung.outcome is Outcome.FAILED
    assert hung.reason == "took longer than 0.3 s, left out"
    assert outcomes["scalar-read-back"].suggestions  # ours, priced
    assert any(s.rule_id == "scalar-read-back" and s.saving.ns is not None for s in analysis.suggestions)
    assert "my-products" not in outcomes or outcomes["my-products"].outcome is not Outcome.FAILED


def test_what_is_busy_in_python_is_stopped_when_its_time_is_up() -> None:
    stopped: list[bool] = []

    def busy() -> None:
        try:
            while True:
                pass
        finally:
            stopped.append(True)

    with pytest.raises(TookTooLong, match="longer than"):
        within(0.2, busy)
    assert stopped == [True]


@pytest.mark.parametrize(("takes_s", "is_late"), [(19.9, False), (20.0, True), (25.0, True)])
def test_what_ends_just_as_its_time_is_up_took_too_long(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, is_late: bool
) -> None:
    """The one that waits looks now and then only: what ended meanwhile is judged by when it ended."""
    clock = [100.0]
    monkeypatch.setattr("core.time_limit.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def work() -> str:
        clock[0] += takes_s
        return "done"

    if is_late:
        with pytest.raises(TookTooLong, match="longer than 20 s"):
            within(20.0, work)
    else:
        assert within(20.0, work) == "done"


def test_calling_off_stops_a_rule_that_hangs() -> None:
    def called_off() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        within(60.0, threading.Event().wait, called_off)


def test_within_its_time_work_returns_and_raises_as_without_a_limit() -> None:
    assert within(60.0, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(60.0, lambda: 1 // 0)
