"""Painting and moving over the timeline."""
