"""From simulated programs to replays, and from the names of faults to the effects of their fixes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from core.figures.compute import compute_figures
from core.importing import open_trace
from core.kinds import SliceKind
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from core.trace import Trace
from tests.simulator import Run
from tests.simulator.random_programs import FaultKind, RandomProgram


def replay_of(run: Run, folder: Path) -> tuple[Trace, Replay]:
    """Write a run's trace, open it, and replay it."""
    trace = open_trace(run.write(folder / "trace.json"))
    return trace, Replay(trace, compute_figures(trace))


def named(trace: Trace, name: str, kind: SliceKind = SliceKind.RANGE) -> tuple[int, ...]:
    """Slices of a name and kind."""
    slices = trace.slices
    return tuple(int(i) for i in np.flatnonzero((slices.name_id == trace.strings.id_of(name)) & (slices.kind == kind)))


def device_work_under(trace: Trace, ranges: Iterable[int]) -> tuple[int, ...]:
    """Device work launched inside ranges, by the same thread."""
    slices, links = trace.slices, trace.links
    thread = trace.tracks.thread_id[slices.track_id]
    found: list[int] = []
    for one in ranges:
        start = slices.start_ns[links.launched_by]
        inside = (start >= slices.start_ns[one]) & (start < trace.end_ns[one])
        inside &= thread[links.launched_by] == thread[one]
        found += links.launched[inside].tolist()
    return tuple(found)


def effects_of(trace: Trace, program: RandomProgram, names: Iterable[str]) -> list[Effect]:
    """What the fixes of some of a program's faults do to the graph."""
    effects = []
    for fault in program.faults:
        if fault.name not in names:
            continue
        ranges = named(trace, fault.name)
        assert ranges
        if fault.kind is FaultKind.COMPUTE_STREAM:
            effects.append(Effect(EffectKind.OVERLAP_COPY, ranges))
        elif fault.kind is FaultKind.PAGEABLE:
            effects.append(Effect(EffectKind.MAKE_ASYNC, ranges))
        elif fault.kind is FaultKind.CHAIN:
            effects.append(Effect(EffectKind.FUSE, ranges, 1.0))
        elif fault.kind is FaultKind.SLOW_KERNELS:
            effects.append(Effect(EffectKind.SCALE_DEVICE, device_work_under(trace, ranges), 0.5))
        else:
            effects.append(Effect(EffectKind.REMOVE_WORK, ranges))
    return effects
