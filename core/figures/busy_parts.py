"""What the busy part of a step is made of: computing, and what ran while nothing was computed."""

from __future__ import annotations

from core.figures.model import Figures


def busy_parts(figures: Figures) -> dict[str, float]:
    """Split the busy time of the budget; the parts add up to it.

    Parameters
    ----------
    figures
        Figures of a trace with device work.

    Returns
    -------
    dict
        ``computing``, ``communication_only`` and ``copies_only``, ns per step; parts of no time are left out, and
        computing is called ``busy`` where it is all. Empty where the busy time is unknown. The last two are the exposed
        communication and copies of docs/figures.md.
    """
    busy = figures.budget.busy_ns
    if busy is None:
        return {}
    found = {"communication_only": "exposed_communication_ns", "copies_only": "exposed_copy_ns"}
    parts, left = {}, float(busy)
    for name, key in found.items():
        values = figures.extra.get(key)
        part = min(float(values[0]), left) if values is not None and len(values) else 0.0
        if part > 0:
            parts[name] = part
            left -= part
    return {"computing" if parts else "busy": left, **parts}
