"""What profiling says has a key, a template and values, and the window says it in the user's language."""

from __future__ import annotations

import re
import string
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator

from gui.errors import as_text
from gui.said import spoken
from profiling.errors import ProfilingError
from profiling.events import Gathered, Progress
from profiling.notices import notices_of
from profiling.outcome import exit_in_words
from profiling.sentences import TEMPLATES, joined, say
from profiling.spec import RunSpec, Schedule

FOLDER = Path(__file__).parents[2] / "profiling"


def test_a_sentence_is_text_that_knows_what_it_is_made_from() -> None:
    told = say("ended-status", status=3)
    assert told == "The script ended with exit status 3."
    assert told.record() == {
        "id": "ended-status", "template": "The script ended with exit status {status}.", "values": {"status": "3"},
    }  # fmt: skip
    assert say("ended-status") == "The script ended with exit status ?."
    assert joined(told, "", "Boom: {braces}.") == "The script ended with exit status 3. Boom: {braces}."


def test_every_key_that_is_said_has_words_and_every_word_is_said() -> None:
    said = set()
    for path in FOLDER.glob("*.py"):
        if path.name != "sentences.py":
            said |= set(re.findall(r'"([\w-]+)"', path.read_text("utf-8")))
    made = {key for key in TEMPLATES if key.startswith(("source-", "SIG"))}  # named by the step source, the signal
    assert set(TEMPLATES) - made <= said
    for path in FOLDER.glob("*.py"):
        for key in re.findall(r'\b(?:say|notice)\(\s*"([\w-]+)"', path.read_text("utf-8")):
            assert key in TEMPLATES, (path.name, key)


@pytest.mark.parametrize("key", TEMPLATES)
def test_templates_have_named_values_only(key: str) -> None:
    fields = [name for _, name, _, _ in string.Formatter().parse(TEMPLATES[key]) if name is not None]
    assert all(name.isidentifier() for name in fields)


def test_what_the_child_reports_becomes_a_sentence() -> None:
    gathered = Gathered(torch_version="2.5.1", device_build="12.4")
    gathered.take({"ev": "notice", "key": "whole", "values": {"seconds": "20"}})
    gathered.take({"ev": "notice", "key": "nobody-knows", "values": {}})
    gathered.take({"ev": "notice", "key": "launch-blocking", "values": "no mapping"})
    trace = {"path": "t.json", "kind": "own", "steps": [0, 1], "devices": ["cuda"], "left_out": ["memory", "shapes"]}
    found = notices_of(gathered, [trace], 0, "")
    assert [n.key for n in found] == ["launch-blocking", "early"]
    assert "without memory and shapes." in found[1]
    assert [n.key for n in notices_of(gathered, [], 0, "")] == ["whole", "launch-blocking", "nothing-ran"]


@pytest.mark.parametrize(("status", "told"), [(-9, True), (-11, True), (-6, True), (-2, False), (1, False)])
def test_a_script_that_died_in_training_says_why_nothing_is_left(status: int, told: bool) -> None:
    gathered = Gathered(torch_version="2.5.1", progress=Progress("early", 2))
    assert ("killed-early" in [n.key for n in notices_of(gathered, [], status, "")]) == told


class German(QTranslator):
    """Translates a few templates."""

    WORDS = {
        "The script was killed by signal {number} ({name}).": "Signal {number} ({name}) hat das Skript beendet.",
        "The script {path} does not exist.": "Das Skript {path} gibt es nicht.",
        "Check the path.": "Sieh den Pfad nach.",
        "The exact lines could not be written: {error}": "{nonsense}",
    }

    def translate(self, context: str, text: str, note: str = "", number: int = -1) -> str | None:  # type: ignore[override]
        """As Qt asks; None where there is no translation."""
        return self.WORDS.get(text) if context == "profiling" else None


def test_the_window_says_it_in_the_users_language(qapp: QCoreApplication) -> None:
    german = German()
    qapp.installTranslator(german)
    try:
        assert spoken(exit_in_words(-9)).startswith("Signal 9 (SIGKILL) hat das Skript beendet. It was killed from")
        with pytest.raises(ProfilingError) as caught:
            RunSpec("python", script="/nowhere/{at}/all.py", cwd="/").check()
        shown = as_text(caught.value)
        assert shown is not None
        assert shown.title == "Das Skript /nowhere/{at}/all.py gibt es nicht."
        assert shown.hint == "Sieh den Pfad nach."
        assert spoken(say("lines", error="x")) == "The exact lines could not be written: x"
        assert spoken("plain {text}") == "plain {text}"
    finally:
        qapp.removeTranslator(german)


def test_errors_stay_readable_without_a_window() -> None:
    with pytest.raises(ProfilingError, match="skip 0, warm-up 0, active 0, repeat 1"):
        Schedule(0, 0, 0, 1)
    assert (
        SimpleNamespace(words=say("python-cpu", python="3.11", torch="2.5")).words == "Python 3.11, torch 2.5, CPU only"
    )
