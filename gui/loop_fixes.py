"""The changes that fixes mean for the user's code, derived off the GUI thread: of one suggestion, or of several."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from core.fixes import ProposedEdit
from core.fixes.of_run import attempt_for_run
from core.fixes.together import Joint, join
from core.run_folder import RunRecord
from core.suggestions import Suggestion
from core.trace import Trace
from gui import jobs
from gui.proposals import Proposal, proposal_for, without_deriving
from gui.session import Document

if TYPE_CHECKING:
    from gui.loop import Loop

CONTEXT_LINES = 3
DOTS = "⋯"
Key = tuple[int, str, str]


@dataclass(frozen=True)
class Derived:
    """What a job found: changes that build on one another, and how each file looks before and after.

    ``reason`` says why there is no change at all, where one suggestion was asked about.
    """

    joint: Joint = Joint()
    sides: tuple[tuple[Path, str, str], ...] = ()
    reason: str = ""


class Fixes(QObject):
    """Derives changes in worker threads: parsing a long file takes as long as it takes, and the window goes on."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._loop = loop
        self._known: dict[Key, Proposal] = {}
        self._asked: dict[Key, list[Callable[[Proposal], None]]] = {}  # being derived, and who waits for it

    def forget(self, documents: Iterable[Document]) -> None:
        """Keep only what is known of these documents: an id may be given to another one later."""
        ids = {id(document) for document in documents}
        self._known = {key: found for key, found in self._known.items() if key[0] in ids}
        self._asked = {key: then for key, then in self._asked.items() if key[0] in ids}

    def proposal(self, document: Document, index: int) -> Proposal:
        """The change of one fix, as far as it is known: where it is not, it is derived and `fixDerived` tells."""
        suggestion = document.suggestion(index)
        if suggestion is None:
            return Proposal(None, None)
        key = _key(document, suggestion)
        if key not in self._known and key not in self._asked:
            self._start(document, suggestion, key)
        if key not in self._known:
            return Proposal(None, None, pending=True)
        return self._known[key]

    def when_known(self, document: Document, index: int, then: Callable[[Proposal], None]) -> None:
        """Call with the change of one fix: at once where it is known, later where it must be derived."""
        found, suggestion = self.proposal(document, index), document.suggestion(index)
        if found.pending and suggestion is not None:
            self._asked[_key(document, suggestion)].append(then)
        else:
            then(found)

    def _start(self, document: Document, suggestion: Suggestion, key: Key) -> None:
        run = self._loop.run_of(document)
        found = without_deriving(run, suggestion, document.trace)
        if found is not None:
            self._known[key] = found
            return
        self._asked[key] = []
        jobs.run(
            document,
            partial(_derive_one, run, suggestion, document.trace),
            partial(self._take, document, suggestion, key),
            partial(self._failed, document, suggestion, key),
        )

    def _take(self, document: Document, suggestion: Suggestion, key: Key, found: Proposal) -> None:
        waiting = self._asked.pop(key, [])
        self._known[key] = found
        for then in waiting:
            then(found)
        suggestions = document.analysis.suggestions if document.analysis is not None else ()
        for index, now in enumerate(suggestions):  # it may stand elsewhere by now: they are sorted by price
            if now.key == suggestion.key:
                document.fixDerived.emit(index)

    def _failed(self, document: Document, suggestion: Suggestion, key: Key, error: BaseException) -> None:
        """A fault of ours costs this one change, and is shown."""
        self._take(document, suggestion, key, Proposal(None, None, str(error)))
        self._loop.raise_error(error)

    def derive(
        self,
        owner: QObject,
        document: Document,
        indices: Iterable[int],
        then: Callable[[Derived], None],
        on_progress: Callable[[float, str], None] | None = None,
    ) -> jobs.Job:
        """Derive the changes of several suggestions in one text, and find those that do not fit together.

        Parameters
        ----------
        owner
            Nothing is called back once it is gone.
        then
            Called in the GUI thread.
        on_progress
            Called with the share of the suggestions that were looked at.
        """
        found = [(index, s) for index in indices if (s := document.suggestion(index)) is not None]
        work = partial(_derive_joint, self._loop.run_of(document), found, document.trace)
        return jobs.run(owner, work, then, self._loop.raise_error, on_progress=on_progress)


def _key(document: Document, suggestion: Suggestion) -> Key:
    """What a change depends on: the line may be found later, and the run's folder too."""
    source = suggestion.source
    return id(document), suggestion.key, f"{source.line if source else 0}|{document.run_folder}|{id(document.run)}"


def _derive_one(run: RunRecord | None, suggestion: Suggestion, trace: Trace, progress: jobs.Progress) -> Proposal:
    progress(0.0, "")
    found = proposal_for(run, suggestion, trace)
    if found.edit is not None:
        _ = found.edit.diff  # is kept: comparing long files is slow as well
    return found


def _derive_joint(
    run: RunRecord | None, chosen: list[tuple[int, Suggestion]], trace: Trace, progress: jobs.Progress
) -> Derived:
    """Work of `Fixes.derive`; can be called off between two fixes."""
    count = 0

    def derive(of_run: RunRecord, suggestion: Suggestion, texts: Mapping[str, str]) -> tuple[ProposedEdit | None, str]:
        nonlocal count
        progress(min(count / (2 * len(chosen)), 1.0), "")
        count += 1
        return attempt_for_run(of_run, suggestion, texts)

    joint = join(run, chosen, derive) if run is not None else Joint()
    sides: dict[Path, tuple[str, str]] = {}
    for _, edit in joint.edits:
        progress(0.9, "")
        _ = edit.diff
        sides[edit.path] = (sides.get(edit.path, (edit.before, ""))[0], edit.after)
    reason = "" if joint.edits or len(chosen) != 1 else proposal_for(run, chosen[0][1], trace).reason
    return Derived(joint, tuple((path, *near_lines(*pair)) for path, pair in sides.items()), reason)


def near_lines(before: str, after: str) -> tuple[str, str]:
    """The changed lines with some around them; a line of dots stands for what lies between two changes."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new)  # blank lines are no anchors: a long file takes long with them
    left: list[str] = []
    right: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        if left:
            left.append(DOTS)
            right.append(DOTS)
        tag, start, end, start_after, _ = group[0]
        skip = 0
        while tag == "equal" and start + skip < end and not old[start + skip].strip():
            skip += 1  # blank lines at the top say nothing
        left += old[start + skip : group[-1][2]]
        right += new[start_after + skip : group[-1][4]]
    return "\n".join(left), "\n".join(right)
