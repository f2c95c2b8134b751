"""From a suggestion to the change of the user's own code, with words where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core.errors import TraceError
from core.fixes import ProposedEdit, attempt, can_propose, read_source
from core.fixes.of_run import attempt_for_run
from core.run_folder import RunRecord, kept_source
from core.suggestions import Suggestion
from core.trace import Trace

translate = QCoreApplication.translate


@dataclass(frozen=True)
class Proposal:
    """What a suggestion's fix does to the code of a run; ``edit`` is None where ``reason`` says why."""

    run: RunRecord | None
    edit: ProposedEdit | None
    reason: str = ""
    pending: bool = False  # it is being derived


def without_deriving(run: RunRecord | None, suggestion: Suggestion, trace: Trace) -> Proposal | None:
    """What can be said at once: there is no code at hand, or no rewrite. None where the code must be looked at."""
    if run is not None and can_propose(suggestion.rule_id):
        return None
    if run is None and _example_file(suggestion, trace) is not None:
        return None
    return proposal_for(run, suggestion, trace)


def proposal_for(run: RunRecord | None, suggestion: Suggestion, trace: Trace | None = None) -> Proposal:
    """Derive the change from the run's own copies of its sources, or from the example's that a sample trace is of."""
    if run is None:
        edit = _of_example(suggestion, trace) if trace is not None else None
        if edit is not None:
            return Proposal(None, edit)
        return Proposal(
            None, None, translate("proposals", "This trace was not recorded here, so its code is not at hand.")
        )
    if not can_propose(suggestion.rule_id):
        return Proposal(
            run, None, translate("proposals", "This fix is not a mechanical change: it needs your judgement.")
        )
    edit, reason = attempt_for_run(run, suggestion)
    if edit is not None:
        return Proposal(run, edit)
    words = reason or translate("proposals", "the file is not among those that the run kept")
    frame = translate("proposals", "The change cannot be derived from the code: {reason}.")
    return Proposal(run, None, frame.format(reason=words))


def _example_file(suggestion: Suggestion, trace: Trace) -> Path | None:
    if suggestion.source is None or not can_propose(suggestion.rule_id):
        return None
    return kept_source(None, trace, suggestion.source.file)


def _of_example(suggestion: Suggestion, trace: Trace) -> ProposedEdit | None:
    """The change of the example's own code; it is shown, and can be run where the example is profiled."""
    file = _example_file(suggestion, trace)
    if file is None:
        return None
    try:
        return attempt(read_source(file), suggestion, file)[0]
    except TraceError:
        return None
