"""Fixes as diffs of the user's own code: found by syntax, written without touching any other character."""

from core.fixes.encodings import read_source
from core.fixes.files import AppliedEdit, apply_to_copy, apply_to_file
from core.fixes.propose import ProposedEdit, attempt, can_propose, propose

__all__ = [
    "AppliedEdit",
    "ProposedEdit",
    "apply_to_copy",
    "apply_to_file",
    "attempt",
    "can_propose",
    "propose",
    "read_source",
]
