"""Overlays: one file each, listed here in painting order."""
