"""Findings that are meant: a small file that a team commits beside its code, and the gate that CI asks.

The file is TOML, one table per finding::

    [[allow]]
    rule = "scalar-read-back"       # rule id, or a pattern such as "*-read-back"
    file = "train.py"               # optional: end of the path
    function = "train_epoch"        # optional
    line = 88                       # optional
    op = "aten::item"               # optional: the operator path, or a part of it
    reason = "the loss is shown every step on purpose"

Every key that is given must fit; ``rule`` and ``reason`` are required, so that nothing is allowed by accident.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import TraceError
from core.suggestions import Outcome, RuleResult, Suggestion

HEADER = """\
# Findings of StepLens that are meant. Commit this file beside the code.
# main.py analyze TRACE --allow THIS_FILE --fail-on any   fails only for something new.
"""
SEVERITIES = ("low", "medium", "high")
_KEYS = {"rule": str, "file": str, "function": str, "line": int, "op": str, "reason": str}
# The words may be left out where the unit says that a saving is meant.
_SAVING = re.compile(r"saving>=(\d+(?:\.\d+)?)(%|us|µs|ms|s)?|(\d+(?:\.\d+)?)(%|us|µs|ms|s)")
_US_PER = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}


@dataclass(frozen=True)
class Allowed:
    """One entry of the file; an empty text and line 0 mean "any"."""

    rule: str
    reason: str
    file: str = ""
    function: str = ""
    line: int = 0
    op: str = ""

    def fits(self, suggestion: Suggestion) -> bool:
        """Whether the entry is about this suggestion."""
        if not fnmatchcase(suggestion.rule_id, self.rule):
            return False
        source = suggestion.source
        if (self.file or self.function or self.line) and source is None:
            return False
        if source is not None:
            if self.file and not ends_with(source.file, self.file):
                return False
            if self.function and source.function.rpartition(".")[2] != self.function.rpartition(".")[2]:
                return False
            if self.line and self.line != source.line and self.line not in source.candidates:
                return False
        return self.op in str(suggestion.values.get("op_path", "")) if self.op else True


def ends_with(path: str, end: str) -> bool:
    """Whether a path ends in these whole components, whichever slash either uses."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    tail = PurePosixPath(end.replace("\\", "/")).parts
    tail = tuple(p for p in tail if p != ".")
    return bool(tail) and parts[-len(tail) :] == tail


def read_allow_file(path: Path) -> list[Allowed]:
    """Read the file.

    Raises
    ------
    TraceError
        Naming the file, the entry and the key at fault.
    """
    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for, a device never ends
            raise TraceError(f"{path} is no file.")
        values = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise TraceError(f"{path} is not valid TOML: {error}.", hint="See docs/headless.md for the format.") from error
    except ValueError as error:  # a number of thousands of digits
        raise TraceError(f"{path} holds a number that is too long.", hint="Shorten it.") from error
    except RecursionError as error:
        raise TraceError(f"{path} is nested too deep.", hint="See docs/headless.md for the format.") from error
    foreign = set(values) - {"allow"}
    if foreign:
        raise TraceError(f"{path}: unknown key {sorted(foreign)[0]!r}.", hint="Entries are [[allow]] tables.")
    entries = values.get("allow", [])
    if not isinstance(entries, list):
        raise TraceError(f"{path}: 'allow' must be written as [[allow]] tables.")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(path: Path, number: int, entry: Any) -> Allowed:
    where = f"{path}: entry {number}"
    if not isinstance(entry, dict):
        raise TraceError(f"{where} must be an [[allow]] table.")
    for key, value in entry.items():
        if key not in _KEYS:
            raise TraceError(f"{where} has the unknown key {key!r}.", hint=f"Known keys: {', '.join(_KEYS)}.")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            kind = "a whole number" if _KEYS[key] is int else "text"
            raise TraceError(f"{where}: {key!r} must be {kind}, not {value!r}.")
    for key in ("rule", "reason"):
        if not str(entry.get(key, "")).strip():
            raise TraceError(f"{where} lacks {key!r}.", hint="Say which rule is allowed, and why.")
    return Allowed(**entry)


def entry_for(suggestion: Suggestion, reason: str) -> Allowed:
    """Return the entry that allows this suggestion: by function rather than by line, since lines move."""
    return next(iter(scopes(suggestion, reason).values()))


def scopes(suggestion: Suggestion, reason: str = "") -> dict[str, Allowed]:
    """Entries that allow this suggestion, by how much else they allow; the one to offer first comes first.

    ``function`` is any line of its function, ``line`` that line alone, ``op`` its operator path, ``rule`` the rule
    everywhere. Only those that the suggestion has a place for are there; ``rule`` always is.
    """
    source, op = suggestion.source, str(suggestion.values.get("op_path", ""))
    found: dict[str, Allowed] = {}
    if source is not None:
        name = PurePosixPath(source.file.replace("\\", "/")).name
        if source.function:
            found["function"] = Allowed(suggestion.rule_id, reason, file=name, function=source.function)
        if source.line:
            found["line"] = Allowed(suggestion.rule_id, reason, file=name, line=source.line)
    if op:
        found["op"] = Allowed(suggestion.rule_id, reason, op=op)
    found["rule"] = Allowed(suggestion.rule_id, reason)
    return found


def entry_text(entry: Allowed) -> str:
    """Return the entry as it stands in the file."""
    lines = ["[[allow]]"]
    for key in _KEYS:
        value = getattr(entry, key)
        if value:
            lines.append(f"{key} = {value if isinstance(value, int) else _quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def split_allowed(
    suggestions: Iterable[Suggestion], allowed: Sequence[Allowed]
) -> tuple[list[Suggestion], list[tuple[Suggestion, Allowed]], list[Allowed]]:
    """Return the suggestions that are new, the allowed ones with their entry, and the entries that fit nothing."""
    new: list[Suggestion] = []
    meant: list[tuple[Suggestion, Allowed]] = []
    for suggestion in suggestions:
        entry = next((a for a in allowed if a.fits(suggestion)), None)
        if entry is None:
            new.append(suggestion)
        else:
            meant.append((suggestion, entry))
    used = {id(entry) for _, entry in meant}
    return new, meant, [entry for entry in allowed if id(entry) not in used]


@dataclass(frozen=True)
class Gate:
    """A parsed ``--fail-on``: met unless a new suggestion fits one of its terms."""

    rules: tuple[str, ...] = ()
    severity: str = ""
    saving_pct: float | None = None
    saving_us: float | None = None
    anything: bool = False

    def hits(self, suggestion: Suggestion) -> bool:
        """Whether this suggestion fails the gate. Notes about the trace do so only where their rule is named."""
        if any(fnmatchcase(suggestion.rule_id, rule) for rule in self.rules):
            return True
        if suggestion.informational:
            return False
        if self.anything:
            return True
        if self.severity and SEVERITIES.index(suggestion.severity) >= SEVERITIES.index(self.severity):
            return True
        saving = suggestion.saving
        if self.saving_pct is not None and saving.pct is not None and saving.pct >= self.saving_pct:
            return True
        return self.saving_us is not None and saving.ns is not None and saving.ns / 1000 >= self.saving_us

    def unchecked(self, results: Iterable[RuleResult]) -> list[RuleResult]:
        """Rules that the gate names and that this trace could not decide: a gate is not met by looking away."""
        return [
            r
            for r in results
            if r.outcome in (Outcome.NOT_CHECKED, Outcome.FAILED) and any(fnmatchcase(r.rule.id, p) for p in self.rules)
        ]


def parse_gate(spec: str, known_rules: Iterable[str]) -> Gate:
    """Parse ``--fail-on``: terms separated by commas, of which one is enough to fail.

    A term is a rule id (or a pattern), ``low``/``medium``/``high`` (that severity or more), ``saving>=5%`` or ``5%``,
    ``saving>=200us`` (or ms, s; of a step), or ``any``.

    Raises
    ------
    ValueError
        Naming the term that means nothing.
    """
    ids = list(known_rules)
    rules: list[str] = []
    severity, saving_pct, saving_us, anything = "", None, None, False
    terms = [term.strip() for term in spec.split(",") if term.strip()]
    if not terms:
        raise ValueError("--fail-on is empty")
    for term in terms:
        saving = _SAVING.fullmatch(term.replace(" ", "").lower())
        if saving is not None:
            value, unit = float(saving[1] or saving[3]), saving[2] or saving[4] or "%"
            if unit == "%":
                saving_pct = value if saving_pct is None else min(saving_pct, value)
            else:
                value *= _US_PER[unit]
                saving_us = value if saving_us is None else min(saving_us, value)
        elif term in SEVERITIES:
            severity = term if not severity else min(severity, term, key=SEVERITIES.index)
        elif term == "any":
            anything = True
        elif any(fnmatchcase(rule, term) for rule in ids):
            rules.append(term)
        else:
            raise ValueError(f"--fail-on: {term!r} is no rule, severity, 'any' or saving (such as saving>=5%)")
    return Gate(tuple(rules), severity, saving_pct, saving_us, anything)
