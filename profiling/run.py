"""Starts a script under the profiler, watches it, stops it, and says what came of it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from profiling import manifest
from profiling._child_place import Place
from profiling.errors import ProfilingError, cannot_start
from profiling.events import Gathered, Progress, Tail
from profiling.interrupts import HandedOn
from profiling.lifeline import Lifeline
from profiling.nvml import Sampler
from profiling.output_log import OutputLog
from profiling.processes import WINDOWS, Tree
from profiling.reading import Reader
from profiling.result import RunResult, build_result, with_fault
from profiling.sentences import say
from profiling.spec import NO_GPU, RunSpec

CHILD = Path(__file__).with_name("_child.py")
TAIL_BYTES = 64_000
POLL_SECONDS = 0.05
GRACE_SECONDS = 3.0  # between asking and ending
TERM_SECONDS = 1.0  # between ending and killing
SAVING_SECONDS = 15.0  # longer grace while a trace is being written
PIPE_SECONDS = 1.0  # for the pipes to close after the script: a process it left behind may hold them

Output = Callable[[str, str], None]
OnProgress = Callable[[Progress], None]


class Run:
    """One run of one script.

    Callbacks come from threads of this object, never from the caller's.

    Parameters
    ----------
    spec
        What to run; checked here (:class:`ProfilingError`).
    on_output
        Called with ``"stdout"`` or ``"stderr"`` and a piece of text, decoded as UTF-8 across pieces.
    on_progress
        Called when the phase or the step changed.
    on_finish
        Called once with the result.
    """

    def __init__(
        self,
        spec: RunSpec,
        on_output: Output | None = None,
        on_progress: OnProgress | None = None,
        on_finish: Callable[[RunResult], None] | None = None,
    ) -> None:
        spec.check()
        self.spec = spec
        self.folder = Path()
        self._place: Place | None = None  # of the folder, which may be renamed while the script runs
        self.gathered = Gathered()
        self.result: RunResult | None = None
        self._on_output, self._on_progress, self._on_finish = on_output, on_progress, on_finish
        self._tail = bytearray()  # of both streams as they came
        self._errors = bytearray()  # of stderr alone
        self._log_lock = threading.Lock()
        self._log: OutputLog | None = None
        self._log_error = self._fault = ""  # why the log broke off; a fault of ours while the script ran
        self._stop_asked = 0.0
        self._stop_now = False
        self._killed = False
        self._done = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._tree: Tree | None = None
        self._lifeline: Lifeline | None = None
        self._reader: Reader | None = None
        self._began = 0.0
        self.gpus = Sampler()

    # Start --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the script; raises a :class:`ProfilingError` where the interpreter cannot be started."""
        root = Path(os.path.abspath(os.path.expanduser(self.spec.runs_root or manifest.default_runs_root())))
        try:
            self.folder = manifest.new_run_folder(root, self.spec.title)
            self._place = Place(str(self.folder))
            self._log = OutputLog(self.folder / "output.log")
            self._write_first_manifest()
            config = self.folder / "child.json"
            config.write_text(json.dumps(child_config(self.spec, self.folder)), "utf-8")
        except OSError as error:
            self._close_log()
            if self._place is not None:  # what was made holds nothing yet
                self._place.let_go()
                shutil.rmtree(self.folder, ignore_errors=True)
            cure = say("cure-disk" if error.errno == errno.ENOSPC else "cure-another")
            raise ProfilingError(say("no-run-folder", folder=root), f"{error.strerror or error}.", cure) from error
        self._began = time.time()
        try:
            self._process = self._popen([self.spec.interpreter, str(CHILD), str(config)])
        except (OSError, ValueError) as error:
            self._close_log()
            raise cannot_start(self.spec.interpreter, error) from error
        self._tree = Tree(self._process)
        self._lifeline = Lifeline(self._process.pid)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        pipes = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        self._reader = Reader(pipes, self._take_output)
        threading.Thread(target=self._watch, name="run-watch", daemon=True).start()

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        env = dict(os.environ)
        for name, value in self.spec.env.items():
            if value:
                env[name] = value
            else:
                env.pop(name, None)
        if self.spec.gpu:
            env["CUDA_VISIBLE_DEVICES"] = "" if self.spec.gpu == NO_GPU else self.spec.gpu
        stdin = {"inherit": None, "pipe": subprocess.PIPE, "null": subprocess.DEVNULL}[self.spec.stdin]
        flags: dict[str, Any] = (
            {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
            if WINDOWS
            else {"start_new_session": True}
        )
        return subprocess.Popen(
            command, cwd=self.spec.folder, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, **flags,
        )  # fmt: skip

    # While it runs ----------------------------------------------------------------------------------------------

    def write_stdin(self, text: str) -> None:
        """Give the script a line of input (only where ``stdin`` is a pipe)."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(text.encode())
                self._process.stdin.flush()

    def close_stdin(self) -> None:
        """Tell the script that no more input will come."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop(self, *, now: bool = False) -> None:
        """Ask the script to end, then end it: within five seconds nothing of it is left.

        A trace that is being saved is waited for a little longer; a second call, or ``now``, does not wait.
        """
        if self._process is None or self._done.is_set():
            return
        if self._stop_asked or now:
            self._stop_now = True
        self._stop_asked = self._stop_asked or time.monotonic()

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """Wait for the end; None where the time is over first."""
        return self.result if self._done.wait(timeout) else None

    @property
    def running(self) -> bool:
        """Whether the run was started and has not ended."""
        return self._process is not None and not self._done.is_set()

    def _take_output(self, stream: str, data: bytes, text: str) -> None:
        with self._log_lock:
            for kept in (self._tail, self._errors) if stream == "stderr" else (self._tail,):
                kept += data
                if len(kept) > 2 * TAIL_BYTES:
                    del kept[:-TAIL_BYTES]
            if self._log is not None:
                try:
                    self._log.write(data)
                except (OSError, ValueError) as error:
                    self._log_error = str(error)
        if text and self._on_output is not None:
            self._on_output(stream, text)

    def _watch(self) -> None:
        """Whatever happens here, the run ends with a result: else everybody would wait for it for ever."""
        tail = Tail(self.folder / "events.jsonl")
        try:
            with self._noted():
                self.gpus.start()
            self._follow(tail)
            with self._noted():
                self._clear_up(tail)
        finally:
            tail.close()
            self._finish()

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """A fault of ours is kept for the result; the script goes on."""
        try:
            yield
        except Exception as error:
            self._fault = self._fault or f"{type(error).__name__}: {error}"

    def _follow(self, tail: Tail) -> None:
        assert self._process is not None
        assert self._tree is not None
        asked, rounds = 0, 0
        while self._process.poll() is None:
            with self._noted():
                self._take(tail)
                if rounds % 10 == 0:
                    self._tree.look()
            rounds += 1
            if self._stop_asked:
                with self._noted():
                    asked = self._press(asked)
            time.sleep(POLL_SECONDS)

    def _clear_up(self, tail: Tail) -> None:
        assert self._tree is not None
        if self._lifeline is not None:
            self._lifeline.let_go()
        if self._stop_asked:
            self._tree.kill()
        if self._reader is not None:
            self._reader.join(PIPE_SECONDS)
        self._take(tail)

    def _press(self, asked: int) -> int:
        """One round of stopping: ask, then terminate, then kill; returns how far it has come."""
        assert self._tree is not None
        waited = time.monotonic() - self._stop_asked
        grace = SAVING_SECONDS if self.gathered.progress.phase == "saving" else GRACE_SECONDS
        if asked == 0:
            with contextlib.suppress(OSError):  # where the script does not follow, its recording is saved at least
                (self.folder / "stop").touch()
            self._tree.look()
            self._tree.ask()
            return 1
        if self._stop_now or waited > grace + TERM_SECONDS:
            self._killed = True
            self._tree.kill()
            return 3
        if asked == 1 and waited > grace:
            self._tree.terminate()
            return 2
        return asked

    def _take(self, tail: Tail) -> None:
        changed = False
        self._find_folder()
        tail.path = self.folder / tail.path.name
        for event in tail.read():
            changed = self.gathered.take(event) or changed
        if changed and self._on_progress is not None:
            self._on_progress(self.gathered.progress)

    def _find_folder(self) -> None:
        if self._place is not None:
            self.folder = Path(self._place.now())

    # The end ------------------------------------------------------------------------------------------------------

    def _write_first_manifest(self) -> None:
        spec = self.spec
        manifest.write(
            self.folder,
            {
                "format": manifest.FORMAT,
                "name": spec.title,
                "state": "running",
                "created": time.time(),
                "command": spec.command,
                "cwd": spec.folder,
                "interpreter": spec.interpreter,
                "spec": spec.to_json(),
                "environment": manifest.environment({**os.environ, **spec.env}),
                "git": manifest.git_revision(spec.folder),
            },
        )

    def _close_log(self) -> None:
        with self._log_lock:
            log, self._log = self._log, None
            if log is not None:
                with contextlib.suppress(OSError):
                    log.close()

    def _finish(self) -> None:
        try:
            with self._noted():
                self.result = self._judge()
            if self.result is None or self._fault:
                assert self._process is not None
                status, stopped = self._process.returncode, bool(self._stop_asked)
                self.result = with_fault(self.result, self._fault, status, self.folder, self._ends()[0], stopped)
        finally:
            if self._place is not None:
                self._place.let_go()
            self._done.set()
        with self._noted():
            if self._on_progress is not None:
                self._on_progress(Progress("ended", self.gathered.progress.step))
        if self._on_finish is not None:
            self._on_finish(self.result)

    def _judge(self) -> RunResult:
        assert self._process is not None
        self._close_log()
        tail, errors = self._ends()
        self._find_folder()
        with contextlib.suppress(OSError):  # it may have been deleted: what came of the run is told all the same
            self.folder.mkdir(parents=True, exist_ok=True)
        if self._log_error:
            self.gathered.notices["log-cut"] = say("log-cut", error=self._log_error)
        gpus: list[dict[str, Any]] = []
        with contextlib.suppress(OSError):
            self.gpus.stop()
            gpus = self.gpus.write(self.folder)
        return build_result(
            self.spec,
            self.folder,
            self.gathered,
            exit_status=self._process.returncode,
            tail=tail,
            errors=errors,
            stopped=bool(self._stop_asked),
            killed=self._killed,
            seconds=time.time() - self._began,
            gpus=gpus,
        )

    def _ends(self) -> tuple[str, str]:
        """The end of the output, and of standard error alone."""
        with self._log_lock:
            tail, errors = (bytes(k[-TAIL_BYTES:]).decode("utf-8", "replace") for k in (self._tail, self._errors))
        return tail, errors


def child_config(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """What the child is told."""
    plain = spec.to_json()
    return {
        "format": "steplens.child/1",
        "script": "" if spec.module else spec.script_as_typed,
        "module": spec.module,
        "argv": list(spec.argv),
        "folder": str(folder),
        "spawned": False,
        "events": str(folder / "events.jsonl"),
        "schedule": plain["schedule"],
        "options": plain["options"],
        "step_source": spec.step_source,
        "stop_after_window": spec.stop_after_window,
        "line_ranges": list(spec.line_ranges),
        "measure_wall": spec.measure_wall,
        "parameters": spec.parameters,
        "parameters_after": spec.parameters_after,
        "sync_lines": spec.sync_lines,
        "whole": spec.step_source in ("auto", "whole"),
        "whole_seconds": spec.whole_seconds,
    }


def run_blocking(spec: RunSpec, on_output: Output | None = None, on_progress: OnProgress | None = None) -> RunResult:
    """Run to the end; Ctrl-C or SIGTERM stops the script, a second one kills it; its result is still returned.

    Raises
    ------
    ProfilingError
        Where nothing could be started.
    """
    run = Run(spec, on_output, on_progress)
    with HandedOn(run.stop) as signals:
        run.start()
        signals.begin()
        while (result := run.wait(0.5)) is None:
            pass
        return result
