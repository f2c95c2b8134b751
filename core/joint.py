"""What several fixes save together, priced by one replay (docs/replay.md)."""

from __future__ import annotations

from collections.abc import Iterable

from core.analysis import Analysis
from core.project import predicted_step
from core.replay.ahead import USELESS_REPLAY_PCT
from core.replay.replay import Replay
from core.trace import Trace


def predicted_together(trace: Trace, analysis: Analysis, chosen: Iterable[int]) -> float | None:
    """Sustained step predicted after these suggestions (positions), ns.

    Taken from the plan where they are its beginning; else the recorded step is replayed with all their effects at once,
    since savings of single fixes do not add up. None where one of them has no effect that can be replayed, or where the
    replay does not fit the trace.
    """
    wanted = sorted(set(chosen))
    known = predicted_step(analysis, wanted)
    now = analysis.figures.summary.sustained_step_ns
    if known is not None or now is None or not wanted:
        return known
    fixes = [analysis.suggestions[i] for i in wanted]
    if not all(fix.effects for fix in fixes):
        return None
    replay = Replay(trace, analysis.figures)
    if not replay or not replay.has_steps or replay.error_pct > USELESS_REPLAY_PCT:
        return None
    return now - replay.what_if([effect for fix in fixes for effect in fix.effects]).saved_ns
