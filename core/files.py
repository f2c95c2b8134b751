"""Writing a file so that it is there whole or not at all, and never over something of the user's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.errors import TraceError

LOCK_S, LOOK_S = 1.0, 0.002
OLD_S = 24 * 3600.0  # nothing takes as long to write: whoever made it is not at it any more
# What `maker` and `tempfile` add to a name; older versions did not say who is at it.
PART = r"(?:(\d+)-([0-9a-f]{8})\.)?[a-z0-9_]{8}\.part"


def check_output(path: Path, suffixes: tuple[str, ...], inputs: Iterable[Path]) -> None:
    """Refuse an output that would destroy something.

    Parameters
    ----------
    path
        Where the output is to be written.
    suffixes
        Endings (lower case) that such an output may have: a trace given in its place by mistake has another one.
    inputs
        Files that are being read.

    Raises
    ------
    TraceError
        When the output is one of the inputs, is a folder, has a foreign ending or lies in no folder.
    """
    if path.suffix.lower() not in suffixes:
        raise TraceError(f"{path}: the output must end in {' or '.join(suffixes)}.")
    if path.is_dir():
        raise TraceError(f"{path} is a folder, so nothing can be written there.")
    if path.exists() and not path.is_file():
        raise TraceError(f"{path} is a device or a pipe, so nothing can be written there.")
    if not path.parent.is_dir():
        raise TraceError(f"{path}: the folder {path.parent} does not exist.", hint="Create it first.")
    for read in inputs:
        with contextlib.suppress(OSError):
            if path.exists() and os.path.samefile(path, read):
                raise TraceError(f"{path} is the input, which is never overwritten.", hint="Choose another name.")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file by way of a temporary one beside it.

    Raises
    ------
    TraceError
        When the folder cannot be written; an older file of that name is then untouched.
    """
    temporary = None
    path = Path(os.path.realpath(path))  # a link stays one, what it leads to is replaced
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        prefix = f".{path.name}.{maker()}."
        handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:
        raise TraceError(
            f"{path} cannot be written: {error.strerror or error}.", hint="Nothing was changed."
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def maker() -> str:
    """Name of this process, for what it is making: its number and a short name of this machine.

    The folder may lie on a disk that several machines share.
    """
    return f"{os.getpid()}-{_machine()}"


def is_left(found: re.Match[str], age_s: float) -> bool:
    """Whether nobody is at an unfinished thing any more: its maker, a process of this machine, ended, or it is old.

    Parameters
    ----------
    found
        Match of a pattern that ends in `PART`.
    age_s
        How long ago it was written to.
    """
    ours = found[1] is not None and found[2] == _machine()
    return age_s > OLD_S or (ours and not is_alive(int(found[1])))


def clear_parts(path: Path) -> int:
    """Take away what a process that was killed left beside a file that it was writing; returns how many files.

    Only what bears the name that `write_atomically` gives, and only what a process of this machine that has ended was
    writing: the file itself is as it was then, or new and whole. Of a folder, which is to be one of our own, all files.
    """
    path, count = Path(os.path.realpath(path)), 0
    folder, name = (path, ".+?") if path.is_dir() else (path.parent, re.escape(path.name))
    pattern = re.compile(rf"\.{name}\.{PART}")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found is not None and found[1] and is_left(found, 0.0) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    count += 1
    return count


def _machine() -> str:
    return hashlib.sha256(platform.node().encode("utf-8", "surrogatepass")).hexdigest()[:8]


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended; True where that cannot be told."""
    if os.name != "posix":  # os.kill would end it there
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    try:  # one that was killed keeps its number until whoever started it has noticed, which may never be
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return True
    return state[:1] not in (["Z"], ["X"])


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let no other window work here in a folder meanwhile, where the system has locks for that.

    One that has stood still for `LOCK_S` is not waited for: this is a matter of milliseconds.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            handle = os.open(folder, os.O_RDONLY)
            end = time.monotonic() + LOCK_S
            while not _locked(fcntl.flock, handle, fcntl.LOCK_EX | fcntl.LOCK_NB) and time.monotonic() < end:
                time.sleep(LOOK_S)
        yield
    finally:
        if handle is not None:
            os.close(handle)  # gives the lock back


def _locked(lock: Callable[[int, int], None], handle: int, how: int) -> bool:
    try:
        lock(handle, how)
    except BlockingIOError:  # another has it
        return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
