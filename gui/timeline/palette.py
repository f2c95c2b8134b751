"""Colours of the timeline. Red means waiting and nothing else, so every other colour stays calm."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from core.kinds import SliceKind
from core.lod import LEVELS
from core.tables import FLAG_COMMUNICATION
from core.trace import Trace
from gui import theme


class Look(IntEnum):
    """What a slice looks like when coloured by kind. The first fourteen are `SliceKind` itself."""

    COMMUNICATION = 14
    OP_2 = 15  # two more shades for operators and kernels, so that neighbours can be told apart
    OP_3 = 16
    KERNEL_2 = 17
    KERNEL_3 = 18
    BACKWARD = 19
    OPTIMIZER = 20
    LOADER = 21
    MODULE = 22
    COPY_OP = 23


HUES = 32  # looks from here on are the hues for colouring by name

# look -> (dark theme, light theme). Kinds that are not here take their colours from `gui.theme`; calls are less orange
# than there, since waits are drawn right on them, and copies dark enough for a white label.
_FILLS: dict[int, tuple[str, str]] = {
    SliceKind.RUNTIME: ("#a5803c", "#ecd6a2"),
    SliceKind.DRIVER: ("#8f7a45", "#e0d0a4"),
    SliceKind.MEMCPY: ("#86963a", "#d3dd8e"),
    SliceKind.MEMSET: ("#6f7d45", "#cdd6a8"),
    Look.COMMUNICATION: ("#a0568f", "#e6b3da"),
    Look.OP_2: ("#3a86a8", "#9ccbdc"),
    Look.OP_3: ("#4a6cb3", "#aab8e2"),
    Look.KERNEL_2: ("#4aa868", "#a5dbb0"),
    Look.KERNEL_3: ("#369488", "#92d3c8"),
    Look.BACKWARD: ("#5a5fae", "#b9bce8"),
    Look.OPTIMIZER: ("#94549c", "#dfb8e4"),
    Look.LOADER: ("#9b7b4f", "#e3cba8"),
    Look.MODULE: ("#7d66a8", "#cabfe9"),
    Look.COPY_OP: ("#33919c", "#98d5da"),
}
# For colouring by name: after Paul Tol's muted set (told apart by the common kinds of colour blindness), its reds
# left out because red is taken.
_HUES: tuple[tuple[str, str], ...] = (
    ("#3f74a8", "#9bbfdd"),
    ("#36916a", "#97d8bc"),
    ("#a58a3a", "#e6d394"),
    ("#7d64b8", "#c3b3ea"),
    ("#2f8f95", "#94d3d6"),
    ("#a0568f", "#e6b3da"),
    ("#7c8a3a", "#cdd78e"),
    ("#4d60b5", "#b0b9ea"),
    ("#5c9fc4", "#bfe0f0"),
    ("#8a7462", "#dccdbf"),
)


@dataclass(frozen=True)
class Palette:
    """All colours of one theme."""

    dark: bool
    window: QColor
    lanes: QColor  # ground of the rows
    header: QColor
    strip: QColor  # ground of step strip and minimap
    line: QColor  # borders
    faint: QColor  # grid
    text: QColor
    muted: QColor
    dim: QColor
    label: QColor  # on slices
    wait: QColor
    wait_soft: QColor
    accent: QColor
    good: QColor
    warn: QColor
    grey: QColor
    outline: QColor  # around the selected slice
    shade: QColor  # over what is not selected


def _c(value: str, alpha: int = 255) -> QColor:
    colour = QColor(value)
    colour.setAlpha(alpha)
    return colour


@lru_cache(maxsize=2)
def palette(dark: bool) -> Palette:
    """Return the colours of a theme."""
    t = theme.theme(dark)
    return Palette(
        dark=dark,
        window=_c(t.window),
        lanes=_c("#14181d" if dark else "#fbfcfd"),
        header=_c(t.window),
        strip=_c("#12161b" if dark else "#f6f8fa"),
        line=_c(t.border),
        faint=_c(t.grid),
        text=_c(t.text),
        muted=_c(t.dim),
        dim=_c(t.faint),
        label=_c("#f6f8fa" if dark else "#131a22"),
        wait=_c(t.wait),
        wait_soft=_c(t.wait, 46 if dark else 34),
        accent=_c(t.accent),
        good=_c(t.saved),
        warn=_c(t.warn),
        grey=_c("#59626e" if dark else "#a3acb7"),
        outline=_c("#ffffff" if dark else "#000000"),
        shade=_c("#0b0d11" if dark else "#8b95a1", 96 if dark else 60),
    )


@lru_cache(maxsize=2048)
def fill(look: int, level: int, dark: bool) -> QColor:
    """Colour of a slice: ``level`` of LEVELS is how densely a folded box is covered."""
    if look in _FILLS or look >= HUES:
        pair = _FILLS[look] if look < HUES else _HUES[(look - HUES) % len(_HUES)]
        colour = QColor(pair[0 if dark else 1])
    else:
        colour = QColor(theme.slice_color(look, dark))
    share = 0.42 + 0.58 * level / LEVELS
    return blend(colour, palette(dark).lanes, share)


def blend(colour: QColor, ground: QColor, share: float) -> QColor:
    """Opaque mixture: ``share`` of the colour, the rest of the ground."""
    rest = 1 - share
    return QColor(
        round(colour.red() * share + ground.red() * rest),
        round(colour.green() * share + ground.green() * rest),
        round(colour.blue() * share + ground.blue() * rest),
    )


def gap_colour(cause: int, dark: bool) -> QColor:
    """Shade of an idle stretch of a device. Only waiting is red."""
    return blend(QColor(theme.gap_color(cause, dark)), palette(dark).lanes, 0.28 if dark else 0.2)


_COARSE = np.arange(256, dtype=np.uint8)
for _shade_of, _base in (
    (Look.OP_2, SliceKind.CPU_OP),
    (Look.OP_3, SliceKind.CPU_OP),
    (Look.KERNEL_2, SliceKind.KERNEL),
    (Look.KERNEL_3, SliceKind.KERNEL),
):
    _COARSE[_shade_of] = _base


def coarse(look: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Looks without the shades that only tell neighbours apart: what folded slices are merged and drawn by."""
    return _COARSE[look]


def _name_look(name: str, kind: int) -> int:
    shade = zlib.crc32(name.encode("utf-8", "replace")) % 3
    if kind == SliceKind.KERNEL:
        return (int(SliceKind.KERNEL), int(Look.KERNEL_2), int(Look.KERNEL_3))[shade]
    if kind == SliceKind.PYTHON:
        return int(Look.MODULE if name.startswith("nn.Module: ") else SliceKind.PYTHON)
    if name.startswith("Optimizer."):
        return int(Look.OPTIMIZER)
    if name.startswith(("enumerate(DataLoader)", "DataLoader")):
        return int(Look.LOADER)
    if kind != SliceKind.CPU_OP:
        return kind
    if name.startswith("autograd::") or "Backward" in name:
        return int(Look.BACKWARD)
    if name in ("aten::copy_", "aten::to", "aten::_to_copy", "aten::item", "aten::_local_scalar_dense"):
        return int(Look.COPY_OP)
    return (int(SliceKind.CPU_OP), int(Look.OP_2), int(Look.OP_3))[shade]


def looks(trace: Trace, by_name: bool) -> NDArray[np.uint8]:
    """uint8[n_slices]: the look of every slice, worked out once per distinct name and kind."""
    slices = trace.slices
    if by_name:
        hues = np.array(
            [HUES + zlib.crc32(v.encode("utf-8", "replace")) % len(_HUES) for v in trace.strings.values]
            + [int(SliceKind.OTHER)],
            np.uint8,
        )
        return hues[slices.name_id]
    result = slices.kind.copy()
    for kind in (SliceKind.CPU_OP, SliceKind.KERNEL, SliceKind.PYTHON, SliceKind.RANGE):
        ids = np.flatnonzero(slices.kind == kind)
        if not len(ids):
            continue
        names = slices.name_id[ids]
        used = np.unique(names)
        table = np.full(len(trace.strings) + 1, int(kind), np.uint8)
        table[used] = [_name_look(trace.strings[int(i)], int(kind)) for i in used]
        result[ids] = table[names]
    result[(slices.flags & FLAG_COMMUNICATION) != 0] = int(Look.COMMUNICATION)
    return result
