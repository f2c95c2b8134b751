"""The tour's story: what each of the example's traces shows, in words, with the figures of the trace on screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from PySide6.QtCore import QCoreApplication

import resources
from core.analysis import Analysis
from gui import text

FOLDER = Path(resources.__file__).resolve().parent / "samples"
translate = QCoreApplication.translate


SAME_SHARE = 0.05  # a fix that brought this much more or less than promised needs no explanation
WAITS = ("constant-copied-each-step", "control-flow-on-device-tensor", "host-list-index")  # of the example's loss


@dataclass(frozen=True)
class Station:
    """One trace of the example: its file, title, what to see, and the rule whose suggestion shows it.

    ``words`` hold for the program whatever was measured; every figure stands in ``told``, a template that
    `values_of` fills from the trace on screen, so that the tour cannot contradict what is shown below it.
    """

    file: str
    title: str
    words: str
    told: str
    rule: str
    follows: int = -1  # the station whose fix was made here, -1 none
    differs: str = ""  # why that fix brought something else than its card promised
    tries: int = -1  # the station on which something was tried here that is no fix, -1 none


def _story(
    stage: int, title: str, words: str, told: str, rule: str, follows: int = -1, differs: str = "", tries: int = -1
) -> Station:
    return Station(f"story_stage{stage}_simulated.json.gz", title, words, told, rule, follows, differs, tries)


def stations() -> tuple[Station, ...]:
    """All stations, in the user's language."""
    return (*_waits(), _launches(), _illusion(), *_operators())


def _waits() -> tuple[Station, ...]:
    """From three waits to none."""
    return (
        _story(
            0,
            translate("tour", "A small copy, a long wait"),
            translate(
                "tour",
                "The loss makes its class weights on the CPU and copies them to the GPU in every step. A copy from "
                "ordinary memory makes the CPU wait until the GPU is through with all that was queued before: the red "
                "stretch.",
            ),
            translate(
                "tour",
                "Three lines of the loss wait like this. Fixed together they make the step {waits_share} shorter: by "
                "the waits, which the verdict counts, and by what making those tensors costs the CPU. This one alone "
                "saves only {alone}, since the CPU then waits at the next of them instead.",
            ),
            "constant-copied-each-step",
        ),
        _story(
            1,
            translate("tour", "The wait has moved to an assert"),
            translate(
                "tour",
                "The weights now live on the GPU. The same wait stands at the next line that needs an answer from the "
                "GPU: an assert on a GPU tensor. The check can be made where the labels are made, on the CPU.",
            ),
            translate("tour", "A step takes {sustained}, and the CPU still waits {waited} of it."),
            "control-flow-on-device-tensor",
            follows=0,
        ),
        _story(
            2,
            translate("tour", "And once more, to an index"),
            translate(
                "tour",
                "The labels are checked in the data set. Now range() waits: used as an index it is a list of Python "
                "numbers, which has to be copied to the GPU. torch.arange on the device needs no copy. This is the "
                "last wait: no other takes its place.",
            ),
            translate(
                "tour",
                "So this fix alone saves {alone} ({alone_share} of the step): the wait, which the verdict counts, and "
                "what making the list and a tensor of it costs the CPU.",
            ),
            "host-list-index",
            follows=1,
            differs=translate(
                "tour",
                "With the assert went what worked out its answer; the card only counts the wait and the reading.",
            ),
        ),
    )


def _launches() -> Station:
    """The first station without waits."""
    return _story(
        3,
        translate("tour", "No wait is left: now the launches count"),
        translate(
            "tour",
            "The CPU no longer stops for the GPU. What the loss still has is many small operators where one would "
            "do: each costs the CPU a launch and the GPU a pass over its data.",
        ),
        translate("tour", "The GPU is busy {busy} of the time. One operator instead alone saves {alone} a step."),
        "hand-written-composite-op",
        follows=2,
    )


def _illusion() -> Station:
    """The last fix again, where the GPU is the limit."""
    return Station(
        "article_stage3_simulated.json.gz",
        translate("tour", "Do not be fooled: the same fix with a large batch"),
        translate(
            "tour",
            "This is the same program with a large batch of large images. Without waits its host "
            "step is only the time to queue the work: who looks at it alone celebrates too early. With so much "
            "work for the GPU the waits had cost next to nothing.",
        ),
        translate(
            "tour",
            "Queueing a step takes {step}, but a step is done every {sustained}: the GPU needs {ratio} times as "
            "long, and is busy {busy} of the time.",
        ),
        "enqueue-time",
    )


def _operators() -> tuple[Station, ...]:
    """What is left without waits."""
    return (
        _story(
            4,
            translate("tour", "One operator, built anew each time"),
            translate(
                "tour",
                "Back to the small batch: nn.NLLLoss does in one call what the hand-written lines did. But it is made "
                "again in every step, which costs the CPU time and is easily moved to __init__.",
            ),
            translate("tour", "Made once, it alone saves {alone} a step."),
            "object-built-in-step",
            follows=3,
            differs=translate(
                "tour", "The new object, built anew in every step, takes part of it back: the next fault."
            ),
        ),
        _story(
            5,
            translate("tour", "Half of the loss is still written by hand"),
            translate(
                "tour",
                "Log-softmax is written out, and the loss reads its result back from memory. nn.CrossEntropyLoss does "
                "both at once, and with fewer rounding errors.",
            ),
            translate("tour", "Alone it saves {alone} a step."),
            "hand-written-composite-op",
            follows=5,
        ),
        _story(
            6,
            translate("tour", "The loss is no longer worth a look"),
            translate(
                "tour",
                "The faults of the loss are gone. What is left to fix is not about the loss but about the batch: how "
                "it is copied, and how often it is read.",
            ),
            translate("tour", "A step takes {sustained} now. Reading the batch once less alone saves {alone}."),
            "float-batch-copied",
            follows=6,
            differs=translate(
                "tour", "One operator took the place of both log-softmax and the loss; the card spoke of one of them."
            ),
        ),
        _story(
            7,
            translate("tour", "Not every tool helps everywhere"),
            translate(
                "tour",
                "The batch is left for you to fix. Here torch.compile was tried on the loss instead: on so small a "
                "function it gains nothing, and the app says so. This is the end of the tour: open a trace of your "
                "own, or let the app profile your script.",
            ),
            translate("tour", "A step takes {sustained} with it."),
            "compile-without-gain",
            tries=7,
        ),
    )


def values_of(analysis: Analysis, rule: str) -> dict[str, str]:
    """Figures that a station may speak of, as text; what is unknown is left out."""
    summary, found = analysis.figures.summary, analysis.suggestions
    step_ns = summary.sustained_step_ns
    alone = next((s.saving for s in found if s.rule_id == rule), None)
    waits_ns = sum(s.saving.together_ns or 0 for s in found if s.rule_id in WAITS)
    values: dict[str, str] = {}
    for name, ns in (
        ("step", summary.step_ns),
        ("sustained", step_ns),
        ("waited", summary.sync_wait_ns_per_step),
        ("alone", alone.ns if alone is not None else None),
    ):
        if ns is not None:
            values[name] = text.duration(ns)
    if step_ns:
        values["waits_share"] = text.percent(100 * waits_ns / step_ns)
        if summary.step_ns:
            values["ratio"] = text.count(round(step_ns / summary.step_ns))
    if alone is not None and alone.pct is not None:
        values["alone_share"] = text.percent(alone.pct)
    if summary.gpu_busy_pct is not None:
        values["busy"] = text.percent(summary.gpu_busy_pct)
    return values


def told(station: Station, analysis: Analysis | None) -> str:
    """Sentence with the trace's own figures; empty until all of them are known."""
    values = values_of(analysis, station.rule) if analysis is not None else {}
    try:
        return station.told.format(**values)
    except KeyError:
        return ""


_measured: dict[int, tuple[float, float]] = {}  # of the stations seen: step time, and what the fix was to save, ns
_steps: dict[int, float] = {}  # step time of each station seen, ns


def forget() -> None:
    """Forget what the stations seen so far measured."""
    _measured.clear()
    _steps.clear()


def kept() -> list[str]:
    """What the stations seen so far measured, as lines for the settings; see `take_back`."""
    return [
        " ".join(map(repr, (number, step_ns, *_measured.get(number, ())[1:]))) for number, step_ns in _steps.items()
    ]


def take_back(lines: Sequence[str]) -> None:
    """Know again what `kept` gave, in an earlier session; lines that it cannot have given are passed over."""
    for line in lines:
        try:
            number, step_ns, *promised = map(float, line.split())
        except ValueError:
            continue
        if number not in range(len(stations())) or len(promised) > 1 or not all(map(isfinite, (step_ns, *promised))):
            continue
        _steps.setdefault(int(number), step_ns)
        if promised:
            _measured.setdefault(int(number), (step_ns, promised[0]))


def recap() -> str:
    """What all fixes of the example brought together; empty where the first station or the last fixed one is unseen."""
    last = max(k for k, station in enumerate(stations()) if station.follows >= 0)
    if 0 not in _steps or last not in _steps:
        return ""
    before_ns, after_ns = _steps[0], _steps[last]
    words = translate("tour", "All fixes together took a step of the example from {before} to {after} ({change}).")
    change = text.change(100.0 * (after_ns - before_ns) / before_ns)
    return words.format(before=text.duration(before_ns), after=text.duration(after_ns), change=change)


def came(number: int, analysis: Analysis | None) -> str:
    """What the fix of the station before brought, beside what its card promised; empty where that was not seen.

    Where something was tried that is no fix: what the step took before.
    """
    station = stations()[number]
    if analysis is None or not analysis.suggestions or analysis.figures.summary.sustained_step_ns is None:
        return ""
    step_ns = _steps[number] = float(analysis.figures.summary.sustained_step_ns)
    promise = next((s.saving.ns for s in analysis.suggestions if s.rule_id == station.rule), None)
    if promise is not None:
        _measured[number] = step_ns, float(promise)
    if station.tries in _steps:
        return translate("tour", "Before this a step took {before}.").format(
            before=text.duration(_steps[station.tries])
        )
    if station.follows not in _measured:
        return ""
    before_ns, promised_ns = _measured[station.follows]
    brought_ns = before_ns - step_ns
    words = translate("tour", "The last fix alone was to save {promised} a step, and {brought} came.").format(
        promised=text.duration(promised_ns), brought=text.duration(brought_ns)
    )
    if station.differs and abs(brought_ns - promised_ns) > SAME_SHARE * promised_ns:
        words = f"{words} {station.differs}"
    return words


def card_of(station: Station, analysis: Analysis | None) -> str:
    """Where the plan has what a station speaks of, where it is not the first card."""
    found = analysis.suggestions if analysis is not None else ()
    at = next((k for k, s in enumerate(found) if s.rule_id == station.rule), -1)
    if analysis is None or at <= 0 or found[at].informational or found[at].saving.ns is None:
        return ""
    number = analysis.numbers().get(at)
    if number is None:
        return translate("tour", "Its card has no number: it saves next to nothing, and is not in the plan.")
    saving, numbers = found[at].saving, analysis.numbers()
    waits = sorted(numbers[k] for k, s in enumerate(found) if s.rule_id in WAITS and k in numbers)
    if station.rule in WAITS and len(waits) > 1 and waits == list(range(1, len(waits) + 1)):
        words = translate(
            "tour",
            "Cards 1 to {last} of the plan are these waits; what one saves depends on which others are fixed. The tour "
            "opens card {card} to go by the order of the code.",
        )
        return words.format(last=text.count(waits[-1]), card=text.count(number))
    words = translate(
        "tour",
        "It is card {card} of the plan: the plan goes by what saves most next, the tour by the order of the code.",
    )
    if saving.together_ns is not None and saving.together_ns != saving.ns:
        words = translate(
            "tour",
            "It is card {card} of the plan, where it saves {saved} after the fixes above it: the plan goes by what "
            "saves most next, the tour by the order of the code.",
        )
    return words.format(card=text.count(number), saved=text.duration(saving.together_ns or 0))


def sample(number: int) -> Path:
    """Trace of one station."""
    return FOLDER / stations()[number].file
