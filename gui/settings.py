"""One table of settings, stored as INI; a value that does not fit falls back to its default."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setting:
    """One setting: its key in the file, type, default, and what it is for."""

    key: str
    type: type
    default: Any
    text: str


SETTINGS = (
    Setting("window/geometry", QByteArray, QByteArray(), "Size and place of the window"),
    Setting("window/main_split", QByteArray, QByteArray(), "Width of the plan beside the timeline"),
    Setting("window/bottom_split", QByteArray, QByteArray(), "Height of the details under the timeline"),
    Setting("window/bottom_tab", str, "details", "Tab that was open under the timeline"),
    Setting("window/reopen", str, "ask", "What was open last is opened at the start: ask, always or never"),
    Setting("appearance/theme", str, "system", "system, light or dark"),
    Setting("appearance/text_size", int, 0, "Size of all texts, in percent of the desktop's; 0 suits it to the screen"),
    Setting("tour/station", int, 0, "Station at which the tour was left, from 0"),
    Setting("tour/measured", list, [], "Its stations seen: number, step time and what the fix was to save, ns"),
    Setting("files/recent", list, [], "Traces opened lately, newest first"),
    Setting("files/recent_max", int, 12, "How many of them are kept"),
    Setting("files/last_folder", str, "", "Folder the open dialog starts in"),
    Setting("runs/folder", str, "", "Folder that receives the runs; empty for the default"),
    Setting("runs/last_script", str, "", "Script that was profiled last"),
    Setting("runs/rounds_of", str, "", "Project whose rounds were shown last"),
    Setting("runs/step_choices", list, ["measure_wall"], "What was ticked about the steps of the last run"),
    Setting("runs/interpreters", list, [], "Interpreters used lately, newest first"),
    Setting("rules/allowed", list, [], "Folders with own rules that are run"),
    Setting("rules/refused", list, [], "Folders with own rules that are not to be run, nor asked about"),
    Setting("sources/folders", list, [], "Where the sources lie that traces of other machines name"),
    Setting("editor/command", str, "", "Command that opens a file at a line, with {file} and {line}"),
    Setting("editor/allowed_folders", list, [], "Folders whose files may be opened without asking again"),
)
_BY_KEY = {s.key: s for s in SETTINGS}


class Settings:
    """Typed access to the table.

    Parameters
    ----------
    store
        For tests; otherwise the user's INI file.
    """

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = store or QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "StepLens", "StepLens")

    @property
    def folder(self) -> Path | None:
        """Folder of the file; the user's own rules lie beside it. None where there is no file."""
        name = self._store.fileName()
        return Path(name).parent if name else None

    def get(self, key: str) -> Any:
        """Value of a setting of the table.

        Raises
        ------
        KeyError
            When the table has no such key.
        """
        setting = _BY_KEY[key]
        raw = self._store.value(key, None)
        if raw is None:
            return list(setting.default) if setting.type is list else setting.default
        value = _convert(raw, setting.type)
        if value is None:
            log.info("setting %s is not a %s: using the default", key, setting.type.__name__)
            return setting.default
        return value

    def set(self, key: str, value: Any) -> None:
        """Store a value under a key of the table."""
        setting = _BY_KEY[key]
        if not isinstance(value, setting.type):
            raise TypeError(f"{key} takes {setting.type.__name__}, not {type(value).__name__}")
        self._store.setValue(key, value)

    def sync(self) -> None:
        """Write the file now."""
        self._store.sync()


class MemorySettings(Settings):
    """Defaults, and what was set since: nothing is read from or written to a file (pictures, tests)."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    @property
    def folder(self) -> Path | None:
        """No file, no folder."""
        return None

    def get(self, key: str) -> Any:
        """Value of a setting of the table."""
        return self._values.get(key, _BY_KEY[key].default)

    def set(self, key: str, value: Any) -> None:
        """Keep a value for as long as this object lives."""
        self._values[_BY_KEY[key].key] = value

    def sync(self) -> None:
        """Nothing to write."""


def _convert(raw: Any, kind: type) -> Any:
    """Return what the INI file held as ``kind``; None when it does not fit (INI knows only texts and lists of them)."""
    if kind is list:
        items = raw if isinstance(raw, list) else [raw]
        return [str(item) for item in items if isinstance(item, str) and item]
    if kind is int:
        try:
            return int(raw)
        except (TypeError, ValueError):
            return None
    if kind is bool:
        return {"true": True, "false": False}.get(str(raw).lower())
    return raw if isinstance(raw, kind) else None
