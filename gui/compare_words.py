"""What a comparison says in words: its headline, how the step changed, and why that may say little."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from core.compare import GONE, NEW, Comparison
from core.same_program import Condition
from gui import text

translate = QCoreApplication.translate


def headline(found: Comparison) -> tuple[str, str]:
    """The judgement in a word or two, and the role of its colour; a round is judged alike."""
    if found.step is not None and found.differs:  # of two programs neither is the faster one
        return translate("compare", "Not the same program or conditions"), "warn"
    return {
        "faster": (translate("compare", "Faster"), "saved"),
        "slower": (translate("compare", "Slower"), "wait"),
        "same": (translate("compare", "No difference"), ""),
        "unclear": (translate("compare", "Unclear"), "warn"),
        "unknown": (translate("compare", "Unknown whether faster"), "warn"),
    }[found.outcome]


def what_changed(found: Comparison) -> str:
    """The step time that counts on both sides, and how many suggestions came and went."""
    gone = sum(c.state == GONE for c in found.suggestions)
    new = sum(c.state == NEW for c in found.suggestions)
    counts = translate("compare", "Suggestions: {gone} vanished, {new} appeared.").format(gone=gone, new=new)
    if found.step is None:
        lacks = {
            (): translate("compare", "No step time of one kind is known of both traces."),
            ("before",): translate("compare", "The trace before has no step time."),
            ("after",): translate("compare", "The trace after has no step time."),
        }
        neither = translate(
            "compare",
            "Neither trace has a step time, so the tables compare the whole recordings. Call prof.step() after each "
            "iteration in both.",
        )
        return lacks.get(found.timeless, neither) + " " + counts
    words = translate("compare", "The {kind} went from {before} to {after} ({change}).")
    return " ".join([words.format(**_pair(found.step)), *_steps(found), counts])


def _steps(found: Comparison) -> list[str]:
    """On how many steps the figures rest, where that differs."""
    before, after = found.before.steps, found.after.steps
    if before == after or not before or not after:
        return []
    return [translate("compare", "Steps recorded: {before} and {after}.").format(before=before, after=after)]


def doubts(found: Comparison) -> str:
    """Why the change says little about the code: conditions, noise, figures that contradict; nothing where it does."""
    words = {
        "repeat": translate(
            "compare", "The same code differed by {share} between two runs: this change is within that."
        ).format(share=text.apart(found.repeat_pct or 0.0)),
        "same_code": translate(
            "compare", "Both runs had the same sources and arguments: they differ by chance, and this is how much."
        ),
        "spread": translate(
            "compare", "The steps of a run differ so much among themselves that this difference says little."
        ),
        "recording": translate(
            "compare", "So the recorded steps cannot tell which is faster: compare runs with the same options."
        ),
        "pace": translate(
            "compare",
            "Other programs had the processor while steps were timed, or its own pace moved between the runs, by more "
            "than this. Measure again.",
        ),
        "machine": translate(
            "compare",
            "A step without the profiler took longer than one with it: other programs were busy, or the steps that "
            "were not recorded have more to do. Measure again.",
        ),
    }
    cut = {
        "before": translate("compare", "The trace before breaks off: what came after that is in no figure."),
        "after": translate("compare", "The trace after breaks off: what came after that is in no figure."),
    }
    sentences = [cut[side] for side in found.cut_off]
    if found.differs:
        sentences.append(_differing(found))
    if found.recording is not None:
        sentences.append(_recorded(found.recording))
    other = found.contradiction
    if other is not None:
        against = translate(
            "compare", "The figures contradict each other: the {kind} went from {before} to {after} ({change})."
        )
        sentences.append(against.format(**_pair(other)))
    doubted = found.noise if found.outcome == "unclear" else ()  # there is no change that they could be about, else
    return " ".join([*sentences, *(words[reason] for reason in doubted)])


def _pair(pair: tuple[str, float, float]) -> dict[str, str]:
    name, before, after = pair
    kinds = {
        "wall": translate("compare", "step without the profiler"),
        "sustained": translate("compare", "sustained step"),
        "period": translate("compare", "period"),
        "host": translate("compare", "host step"),
    }
    change = text.change(100.0 * (after - before) / before)
    return {
        "kind": kinds[name],
        "before": text.duration(before),
        "after": text.duration(after),
        "change": change,
    }


def _differing(found: Comparison) -> str:
    names = {
        "script": translate("compare", "script"),
        "arguments": translate("compare", "arguments"),
        "environment": translate("compare", "variables that were set"),
        "steps": translate("compare", "what ends a step"),
        "device": translate("compare", "device"),
        "torch": translate("compare", "torch version"),
        "rank": translate("compare", "rank"),
        "simulated": translate("compare", "origin"),
        "shapes": translate("compare", "input shapes"),
    }
    each = translate("compare", "{what}: {before} and {after}")
    none = translate("compare", "none")
    sides = [(names[d.code], *(text.elided(side, 60) or none for side in (d.before, d.after))) for d in found.differs]
    words = [each.format(what=what, before=before, after=after) for what, before, after in sides]
    said = translate(
        "compare", "They differ in more than a fix ({what}), so a change of time says little about the code."
    )
    return said.format(what="; ".join(words))


def _recorded(found: Condition) -> str:
    nothing = translate("compare", "nothing more")
    said = translate(
        "compare",
        "What was recorded differs ({before} before; {after} after): the profiler takes another share of the step, and "
        "a suggestion that needs what one lacks is only in the other.",
    )
    return said.format(before=found.before or nothing, after=found.after or nothing)
