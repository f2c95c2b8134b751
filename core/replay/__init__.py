"""Replay: the trace's own dependency graph, run again with measured durations, unchanged or with a fix in place.

`core.replay.replay.Replay` is the door; docs/replay.md explains the method and its limits.
"""
