"""Overlays: one file each, listed here in painting order.

An overlay exposes ``paint(painter, frame)``. Those under and on the slices are part of the picture that is kept
between frames; those above are painted anew whenever selection, pointer or marks change.
"""

from gui.timeline.overlays import evidence, flows, gaps, legend, marks, search_hits, selection, sync_lines, syncs

UNDER = (gaps,)
ON = (syncs,)
ABOVE = (sync_lines, search_hits, evidence, flows, selection, marks, legend)
