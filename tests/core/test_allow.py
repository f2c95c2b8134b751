"""Findings that are meant, and the gate."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.allow import Allowed, entry_for, entry_text, parse_gate, read_allow_file, split_allowed
from core.errors import TraceError
from core.suggestions import Outcome, Rule, RuleResult, Saving
from tests.core.reporting.cases import NOTE, SUGGESTION

RULES = ["scalar-read-back", "tensor-read-back", "no-steps-marked"]


def read(tmp_path, text):
    path = tmp_path / "allow.toml"
    path.write_text(text)
    return read_allow_file(path)


def test_read(tmp_path):
    (entry,) = read(tmp_path, '[[allow]]\nrule = "a"\nfile = "x.py"\nline = 3\nreason = "meant"\n')
    assert entry == Allowed("a", "meant", file="x.py", line=3)
    assert read(tmp_path, "# nothing\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[allow]]\nrule = ", "not valid TOML"),
        ("[[allow]]\nrule = 'a'\n", "lacks 'reason'"),
        ("[[allow]]\nreason = 'a'\n", "lacks 'rule'"),
        ("[[allow]]\nrule = 'a'\nreason = ' '\n", "lacks 'reason'"),
        ("[[allow]]\nrule = 'a'\nreason = 'b'\nline = 'c'\n", "'line' must be a whole number"),
        ("[[allow]]\nrule = 'a'\nreason = 'b'\nfil = 'c'\n", "unknown key 'fil'"),
        ("[allow]\nrule = 'a'\n", r"\[\[allow\]\] tables"),
        ("allow = [1]\n", "must be an"),
        ("other = 1\n", "unknown key 'other'"),
    ],
)
def test_read_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text)


def test_read_from_what_is_no_file(tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(TraceError, match=r"is no file|cannot be read"):
            read_allow_file(path)


def test_read_from_what_is_nested_without_end(tmp_path):
    path = tmp_path / "allow.toml"
    path.write_text("a=" + "[" * 100_000)
    with pytest.raises(TraceError, match="nested too deep"):
        read_allow_file(path)


def test_a_number_of_thousands_of_digits_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "allow.toml"
    path.write_text('[[allow]]\nrule = "*"\nreason = "x"\nline = ' + "9" * 5000)
    with pytest.raises(TraceError, match="number that is too long"):
        read_allow_file(path)


def test_read_missing(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        read_allow_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        (Allowed("scalar-read-back", "r"), True),
        (Allowed("*-read-back", "r"), True),
        (Allowed("tensor-read-back", "r"), False),
        (Allowed("scalar-read-back", "r", file="train.py"), True),
        (Allowed("scalar-read-back", "r", file="project/train.py"), True),
        (Allowed("scalar-read-back", "r", file="./train.py"), True),
        (Allowed("scalar-read-back", "r", file="rain.py"), False),
        (Allowed("scalar-read-back", "r", file="train.py", line=12), True),
        (Allowed("scalar-read-back", "r", file="train.py", line=13), False),
        (Allowed("scalar-read-back", "r", function="train_step"), True),
        (Allowed("scalar-read-back", "r", function="Trainer.train_step"), True),
        (Allowed("scalar-read-back", "r", function="other"), False),
        (Allowed("scalar-read-back", "r", op="aten::item"), True),
        (Allowed("scalar-read-back", "r", op="aten::nonzero"), False),
    ],
)
def test_fits(entry, fits):
    assert entry.fits(SUGGESTION) is fits


def test_place_never_fits_a_suggestion_without_one():
    assert not Allowed("scalar-read-back", "r", file="train.py").fits(replace(SUGGESTION, source=None))


def test_split():
    meant = Allowed("scalar-read-back", "r")
    stale = Allowed("launch-bound", "r")
    new, allowed, unused = split_allowed([SUGGESTION, NOTE], [meant, stale])
    assert new == [NOTE]
    assert allowed == [(SUGGESTION, meant)]
    assert unused == [stale]


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_written_entry_reads_back(reason, function):
    import tomllib

    if any("\ud800" <= c <= "\udfff" for c in reason + function):
        return
    entry = Allowed("a-rule", reason, file="x.py", function=function, line=7)
    (values,) = tomllib.loads(entry_text(entry))["allow"]
    assert Allowed(**values) == entry


def test_entry_for_a_suggestion_fits_it():
    for suggestion in (SUGGESTION, replace(SUGGESTION, source=None)):
        assert entry_for(suggestion, "meant").fits(suggestion)
    assert entry_for(SUGGESTION, "meant").line == 0  # lines move


@pytest.mark.parametrize(
    ("spec", "hits"),
    [
        ("scalar-read-back", True),
        ("*-read-back", True),
        ("tensor-read-back", False),
        ("high", True),
        ("medium", True),
        ("low", True),
        ("any", True),
        ("saving>=30%", True),
        ("30%", True),
        ("31 %", False),
        ("0.27ms", True),
        ("271us", False),
        ("saving>=31%", False),
        ("saving >= 31 %, saving>=270us", True),
        ("saving>=0.271ms", False),
        ("tensor-read-back,high", True),
    ],
)
def test_gate(spec, hits):
    assert parse_gate(spec, RULES).hits(SUGGESTION) is hits


def test_gate_on_notes_and_unknown_savings():
    assert not parse_gate("any,low,saving>=0%", RULES).hits(NOTE)
    assert parse_gate("no-steps-marked", RULES).hits(NOTE)
    assert not parse_gate("saving>=0%", RULES).hits(replace(SUGGESTION, saving=Saving()))
    assert not parse_gate("high", RULES).hits(replace(SUGGESTION, severity="medium"))


@pytest.mark.parametrize("spec", ["", ",", "nonsense", "saving>=", "saving>5%", "HIGH", "-1%"])
def test_gate_refuses(spec):
    with pytest.raises(ValueError, match="--fail-on"):
        parse_gate(spec, RULES)


def test_gate_says_what_could_not_be_checked():
    results = [
        RuleResult(Rule("scalar-read-back", "t"), Outcome.NOT_CHECKED, "no device"),
        RuleResult(Rule("tensor-read-back", "t"), Outcome.CLEAN),
    ]
    assert [r.rule.id for r in parse_gate("*-read-back", RULES).unchecked(results)] == ["scalar-read-back"]
