"""The change that a suggestion means for the code that a run kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.errors import TraceError
from core.fixes.encodings import read_source
from core.fixes.propose import ProposedEdit, attempt, can_propose
from core.run_folder import RunRecord
from core.suggestions import Suggestion

Derive = Callable[[RunRecord, Suggestion, Mapping[str, str]], tuple[ProposedEdit | None, str]]


def attempt_for_run(
    run: RunRecord, suggestion: Suggestion, texts: Mapping[str, str] | None = None
) -> tuple[ProposedEdit | None, str]:
    """Return the edit of the user's own file (derived from the run's copy of it), or why there is none ("" unknown).

    The place found is tried first, then the script and the other sources: a loader is often built in another file than
    the one that waits for it. ``texts`` holds, by path of the user's file, what stands in place of the run's copy: the
    text that other fixes have already changed.
    """
    texts = texts or {}
    if not can_propose(suggestion.rule_id):
        return None, ""
    files = [suggestion.source.file] if suggestion.source else []
    script = str(run.spec.get("script") or "")
    reasons: list[str] = []
    for file in dict.fromkeys([*files, *([script] if script else []), *run.sources]):
        copy, original = run.copy_of(file), run.original_of(file)
        if copy is None or original is None:
            continue
        try:
            edit, why = attempt(texts.get(str(original)) or read_source(copy), suggestion, original)
        except TraceError as error:
            reasons.append(str(error))
            continue
        if edit is not None:
            return edit, ""
        reasons.append(why)
    return None, reasons[0] if reasons else ""


def edits_for_run(run: RunRecord | None, suggestions: tuple[Suggestion, ...]) -> dict[int, ProposedEdit]:
    """Edits by position of the suggestion, for those whose fix can be derived; empty for a trace from elsewhere."""
    if run is None:
        return {}
    found = ((i, attempt_for_run(run, s)[0]) for i, s in enumerate(suggestions))
    return {i: edit for i, edit in found if edit is not None}


def changed_lines(diff: str) -> list[str]:
    """Lines of a unified diff without its head; ``@@`` lines become three dots between two changes."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    dots = ["⋯" if line.startswith("@@") else line for line in lines]
    return dots[1:] if dots[:1] == ["⋯"] else dots
