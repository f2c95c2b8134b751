"""Whose steps keep which devices: a file's, or those of each of its processes."""

from __future__ import annotations

from collections.abc import Mapping

from core.figures.lookup import View, distinct
from core.figures.steps import step_source
from core.tables import I32, StepTable


def step_units(view: View, steps: StepTable) -> tuple[I32, Mapping[int, tuple[int, ...]]]:
    """Unit of each step, and the devices whose time its steps share out.

    A unit is a file. Where several processes of one file run steps, and no two of them launch work on one device, each
    is a unit of its own: while the others work, or have ended, its devices say nothing about their steps.

    Returns
    -------
    tuple
        int32[n_steps], and the devices by unit, none for a unit without any.
    """
    unit = step_source(view, steps)
    devices = {one: view.devices_of_source(one) for one in distinct(unit)}
    process = view.trace.threads.process_id[steps.thread_id] if len(steps) else unit
    if len(distinct(process)) <= len(devices):
        return unit, devices
    links = view.trace.links
    launching = view.trace.threads.process_id[view.thread[links.launched_by]]
    device, unit = view.device[links.launched], unit.copy()
    for source in list(devices):
        own = distinct(process[unit == source])
        held = [tuple(distinct(device[launching == one])) for one in own]
        if len(own) < 2 or not all(held) or len({*sum(held, ())}) < sum(map(len, held)):
            continue
        del devices[source]
        for one, devices_of_one in zip(own, held, strict=True):
            number = len(view.trace.sources) + one
            unit[process == one], devices[number] = number, devices_of_one
    return unit, devices
