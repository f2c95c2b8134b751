"""Panels: one file each, listed here in display order."""
