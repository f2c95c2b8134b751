"""What stands beside the events: devices, ranks, flags, the clock's base."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.importing.columns import EventColumns
from core.importing.numbers import LIMIT_NS
from core.trace import Device, TraceMeta
from core.words import visible

_SMALL = 4096  # characters of a header value worth keeping
_TORCH_KEYS = ("torch_version", "pytorch_version", "torch.version")
_VERSION = re.compile(r"\d+\.\d+[\w.+]*")


@dataclass(frozen=True)
class HeaderFacts:
    """Header of one file, read."""

    base_ns: int
    meta: TraceMeta


def read_header(header: Mapping[str, Any], columns: EventColumns) -> HeaderFacts:
    """Read the top-level keys of a trace; nothing in them is trusted to have the right type."""
    distributed = _mapping(header.get("distributedInfo"))
    base = header.get("baseTimeNanoseconds")
    base_ns = base if isinstance(base, int) and not isinstance(base, bool) and 0 <= base < LIMIT_NS else 0
    own = _mapping(header.get("steplens"))
    meta = TraceMeta(
        devices=_devices(header.get("deviceProperties")),
        torch_version=_torch_version(header),
        rank=_count(distributed.get("rank", header.get("rank"))),
        world_size=_count(distributed.get("world_size", header.get("world_size"))),
        record_shapes=_flag(header, "record_shapes"),
        with_stack=_flag(header, "with_stack"),
        profile_memory=_flag(header, "profile_memory"),
        display_unit=header["displayTimeUnit"] if isinstance(header.get("displayTimeUnit"), str) else None,
        simulated=bool(own.get("simulated")) or header.get("steplens_simulated") is True,
        header={str(k): v for k, v in header.items() if k not in ("traceEvents", "deviceProperties") and _is_small(v)},
    )
    return HeaderFacts(base_ns, meta)


def _devices(value: Any) -> tuple[Device, ...]:
    devices = []
    for position, entry in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(entry, dict):
            continue
        index = _count(entry.get("id"))
        devices.append(
            Device(
                index=position if index is None else index,
                name=visible(str(entry.get("name") or "")),
                total_memory_bytes=_count(entry.get("totalGlobalMem")),
                compute_major=_count(entry.get("computeMajor")),
                compute_minor=_count(entry.get("computeMinor")),
                sm_count=_count(entry.get("numSms")),
                properties=dict(entry),
            )
        )
    return tuple(devices)


def _torch_version(header: Mapping[str, Any]) -> str | None:
    """Version of torch where the header states it; it is never guessed from other fields."""
    own = _mapping(header.get("steplens"))
    for value in (own.get("torch"), own.get("torch_version"), *(header.get(key) for key in _TORCH_KEYS)):
        if isinstance(value, str) and _VERSION.match(value):
            return value[:64]
    packages = _mapping(_mapping(header.get("metadata")).get("platform")).get("pip_packages")
    found = _find_packages(header.get("metadata")) if packages is None else packages
    for package in found if isinstance(found, list) else ():
        if isinstance(package, str) and package.startswith("torch=="):
            return package[7:71]
    return None


def _find_packages(value: Any, depth: int = 0) -> Any:
    """List of packages somewhere in a metadata block (TraceLens writes one)."""
    if isinstance(value, dict) and depth < 5:
        if isinstance(value.get("pip_packages"), list):
            return value["pip_packages"]
        for held in value.values():
            found = _find_packages(held, depth + 1)
            if found is not None:
                return found
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _flag(header: Mapping[str, Any], key: str) -> bool | None:
    """Kineto writes a flag only when it is set; what is absent is not stated."""
    value = header.get(key)
    return bool(value) if isinstance(value, (bool, int)) else None


def _is_small(value: Any) -> bool:
    if isinstance(value, (int, float, bool)) or value is None:
        return True
    return len(str(value)) <= _SMALL
