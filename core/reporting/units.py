"""Quantities as people read them."""

from __future__ import annotations

UNKNOWN = "unknown"


def duration(time_ns: float | None, digits: int = 3) -> str:
    """Return a duration with the unit that fits it.

    Parameters
    ----------
    time_ns
        Nanoseconds; None is unknown.
    digits
        Significant digits.
    """
    if time_ns is None:
        return UNKNOWN
    size = abs(time_ns)
    for limit, divisor, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms"), (float("inf"), 1e9, "s")):
        # 999.96 us rounds to 1000 us: let the next unit show it
        if float(f"{size / divisor:.{digits}g}") < 1000 or limit == float("inf"):
            return f"{significant(time_ns / divisor, digits)} {unit}"
    return UNKNOWN


def significant(value: float, digits: int = 3) -> str:
    """Return a number with that many significant digits, without exponent, thousands separated."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole >= digits:
        return f"{round(value):,}"
    if whole:
        text = f"{value:,.{digits - whole}f}"
    else:
        text = f"{value:.{digits}g}"
        if "e" in text:
            text = f"{value:.12f}".rstrip("0")
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(value: float | None) -> str:
    """Return a share given in percent; whole percents from 10 on."""
    if value is None:
        return UNKNOWN
    if 0 < abs(value) < 0.05:
        return "<0.1 %" if value > 0 else ">-0.1 %"
    return f"{value:.0f} %" if abs(value) >= 9.95 or value == 0 else f"{value:.1f} %"


def count(value: float | None) -> str:
    """Return a count, or a mean count with one decimal where it is no whole number."""
    if value is None:
        return UNKNOWN
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 0.1 else f"{value:.2g}"


def size(value_bytes: float | None) -> str:
    """Return a size in binary units."""
    if value_bytes is None:
        return UNKNOWN
    value = float(value_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{significant(value)} {unit}"
        value /= 1024
    return f"{significant(value)} TiB"


def measure(value: float | int | str | None, unit: str) -> str:
    """Return an evidence's value with its unit, whatever unit the rule chose."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    scale = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}.get(unit)
    if scale is not None:
        return duration(value * scale)
    if unit in ("%", "percent"):
        return percent(value)
    if unit in ("bytes", "B"):
        return size(value)
    number = count(value) if isinstance(value, int) else significant(value)
    return f"{number} {unit}".strip()
