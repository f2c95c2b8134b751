"""From a suggestion to the change of the user's own code, with words where there is none."""

from __future__ import annotations

from dataclasses import dataclass

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


def _of_example(suggestion: Suggestion, trace: Trace) -> ProposedEdit | None:
    """The change of the example's own code; it is shown, and can be run where the example is profiled."""
    file = kept_source(None, trace, suggestion.source.file) if suggestion.source is not None else None
    if file is None or not can_propose(suggestion.rule_id):
        return None
    try:
        return attempt(read_source(file), suggestion, file)[0]
    except TraceError:
        return None
