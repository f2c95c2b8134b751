"""Quantities as a person reads them; the one formatter of the window. Unknown is said, never drawn as 0."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QCoreApplication

from core.figures.rounds import HEALTHY_BUT
from core.figures.shares import is_foreign
from core.kinds import GapCause
from core.trace import Trace
from core.words import fill, grouped

THIN = "\u202f"  # narrow no-break space between a number and its unit, and between thousands


translate = QCoreApplication.translate  # lupdate finds calls of this name


def unknown() -> str:
    """The word for a figure that the trace does not tell."""
    return translate("text", "unknown")


def duration(ns: float | None) -> str:
    """Three digits and the unit that fits: ``412 ns``, ``986 µs``, ``12.3 ms``, ``1.23 s``."""
    if ns is None:
        return unknown()
    size = abs(ns)
    if size < 999.5 and ns == int(ns):
        return f"{ns:.0f}{THIN}ns"
    for limit, unit, scale in ((999.5, "ns", 1.0), (999.5e3, "µs", 1e3), (999.5e6, "ms", 1e6)):
        if size < limit:
            return _digits(ns / scale) + THIN + unit
    if size < 120e9:
        return _digits(ns / 1e9) + THIN + "s"
    return translate("text", "{minutes} min {seconds} s").format(minutes=int(ns // 60e9), seconds=int(ns % 60e9 / 1e9))


def lifetime(ns: int) -> str:
    """How long an allocation was held: -1 where the trace ends before it is freed, lower where nobody knows."""
    if ns >= 0:
        return duration(ns)
    return translate("text", "to the end") if ns == -1 else unknown()


def seconds(value: float) -> str:
    """Whole seconds, or minutes and seconds: for time left, which is never known better."""
    whole = max(1, round(value))
    if whole < 60:
        return f"{whole}{THIN}s"
    return translate("text", "{minutes} min {seconds} s").format(minutes=whole // 60, seconds=whole % 60)


def saving(ns: float | None) -> str:
    """A saving with its sign: ``−28 µs``; in words where it is not known or nothing."""
    if ns is None:
        return unknown()
    return "−" + duration(ns) if ns > 0 else translate("text", "nothing")


def signed_duration(ns: float) -> str:
    """A change of a time, with its sign."""
    return duration(0.0) if not ns else ("−" if ns < 0 else "+") + duration(abs(ns))


def _digits(value: float) -> str:
    size = abs(value)
    if size == 0 or size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def count(value: float | None) -> str:
    """A number of things, thousands apart; one decimal where it is a small mean."""
    if value is None:
        return unknown()
    if value != int(value) and abs(value) < 100:
        return f"{value:.1f}"
    return grouped(value)


def counted(template: str, number: float, **values: str) -> str:
    """Fill a number of things into a translated template: ``{count} {count|slice|slices}``."""
    return fill(template, {"count": number, **values}, {"count": count(number)})


def percent(value: float | None) -> str:
    """Per cent, one decimal below ten."""
    if value is None:
        return unknown()
    if 0 < abs(value) < 0.05:
        return f"<{THIN}0.1{THIN}%"
    digits = 0 if abs(value) >= 9.95 or value == 0 else 1
    return f"{value:.{digits}f}{THIN}%"


def apart(pct: float) -> str:
    """By how much two times differ, as a share of the longer one; as a factor where that says more."""
    if pct < 50.0:
        return percent(pct)
    return translate("text", "a factor of {factor}").format(factor=f"{100.0 / max(100.0 - pct, 1e-3):.3g}")


def change(pct: float) -> str:
    """A change in per cent with its sign."""
    if abs(pct) < 0.05:
        return percent(0.0)
    return ("−" if pct < 0 else "+") + percent(abs(pct))


def size(n_bytes: float | None) -> str:
    """Bytes in powers of 1024, called as the reports and the rules call them."""
    if n_bytes is None:
        return unknown()
    value, units = float(n_bytes), ("B", "KiB", "MiB", "GiB", "TiB")
    for unit in units:
        if abs(value) < 1024 or unit == units[-1]:
            return (f"{value:.0f}" if unit == "B" else _digits(value)) + THIN + unit
        value /= 1024
    raise AssertionError


def rate(n_bytes: float, dur_ns: float) -> str:
    """Bandwidth in GB/s (10^9 bytes), MB/s where it is slow."""
    if dur_ns <= 0:
        return unknown()
    slow = n_bytes / dur_ns < 0.1
    return _digits(n_bytes / dur_ns * (1000 if slow else 1)) + THIN + ("MB/s" if slow else "GB/s")


def operations(value: float, per_second: bool = False) -> str:
    """Floating-point operations in powers of 1000 (``2.1 MFLOP``), or their rate (``2.1 TFLOP/s``)."""
    prefixes = ("", "k", "M", "G", "T", "P")
    power = 0
    while abs(value) >= 1000 and power < len(prefixes) - 1:
        value, power = value / 1000, power + 1
    return (_digits(value) if power else f"{value:.0f}") + THIN + prefixes[power] + ("FLOP/s" if per_second else "FLOP")


def rate_of_operations(counted: int, dur_ns: float, on_device: bool) -> tuple[str, str]:
    """Name and value: how fast an operator's device work was, or the CPU where there is none."""
    name = translate("text", "rate on the device") if on_device else translate("text", "rate on the CPU")
    return name, operations(counted / dur_ns * 1e9, per_second=True) if dur_ns > 0 else unknown()


def place(file: str, line: int) -> str:
    """File name and line, without the folder."""
    return f"{PurePath(file.replace(chr(92), '/')).name}:{line}"


def gap_cause(cause: int) -> str:
    """What the device waited for, in words."""
    return {
        GapCause.LOADER: translate("text", "data loader"),
        GapCause.SYNC: translate("text", "after a wait of the CPU"),
        GapCause.LAUNCH: translate("text", "launches"),
        GapCause.PYTHON: translate("text", "Python"),
        GapCause.COPY: translate("text", "blocking copy"),
        GapCause.COMPILE: translate("text", "compiling or loading modules"),
        GapCause.COLLECTOR: translate("text", "garbage collector"),
        GapCause.COMMUNICATION: translate("text", "communication"),
        GapCause.ALLOC: translate("text", "memory allocation"),
        GapCause.QUEUED: translate("text", "launched, but held up"),
        GapCause.UNKNOWN: translate("text", "cause unknown"),
    }.get(GapCause(cause), translate("text", "cause unknown"))


def kind_name(kind: int) -> str:
    """Kind of a slice in words."""
    names = (
        translate("text", "operator"),
        translate("text", "range"),
        translate("text", "step"),
        translate("text", "Python frame"),
        translate("text", "runtime call"),
        translate("text", "driver call"),
        translate("text", "kernel"),
        translate("text", "copy"),
        translate("text", "memset"),
        translate("text", "device range"),
        translate("text", "device sync record"),
        translate("text", "profiler overhead"),
        translate("text", "garbage collector"),
        translate("text", "other"),
    )
    return names[kind] if kind < len(names) else names[-1]


def verdict(word: str) -> str:
    """The verdict of the summary in one word."""
    return {
        "healthy": translate("text", "Healthy"),
        "host_bound": translate("text", "Host-bound"),
        "device_bound": translate("text", "Device-bound"),
        "input_bound": translate("text", "Input-bound"),
        "sync_bound": translate("text", "Sync-bound"),
        "communication_bound": translate("text", "Communication-bound"),
    }.get(word, translate("text", "Unknown"))


def verdict_of(trace: Trace, word: str, outliers: int = 0) -> str:
    """The verdict on a trace, wherever it stands: one without device work is no riddle, so it is not "unknown".

    ``outliers``: steps that are no part of it and took much of the time, see `core.figures.rounds.outliers_told`.
    """
    if word == "healthy" and outliers:
        return filled(HEALTHY_BUT, {"count": outliers})
    if word == "unknown" and not trace.has_device_work and not trace.report.is_cut_off:
        if not len(trace.slices):
            return translate("text", "No events")
        if trace.meta.devices or is_foreign(trace):
            return translate("text", "No device work")
        return translate("text", "CPU only")
    return verdict(word)


def verdict_meaning(word: str) -> str:
    """What the verdict's word says, in a sentence."""
    return {
        "healthy": translate(
            "text", "Healthy: the device works most of the time, and no fix that was found saves much."
        ),
        "host_bound": translate(
            "text",
            "Host-bound: the device waits because the CPU launches its work too slowly, or does something else "
            "(Python, compiling, collecting garbage). Do less on the CPU.",
        ),
        "device_bound": translate(
            "text",
            "Device-bound: the device is busy most of the time, and what it idles has no one large cause that a fix "
            "would remove. Only less or faster device work helps much.",
        ),
        "input_bound": translate(
            "text", "Input-bound: the step waits for its data. Load and prepare the next batch sooner."
        ),
        "sync_bound": translate(
            "text",
            "Sync-bound: the CPU stops to wait for results of the device; meanwhile it queues no work, and the device "
            "runs dry.",
        ),
        "communication_bound": translate(
            "text", "Communication-bound: the devices exchange data, and compute nothing meanwhile."
        ),
    }.get(word, translate("text", "Nothing that was recorded tells what limits the step."))


def elided(text: str, limit: int = 120) -> str:
    """One line of at most ``limit`` characters, the middle left out: kernel names carry sense at both ends."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = (limit - 1) * 2 // 3
    return line[:head] + "…" + line[-(limit - 1 - head) :]


def filled(template: str, values: Mapping[str, Any]) -> str:
    """A rule's text in the user's language with its values; the bare template where a value is missing."""
    words = translate("rules", template)
    with contextlib.suppress(KeyError, ValueError, IndexError, AttributeError):
        words = fill(words, values)
    return words.replace("`", "")


BREAK = "\u200b"  # a line may break here (zero width)
LONG_WORD, WORD_PIECE = 21, 12  # letters
_UNIT = re.compile(r"(?<=\d) (?=(?:[nµum]?s|[KMGT]?i?B|%|min)(?!\w))")


def breakable(words: str, least: int = LONG_WORD) -> str:
    """Let a line break in words of so many letters: after ``::``, dots, slashes and underscores (zero-width spaces).

    Not between a number and its unit.
    """

    def broken(word: re.Match[str]) -> str:
        return re.sub(r"(::|[./_\\])(?=\w)", "\\1\u200b", word[0])

    return with_units(re.sub(rf"\S{{{least},}}", broken, words))


def with_units(words: str) -> str:
    """Words in which no number is parted from its unit at the end of a line."""
    return _UNIT.sub(THIN, words)


def breakable_anywhere(words: str) -> str:
    """As `breakable`, for a narrow place: after any sign in a long word, and in what no language has as a word."""
    signs = re.compile(rf"([=,({{\[|:-]|(?<=[a-z])(?=[A-Z]))(?=[^\s{BREAK}])")
    words = re.sub(r"\S{13,}", lambda word: signs.sub("\\1" + BREAK, word[0]), words)
    pieces = re.compile(rf"([^\s{BREAK}]{{{WORD_PIECE}}})(?=[^\s{BREAK}]{{3}})")
    return re.sub(
        rf"[^\s{BREAK}]{{{LONG_WORD},}}", lambda word: pieces.sub("\\1" + BREAK, word[0]), breakable(words, 13)
    )


def rule_title(template: str) -> str:
    """Title of a rule without values: what stands in braces is left out."""
    words = QCoreApplication.translate("rules", template)
    return " ".join(re.sub(r"\{[^}]*\}", "…", words).split())


def quantity(value: float | int | str, unit: str) -> str:
    """A value with the unit that a rule gave it; times and sizes are scaled."""
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    scale = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}.get(unit)
    if scale is not None:
        return duration(value * scale)
    if unit in ("bytes", "B"):
        return size(value)
    if unit in ("%", "pct"):
        return percent(value)
    return f"{count(value)} {unit}".strip()
