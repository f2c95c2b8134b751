"""From a suggestion to the change of the user's own code, with words where there is none."""

from __future__ import annotations

import re
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
        return _of_example(suggestion, trace)
    if not can_propose(suggestion.rule_id):
        return Proposal(
            run, None, translate("proposals", "This fix is not a mechanical change: it needs your judgement.")
        )
    edit, reason = attempt_for_run(run, suggestion)
    if edit is not None:
        return Proposal(run, edit)
    words = reason or translate("proposals", "the file is not among those that the run kept")
    return Proposal(run, None, _underivable(words))


def _underivable(reason: str) -> str:
    frame = translate("proposals", "The change cannot be derived from the code: {reason}.")
    return frame.format(reason=reason.rstrip("."))


def _example_file(suggestion: Suggestion, trace: Trace) -> Path | None:
    files = _example_files(suggestion, trace)
    return files[0] if files else None


def _example_files(suggestion: Suggestion, trace: Trace) -> list[Path]:
    """The example's file that a suggestion names, and the stage's script, where the loss is built."""
    if suggestion.source is None or not can_propose(suggestion.rule_id):
        return []
    stage = re.search(r"stage\d+", trace.path.name) if trace.sources else None
    names = [suggestion.source.file, *([f"{stage[0]}.py"] if stage is not None else [])]
    found = (kept_source(None, trace, name) for name in dict.fromkeys(names))
    return [path for path in found if path is not None]


def _of_example(suggestion: Suggestion, trace: Trace | None) -> Proposal:
    """The change of the example's own code; it is shown, and can be run where the example is profiled."""
    reason = ""
    for file in _example_files(suggestion, trace) if trace is not None else ():
        try:
            edit, why = attempt(read_source(file), suggestion, file)
        except TraceError as error:
            edit, why = None, str(error)
        if edit is not None:
            return Proposal(None, edit)
        reason = reason or why
    if reason:
        return Proposal(None, None, _underivable(reason))
    if not can_propose(suggestion.rule_id):
        return Proposal(
            None, None, translate("proposals", "This fix is not a mechanical change: it needs your judgement.")
        )
    return Proposal(None, None, translate("proposals", "This trace was not recorded here, so its code is not at hand."))
