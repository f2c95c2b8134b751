"""Our rules in a fork, beside the replay: the same diagnosis as one after the other, also where the fork dies."""

import os
import signal
import sys
from pathlib import Path

import pytest

from core import memory, rule_runner
from core.analysis import analyze
from core.importing import forked, open_trace, pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
SAMPLE = Path(__file__).resolve().parents[3] / "resources" / "samples" / "story_stage0_simulated.json.gz"


@pytest.fixture(scope="module")
def trace():
    return open_trace(SAMPLE)


@pytest.fixture
def forks(monkeypatch):
    """Have large traces begin at none, and count the forks."""
    begun = []
    monkeypatch.setattr(memory, "MANY", 0)
    monkeypatch.setattr(pool, "forks", lambda: True)
    monkeypatch.setattr(forked.os, "cpu_count", lambda: 2)
    original = rule_runner.Forked

    def counted(*args, **options):
        made = original(*args, **options)
        begun.append(made.started)
        return made

    monkeypatch.setattr(rule_runner, "Forked", counted)
    return begun


def _told(analysis):
    rules = [(r.rule, r.outcome, r.reason, r.suggestions) for r in analysis.rules]
    return repr((rules, analysis.suggestions, analysis.plan, analysis.figures.summary))


def test_rules_in_a_fork_find_the_same(trace, forks, monkeypatch):
    fractions = []
    beside = analyze(trace, progress=lambda fraction, what: fractions.append(fraction))
    assert forks == [True]
    assert fractions == sorted(fractions)
    monkeypatch.setattr(memory, "MANY", 1 << 40)
    assert _told(beside) == _told(analyze(trace))
    assert forks == [True, False]


def test_where_the_fork_dies_the_rules_run_here(trace, forks, monkeypatch):
    here = os.getpid()
    run = rule_runner._run_one
    seen = []

    def dying(item, *rest):
        if os.getpid() != here and item.rule.id == "launch-bound":
            os.kill(os.getpid(), signal.SIGKILL)
        seen.append(item.rule.id)
        return run(item, *rest)

    monkeypatch.setattr(rule_runner, "_run_one", dying)
    died = analyze(trace)
    assert forks == [True]
    assert len(seen) == len(died.rules)
    monkeypatch.setattr(memory, "MANY", 1 << 40)
    assert _told(died) == _told(analyze(trace))


def test_rules_of_the_user_run_here(trace, forks, tmp_path):
    (tmp_path / "of_user.py").write_text(
        "import os\nfrom core.suggestions import Needs, NotChecked, Rule\n"
        'RULE = Rule("of-user", "Of the user")\n'
        "def check(ctx):\n    raise NotChecked(str(os.getpid()))\n"
    )
    partial = []
    found = analyze(trace, on_partial=partial.append, extra_folders=(tmp_path,))
    assert forks == [True]
    assert found.rules[-1].reason == str(os.getpid())
    assert len(partial[-1].rules) == len(found.rules) - 1  # ours come first, priced
