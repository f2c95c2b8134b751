"""The replay of a large trace, made while the rules look in a fork for what it is to price."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.figures.lookup import view_of
from core.figures.model import Figures
from core.figures.verdict import DEVICE_BOUND_SHARE, MOSTLY_DEVICE_SHARE, is_start_up
from core.importing.aside import Alongside
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from core.trace import Trace

USELESS_REPLAY_PCT = 50.0  # a replay further off than this gives no savings, nor a step time: only bounds are left
_NEAR = 0.05  # of the pace: the verdict's own share is of another mean


def replay_ahead(trace: Trace, figures: Figures, begin: bool) -> Callable[[], Replay]:
    """Begin the replay in a thread, or make it when it is asked for.

    Parameters
    ----------
    begin
        Whether this process has nothing else to do meanwhile. Beside rules that run here a thread gains nothing, and
        both together need more memory than one after the other.

    Returns
    -------
    What waits for the replay, or makes it where there is no thread; raises what making it has raised.
    """
    return Alongside(partial(_make, trace, figures), worthwhile=begin).result


def _make(trace: Trace, figures: Figures) -> Replay:
    replay = Replay(trace, figures)
    if replay and is_usable(replay, figures):
        _ = replay.held_out_pct  # kept for the summary
    return replay


def is_usable(replay: Replay, figures: Figures) -> bool:
    """Whether a step time can be taken from a replay."""
    return replay.has_steps and replay.error_pct <= USELESS_REPLAY_PCT and not is_start_up(figures.budget)


def quicker_device_pct(trace: Trace, figures: Figures, replay: Replay) -> float | None:
    """What the loop would gain if its device work took half the time, %: does the device set the pace at all?

    None where nothing depends on it: the device works far more or less than most of the time, or nothing is repeated.
    """
    busy = (figures.budget.busy_ns or 0) / replay.step_ns
    if not replay.repeated or not MOSTLY_DEVICE_SHARE - _NEAR <= busy <= DEVICE_BOUND_SHARE + _NEAR:
        return None
    half = Effect(EffectKind.SCALE_DEVICE, tuple(view_of(trace).work.tolist()), 0.5)
    return 100.0 * replay.what_if([half]).saved_ns / replay.step_ns
