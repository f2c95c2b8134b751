"""Quantities as a person reads them; the one formatter of the window. Unknown is said, never drawn as 0."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QCoreApplication

from core.kinds import GapCause

THIN = "\u202f"  # narrow no-break space between a number and its unit, and between thousands


def _tr(text: str) -> str:
    return QCoreApplication.translate("text", text)


def unknown() -> str:
    """The word for a figure that the trace does not tell."""
    return _tr("unknown")


def duration(ns: float | None) -> str:
    """Three digits and the unit that fits: ``412 ns``, ``986 µs``, ``12.3 ms``, ``1.23 s``."""
    if ns is None:
        return unknown()
    size = abs(ns)
    for limit, unit, scale in ((999.5, "ns", 1.0), (999.5e3, "µs", 1e3), (999.5e6, "ms", 1e6)):
        if size < limit:
            return _digits(ns / scale) + THIN + unit
    if size < 120e9:
        return _digits(ns / 1e9) + THIN + "s"
    return _tr("{minutes} min {seconds} s").format(minutes=int(ns // 60e9), seconds=int(ns % 60e9 / 1e9))


def saving(ns: float | None) -> str:
    """A saving with its sign: ``−28 µs``; "unknown" where it is not known."""
    return unknown() if ns is None else "−" + duration(ns)


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
    return f"{value:,.0f}".replace(",", THIN)


def percent(value: float | None) -> str:
    """Per cent, one decimal below ten."""
    if value is None:
        return unknown()
    digits = 0 if abs(value) >= 9.95 or value == 0 else 1
    return f"{value:.{digits}f}{THIN}%"


def size(n_bytes: float | None) -> str:
    """Bytes in powers of 1024 with the short names people use."""
    if n_bytes is None:
        return unknown()
    value, units = float(n_bytes), ("B", "KB", "MB", "GB", "TB")
    for unit in units:
        if abs(value) < 1024 or unit == units[-1]:
            return (f"{value:.0f}" if unit == "B" else _digits(value)) + THIN + unit
        value /= 1024
    raise AssertionError


def rate(n_bytes: float, dur_ns: float) -> str:
    """Bandwidth in GB/s (10^9 bytes)."""
    return f"{_digits(n_bytes / dur_ns)}{THIN}GB/s" if dur_ns > 0 else unknown()


def place(file: str, line: int) -> str:
    """File name and line, without the folder."""
    return f"{PurePath(file.replace(chr(92), '/')).name}:{line}"


def gap_cause(cause: int) -> str:
    """What the device waited for, in words."""
    return {
        GapCause.LOADER: _tr("data loader"),
        GapCause.SYNC: _tr("after a wait of the CPU"),
        GapCause.LAUNCH: _tr("launches"),
        GapCause.PYTHON: _tr("Python"),
        GapCause.COPY: _tr("blocking copy"),
        GapCause.COMPILE: _tr("compiling"),
        GapCause.COLLECTOR: _tr("garbage collector"),
        GapCause.COMMUNICATION: _tr("communication"),
        GapCause.ALLOC: _tr("memory allocation"),
        GapCause.UNKNOWN: _tr("cause unknown"),
    }.get(GapCause(cause), _tr("cause unknown"))


def kind_name(kind: int) -> str:
    """Kind of a slice in words."""
    names = (
        _tr("operator"),
        _tr("range"),
        _tr("step"),
        _tr("Python frame"),
        _tr("runtime call"),
        _tr("driver call"),
        _tr("kernel"),
        _tr("copy"),
        _tr("memset"),
        _tr("device range"),
        _tr("device sync record"),
        _tr("profiler overhead"),
        _tr("garbage collector"),
        _tr("other"),
    )
    return names[kind] if kind < len(names) else names[-1]


def verdict(word: str) -> str:
    """The verdict of the summary in one word."""
    return {
        "healthy": _tr("Healthy"),
        "host_bound": _tr("Host-bound"),
        "device_bound": _tr("Device-bound"),
        "input_bound": _tr("Input-bound"),
        "sync_bound": _tr("Sync-bound"),
        "communication_bound": _tr("Communication-bound"),
    }.get(word, _tr("Unknown"))


def elided(text: str, limit: int = 120) -> str:
    """One line of at most ``limit`` characters, the middle left out: kernel names carry sense at both ends."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = (limit - 1) * 2 // 3
    return line[:head] + "…" + line[-(limit - 1 - head) :]
