"""Boxes and columns of lanes, kept while the view moves inside the stretch they were made for.

Bins are absolute and powers of two, so what is kept shows the same pixels as what would be made anew.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from core.lanes import Lane
from core.lod import Boxes, fold
from gui.timeline.frame import Frame

PAD_SHARE = 0.4  # of the view, made on each side beyond it

_Stretch = tuple[int, float, float, int]  # width of a bin, start and end, ns; identity of the looks
_boxes: WeakKeyDictionary[Lane, tuple[_Stretch, NDArray[np.uint8], Boxes]] = WeakKeyDictionary()


def fold_kept(lane: Lane, keys: NDArray[np.uint8], frame: Frame) -> Boxes:
    """Boxes of a lane for a frame, as `core.lod.fold` makes them; some of them lie outside the view."""
    kept = _boxes.get(lane)
    if kept is not None:
        bin_ns, start, end, looks = kept[0]
        if bin_ns == frame.bin_ns and looks == id(keys) and start <= frame.start_ns and frame.end_ns <= end:
            return kept[2]
    pad = (frame.end_ns - frame.start_ns) * PAD_SHARE
    start, end = frame.start_ns - pad, frame.end_ns + pad
    made = fold(lane, keys, start, end, frame.bin_ns)
    _boxes[lane] = ((frame.bin_ns, start, end, id(keys)), keys, made)
    return made


def in_view(
    boxes: Boxes, frame: Frame, *, min_px: float = 0.0, beyond_px: float = 2.0
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Positions of the boxes in view, their left borders and widths, px; cut ``beyond_px`` outside the lanes."""
    x0, x1 = frame.x(boxes.start_ns), frame.x(boxes.end_ns)
    seen = np.flatnonzero((x1 > frame.left_px) & (x0 < frame.width_px))
    left = np.maximum(x0[seen], frame.left_px - beyond_px)
    width = np.maximum(np.minimum(x1[seen], frame.width_px + beyond_px) - left, min_px)
    return seen, left, width
