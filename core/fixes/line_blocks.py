"""Which lines of a text became which of another; fast for a long file with few changes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

Block = tuple[str, int, int, int, int]  # as `difflib.SequenceMatcher.get_opcodes` has them


def lines_of(text: str) -> list[str]:
    """Lines of a source text as Python counts them: a form feed, or a separator of Unicode's, ends none."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def line_blocks(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Return the opcodes between two lists of lines.

    What both begin and end with is set aside first, and lines that stand everywhere (blank ones, above all) are no
    anchors in what is left: with them, the time grows with the square of the file.
    """
    most = min(len(before), len(after))
    head = next((k for k in range(most) if before[k] != after[k]), most)
    tail = next((k for k in range(most - head) if before[-1 - k] != after[-1 - k]), most - head)
    matcher = difflib.SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail])
    blocks: list[Block] = [("equal", 0, head, 0, head)] if head else []
    blocks += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes()]
    if tail:
        blocks.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return blocks
