"""python -m benchmarks [NAME [OPTIONS]]: measure the budgets. Without a name: all of them, one after another."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

_NO_COMMANDS = ("__main__", "browser", "generate", "measure", "perfetto", "repeated", "synthetic")


def main(arguments: list[str]) -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _NO_COMMANDS)
    if arguments and arguments[0] in names:
        importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])
    elif arguments:
        sys.exit(f"usage: python -m benchmarks [{' | '.join(names)}] [options]")
    else:
        for name in names:
            print(f"\n## {name}\n", flush=True)
            importlib.import_module(f"benchmarks.{name}").main([])


if __name__ == "__main__":
    main(sys.argv[1:])
