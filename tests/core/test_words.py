"""Words for one thing and for many, in every text that counts."""

from __future__ import annotations

import re

import pytest

from core.figures.notes import TEXTS
from core.importing.notes import NOTES
from core.kernel_names import short_op_name
from core.rule_runner import load_rules
from core.rule_tools import giant
from core.rule_tools.report import MADE, MADE_PER_STEP, SPENT, SPENT_IN_ONE_STEP, SPENT_ON_AVERAGE, SPENT_PER_STEP
from core.rule_tools.texts import rule_texts
from core.rule_tools.uneven import SENTENCE
from core.source_frames import is_launcher_frame
from core.words import counted, fill, plain_name, size, time

COUNTS = ("count", "steps", "times", "orphans", "launches", "all", "kernels", "freed", "calls")
# A number of one with the word for many after it, whatever stands between them and the noun.
WRONG = re.compile(
    r"(?<![\d.,])1 (?:\w+ )?(?:steps|events|slices|calls|kernels|launches|operators|batches|times(?! as)|pieces)\b"
)


def test_the_form_follows_the_value():
    template = "{count} {count|step takes|steps take} {long:.1f} ms"
    assert fill(template, {"count": 1, "long": 2.0}) == "1 step takes 2.0 ms"
    assert fill(template, {"count": 2, "long": 2.0}) == "2 steps take 2.0 ms"
    assert fill(template, {"count": 1, "long": 2.0}, {"count": "one"}) == "one step takes 2.0 ms"
    with pytest.raises(KeyError):
        fill(template, {"long": 1.0})


def test_counted():
    assert counted(1, "step") == "1 step"
    assert counted(2000, "step") == "2\u202f000 steps"
    assert counted(0, "copy", "copies") == "0 copies"


class Ones(dict):
    """One of everything that is counted; other values are of no matter here."""

    def __missing__(self, key: str) -> object:
        return 1 if key in COUNTS else 3


TEMPLATES = [
    *(text for _, _, title, advice in NOTES.values() for text in (title, advice)),
    *(text for note in TEXTS.values() for text in note[1:]),
    *(text for item in load_rules() if item.module for text in rule_texts(item.module)),
    *(giant.SENTENCE, MADE, MADE_PER_STEP, SENTENCE, SPENT, SPENT_IN_ONE_STEP, SPENT_ON_AVERAGE, SPENT_PER_STEP),
]


def test_no_text_says_one_things() -> None:
    texts = []
    for template in TEMPLATES:
        values = Ones()
        texts.append(fill(template, {name: values[name] for name in re.findall(r"\{(\w+)", template)}))
    assert len(texts) > 400
    assert [text for text in texts if WRONG.search(text)] == []


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [
        (0, "0 B"),
        (40, "40 B"),
        (1023, "1\u202f023 B"),
        (8 * 1024, "8 KiB"),
        (5909, "5.77 KiB"),
        (20_000_000, "19.1 MiB"),
        (3 << 40, "3 TiB"),
        (None, "unknown size"),
        (float("nan"), "unknown size"),
    ],
)
def test_sizes_are_told_in_the_unit_that_fits_and_unknown_ones_as_unknown(n_bytes, shown):
    assert size(n_bytes) == shown
    if n_bytes is not None:
        assert fill("{sent_bytes:size}", {"sent_bytes": n_bytes}) == shown


@pytest.mark.parametrize(
    ("time_ns", "shown"),
    [
        (0, "0 ns"),
        (412, "412 ns"),
        (4640, "4.64 µs"),
        (34_000, "34 µs"),
        (999_960, "1 ms"),
        (1_624_000, "1.62 ms"),
        (34_490_000, "34.5 ms"),
        (464_900_000, "465 ms"),
        (1_200_000_000, "1.2 s"),
        (float("nan"), "unknown time"),
    ],
)
def test_times_are_told_with_three_digits_in_the_unit_that_fits(time_ns, shown):
    assert time(time_ns) == shown
    assert fill("{long_ns:time}", {"long_ns": time_ns}) == shown
    assert fill("{long_us:time} of {long_ms:time}", {"long_us": time_ns / 1e3, "long_ms": time_ns / 1e6}) == (
        f"{shown} of {shown}"
    )
    assert fill("{long_us:.1f}", {"long_us": 2.0}) == "2.0"


def test_reports_and_the_window_write_numbers_alike() -> None:
    from core.reporting import units
    from gui import text

    for number in (7, 999, 33_629, 1_234_567):
        assert text.count(number) == units.count(number) == counted(number, "thing").split(" ")[0]
        assert fill("{things}", {"things": number}) == units.count(number)
        assert "," not in units.count(number)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<built-in method run_backward of torch._C._EngineBase object at 0x7fa71b4be870>", "run_backward"),
        ("<built-in method mean of Tensor object at 0x7fa06322ae90>", "mean"),
        ("<built-in function len>", "len"),
        ("<built-in method f of <locals>.A object at 0x1>", "f"),
        ("train.py(3): main", "train.py(3): main"),
        ("a <b> c", "a <b> c"),
    ],
)
def test_built_in_functions_are_called_by_their_names(name: str, shown: str) -> None:
    assert plain_name(name) == short_op_name(name) == shown
    assert fill("{what} waits", {"what": name}) == f"{shown} waits"


def test_frames_of_the_recording_itself_are_the_launchers() -> None:
    assert is_launcher_frame("<steplens>/hooks(120): backward")
    assert not is_launcher_frame("train.py(120): backward")
