"""A real trace N times over: as long as N recordings one after the other, and as varied as the one that it is made of.

    python -m benchmarks.repeated TRACE OUT.json --times 10

Each copy begins where the one before it ended. Numbers that link events (correlation, external ids, arrows, frames,
steps) are distinct in every copy, names and places are not. The metadata is written once, as Kineto does. Nothing is
drawn by chance: the same trace gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

GAP_US = 1000  # between two copies
# Numbers that are one event's own, or shared by events that belong together; each kind is counted by itself.
_LINKS = {
    "External id": "external", "external id": "external", "correlation": "external", "Ev Idx": "index",
    "Sequence number": "sequence", "Fwd thread id": "", "Python id": "python", "Python parent id": "python",
    "Python module id": "",
}  # fmt: skip
_STEP = re.compile(r"(ProfilerStep#)(\d+)\Z")
_Sizes = dict[str, int]


def write_repeated(trace: Path, out: BinaryIO, times: int) -> int:
    """Write a trace (plain or .gz, object or list form) so many times over, one event a line; returns the events.

    Raises
    ------
    ValueError
        When it is no valid JSON (`orjson.JSONDecodeError`) or holds no events.
    """
    with gzip.open(trace, "rb") if trace.suffix == ".gz" else trace.open("rb") as source:
        document: Any = orjson.loads(source.read())
    head: dict[str, Any] = {} if isinstance(document, list) else document
    events = document if isinstance(document, list) else head.pop("traceEvents", [])
    if not events:
        raise ValueError(f"{trace.name} holds no events")
    out.write(orjson.dumps(head)[:-1] + (b"," if head else b"") + b'"traceEvents":[')
    written, separator = 0, b"\n"
    for event in _copies(events, times):
        out.write(separator + orjson.dumps(event))
        written, separator = written + 1, b",\n"
    out.write(b"\n]}\n")
    return written


def _copies(events: list[dict[str, Any]], times: int) -> Iterator[dict[str, Any]]:
    """All copies, one after the other."""
    sizes = _sizes(events)
    period = _period_us(events)
    for number in range(times):
        shift = {kind: number * size for kind, size in sizes.items()}
        for event in events:
            if event.get("ph") != "M":
                yield _moved(event, number * period, shift)
            elif not number:
                yield event


def _period_us(events: Iterable[dict[str, Any]]) -> int:
    """From the beginning of a copy to that of the next, whole microseconds: those of a float stay exact."""
    timed = [event for event in events if event.get("ph") != "M" and "ts" in event]
    first = min(float(event["ts"]) for event in timed)
    return int(max(float(event["ts"]) + float(event.get("dur") or 0) for event in timed) - first) + GAP_US


def _sizes(events: Iterable[dict[str, Any]]) -> _Sizes:
    """How far the numbers of each kind go."""
    sizes: _Sizes = {}

    def see(kind: str, value: object) -> None:
        if kind and isinstance(value, int):
            sizes[kind] = max(sizes.get(kind, 0), value + 1)

    for event in events:
        for name, value in (event.get("args") or {}).items():
            see(_LINKS.get(name, ""), value)
        if event.get("ph") in ("s", "t", "f"):
            see(_arrows_of(event), event.get("id"))
        step = _STEP.match(str(event.get("name", "")))
        see("step", int(step[2]) if step else None)
    return sizes


def _arrows_of(event: dict[str, Any]) -> str:
    """Kind of an arrow's id: that of a launch is its correlation id."""
    return "external" if event.get("cat") == "ac2g" else f"arrow {event.get('cat')}"


def _moved(event: dict[str, Any], later_us: int, shift: _Sizes) -> dict[str, Any]:
    """One event of a copy."""
    moved = {**event, "ts": _later(event["ts"], later_us)} if "ts" in event else dict(event)
    args = event.get("args")
    if args:
        moved["args"] = {name: _shifted(value, shift.get(_LINKS.get(name, ""), 0)) for name, value in args.items()}
    if event.get("ph") in ("s", "t", "f") and "id" in event:
        moved["id"] = _shifted(event["id"], shift.get(_arrows_of(event), 0))
    step = _STEP.match(str(event.get("name", "")))
    if step:
        moved["name"] = f"{step[1]}{int(step[2]) + shift.get('step', 0)}"
    return moved


def _later(time: object, by_us: int) -> object:
    if isinstance(time, str):
        whole, point, rest = time.partition(".")
        return f"{int(whole) + by_us}{point}{rest}"
    return time + by_us if isinstance(time, (int, float)) else time


def _shifted(value: object, by: int) -> object:
    """A number of a link, in another copy; what says that there is none (0, -1) stays, and so does all else."""
    return value + by if by and isinstance(value, int) and value > 0 else value


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repeated")
    parser.add_argument("trace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    with options.out.open("wb") as file:
        written = write_repeated(options.trace, file, options.times)
    print(f"{written:,} events, {options.out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
