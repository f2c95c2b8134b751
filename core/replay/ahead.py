"""The replay of a large trace, made in a thread while the rules look for what it is to price."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core import memory
from core.figures.model import Figures
from core.figures.verdict import is_start_up
from core.importing.aside import Alongside
from core.replay.replay import Replay
from core.trace import Trace

USELESS_REPLAY_PCT = 50.0  # a replay further off than this gives no savings, nor a step time: only bounds are left


def replay_ahead(trace: Trace, figures: Figures) -> Callable[[], Replay]:
    """Begin the replay of a large trace.

    Returns
    -------
    What waits for the replay, or makes it where there is no thread; raises what making it has raised.
    """
    return Alongside(partial(_make, trace, figures), worthwhile=len(trace.slices) >= memory.MANY).result


def _make(trace: Trace, figures: Figures) -> Replay:
    replay = Replay(trace, figures)
    if replay and is_usable(replay, figures):
        _ = replay.held_out_pct  # kept for the summary
    return replay


def is_usable(replay: Replay, figures: Figures) -> bool:
    """Whether a step time can be taken from a replay."""
    return replay.has_steps and replay.error_pct <= USELESS_REPLAY_PCT and not is_start_up(figures.budget)
