"""Fixes as diffs of the user's own code: found by syntax, written without touching any other character."""
