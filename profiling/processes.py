"""A process and everything it started: seen while it runs, ended when it must go."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

WINDOWS = os.name == "nt"


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of ``/proc/PID/stat`` after the name, None where the process is gone (or there is no ``/proc``)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text[text.rfind(")") + 2 :].split()


def started_at(pid: int) -> str:
    """A mark that tells a process from a later one with the same number; empty where it is gone or a zombie."""
    fields = _stat_fields(pid)
    return "" if fields is None or fields[0] in "ZX" else fields[19]


def descendants(pid: int) -> set[int]:
    """All living children, grandchildren and so on; empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                fields = _stat_fields(int(name))
                if fields is not None:
                    children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    queue = [pid]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def _listed(pid: int) -> set[int] | None:
    """Living descendants as the kernel lists them by thread; None where it does not.

    It costs a hundredth of looking at all processes, but may leave one out while another one ends.
    """
    found: set[int] = set()
    queue = [pid]
    while queue:
        parent = queue.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue  # it has ended
        for thread in threads:
            try:
                children = Path(f"/proc/{parent}/task/{thread}/children").read_bytes().split()
            except FileNotFoundError:
                if os.path.exists(f"/proc/{parent}/task/{thread}/stat"):
                    return None  # a kernel without these lists
                continue
            except OSError:
                continue
            queue += [int(child) for child in children]
            found.update(map(int, children))
    return found


class Tree:
    """The processes of one run, remembered also after they were handed over to another parent."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._seen: dict[int, str] = {}

    def look(self, *, thoroughly: bool = False) -> None:
        """Note who is there now; called every now and then while the run lasts."""
        roots = {self.process.pid, *self.alive()}
        for root in roots:
            listed = None if thoroughly else _listed(root)
            for pid in (descendants(root) if listed is None else listed) - self._seen.keys():
                self._seen[pid] = started_at(pid)

    def alive(self) -> list[int]:
        """The descendants seen that still live, without the process itself."""
        return [pid for pid, mark in self._seen.items() if mark and started_at(pid) == mark]

    def ask(self) -> None:
        """What Ctrl-C in a terminal does: an interrupt to the whole group."""
        if WINDOWS:
            with contextlib.suppress(OSError, ValueError):
                self.process.send_signal(signal.CTRL_BREAK_EVENT)  # type: ignore[attr-defined]
            return
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """A request that most programs follow at once."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End everything, now."""
        if WINDOWS:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(self.process.pid)], capture_output=True, check=False)
            return
        for _ in range(2):  # a child may be born between looking and killing
            self.look(thoroughly=True)
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if not WINDOWS:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, number)
        for pid in self.alive():
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        with contextlib.suppress(OSError):
            if self.process.poll() is None:
                self.process.send_signal(number)
