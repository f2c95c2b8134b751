"""Scripts in many styles: the change holds what it should, and the changed script has the values of the old one."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from core.fixes import ProposedEdit, attempt
from tests.core.fixes.running_sources import SCRIPTS, Script
from tests.core.fixes.test_propose import suggestion
from tests.core.fixes.test_values import RUNNER


def edit_of(script: Script) -> ProposedEdit:
    edit, why = attempt(script.text, suggestion(script.rule, script.text, script.function), "train.py")
    assert edit is not None, why
    return edit


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.name)
def test_what_the_change_holds(script: Script) -> None:
    edit = edit_of(script)
    for text in script.holds:
        assert text in edit.after, edit.diff
    assert ("\r\n" in script.text) == ("\r\n" in edit.after)
    assert "\n" not in edit.after.replace("\r\n", "") or "\r\n" not in script.text
    assert edit.summary.endswith(".")
    assert edit.risk.endswith(".")


@pytest.mark.torch
def test_the_values_are_the_same() -> None:
    cases = [(s.name, s.text, edit_of(s).after, s.allowed) for s in SCRIPTS]
    done = subprocess.run(
        [sys.executable, "-c", dedent(RUNNER)], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    out = json.loads(done.stdout[done.stdout.rindex('[["') :])
    assert len(out) == len(SCRIPTS)
    for name, (before, after), allowed in out:
        assert before, name
        assert after == pytest.approx(before, rel=allowed, abs=max(allowed * 1e-2, 1e-9)), name
