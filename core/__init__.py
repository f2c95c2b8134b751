"""The trace and everything computed from it: no Qt, no torch, no subprocess."""
