"""Desktop entry, icon and file association for the current user (``make install``); Linux desktops only.

Standard library only: it runs before anything else of the window is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

APP_ID = "steplens"
MIME_TYPES = ("application/json", "application/gzip", "application/zip", "application/x-pytorch-trace")
ROOT = Path(__file__).resolve().parent.parent
MIME_XML = """<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="application/x-pytorch-trace">
    <comment>PyTorch profiler trace</comment>
    <glob pattern="*.pt.trace.json" weight="80"/>
    <glob pattern="*.pt.trace.json.gz" weight="80"/>
  </mime-type>
</mime-info>
"""


def data_home() -> Path:
    """Folder of the user's applications and icons (XDG base directory specification)."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def quote(path: Path) -> str:
    """Quote one argument of an ``Exec`` key (desktop entry specification, "The Exec key")."""
    text = str(path)
    for char in ("\\", '"', "`", "$"):
        text = text.replace(char, "\\" + char)
    return '"' + text.replace("\\", "\\\\").replace("%", "%%") + '"'


def entry(python: Path, main: Path) -> str:
    """Text of the desktop entry that starts ``main`` with ``python``."""
    lines = [
        "[Desktop Entry]",
        "Type=Application",
        "Name=StepLens",
        "GenericName=PyTorch trace explorer",
        "GenericName[es]=Explorador de trazas de PyTorch",
        "Comment=See why a PyTorch training step is slow, and what a fix would save",
        "Comment[es]=Vea por qué un paso de entrenamiento de PyTorch es lento y qué ahorraría cada arreglo",
        f"Exec={quote(python)} {quote(main)} %F",
        f"Icon={APP_ID}",
        "Terminal=false",
        "Categories=Development;Profiling;",
        f"MimeType={';'.join(MIME_TYPES)};",
        "StartupWMClass=steplens",
    ]
    return "\n".join(lines) + "\n"


def files(home: Path) -> dict[Path, str]:
    """Return every file that `install` writes, with its text."""
    icon = (ROOT / "resources" / "icons" / f"{APP_ID}.svg").read_text(encoding="utf-8")
    return {
        home / "applications" / f"{APP_ID}.desktop": entry(Path(sys.executable), ROOT / "main.py"),
        home / "icons" / "hicolor" / "scalable" / "apps" / f"{APP_ID}.svg": icon,
        home / "mime" / "packages" / f"{APP_ID}.xml": MIME_XML,
    }


def refresh(home: Path) -> None:
    """Tell the desktop, where its tools are installed; without them it notices at the next login."""
    for command in (["update-desktop-database", home / "applications"], ["update-mime-database", home / "mime"]):
        if shutil.which(str(command[0])):
            subprocess.run([str(part) for part in command], check=False, capture_output=True, timeout=60)


def install() -> list[Path]:
    """Write the files; return their paths."""
    home = data_home()
    written = files(home)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    refresh(home)
    return list(written)


def uninstall() -> list[Path]:
    """Remove what `install` wrote; return the paths that were there."""
    home = data_home()
    removed = [path for path in files(home) if path.exists()]
    for path in removed:
        path.unlink()
    refresh(home)
    return removed


def main(arguments: list[str]) -> int:
    """Run ``install`` or ``uninstall``; return the exit status."""
    if arguments == ["install"]:
        for path in install():
            print(f"wrote {path}")
        print("StepLens is in your applications menu; a double click on *.pt.trace.json opens it.")
        return 0
    if arguments == ["uninstall"]:
        for path in uninstall():
            print(f"removed {path}")
        return 0
    print("usage: python -m gui.desktop install|uninstall", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
