"""Arguments; starts the window, or a headless command."""

from __future__ import annotations


def main() -> int:
    """Run the program; return its exit status."""
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
