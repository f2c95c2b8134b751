"""One rule, one file: found by looking in this folder (core.rule_runner)."""
