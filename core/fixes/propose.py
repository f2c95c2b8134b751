"""From a suggestion to a diff of the user's own code."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from core.fixes.line_blocks import line_blocks, lines_of
from core.fixes.rewrites import arguments, cross_entropy, gathered, hoist, losses, normalise, step, switches
from core.fixes.source_text import NotApplicable, Place, SourceText
from core.suggestions import Suggestion

Rewrite = Callable[[SourceText, Place], tuple[str, str]]  # edits the text; returns what it does, and its risk

_FEW_BYTES = 64  # as the rule on copies from pageable memory calls them
# The first one that fits is proposed.
REWRITES: Mapping[str, tuple[Rewrite, ...]] = {
    "constant-copied-each-step": (hoist.constants_once,),
    "object-built-in-step": (hoist.objects_once,),
    "control-flow-on-device-tensor": (step.assert_on_device,),
    "scalar-read-back": (gathered.sum_on_device, gathered.report_seldom, step.assert_on_device),
    "tensor-read-back": (gathered.sum_on_device, gathered.report_seldom),
    "host-list-index": (step.range_to_arange,),
    "host-index-tensor": (step.range_to_arange, hoist.constants_once),
    "explicit-synchronize": (step.no_synchronize,),
    "debug-mode-left-on": (step.no_anomaly_mode,),
    "pageable-batch-copy": (arguments.copy_without_blocking,),
    "blocking-pinned-copy": (arguments.copy_without_blocking,),
    "copy-not-overlapped": (arguments.copy_without_blocking,),
    "loader-without-workers": (arguments.loader_with_workers,),
    "loader-starves-step": (arguments.loader_prefetch, arguments.loader_with_workers),
    "loader-workers-recreated": (arguments.keep_workers,),
    "gradients-zeroed": (arguments.zero_to_none,),
    "single-tensor-optimizer": (arguments.optimizer_in_one_kernel,),
    "hand-written-composite-op": (losses.known_function,),
    "unfused-cross-entropy": (cross_entropy.cross_entropy, losses.known_function),
    "float-batch-copied": (normalise.in_one_pass,),
    "compile-without-gain": (switches.no_compile,),
    "launch-bound": (switches.compile_model,),
    "fusible-kernel-sequence": (switches.compile_model,),
    "fp32-matmul-without-tf32": (switches.tf32,),
    "tensor-cores-unused": (switches.autocast,),
    "layout-conversions": (switches.channels_last,),
    "algorithm-search-each-step": (switches.cudnn_benchmark,),
}
# What stands at a line of its own each time: one that was left would go on costing what the first did.
_LINE_BY_LINE = frozenset({
    "constant-copied-each-step", "object-built-in-step", "control-flow-on-device-tensor", "scalar-read-back",
    "tensor-read-back", "host-list-index", "host-index-tensor", "explicit-synchronize", "pageable-batch-copy",
    "blocking-pinned-copy", "copy-not-overlapped",
})  # fmt: skip


@dataclass(frozen=True)
class ProposedEdit:
    """A change of one file of the user's, not yet made."""

    path: Path
    rule_id: str
    before: str
    after: str
    summary: str  # what it does, one sentence
    risk: str  # what could go wrong

    @cached_property
    def diff(self) -> str:
        """Unified diff with three lines of context."""
        name = self.path.name
        sides = lines_of(self.before), lines_of(self.after)
        return "".join(f"{line}\n" for line in difflib.unified_diff(*sides, f"a/{name}", f"b/{name}", lineterm=""))

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """Line numbers (of the old text) that change."""
        changed: list[int] = []
        for tag, start, end, _, _ in line_blocks(lines_of(self.before), lines_of(self.after)):
            if tag != "equal":
                changed += range(start + 1, max(end, start + 1) + 1)
        return tuple(changed)


def can_propose(rule_id: str) -> bool:
    """Whether there is a rewrite for a rule at all."""
    return rule_id in REWRITES


def propose(source_text: str, suggestion: Suggestion, path: Path | str) -> ProposedEdit | None:
    """Return the change of a file that a suggestion asks for; None where it cannot be derived safely.

    Parameters
    ----------
    source_text
        The file's text as it was when the run was recorded, line ends included (see `core.fixes.read_source`).
    suggestion
        Its rule decides what is rewritten, its source where.
    path
        The file, for the diff and for applying.

    Returns
    -------
    ProposedEdit | None
        Valid Python that differs from the text only where the fix needs it.
    """
    edits, _ = attempt(source_text, suggestion, path)
    return edits


def attempt(source_text: str, suggestion: Suggestion, path: Path | str) -> tuple[ProposedEdit | None, str]:
    """Like `propose`, with the reason why nothing could be derived.

    Where a fault stands at several lines of a function, each is changed; the summary tells of those that cannot be.
    """
    place, rewrites = place_of(suggestion), _rewrites(suggestion)
    also = suggestion.source.also if suggestion.source is not None and suggestion.rule_id in _LINE_BY_LINE else ()
    places = (place, *(replace(place, line=line, candidates=()) for line in also))
    after, done, left = source_text, list[tuple[str, str]](), dict[int, str]()
    for one in places:
        line = _moved(source_text, after, one.line) if done else one.line
        if line is None:
            continue  # changed with another
        made, reason = _at(after, replace(one, line=line), rewrites)
        if made is None:
            left[one.line] = reason
        else:
            after, summary, risk = made
            done.append((summary, risk))
    if not done:
        return None, left[place.line]
    told = {line: f": {reason}" if not reason.startswith("no ") else "" for line, reason in left.items()}
    kept = [f"Line {line} stays as it is{why}." for line, why in told.items()]
    summary, risk = (" ".join(dict.fromkeys(texts)) for texts in ([s for s, _ in done] + kept, [r for _, r in done]))
    return ProposedEdit(Path(path), suggestion.rule_id, source_text, after, summary, risk), ""


def _at(source_text: str, place: Place, rewrites: tuple[Rewrite, ...]) -> tuple[tuple[str, str, str] | None, str]:
    """Text after the first rewrite that fits at a place, what it does, and its risk; or the reason why none does."""
    reasons: list[str] = []
    mark = "\ufeff" if source_text.startswith("\ufeff") else ""
    for rewrite in rewrites:
        try:
            source = SourceText(source_text.removeprefix(mark))
            summary, risk = rewrite(source, place)
            after = mark + source.result() if source.edited else source_text
        except NotApplicable as reason:
            reasons.append(str(reason))
            continue
        except (RecursionError, MemoryError):  # so Python calls what it cannot read or walk through
            reasons.append("the file's code is nested too deeply to be looked through")
            continue
        if after != source_text:
            return (after, summary, risk), ""
    telling = [r for r in reasons if not r.startswith("no ")] or reasons  # what was found, rather than what was not
    return None, "; ".join(dict.fromkeys(telling)) or "no mechanical change is known for this"


def _moved(before: str, after: str, line: int) -> int | None:
    """Number that a line of a text has after changes elsewhere; None where it was changed itself."""
    for tag, start, end, now, _ in line_blocks(lines_of(before), lines_of(after)):
        if start < line <= end:
            return line - start + now if tag == "equal" else None
    return None


def _rewrites(suggestion: Suggestion) -> tuple[Rewrite, ...]:
    """What to try for a suggestion: a few numbers are no batch, and a loader's pinned memory is no help for them."""
    few = float(suggestion.values.get("each_bytes", math.inf)) <= _FEW_BYTES
    if few and suggestion.rule_id == "pageable-batch-copy":
        return (hoist.constants_once,)
    return REWRITES.get(suggestion.rule_id, ())


def place_of(suggestion: Suggestion) -> Place:
    """Where a suggestion points."""
    source = suggestion.source
    if source is None:
        return Place()
    return Place(source.function, source.line, source.exact, source.candidates)
