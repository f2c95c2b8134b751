"""Figures of a trace, each defined once (docs/figures.md)."""
