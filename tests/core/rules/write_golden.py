"""Writes the golden file anew, to be read before it is committed: ``python -m tests.core.rules.write_golden``."""

from __future__ import annotations

import json

from tests.core.rules.kit import run_rule
from tests.core.rules.test_rules import CASES, GOLDEN_FILE, summary


def main() -> None:
    golden = {rule: [summary(s) for s in run_rule(rule, CASES[rule].found()).suggestions] for rule in sorted(CASES)}
    GOLDEN_FILE.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
