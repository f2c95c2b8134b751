"""The JSON contract, written out: what docs/headless.md promises, checked key by key."""

from __future__ import annotations

from typing import Any

NUMBER, TEXT, COUNT, FLAG = "number", "text", "count", "flag"


class Null:
    """The value may be null."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class Each:
    """A list, or with ``keys`` an object of free names, of values of one kind."""

    def __init__(self, kind: Any, keys: bool = False) -> None:
        self.kind, self.keys = kind, keys


SOURCE = Null({"file": TEXT, "line": COUNT, "function": TEXT})
SUGGESTION = {
    "rule": TEXT,
    "title": TEXT,
    "severity": ("high", "medium", "low"),
    "occurrences": COUNT,
    "saving_us": Null(NUMBER),
    "saving_pct": Null(NUMBER),
    "basis": Null(("replayed", "measured", "bounded", "rough")),
    "steps": Each(COUNT),
    "source": SOURCE,
    "evidence": Each({"label": TEXT, "value": Null((NUMBER, TEXT)), "unit": TEXT, "slices": Each(COUNT)}),
    "fix": {"summary": TEXT, "before": TEXT, "after": TEXT, "url": TEXT},
}
TRACE = {
    "path": TEXT,
    "events": COUNT,
    "span_us": NUMBER,
    "devices": Each({"index": COUNT, "name": TEXT}),
    "torch": Null(TEXT),
    "rank": Null(COUNT),
    "world_size": Null(COUNT),
    "has_gpu": FLAG,
    "has_stacks": FLAG,
    "has_shapes": FLAG,
    "has_memory": FLAG,
}
SUMMARY = {
    "verdict": (
        "healthy",
        "host_bound",
        "device_bound",
        "input_bound",
        "sync_bound",
        "communication_bound",
        "unknown",
    ),
    "steps": COUNT,
    "step_us": Null(NUMBER),
    "step_us_median": Null(NUMBER),
    "device_step_us": Null(NUMBER),
    "period_us": Null(NUMBER),
    "sustained_step_us": Null(NUMBER),
    "replay_error_pct": Null(NUMBER),
    "gpu_busy_pct": Null(NUMBER),
    "sync_points_per_step": Null(NUMBER),
    "sync_wait_us_per_step": Null(NUMBER),
    "kernels_per_step": Null(NUMBER),
    "peak_memory_bytes": Null(COUNT),
}
PARTS = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other")
ANALYSIS = {
    "format": ("steplens.analysis/1",),
    "trace": TRACE,
    "import": {"read": COUNT, "kept": COUNT, "dropped": Each(COUNT, keys=True), "repaired": Each(COUNT, keys=True)},
    "steps": Each(
        {
            "name": TEXT,
            "inferred": FLAG,
            "start_us": NUMBER,
            "dur_us": NUMBER,
            "gpu_busy_us": Null(NUMBER),
            "sync_wait_us": Null(NUMBER),
            "gpu_lag_us": Null(NUMBER),
            "breakdown_us": {part: Null(NUMBER) for part in PARTS},
        }
    ),
    "summary": SUMMARY,
    "sync_points": Each(
        {
            "id": COUNT,
            "call": TEXT,
            "kind": ("stream", "device", "event", "memcpy", "alloc"),
            "start_us": NUMBER,
            "dur_us": NUMBER,
            "wait_us": Null(NUMBER),
            "step": Null(COUNT),
            "thread": Null(TEXT),
            "op": Null(TEXT),
            "direction": Null(("HtoD", "DtoH", "DtoD")),
            "range": Null(TEXT),
            "source": SOURCE,
        }
    ),
    "suggestions": Each(SUGGESTION),
    "plan": Each({"rules": Each(TEXT), "predicted_step_us": NUMBER}),
    "rules": Each({"rule": TEXT, "outcome": ("found", "clean", "not_checked", "failed"), "reason": Null(TEXT)}),
    "further": {
        "devices": Each(
            {
                "device": COUNT,
                "busy_pct": NUMBER,
                "own_start_us": NUMBER,
                "own_span_us": NUMBER,
                "own_busy_pct": NUMBER,
                "streams": Each({"stream": Null(COUNT), "busy_pct": NUMBER}),
            }
        ),
        "step_threads": Each({"thread": TEXT, "steps": COUNT, "step_us": NUMBER}),
        "steps_covered_us": Null(NUMBER),
        "held_out_error_pct": Null(NUMBER),
        "budget": Null(
            {
                "basis": ("period", "step", "window"),
                "steps": COUNT,
                "time_us": NUMBER,
                "busy_us": Each(NUMBER, keys=True),
                "idle_us": Each(NUMBER, keys=True),
            }
        ),
        "launches": Null(
            {"calls": COUNT, "call_us_median": NUMBER, "delay_us_median": NUMBER, "queue_depth_max": COUNT}
        ),
    },
}
SIDE = Null(
    {
        "calls": COUNT,
        "total_us": NUMBER,
        "self_us": NUMBER,
        "calls_per_step": Null(NUMBER),
        "total_us_per_step": Null(NUMBER),
        "self_us_per_step": Null(NUMBER),
    }
)
TABLE = Each(
    {"name": TEXT, "state": ("new", "gone", "changed", "same"), "delta_us": NUMBER, "before": SIDE, "after": SIDE}
)
COMPARISON = {
    "format": ("steplens.comparison/1",),
    "before": {"trace": TRACE, "summary": SUMMARY},
    "after": {"trace": TRACE, "summary": SUMMARY},
    "step_change_pct": Null(NUMBER),
    "step_change_of": Null(("wall", "sustained", "period", "host")),
    "outcome": ("faster", "slower", "same", "unclear", "unknown"),
    "noise": Each(("repeat", "same_code", "spread", "machine", "pace", "recording")),
    "wall_step_us": {"before": Null(NUMBER), "after": Null(NUMBER)},
    "differs": Each({"what": TEXT, "before": TEXT, "after": TEXT}),
    "recording": Null({"before": Each(TEXT), "after": Each(TEXT)}),
    "cut_off": Each(("before", "after")),
    "per_step": FLAG,
    "operators": TABLE,
    "kernels": TABLE,
    "ranges": TABLE,
    "sync_points": TABLE,
    "suggestions": Each({"state": ("new", "gone", "same"), **SUGGESTION}),
}


def check(value: Any, kind: Any, at: str = "$") -> None:
    """Raise an AssertionError naming the place where a value is not of its kind."""
    if isinstance(kind, Null):
        if value is not None:
            check(value, kind.kind, at)
    elif isinstance(kind, Each):
        assert isinstance(value, dict if kind.keys else list), f"{at}: {type(value)}"
        for key, item in value.items() if kind.keys else enumerate(value):
            check(item, kind.kind, f"{at}[{key}]")
    elif isinstance(kind, dict):
        assert isinstance(value, dict), f"{at}: {value!r}"
        assert list(value) == list(kind), f"{at}: {set(value) ^ set(kind) or 'order of keys'}"
        for key, item in kind.items():
            check(value[key], item, f"{at}.{key}")
    elif isinstance(kind, tuple) and NUMBER not in kind:
        assert value in kind, f"{at}: {value!r} is none of {kind}"
    else:
        assert _is(value, kind), f"{at}: {value!r} is no {kind}"


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_is(value, one) for one in kind)
    if kind == FLAG:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == COUNT:
        return isinstance(value, int)
    if kind == NUMBER:
        return isinstance(value, int | float)
    return isinstance(value, str)
